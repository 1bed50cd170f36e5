"use strict";
// Pictures: learning curves, values of states with the true values, and the map α × learner.

const SVG = "http://www.w3.org/2000/svg";

function node(parent, name, attributes = {}, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
}

function element(parent, name, attributes = {}, text) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return parent ? parent.appendChild(made) : made;
}

function short(value) {
  if (!Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  return Math.abs(value) < 1e-4 || Math.abs(value) >= 1e5 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}
const grouped = value => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

// A picture as wide as its box, so that its text has the same size on a phone.
function picture(box, label, height) {
  const width = Math.max(280, Math.round(box.clientWidth || 600));
  box.textContent = "";
  const svg = node(box, "svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  return { svg, width, height, left: 46, right: width - 12, top: 14, bottom: height - 34 };
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const factor of high / low > 300 ? [1] : [1, 2, 5]) found.push(factor * 10 ** power);
  return found.map(value => Number(value.toPrecision(3))).filter(value => value >= low && value <= high);
}

function axes(frame, x, y, xTicks, yTicks, xName) {
  const { svg, left, right, top, bottom } = frame;
  for (const value of yTicks) {
    node(svg, "line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" });
    node(svg, "text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value));
  }
  xTicks.forEach((value, place) => node(svg, "text", { x: x(value), y: bottom + 16,
    "text-anchor": place === xTicks.length - 1 ? "end" : place ? "middle" : "start" }, grouped(value)));
  node(svg, "line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" });
  node(svg, "text", { x: (left + right) / 2, y: bottom + 31, "text-anchor": "middle", class: "name" }, xName);
}

// Names at the ends of lines, moved apart where they would overlap.
function placeLabels(frame, labels) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((one, i) => { one.y = Math.max(one.y, i ? labels[i - 1].y + 15 : frame.top + 8); });
  for (let i = labels.length - 1, floor = frame.bottom - 2; i >= 0; i--, floor = labels[i + 1].y - 15) labels[i].y = Math.min(labels[i].y, floor);
  for (const one of labels) {
    node(frame.svg, "line", { x1: frame.right + 3, x2: frame.right + 15, y1: one.y, y2: one.y, class: "swatch-line",
      style: `color:${one.colour}`, "stroke-dasharray": one.dash || "none" });
    node(frame.svg, "text", { x: frame.right + 18, y: one.y + 4, class: "label" }, one.text);
  }
}

// Lines in drawing order: wide lines first, so that no line is hidden.
const layered = lines => [...lines].sort((a, b) => Number(b.strong) - Number(a.strong));

// The limits of an error axis: they include the errors of all lines, and the limits `least`.
function rangeOf(lines, least) {
  const ceiling = EXPLODED * lines[0].found.first, all = lines.flatMap(line => [...line.found.mean]).filter(value => value > 0);
  if (all.some(value => !(value <= ceiling))) return [Math.min(least[0], ...all), ceiling];
  return [Math.min(least[0], ...all), Math.min(ceiling, Math.max(least[1], 1.1 * Math.max(...all)))];
}

// Mean errors over the steps, logarithmic. A line ends with a cross where it passes EXPLODED times the initial error.
function drawCurves(box, label, lines, steps, range) {
  const frame = picture(box, label, 300), first = lines[0].found.first, [low, high] = range || rangeOf(lines, [first / 3, first * 1.5]);
  frame.right -= 20 + 7.4 * Math.max(...lines.map(line => line.label.length));
  const x = step => frame.left + (frame.right - frame.left) * step / steps;
  const y = value => frame.bottom - (frame.bottom - frame.top) * Math.log(Math.max(value, low) / low) / Math.log(high / low);
  axes(frame, x, y, [0, steps / 2, steps], logTicks(low, high), "steps");
  node(frame.svg, "line", { x1: frame.left, x2: frame.right, y1: y(first), y2: y(first), class: "first" });
  node(frame.svg, "text", { x: frame.right - 4, y: y(first) - 5, "text-anchor": "end", class: "name" }, "initial error");
  const labels = [], crosses = [];
  for (const line of layered(lines)) {
    const { mean } = line.found, every = steps / mean.length, group = node(frame.svg, "g", { style: `color:${line.colour}` });
    let path = `M${x(0)},${y(first).toFixed(1)}`, last = first, gone = false, at = 0;
    for (at = 0; at < mean.length && !gone; at++) {
      gone = !(mean[at] <= high);
      last = gone ? high : mean[at];
      path += `L${x((at + 1) * every).toFixed(1)},${y(last).toFixed(1)}`;
    }
    const curve = node(group, "path", { d: path, class: "curve" + (line.strong ? " strong" : ""), "stroke-dasharray": line.dash || "none" });
    node(curve, "title", {}, `${line.label}: mean error ${short(line.found.meanError)}, at the end ${short(line.found.last)}`);
    if (gone) {
      const px = x(at * every), py = y(high);
      node(group, "path", { d: `M${px - 5},${py - 5}l10,10m0,-10l-10,10`, class: "cross" });
      crosses.push({ x: px, text: line.label });
    } else labels.push({ y: y(last), colour: line.colour, dash: line.dash, text: line.label });
  }
  placeLabels(frame, labels);
  crosses.sort((a, b) => a.x - b.x).forEach((one, i) =>
    node(frame.svg, "text", { x: Math.min(one.x + 9, frame.right), y: frame.top + 5 + 15 * i, class: "label" }, `${one.text} diverges`));
}

