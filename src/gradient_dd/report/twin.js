"use strict";
// The interactive twin of a figure. It is drawn when it is opened, its labels follow its controls, and its state stands
// in the address, so that a view can be linked. A row of a study has: learner, place of rho, a value for each of its
// parameters, then for each measure the mean, its standard error and how many runs diverged.
const SYMBOL = { alpha: "α", zeta: "ζ", kappa: "κ" }, FIRST = 2, SVG = "http://www.w3.org/2000/svg";
const studies = {};

function studyOf(name) {
  if (!studies[name]) {
    const study = JSON.parse(document.getElementById("study-" + name).textContent), after = FIRST + study.parameters.length;
    study.column = Object.fromEntries(study.parameters.map((parameter, i) => [parameter, FIRST + i]));
    study.mean = { last100: after, mean_error: after + 3 };
    study.others = study.parameters.filter(parameter => parameter !== "alpha");
    studies[name] = study;
  }
  return studies[name];
}

function fraction(value) { return value > 0 && value < 1 && Number.isInteger(1 / value) ? "1/" + 1 / value : String(value); }
function plain(value) {
  if (value === null) return "infinite";
  return value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

// The values that a learner has of a parameter in a study: a control changes only what the study varies.
function valuesOf(study, rows, line, name) {
  const ours = rows.filter(row => row[0] === line.learner && row[1] === line.mode);
  return [...new Set(ours.map(row => row[study.column[name]]))].filter(value => value !== null).sort((a, b) => a - b);
}

// What is held for each parameter of a line under the chosen controls; undefined stands for tuned.
function heldBy(line, study, rows, chosen) {
  const held = {};
  for (const name of study.others) {
    const values = valuesOf(study, rows, line, name);
    if (chosen[name] === "" || values.length < 2) held[name] = line.held[name];
    else if (chosen[name] !== "tuned") held[name] = values.includes(Number(chosen[name])) ? Number(chosen[name]) : line.held[name];
  }
  return held;
}

function labelOf(line, study, rows, chosen) {
  const held = heldBy(line, study, rows, chosen);
  if (study.others.every(name => held[name] === line.held[name])) return line.label;
  const varied = study.others.filter(name => valuesOf(study, rows, line, name).length > 1);
  const words = varied.map(name => (SYMBOL[name] || name) + (held[name] === undefined ? " tuned" : " = " + fraction(held[name])));
  return [line.name, ...words, ...(line.mode === "T" ? ["ρ placed T"] : [])].join(", ");
}

function placesOf(line, study, rows, chosen) {
  const held = heldBy(line, study, rows, chosen);
  return rows.map((_, place) => place).filter(place => {
    const row = rows[place];
    return row[0] === line.learner && row[1] === line.mode &&
      study.others.every(name => held[name] === undefined || row[study.column[name]] === null || row[study.column[name]] === held[name]);
  });
}

function lowest(places, rows, mean) {
  const finite = places.filter(place => rows[place][mean] !== null);
  return finite.length ? finite.reduce((a, b) => rows[b][mean] < rows[a][mean] ? b : a) : places[0];
}

function settingText(study, row) {
  const has = study.parameters.filter(name => row[study.column[name]] !== null);
  return has.map(name => (SYMBOL[name] || name) + " = " + (name === "alpha" ? plain(row[study.column.alpha]) : fraction(row[study.column[name]]))).join(", ");
}

// The points of a line: { x, y, bar, gone, text }; `gone` means beyond the limit, to be drawn in the strip.
function pointsOverAlpha(study, places, task, mean) {
  const rows = task.rows, alpha = study.column.alpha;
  const alphas = [...new Set(places.map(place => rows[place][alpha]))].sort((a, b) => a - b);
  return alphas.map(value => {
    const row = rows[lowest(places.filter(place => rows[place][alpha] === value), rows, mean)];
    const gone = row[mean] === null || (task.first !== null && row[mean] > study.exploded * task.first);
    const runs = row[mean + 2] ? `; ${row[mean + 2]} of ${study.runs} runs diverged` : "";
    return { x: value, y: row[mean], bar: row[mean + 1], gone, text: `${settingText(study, row)}: ${plain(row[mean])}${runs}` };
  });
}

function pointsOverTime(study, places, task, mean) {
  const best = lowest(places, task.rows, mean), curve = task.curves[best] || [];
  const beyond = y => y === null || (task.first !== null && y > study.exploded * task.first);
  return curve.map((y, i) => ({ x: study.middles[i], y, bar: null, gone: beyond(y), text: `${settingText(study, task.rows[best])}: ${plain(y)} at ${study.middles[i]}` }));
}

// The lines that are drawn: equal ones, which two lines of the figure become under a control, once.
function linesOf(figure, study, state) {
  const task = study.tasks[state.task], mean = study.mean[state.measure], found = new Map();
  for (const line of figure.lines) {
    const label = labelOf(line, study, task.rows, state.chosen), places = placesOf(line, study, task.rows, state.chosen);
    if (!places.length || found.has(label)) continue;
    const points = state.view === "time" ? pointsOverTime(study, places, task, mean) : pointsOverAlpha(study, places, task, mean);
    found.set(label, { label, points, colour: line.colour, dashed: line.dashed, strong: line.strong });
  }
  return [...found.values()];
}

function node(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
}

function ticks(low, high, log) {
  if (!log) {
    const step = 10 ** Math.floor(Math.log10((high - low) / 4)), wide = [1, 2, 5, 10].map(f => f * step).find(s => (high - low) / s <= 6);
    return Array.from({ length: Math.floor(high / wide) - Math.ceil(low / wide) + 1 }, (_, i) => (Math.ceil(low / wide) + i) * wide);
  }
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
    for (const factor of high / low < 30 ? [1, 2, 5] : [1]) found.push(factor * 10 ** power);
  return found.filter(value => value >= low * 0.999 && value <= high * 1.001);
}

// Draw lines into a box: axes, a strip above them for what diverged, a mark with a title for each point.
function plot(box, lines, study, task, state) {
  const W = 760, H = 430, left = 70, right = 15, bottom = 45, logX = true, logY = state.scale === "log";
  const gone = lines.filter(line => line.points.some(point => point.gone)), strip = gone.length ? 24 + 9 * gone.length : 0, top = 12 + strip;
  const all = lines.flatMap(line => line.points), seen = all.filter(point => !point.gone && (point.y > 0 || !logY));
  box.replaceChildren();
  const words = `${lines.length} lines against ${state.view === "time" ? study.time : "step size"}, ${task.title}`;
  const svg = node(box, "svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": words });
  if (!seen.length) { node(svg, "text", { x: left, y: 40 }, "Nothing to draw: every line is hidden, or diverged."); return; }
  const ys = seen.map(point => point.y).concat(task.first === null ? [] : [task.first]), high = Math.max(...ys) * 1.2;
  const low = logY ? Math.max(Math.min(...ys) * 0.8, high * 1e-6) : 0, xs = all.map(point => point.x), x0 = Math.min(...xs), x1 = Math.max(...xs);
  const scaled = (value, a, b, log) => log ? Math.log(value / a) / Math.log(b / a) : (value - a) / (b - a);
  const X = value => left + 12 + (W - left - right - 24) * (x1 > x0 ? scaled(value, x0, x1, logX) : 0.5);
  const Y = value => H - bottom - (H - bottom - top) * Math.max(-0.02, scaled(value, low, high, logY));
  for (const value of ticks(low, high, logY)) {
    node(svg, "line", { x1: left, x2: W - right, y1: Y(value), y2: Y(value), class: "grid" });
    node(svg, "text", { x: left - 6, y: Y(value) + 4, "text-anchor": "end" }, plain(value));
  }
  for (const value of ticks(x0, x1, logX)) {
    node(svg, "line", { x1: X(value), x2: X(value), y1: top, y2: H - bottom, class: "grid" });
    node(svg, "text", { x: X(value), y: H - bottom + 17, "text-anchor": "middle" }, plain(value));
  }
  node(svg, "text", { x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, state.view === "time" ? study.time : "step size α");
  node(svg, "text", { x: 14, y: (top + H - bottom) / 2, transform: `rotate(-90 14 ${(top + H - bottom) / 2})`, "text-anchor": "middle" }, "RMS error");
  if (task.first !== null) node(svg, "line", { x1: left, x2: W - right, y1: Y(task.first), y2: Y(task.first), class: "first" });
  if (strip) {
    node(svg, "rect", { x: left, y: 6, width: W - left - right, height: strip, class: "strip" });
    node(svg, "text", { x: left + 4, y: 20 }, `diverged, beyond ${study.exploded} × the initial error`);
  }
  lines.forEach(line => {
    const group = node(svg, "g", { class: "line", "data-label": line.label, style: `color: ${line.colour}` }), row = gone.indexOf(line);
    const shown = line.points.filter(point => !point.gone && (point.y > 0 || !logY));
    const path = shown.map((point, i) => `${i ? "L" : "M"}${X(point.x).toFixed(1)} ${Y(point.y).toFixed(1)}`).join("");
    node(group, "path", { d: path, "stroke-width": line.strong ? 3 : 1.6, "stroke-dasharray": line.dashed ? "6 4" : "none" });
    for (const point of line.points) {
      const x = X(point.x), y = point.gone ? 26 + 9 * row : Y(point.y);
      if (point.gone && state.view === "time") continue;
      if (!point.gone && point.bar && (!logY || point.y > point.bar)) node(group, "path", { d: `M${x} ${Y(point.y - point.bar)}V${Y(point.y + point.bar)}` });
      const mark = point.gone ? node(group, "path", { d: `M${x - 3} ${y - 3}l6 6m0 -6l-6 6`, class: "gone" })
        : node(group, "circle", { cx: x, cy: y, r: state.view === "time" ? 1.5 : 3.5 });
      node(mark, "title", {}, `${line.label}: ${point.text}`);
    }
  });
}

function prepare(twin) {
  const figure = JSON.parse(twin.querySelector(".data").textContent), study = studyOf(figure.study), name = twin.dataset.figure;
  const at = part => twin.querySelector("." + part), controls = { task: at("task"), measure: at("measure"), view: at("view"), scale: at("scale") };
  const hidden = new Set();
  study.tasks.forEach((task, i) => at("task").add(new Option(task.title, i)));
  controls.measure.value = figure.measure;
  controls.view.options[1].text = study.time;
  for (const parameter of study.others) {
    const label = document.createElement("label"), select = document.createElement("select");
    const values = [...new Set(study.tasks[0].rows.map(row => row[study.column[parameter]]))].filter(value => value !== null).sort((a, b) => a - b);
    select.className = "parameter-" + parameter;
    select.add(new Option("as drawn", "")); select.add(new Option("tuned", "tuned"));
    values.forEach(value => select.add(new Option(fraction(value), value)));
    label.append((SYMBOL[parameter] || parameter) + " ", select); label.hidden = values.length < 2;
    at("parameters").append(label);
    controls[parameter] = select;
  }
  const initial = Object.fromEntries(Object.entries(controls).map(([key, control]) => [key, control.value]));

  function draw() {
    const state = { chosen: Object.fromEntries(study.others.map(one => [one, controls[one].value])) };
    for (const key of ["task", "measure", "view", "scale"]) state[key] = controls[key].value;
    const lines = linesOf(figure, study, state), legend = at("learners");
    legend.querySelectorAll("label").forEach(label => label.remove());
    for (const line of lines) {
      const label = document.createElement("label"), box = document.createElement("input"), swatch = document.createElement("span");
      box.type = "checkbox"; box.checked = !hidden.has(line.label);
      box.addEventListener("change", () => { hidden[box.checked ? "delete" : "add"](line.label); draw(); remember(); });
      swatch.className = "swatch" + (line.dashed ? " dashed" : ""); swatch.style.color = line.colour;
      label.append(box, swatch, " " + line.label); legend.append(label);
    }
    plot(at("plot"), lines.filter(line => !hidden.has(line.label)), study, study.tasks[state.task], state);
  }
  function remember() {
    const changed = Object.entries(controls).filter(([key, control]) => control.value !== initial[key]).map(([key, control]) => [key, control.value]);
    const parts = new URLSearchParams([["twin", name], ...changed, ...[...hidden].map(label => ["hide", label])]);
    history.replaceState(null, "", "#" + parts);
  }
  function recall(parts) {
    for (const [key, control] of Object.entries(controls))
      if ([...control.options].some(option => option.value === parts.get(key))) control.value = parts.get(key);
    parts.getAll("hide").forEach(label => hidden.add(label));
  }
  Object.values(controls).forEach(control => control.addEventListener("change", () => { draw(); remember(); }));
  return { draw, recall };
}

const opened = new Map();
function openTwin(twin, parts) {
  if (!opened.has(twin)) opened.set(twin, prepare(twin));
  if (parts) opened.get(twin).recall(parts);
  opened.get(twin).draw();
}
function followAddress() {
  const parts = new URLSearchParams(location.hash.slice(1)), twin = document.querySelector(`details.twin[data-figure="${CSS.escape(parts.get("twin") || "")}"]`);
  if (!twin) return;
  openTwin(twin, parts);
  twin.open = true;
  twin.scrollIntoView();
}
document.querySelectorAll("details.twin").forEach(twin => {
  twin.hidden = false;
  twin.addEventListener("toggle", () => { if (twin.open && !opened.has(twin)) openTwin(twin); });
});
addEventListener("hashchange", followAddress);
followAddress();

// A link to a chapter, or to something in one, opens it.
function openChapter() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const chapter = target && (target.closest("details.chapter") || target.querySelector(":scope > details.chapter"));
  if (chapter && !chapter.open) { chapter.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", openChapter);
openChapter();
