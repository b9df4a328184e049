// Three readers of a cloud whose sentences have topics and some of which are paraphrases of others.
var isonbReaders = (() => {
  "use strict";
  const { dot } = isonbCloud;
  const ALPHA = 0.01; // of the ridge, times the mean squared singular value
  const TIE = 1e-9; // cosines that differ by less are equal: of n points in n directions made round all are

  // The chance that a pair that says the same has a higher cosine than one about two topics (AUC; ties count half).
  function cosine({ rows }, twins, strangers) {
    const of = (pairs) => pairs.map(([i, j]) => dot(rows[i], rows[j]));
    const others = of(strangers).sort((a, b) => a - b);
    const below = (value) => {
      let [low, high] = [0, others.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (others[middle] < value) low = middle + 1; else high = middle;
      }
      return low;
    };
    const won = of(twins).map((value) => (below(value - TIE) + below(value + TIE)) / 2 / others.length);
    return won.reduce((sum, share) => sum + share, 0) / won.length;
  }

  // How many find the sentence that says the same first, from either side.
  function search({ n, rows }, twins) {
    let found = 0;
    for (const [i, partner] of [...twins, ...twins.map(([i, j]) => [j, i])]) {
      const value = dot(rows[i], rows[partner]);
      let j = 0;
      while (j < n && (j === i || j === partner || dot(rows[i], rows[j]) < value - TIE)) j++;
      found += j === n;
    }
    return found / (2 * twins.length);
  }

  // Sums of the points of each topic, along each direction.
  function topicSums(points, topics) {
    const kinds = Math.max(...topics) + 1;
    const [counts, sums] = [new Float64Array(kinds), Array.from(points[0], () => new Float64Array(kinds))];
    points.forEach((row, i) => {
      counts[topics[i]] += 1;
      for (let k = 0; k < sums.length; k++) sums[k][topics[i]] += row[k];
    });
    return { counts, sums };
  }

  // A ridge classifier of the topic, each sentence left out of the fit once: with H the matrix that fits, the answer
  // without row i is (H y - h y) / (1 - h), h its i-th diagonal value. The columns of the points are orthogonal, and
  // each is multiplied by its factor.
  function classifier(points, { factors, variances }, topics, { counts, sums }) {
    const n = points.length;
    const squares = variances.map((value) => value * (n - 1));
    const alpha = ALPHA * squares.reduce((sum, value) => sum + value, 0) / squares.length;
    const weights = squares.map((value, k) => factors[k] ** 2 / (value + alpha));
    const fit = new Float64Array(counts.length);
    let right = 0;
    for (let i = 0; i < n; i++) {
      const row = points[i];
      for (let kind = 0; kind < fit.length; kind++) fit[kind] = counts[kind] / n;
      let h = 1 / n;
      for (let k = 0; k < weights.length; k++) {
        const weight = row[k] * weights[k];
        const sum = sums[k];
        h += weight * row[k];
        for (let kind = 0; kind < fit.length; kind++) fit[kind] += weight * sum[kind];
      }
      fit[topics[i]] -= h;
      right += fit.indexOf(Math.max(...fit)) === topics[i];
    }
    return right / n;
  }
  return { cosine, search, topicSums, classifier };
})();