// Values of the states learnt by run 0, with the true values; lines that are far away are named instead of drawn. States
// that are never visited are left out.
function drawValues(box, label, task, lines, scene) {
  const states = [...task.true_values.keys()].filter(s => task.visits[s] > 0), valuesAt = line => states.map(s => line.found.shown[scene][s]);
  const frame = picture(box, label, 300), n = states.length, truth = states.map(s => task.true_values[s]);
  frame.right -= 20 + 7.4 * Math.max(5, ...lines.map(line => line.label.length));
  const bottom = Math.min(...truth), top = Math.max(...truth), span = top - bottom || 10;
  const isNear = line => line.found.shown[scene] && valuesAt(line).every(v => v >= bottom - span && v <= top + span);
  const shown = layered(lines).filter(isNear), away = lines.filter(line => !isNear(line)), within = shown.flatMap(valuesAt);
  const low = Math.min(...truth, ...within), high = Math.max(...truth, ...within), room = (high - low || 1) * 0.06;
  const x = s => frame.left + 8 + (frame.right - frame.left - 16) * (n === 1 ? 0.5 : s / (n - 1));
  const y = value => frame.bottom - (frame.bottom - frame.top) * (value - low + room) / (high - low + 2 * room);
  const step = 10 ** Math.floor(Math.log10((high - low || 1) / 2));
  const wide = [1, 2, 5, 10].map(factor => factor * step).find(size => (high - low) / size <= 5) || step;
  const ticks = Array.from({ length: Math.floor(high / wide) - Math.ceil(low / wide) + 1 }, (_, i) => (Math.ceil(low / wide) + i) * wide);
  const ends = n > 1 ? [states[0] + 1, states[n - 1] + 1] : [states[0] + 1];
  axes(frame, state => x(states.indexOf(state - 1)), y, ends, ticks.map(value => Number(value.toPrecision(6))), "state");
  const path = values => "M" + values.map((value, s) => `${x(s).toFixed(1)},${y(value).toFixed(1)}`).join("L");
  node(frame.svg, "path", { d: path(truth), class: "truth" });
  if (n <= 50) truth.forEach((value, s) => node(frame.svg, "circle", { cx: x(s), cy: y(value), r: 3, class: "truth-dot" }));
  const labels = [{ y: y(truth[n - 1]), colour: "var(--ink)", text: "truth" }];
  for (const line of shown) {
    const values = valuesAt(line), group = node(frame.svg, "g", { style: `color:${line.colour}` });
    node(group, "path", { d: path(values), class: "curve" + (line.strong ? " strong" : ""), "stroke-dasharray": line.dash || "none" });
    labels.push({ y: y(values[n - 1]), colour: line.colour, dash: line.dash, text: line.label });
  }
  if (away.length) node(frame.svg, "text", { x: frame.left + 6, y: frame.top + 8, class: "name" }, `far away: ${away.map(line => line.label).join(", ")}`);
  placeLabels(frame, labels);
}

// What a setting does, as a word: one of FATES.
const FATES = { diverges: "✕", grows: "▲", bounded: "·", fast: "●" };
function fateOf(found) {
  if (found.diverged) return "diverges";
  if (found.last > found.first) return "grows";
  return found.meanError < found.first / 2 ? "fast" : "bounded";
}

// A table of buttons, a row for each learner, a column for each α; arrow keys move the focus.
function drawMap(box, rows, alphas, chosen, onChoose) {
  const held = box.contains(document.activeElement) ? document.activeElement.dataset.place : null;
  box.textContent = "";
  const table = element(box, "table", { class: "map" }), head = element(element(table, "thead"), "tr");
  element(head, "th", { scope: "col" }, "α");
  alphas.forEach((alpha, i) => element(head, "th", { scope: "col", class: i % 4 ? "between" : "" }, short(alpha)));
  const body = element(table, "tbody");
  rows.forEach((row, r) => {
    const line = element(body, "tr");
    element(line, "th", { scope: "row", style: `--colour:${row.colour}` }).append(element(null, "span", {}, row.label));
    const nearest = alphas.reduce((a, b) => Math.abs(Math.log(b / chosen(row))) < Math.abs(Math.log(a / chosen(row))) ? b : a);
    alphas.forEach((alpha, c) => {
      const found = row.found[c], fate = fateOf(found), share = Math.min(1, found.meanError / found.first), isHere = alpha === nearest;
      const words = `${row.label}, α = ${short(alpha)}: ${fate}` + (fate === "diverges" ? "" : `, mean error ${short(found.meanError)}`);
      const button = element(element(line, "td"), "button", { type: "button", class: fate + (isHere ? " here" : ""), "data-place": `${r},${c}`,
        tabindex: -1, "aria-label": words, "aria-pressed": isHere, title: words }, FATES[fate]);
      if (fate === "bounded" || fate === "fast") button.style.setProperty("--share", `${Math.round(100 * (1 - share))}%`);
      button.onclick = () => onChoose(row, alpha);
    });
  });
  const buttons = [...table.querySelectorAll("button")], at = place => buttons.find(one => one.dataset.place === place);
  const first = at(held) || table.querySelector(".here") || buttons[0];
  if (first) first.tabIndex = 0;
  if (held && first) first.focus();
  table.onkeydown = event => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move || !event.target.dataset.place) return;
    const [r, c] = event.target.dataset.place.split(",").map(Number), next = at(`${r + move[0]},${c + move[1]}`);
    if (next) { event.target.tabIndex = -1; next.tabIndex = 0; next.focus(); }
    event.preventDefault();
  };
}
