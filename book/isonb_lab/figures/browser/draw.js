// The random numbers of torch on a CPU (Mersenne Twister 19937, normals by Box and Muller): an audit draws the same here.
var isonbDraw = (seed) => {
  "use strict";
  const [SIZE, FAR, BLOCK] = [624, 397, 16];
  const state = new Uint32Array(SIZE);
  state[0] = seed;
  for (let i = 1; i < SIZE; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  let at = SIZE;

  function next() { // 32 bits
    if (at === SIZE) {
      for (let k = 0; k < SIZE; k++) {
        const bits = (state[k] & 0x80000000) | (state[(k + 1) % SIZE] & 0x7fffffff);
        state[k] = state[(k + FAR) % SIZE] ^ (bits >>> 1) ^ (bits & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let bits = state[at++];
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    return (bits ^ (bits >>> 18)) >>> 0;
  }

  function wide() { // 53 bits, from 0 to 1
    const high = next() & 0x1fffff;
    return (high * 2 ** 32 + next()) / 2 ** 53;
  }

  const narrow = () => (next() & 0xffffff) / 2 ** 24;

  function permutation(n) {
    const order = Uint32Array.from({ length: n }, (_, i) => i);
    for (let i = 0; i < n - 1; i++) {
      const other = i + next() % (n - i);
      [order[i], order[other]] = [order[other], order[i]];
    }
    return order;
  }

  const integers = (low, high, count) => Uint32Array.from({ length: count }, () => low + next() % (high - low));

  function normals(count, double) { // at least 16
    const uniform = double ? wide : narrow;
    const values = Float64Array.from({ length: count }, uniform);
    const turn = (start) => {
      for (let j = start; j < start + BLOCK / 2; j++) {
        const radius = Math.sqrt(-2 * Math.log(1 - values[j]));
        const angle = 2 * Math.PI * values[j + BLOCK / 2];
        values[j] = radius * Math.cos(angle);
        values[j + BLOCK / 2] = radius * Math.sin(angle);
      }
    };
    for (let start = 0; start + BLOCK <= count; start += BLOCK) turn(start);
    if (count % BLOCK) {
      for (let j = count - BLOCK; j < count; j++) values[j] = uniform();
      turn(count - BLOCK);
    }
    return double ? values : values.map(Math.fround);
  }
  return { permutation, integers, normals };
};
