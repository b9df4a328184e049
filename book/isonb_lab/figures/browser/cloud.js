// A cloud of points in the page: rows of numbers, their spectrum, and measures equal to those of isonb.
// A cloud is {n, d, rows}: a Float64Array a row.
var isonbCloud = (() => {
  "use strict";
  function dot(a, b) { // four sums side by side: several times as fast as one
    const end = a.length - 3;
    let [first, second, third, fourth, k] = [0, 0, 0, 0, 0];
    for (; k < end; k += 4) {
      first += a[k] * b[k];
      second += a[k + 1] * b[k + 1];
      third += a[k + 2] * b[k + 2];
      fourth += a[k + 3] * b[k + 3];
    }
    for (; k < a.length; k++) first += a[k] * b[k];
    return first + second + third + fourth;
  }
  const length = (a) => Math.sqrt(dot(a, a));
  const cloud = (rows) => ({ n: rows.length, d: rows[0].length, rows });

  function half(bits) { // float16
    const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
    const size = exponent === 31 ? (fraction ? NaN : Infinity)
      : exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
    return bits >> 15 ? -size : size;
  }

  function numbers(buffer, type) { // little-endian bytes as float16, float32 or float64
    if (type === "f2") return Float64Array.from(new Uint16Array(buffer), half);
    if (type === "f4") return Float64Array.from(new Float32Array(buffer));
    return new Float64Array(buffer);
  }

  function reshaped(values, n, d) {
    return cloud(Array.from({ length: n }, (_, row) => values.subarray(row * d, (row + 1) * d)));
  }

  const empty = (n, d) => reshaped(new Float64Array(n * d), n, d);

  function decoded(text, type, n, d) { // base64
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return reshaped(numbers(bytes.buffer, type), n, d);
  }

  function mean({ n, d, rows }) {
    const total = new Float64Array(d);
    for (const row of rows) for (let k = 0; k < d; k++) total[k] += row[k];
    return total.map((sum) => sum / n);
  }

  function centred(x, center = mean(x)) {
    return cloud(x.rows.map((row) => row.map((value, k) => value - center[k])));
  }

  function unit(x) { // rows of length 1; a row of zeros stays
    return cloud(x.rows.map((row) => {
      const size = length(row) || 1;
      return row.map((value) => value / size);
    }));
  }

  function gram({ n, d, rows }) { // products of the rows, or of the columns where there are fewer
    const each = n <= d ? rows : Array.from({ length: d }, (_, k) => Float64Array.from(rows, (row) => row[k]));
    const products = each.map(() => new Float64Array(each.length));
    each.forEach((row, i) => {
      for (let j = 0; j <= i; j++) products[i][j] = products[j][i] = dot(row, each[j]);
    });
    return products;
  }

  function ratio(variances) { // participation ratio
    const total = variances.reduce((sum, value) => sum + value, 0);
    return total ** 2 / variances.reduce((sum, value) => sum + value * value, 0);
  }

  const isoscore = (variances, d) => (ratio(variances) - 1) / (d - 1);

  // The spectrum of a cloud: variances from the largest, each point's coordinates along their directions, and the
  // mean's. What of the mean no direction holds is the last coordinate. Distances and cosines are those of the cloud.
  function spectrum(x) {
    const center = mean(x);
    const moved = centred(x, center);
    const { realEigenvalues, eigenvectorMatrix } = new mlMatrix.EigenvalueDecomposition(
      new mlMatrix.Matrix(gram(moved)), { assumeSymmetric: true });
    const order = Array.from(realEigenvalues.keys()).sort((a, b) => realEigenvalues[b] - realEigenvalues[a]);
    const least = x.d * Number.EPSILON * realEigenvalues[order[0]];
    const alive = order.filter((k) => realEigenvalues[k] > least);
    const squares = alive.map((k) => realEigenvalues[k]);
    const columns = alive.map((k) => eigenvectorMatrix.getColumn(k));
    const wide = x.n <= x.d;
    const score = (row, i, k) => wide ? columns[k][i] * Math.sqrt(squares[k]) : dot(row, columns[k]);
    const points = moved.rows.map((row, i) => Float64Array.from(alive, (_, k) => score(row, i, k)));
    const inner = moved.rows.map((row) => dot(row, center));
    const place = columns.map((column, k) => wide ? dot(column, inner) / Math.sqrt(squares[k]) : dot(column, center));
    const rest = Math.sqrt(Math.max(0, dot(center, center) - dot(place, place)));
    return { n: x.n, d: x.d, variances: squares.map((value) => value / (x.n - 1)), points, mean: [...place, rest] };
  }

  // Partial whitening by p: what each direction is multiplied by, and its variance then.
  function turned(variances, p) {
    const usual = variances.reduce((sum, value) => sum + value, 0) / variances.length;
    const factors = Float64Array.from(variances, (value) => (value / usual) ** (-p / 2));
    return { factors, variances: Float64Array.from(variances, (value, k) => value * factors[k] ** 2) };
  }

  // The directions of a cloud's points after such a turn, with its mean kept (1) or taken off (0).
  function directions({ n, points, mean: center }, factors, keeps) {
    const made = empty(n, center.length);
    const width = factors.length;
    made.rows.forEach((row, i) => {
      const from = points[i];
      for (let k = 0; k < width; k++) row[k] = from[k] * factors[k] + keeps * center[k];
      row[width] = keeps * center[width];
      const size = 1 / (length(row) || 1);
      for (let k = 0; k <= width; k++) row[k] *= size;
    });
    return made;
  }

  // The mean cosine of points of length 1.
  function meanCosine(units) {
    const total = mean(units).map((part) => part * units.n);
    return (dot(total, total) - units.n) / (units.n * (units.n - 1));
  }

  function nearest({ rows }, i, k) { // rows by their cosine with row i of unit rows: [row, cosine]
    const others = rows.map((row, j) => [j, dot(rows[i], row)]).filter(([j]) => j !== i);
    return others.sort((a, b) => b[1] - a[1]).slice(0, k);
  }

  return { dot, length, cloud, empty, numbers, reshaped, decoded, mean, centred, unit, meanCosine, gram, ratio, isoscore, spectrum, turned, directions, nearest };
})();
