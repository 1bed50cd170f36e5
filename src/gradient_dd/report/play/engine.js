"use strict";
// The engine of the live page: random words, trajectories and runs, equal to engine/trajectories.py and engine/reference.py.
// RULES (the steps of the rules, generated from their Python source) and EXPLODED are defined before this file.

// Random words: NumPy's SeedSequence and PCG64DXSM -------------------------------------------------------------------

const LOW64 = 0xffffffffffffffffn, MULTIPLIER = 0xda942042e4dd58b5n, FIRST_MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;

// Eight 32-bit words from whole numbers: the seed, then the spawn key.
function seedWords(seed, key) {
  const entropy = [seed % 2 ** 32];
  if (seed >= 2 ** 32) entropy.push(Math.floor(seed / 2 ** 32));
  while (entropy.length < 4) entropy.push(0);
  entropy.push(...key);
  let constant = 0x43b0d7e5;
  const hash = value => {
    value ^= constant; constant = Math.imul(constant, 0x931e8875); value = Math.imul(value, constant);
    return value ^ (value >>> 16);
  };
  const mix = (a, b) => { const c = Math.imul(a, 0xca01f9dd) - Math.imul(b, 0x4973f715); return c ^ (c >>> 16); };
  const pool = entropy.slice(0, 4).map(hash);
  for (let from = 0; from < 4; from++) for (let to = 0; to < 4; to++) if (from !== to) pool[to] = mix(pool[to], hash(pool[from]));
  for (const word of entropy.slice(4)) for (let to = 0; to < 4; to++) pool[to] = mix(pool[to], hash(word));
  constant = 0x8b51f9dd;
  return Array.from({ length: 8 }, (_, i) => {
    let value = pool[i % 4] ^ constant; constant = Math.imul(constant, 0x58f38ded); value = Math.imul(value, constant);
    return (value ^ (value >>> 16)) >>> 0;
  });
}

// A function that returns the next word as its upper and its lower 32 bits, in `word`.
function randomWords(seed, key, word) {
  const [a, b, c, d] = [0, 2, 4, 6].map((i, _, __, words = seedWords(seed, key)) => BigInt(words[i]) | (BigInt(words[i + 1]) << 32n));
  const wide = value => BigInt.asUintN(128, value), increment = wide(((c << 64n | d) << 1n) | 1n);
  let state = wide((increment + (a << 64n | b)) * FIRST_MULTIPLIER + increment);
  return () => {
    let high = state >> 64n;
    high ^= high >> 32n; high = (high * MULTIPLIER) & LOW64; high ^= high >> 48n; high = (high * (state & LOW64 | 1n)) & LOW64;
    state = wide(state * MULTIPLIER + increment);
    word[0] = Number(high >> 32n); word[1] = Number(high & 0xffffffffn);
  };
}

// Trajectories --------------------------------------------------------------------------------------------------------

// The outcome of every step: the upper half of a word chooses an entry, the lower half one of its two outcomes.
function trajectory(task, seed, run, sampling, steps) {
  const { first, size, keep, outcome } = task.alias[sampling], column = new Int32Array(steps), word = [0, 0];
  const next = randomWords(seed, [...task.digest, sampling === "iid" ? 1 : 0, run], word);
  let group = first.length - 1;
  for (let t = 0; t < steps; t++) {
    next();
    const entry = first[group] + Math.floor(word[0] * size[group] / 2 ** 32), side = word[1] >= keep[entry] ? 1 : 0;
    column[t] = outcome[2 * entry + side];
    group = sampling === "iid" ? 0 : task.next_row[column[t]];
  }
  return column;
}

// Tasks ---------------------------------------------------------------------------------------------------------------

// The table of a task with the data that steps read: for each outcome the features of x and of x', index by index.
function prepare(data) {
  const whole = (column, count) => Array.isArray(column) ? column : new Array(count).fill(column); // all entries are equal
  const numbers = ["reward", "discount", "rho", "pi", "mu"], places = ["row", "next_row", "active"];
  const full = Object.fromEntries([...numbers, ...places].map(name => [name, whole(data[name], data.count)]));
  const p = data.initial_weights.length, n = data.true_values.length, rows = new Float64Array((n + 1) * p);
  data.features.forEach((entries, s) => { for (const [i, value] of entries) rows[s * p + i] = value; });
  const first = [0], index = [], X = [], N = [];
  full.row.forEach((here, o) => {
    for (let i = 0; i < p; i++) {
      const x = rows[here * p + i], next = rows[full.next_row[o] * p + i];
      if (x !== 0 || next !== 0) { index.push(i); X.push(x); N.push(next); }
    }
    first.push(index.length);
  });
  const columns = (kind, names, from) => Object.fromEntries(names.map(name => [name, kind.from(from[name])]));
  const aliasOf = tables => ({ ...columns(Int32Array, ["first", "size", "outcome"], tables),
    keep: Float64Array.from(whole(tables.keep, tables.outcome.length / 2)) });
  const alias = { trajectory: aliasOf(data.alias.trajectory), iid: aliasOf(data.alias.iid) };
  return { ...data, ...columns(Float64Array, ["visits", "true_values", "initial_weights"], data),
    ...columns(Float64Array, numbers, full), ...columns(Int32Array, places, full), p, n, rows, alias,
    first: Int32Array.from(first), index: Int32Array.from(index), X: Float64Array.from(X), N: Float64Array.from(N) };
}

