// Vectors as a reader has them, read in the page: a .npy file, a .csv file, or pasted lines.
var isonbVectors = (() => {
  "use strict";
  const TYPES = { "<f2": "f2", "<f4": "f4", "<f8": "f8" };

  function npy(buffer) { // rows as they are; `double` where they are float64
    const bytes = new Uint8Array(buffer);
    if (String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY") throw new Error("not a .npy file: its first bytes say something else.");
    const view = new DataView(buffer);
    const long = bytes[6] > 1;
    const start = long ? 12 : 10;
    const end = start + (long ? view.getUint32(8, true) : view.getUint16(8, true));
    const header = new TextDecoder().decode(bytes.subarray(start, end));
    const type = TYPES[/'descr': '([^']*)'/.exec(header)?.[1]];
    const shape = /'shape': \(([^)]*)\)/.exec(header)[1].split(",").map((part) => part.trim()).filter(Boolean).map(Number);
    if (!type) throw new Error(`numbers must be float16, float32 or float64, little-endian; the header says ${header.trim()}`);
    if (shape.length !== 2 || header.includes("'fortran_order': True")) throw new Error(`rows must be points: an array (n, d) in C order; got ${header.trim()}`);
    return { rows: isonbCloud.reshaped(isonbCloud.numbers(buffer.slice(end), type), ...shape), double: type === "f8" };
  }

  function text(lines) { // numbers between commas, semicolons, tabs or spaces; a first line of names is left out
    const cells = lines.split("\n").map((line) => line.trim().replace(/^\[|\],?$/g, "").split(/[\s,;]+/).filter(Boolean)).filter((line) => line.length);
    const [first, second] = cells;
    if (!first) throw new Error("no numbers yet: a line is a vector.");
    const counted = (from) => first.every((cell, k) => Number(cell) === k + from); // names that tools give to columns
    const named = second && (first.every((cell) => Number.isNaN(Number(cell))) || counted(0) || counted(1));
    const rows = (named ? cells.slice(1) : cells).map((line) => Float64Array.from(line, Number));
    const odd = rows.findIndex((row) => row.length !== rows[0].length);
    if (odd >= 0) throw new Error(`each line needs as many numbers: line ${odd + 1 + named} has ${rows[odd].length}, the first ${rows[0].length}.`);
    const word = rows.findIndex((row) => row.some(Number.isNaN));
    if (word >= 0) throw new Error(`line ${word + 1 + named} has something that isn't a number. Keep the columns of the vector alone.`);
    const whole = Array.from(rows[0], (_, k) => rows.every((row) => Number.isInteger(row[k])));
    if (rows.length > 1 && whole.includes(true) && whole.includes(false)) {
      throw new Error(`column ${whole.indexOf(true) + 1} has whole numbers alone: an id or a label? Leave it out.`);
    }
    return { rows: isonbCloud.cloud(rows), double: true };
  }
  return { npy, text };
})();
