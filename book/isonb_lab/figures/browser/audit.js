// What `isonb audit` says first of a cloud, in the page: the floor, the use of space, hubs and repeated rows. Names and
// constants are those of isonb/auditing; a browser test compares the numbers.
var isonbAudit = (() => {
  "use strict";
  const { dot, length, cloud, reshaped, centred, unit, mean, meanCosine, gram, isoscore } = isonbCloud;
  const [PAIRS, K, BINS, TOP, TIE, COPY, DISTINCT] = [100000, 10, 60, 0.99, 1e-7, 2e-3, 100];
  const [DEEP, LEAST, REST, FEW, TOLERANCE] = [1 / 3, 5e-4, 0.02, 20, 0.03];
  const [NEAR, MORE, MANY, WIDER] = [0.01, 2, 0.4, 1.15];
  const [GAP, MOST, DIRECTIONS] = [1.5, 20, 20];
  const [HUB, SHARED, ONE] = [2, 0.05, 0.05];
  const SHARES = [0.5, 0.9, 0.95, 0.99, 0.999];
  const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);

  function quantile(values, share) {
    const sorted = Float64Array.from(values).sort();
    const place = share * (sorted.length - 1);
    const low = Math.floor(place);
    return sorted[low] + (place - low) * (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]);
  }

  function repeated({ rows }) { // rows that are equal to an earlier one
    const seen = new Set();
    return rows.flatMap((row, i) => {
      const key = row.join();
      return seen.size === seen.add(key).size ? [i] : [];
    });
  }

  function nearest({ n, rows }, k) { // by distance: [distances, indices] of the k nearest others of each row, ties by index
    const squares = rows.map((row) => dot(row, row));
    return rows.map((row, i) => {
      const close = [];
      for (let j = 0; j < n; j++) {
        if (j === i) continue;
        const away = squares[i] + squares[j] - 2 * dot(row, rows[j]);
        if (close.length === k && away >= close[k - 1][0]) continue;
        let place = close.length;
        while (place && close[place - 1][0] > away) place--;
        close.splice(place, 0, [away, j]);
        close.length = Math.min(close.length, k);
      }
      return close.map(([away, j]) => [away < 1e-6 * squares[i] ? distance(row, rows[j]) : Math.sqrt(away), j]);
    });
  }

  const distance = (a, b) => Math.sqrt(a.reduce((sum, value, k) => sum + (value - b[k]) ** 2, 0));

  function copies(x, eps) { // rows that an earlier one says, too, up to rounding or a little more
    const near = nearest(x, Math.min(K, x.n - 1));
    const usual = near.map((row) => row.at(-1)[0]).sort((a, b) => a - b)[Math.floor((x.n - 1) / 2)];
    return near.map((row, i) => row.some(([away, j]) => j < i && away <= Math.max(4 * eps * length(x.rows[i]), COPY * usual)));
  }

  // Use of space: participation ratio and IsoScore free of the number of points (PR-U).
  function spread(x) {
    const moved = centred(x);
    const products = gram(moved);
    const squares = moved.rows.map((row) => dot(row, row));
    const total = squares.reduce((sum, value) => sum + value, 0);
    const purity = products.reduce((sum, row) => sum + dot(row, row), 0) / total ** 2;
    const kurtosis = x.n * squares.reduce((sum, value) => sum + value * value, 0) / total ** 2;
    const k = 1 / ((x.n - 1) * (x.n - 2));
    const ratio = (1 - k + 2 * k * purity - kurtosis / (x.n - 2)) / (purity + k - kurtosis / (x.n - 2));
    return { isoscore: (1 / purity - 1) / (x.d - 1), isoscore_unbiased: (ratio - 1) / (x.d - 1), participation_ratio_unbiased: ratio };
  }

  const pairCosines = (x, first, second) => {
    const { rows } = unit(x);
    return Float64Array.from(first, (i, at) => dot(rows[i], rows[second[at]]));
  };

  function apartness(x, first, second) { // squared distances of pairs of rows, each moved to the mean of its neighbours
    const units = unit(x);
    const k = Math.max(1, Math.min(K, Math.floor(x.n / 10)));
    const local = nearest(units, k).map((near, i) => {
      const sum = units.rows[i].slice();
      for (const [, j] of near) for (let c = 0; c < x.d; c++) sum[c] += units.rows[j][c];
      return sum.map((value) => value / (k + 1));
    });
    return Float64Array.from(first, (i, at) => {
      const [a, b] = [local[i], local[second[at]]];
      let sum = 0;
      for (let c = 0; c < x.d; c++) sum += (a[c] - b[c]) ** 2;
      return sum;
    });
  }

  function histogram(values) {
    const [low, high] = [least(values), most(values)];
    const counts = new Float64Array(BINS);
    for (const value of values) counts[Math.min(BINS - 1, Math.floor((value - low) / (high - low) * BINS))] += 1;
    const at = (k) => counts[Math.max(0, Math.min(BINS - 1, k))];
    return { counts: counts.map((count, k) => (at(k - 1) + 2 * count + at(k + 1)) / 4), low, width: (high - low) / BINS };
  }

  function cuts(values) { // before, at and behind the lowest place of each valley of the histogram
    const { counts, low, width } = histogram(values);
    if (!width) return [];
    const total = counts.reduce((sum, count) => sum + count, 0);
    let below = 0;
    const valley = Array.from(counts, (count, k) => {
      below += count / total;
      const peak = Math.min(most(counts.slice(0, k + 1)), most(counts.slice(k)));
      return count <= DEEP * peak && peak >= FEW && below >= LEAST && 1 - below >= REST;
    });
    const runs = [];
    valley.forEach((isValley, k) => {
      if (isValley && valley[k - 1]) runs.at(-1).push(k); else if (isValley) runs.push([k]);
    });
    return runs.map((run) => {
      const bottom = least(run.map((k) => counts[k]));
      const lowest = run.filter((k) => counts[k] === bottom);
      const middle = low + width * (lowest[Math.floor(lowest.length / 2)] + 0.5);
      return [middle - width, middle, middle + width];
    });
  }

  function gaussianLike(x, draw) { // rows of a Gaussian with the mean and the covariance of x
    const center = mean(x);
    const moved = centred(x, center);
    const drawn = reshaped(draw.normals(x.n * x.n, true), x.n, x.n);
    return cloud(drawn.rows.map((weights) => {
      const row = new Float64Array(x.d);
      for (let i = 0; i < x.n; i++) for (let k = 0; k < x.d; k++) row[k] += weights[i] * moved.rows[i][k];
      return row.map((value, k) => value / Math.sqrt(x.n - 1) + center[k]);
    }));
  }

  const spreadOf = (values) => {
    const middle = values.reduce((sum, value) => sum + value, 0) / values.length;
    return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
  };

  function eigenvalues(x) { // of the scatter, the largest first; as many as the cloud has dimensions
    const { realEigenvalues } = new mlMatrix.EigenvalueDecomposition(new mlMatrix.Matrix(gram(centred(x))), { assumeSymmetric: true });
    const found = Float64Array.from(realEigenvalues, (value) => Math.max(0, value)).sort().reverse();
    return Float64Array.from({ length: x.d }, (_, k) => found[k] ?? 0);
  }

  function effectiveRank(values) { // the exponential of the entropy of the singular values
    const singular = values.map(Math.sqrt);
    const total = singular.reduce((sum, value) => sum + value, 0);
    const entropy = singular.reduce((sum, value) => sum - (value ? value / total * Math.log(value / total) : 0), 0);
    return Math.exp(entropy);
  }

  function standsOut(values, n) { // directions before the largest gap of the spectrum
    const count = Math.max(1, Math.min(MOST, Math.floor(values.length / 4), Math.floor(n / 2) - 1));
    const ratios = values.slice(0, count).map((value, k) => value / Math.max(values[k + 1], 1e-12 * values[0]));
    return most(ratios) >= GAP ? ratios.indexOf(most(ratios)) + 1 : 0;
  }

  // What is known of the cosine of two unrelated rows: {related, low, high, reason, mask}.
  function unrelated(x, first, second, cosines, draw) {
    const apart = apartness(x, first, second);
    const every = Array.from(apart, () => true);
    const top = quantile(cosines, TOP);
    const floorOf = (keep) => quantile(cosines.filter((_, at) => keep(apart[at])), TOP);
    const found = cuts(apart);
    const { counts, low, width } = histogram(apart);
    const mode = low + width * (counts.indexOf(most(counts)) + 0.5);
    const far = Math.min(top, floorOf((value) => value >= mode));
    const values = eigenvalues(x);
    if (effectiveRank(values) < DIRECTIONS) {
      const ends = found.map(([, , behind]) => floorOf((value) => value > behind));
      return { related: null, low: least([far, ...ends]), high: top, reason: "clusters overlap in so few directions", mask: every };
    }
    if (found.length) {
      const floors = found.flat().map((end) => floorOf((value) => value > end));
      const withheld = (reason) => ({ related: null, low: least(floors), high: top, reason, mask: every });
      if (most(floors) - least(floors) > TOLERANCE) return withheld("rows are alike on several levels");
      const mask = Array.from(apart, (value) => value > found[0][1]);
      const share = mask.filter((far) => !far).length / mask.length;
      if (share > MANY && cuts(apartness(gaussianLike(x, draw), first, second)).length) {
        return withheld("one direction alone makes rows alike");
      }
      const floor = floorOf((value) => value > found[0][1]);
      return { related: share, low: floor, high: floor, reason: "they lie in one cluster of neighbours", mask };
    }
    if (top - far <= TOLERANCE || (!standsOut(values, x.n) && oneCloud(x, first, second, apart, top, draw))) {
      return { related: 0, low: top, high: top, reason: "the rows form no clusters", mask: every };
    }
    return { related: null, low: far, high: top, reason: "related pairs pass into unrelated ones without a gap", mask: every };
  }

  function oneCloud(x, first, second, apart, top, draw) {
    const other = gaussianLike(x, draw);
    const usual = apartness(other, first, second);
    const end = quantile(usual, NEAR);
    if (apart.filter((value) => value < end).length / apart.length > MORE * NEAR) return false;
    if (spreadOf(apart) > WIDER * spreadOf(usual)) return false;
    return top - quantile(pairCosines(other, first, second), TOP) <= TOLERANCE / 2;
  }

  function popular(x) { // how often each row is among the K nearest of the others; ties share their places
    const { rows } = unit(x);
    const k = Math.min(K, x.n - 1);
    const counts = new Float64Array(x.n);
    rows.forEach((row, i) => {
      const cosines = rows.map((other, j) => (j === i ? -Infinity : dot(row, other)));
      const last = Float64Array.from(cosines).sort()[x.n - k];
      const nearer = cosines.filter((value) => value > last + TIE).length;
      const ties = cosines.filter((value) => Math.abs(value - last) <= TIE).length;
      cosines.forEach((value, j) => {
        if (value > last + TIE) counts[j] += 1; else if (value >= last - TIE) counts[j] += (k - nearer) / ties;
      });
    });
    return counts;
  }

  function hubs(x, gaussian) {
    const [counts, usual] = [popular(x), popular(gaussian)];
    const end = HUB * most(usual);
    const rows = Array.from(counts.keys()).filter((i) => counts[i] > end).sort((a, b) => counts[b] - counts[a]);
    const total = counts.reduce((sum, count) => sum + count, 0);
    const share = rows.reduce((sum, i) => sum + counts[i], 0) / total;
    const found = rows.length && (share > SHARED || counts[rows[0]] / x.n > ONE);
    return found ? { rows, share, most: counts[rows[0]] } : { rows: [], share: 0, most: 0 };
  }

  // Rows that are numbers and not zero; `double`: whether they came in float64.
  function audit(x, double) {
    const good = x.rows.map((row, i) => i).filter((i) => x.rows[i].every(Number.isFinite) && x.rows[i].some((value) => value !== 0));
    const left = x.n - good.length;
    if (good.length < 20) throw new Error(`at least 20 rows must be finite and not zero; got ${good.length} of ${x.n}.`);
    const clean = cloud(good.map((i) => x.rows[i]));
    const draw = isonbDraw(0);
    draw.permutation(clean.n);
    const gaussian = reshaped(draw.normals(clean.n * clean.d, double), clean.n, clean.d);
    const copied = copies(clean, double ? 2 ** -52 : 2 ** -23);
    draw.permutation(clean.n); // the groups of the jackknife
    const apart = cloud(clean.rows.filter((_, i) => !copied[i]));
    const rows = apart.n >= DISTINCT ? apart : clean;
    const first = draw.integers(0, rows.n, PAIRS);
    const second = draw.integers(1, rows.n, PAIRS).map((step, at) => (first[at] + step) % rows.n);
    const cosines = pairCosines(rows, first, second);
    const known = unrelated(rows, first, second, cosines, draw);
    const kept = known.related === null ? cosines : cosines.filter((_, at) => known.mask[at]);
    return {
      n: clean.n, d: clean.d, left, repeats: repeated(clean).map((i) => good[i]), unrelated: known,
      mean_cosine: meanCosine(unit(clean)), ...spread(clean), gaussian: { mean_cosine: meanCosine(unit(gaussian)), ...spread(gaussian) },
      quantiles: Object.fromEntries(SHARES.map((share) => [share, quantile(kept, share)])),
      hubs: ((found) => ({ ...found, rows: found.rows.map((i) => good[i]) }))(hubs(clean, gaussian)),
    };
  }
  return { audit };
})();
