"use strict";
// The choices on the page: the address stores them, and sliders change them.

const DATA = JSON.parse(document.getElementById("data").textContent);
const { tasks: TASKS, learners: LEARNERS } = DATA, STEPS = 10000, POINTS = 200, SCENES = 50;
const $ = id => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// The choices --------------------------------------------------------------------------------------------------------

const DEFAULTS = { "baird.alpha": 0.003, "walk.alpha": 0.2, "walk.kappa": 2, "shuffle.alpha": 0.2, "shuffle.kappa": 2, task: DATA.first.task,
  learners: DATA.first.learners.join(","), steps: STEPS, runs: 5, seed: 0, sampling: "trajectory" };
for (const [name, learner] of Object.entries(LEARNERS)) {
  for (const one of learner.parameters) DEFAULTS[`${name}.${one.name}`] = one.name === "alpha" ? 0.01 : one.default;
  if (learner.hasRhoMode) DEFAULTS[`${name}.rho_mode`] = "R";
}
let state = {};

function readAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  state = { ...DEFAULTS };
  for (const [key, text] of found) if (key in DEFAULTS) {
    const value = typeof DEFAULTS[key] === "number" ? Number(text) : text;
    if (typeof value === "string" || (Number.isFinite(value) && value >= 0 && !(value === 0 && key.endsWith(".alpha")))) state[key] = value;
  }
  state.learners = state.learners.split(",").filter(name => name in LEARNERS).join(",");
  if (!state.learners) state.learners = DEFAULTS.learners;
  if (!TASKS[state.task]) state.task = DEFAULTS.task;
  for (const [key, low, high] of [["steps", POINTS, 200000], ["runs", 1, 100], ["seed", 0, 2 ** 50], ["task", 0, TASKS.length - 1]])
    state[key] = Math.min(high, Math.max(low, Math.round(state[key])));
  state.steps = Math.round(state.steps / POINTS) * POINTS;
  return found;
}

function address(at) {
  const words = new URLSearchParams(Object.entries(state).filter(([key, value]) => String(value) !== String(DEFAULTS[key])));
  if (at) words.set("at", at);
  return String(words) ? "#" + words : "#";
}

function choose(key, value) {
  state[key] = value;
  history.replaceState(null, "", address());
}

function legal(parameter, value) {
  const low = parameter.positive ? value > 0 : value >= 0;
  return Number.isFinite(value) && low && (parameter.high === null || value <= parameter.high);
}

function settingOf(name, given = {}) {
  const values = {};
  for (const one of LEARNERS[name].parameters) values[one.name] = given[one.name] ?? one.default;
  return { learner: name, values, rhoMode: given.rho_mode || "R" };
}

function benchSetting(name) {
  const values = Object.fromEntries(LEARNERS[name].parameters.map(one => {
    const value = state[`${name}.${one.name}`];
    return [one.name, legal(one, value) ? value : one.default];
  }));
  return settingOf(name, { ...values, rho_mode: state[`${name}.rho_mode`] });
}

// Controls -----------------------------------------------------------------------------------------------------------

const rounded = value => Number(value.toPrecision(3));
function scaleOf(parameter) {
  if (parameter.name === "alpha") return { log: true, low: 1e-4, high: 3 };
  if (parameter.high !== null) return { low: 0, high: parameter.high, step: parameter.high / 20 };
  if (parameter.name === "zeta" || parameter.positive) return { log: true, low: 0.01, high: 100 };
  return { low: 0, high: 20, step: 0.25 };
}

// The notches of a slider: 20 for a factor of ten, or steps of one size.
function notchesOf({ log, low, high, step }) {
  if (!log) return { notches: Math.round((high - low) / step), valueAt: k => Number((low + k * step).toFixed(6)), placeOf: v => Math.round((v - low) / step) };
  const across = Math.log10(high / low), notches = Math.round(20 * across);
  return { notches, valueAt: k => rounded(low * 10 ** (k * across / notches)), placeOf: v => Math.round(notches * Math.log10(Math.max(v, low) / low) / across) };
}

// A slider and a box for the same number, bound to a key of the address.
function slider(parent, key, parameter, owner, onInput, scale = scaleOf(parameter)) {
  const name = parameter.symbol, box = element(parent, "div", { class: "slider" });
  element(box, "span", { class: "symbol", title: parameter.meaning, "aria-hidden": "true" }, name);
  const range = element(box, "input", { type: "range", "aria-label": `${name}${owner}: ${parameter.meaning}`, "data-key": key });
  const exact = element(box, "input", { type: "number", step: "any", min: 0, "aria-label": `${name}${owner}, as a number` });
  const { valueAt, placeOf, notches } = notchesOf(scale);
  range.min = 0; range.max = notches; range.step = 1;
  const show = () => {
    range.value = placeOf(state[key]);
    exact.value = state[key];
    range.setAttribute("aria-valuetext", `${name} = ${state[key]}`);
  };
  range.oninput = () => { choose(key, valueAt(Number(range.value))); show(); onInput(); };
  exact.onchange = () => {
    const value = Number(exact.value), good = exact.value !== "" && legal(parameter, value);
    exact.setAttribute("aria-invalid", String(!good));
    if (good) { choose(key, value); show(); onInput(); }
  };
  show();
  return show;
}

const parameterOf = (name, wanted) => LEARNERS[name].parameters.find(one => one.name === wanted);