function valuesOf(task, w) {
  return Float64Array.from({ length: task.n }, (_, s) => {
    let value = 0;
    for (let i = 0; i < task.p; i++) value += task.rows[s * task.p + i] * w[i];
    return value;
  });
}

function rootMeanSquare(task, w) {
  let sum = 0;
  for (let s = 0, at = 0; s < task.n; s++) {
    let value = 0;
    for (let i = 0; i < task.p; i++, at++) value += task.rows[at] * w[i];
    sum += task.visits[s] * (value - task.true_values[s]) ** 2;
  }
  return Math.sqrt(sum);
}

// M⁻¹ of a natural rule, kept up to date by the formula of Sherman and Morrison.
function newMetric(p, ridge) {
  const inverse = Float64Array.from({ length: p * p }, (_, at) => (at % (p + 1) ? 0 : 1) / ridge);
  const spare = [new Float64Array(p), new Float64Array(p)], v = new Float64Array(p), share = new Float64Array(p);
  let count = 0;
  function times(from, to, index, x, into, factor) {
    for (let i = 0, line = 0; i < p; i++, line += p) {
      let sum = 0;
      for (let k = from; k < to; k++) sum += inverse[line + index[k]] * x[k];
      into[i] = factor * sum;
    }
    return into;
  }
  return {
    observe(from, to, index, x) {
      times(from, to, index, x, v, 1);
      let size = 0;
      for (let k = from; k < to; k++) size += x[k] * v[index[k]];
      for (let j = 0; j < p; j++) share[j] = v[j] / (1 + size);
      for (let i = 0, at = 0; i < p; i++) for (let j = 0; j < p; j++, at++) inverse[at] -= v[i] * share[j];
      count += 1;
    },
    direction(from, to, index, x, place) { return times(from, to, index, x, spare[place], count + 1); },
  };
}

// Runs ----------------------------------------------------------------------------------------------------------------

const DIVERGED = 1e100;

// The learner of a setting: a rule with two forms takes the form with a trace if lam > 0.
function learnerOf(task, setting) {
  const forms = RULES[setting.learner];
  return forms[forms.length > 1 && setting.values.lam > 0 ? 1 : 0](task, setting.values, setting.rhoMode || "R");
}

// One run: the error after every `every` steps, infinite from where it diverged, and the values at each of `scenes` moments.
function runOnce(task, setting, column, every, scenes = 0) {
  const learner = learnerOf(task, setting), points = column.length / every, errors = new Float64Array(points).fill(Infinity), shown = [];
  for (let point = 0, t = 0; point < points; point++) {
    for (const end = t + every; t < end; t++) if (task.active[column[t]]) learner.advance(column[t]);
    const error = rootMeanSquare(task, learner.w);
    if (!(error <= DIVERGED)) break;
    errors[point] = error;
    if (scenes && (point + 1) % (points / scenes) === 0) shown.push(valuesOf(task, learner.w));
  }
  return { errors, w: learner.w, eta: learner.eta, shown };
}

const columns = new Map();

function columnOf(task, seed, run, sampling, steps) {
  const key = [task.name, seed, run, sampling, steps].join();
  if (!columns.has(key)) {
    if (columns.size > 300) columns.clear();
    columns.set(key, trajectory(task, seed, run, sampling, steps));
  }
  return columns.get(key);
}

// All runs of a job, a setting on a task. A run diverges when its error is more than EXPLODED times the initial one, at any point.
function work(task, job) {
  const first = rootMeanSquare(task, task.initial_weights), limit = EXPLODED * first, points = job.steps / job.every;
  const mean = new Float64Array(points);
  let diverged = 0, shown = [];
  for (let run = 0; run < job.runs; run++) {
    const column = columnOf(task, job.seed, run, job.sampling, job.steps);
    const found = runOnce(task, job.setting, column, job.every, run === 0 && !job.brief ? job.scenes : 0);
    if (run === 0) shown = found.shown;
    for (let i = 0; i < points; i++) mean[i] += found.errors[i] / job.runs;
    if (!found.errors.every(error => error <= limit)) diverged += 1;
  }
  const over = mean.findIndex(error => !(error <= limit)), tail = mean.slice(-Math.max(1, points / 10));
  const average = some => some.reduce((a, b) => a + b, 0) / some.length;
  return { first, diverged, runs: job.runs, divergedAt: over < 0 ? null : (over + 1) * job.every, meanError: average(mean), last: average(tail),
    mean: job.brief ? null : mean, shown: job.brief ? null : shown, updates: job.runs * job.steps };
}
