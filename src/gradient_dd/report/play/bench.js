"use strict";
// The free bench: any task of the page, any learners, all their parameters.

const bench = { alphas: alphasFrom(1e-4, 1), lines: null, cards: {} };

const chosenNames = () => state.learners.split(",");
const namesOf = settings => joined(settings.map(one => LEARNERS[one.learner].label));
const keepsTrace = setting => LEARNERS[setting.learner].traced || setting.values.lam > 0;

bench.plan = () => {
  const { task, sampling, runs, steps, seed } = state, all = chosenNames().map(benchSetting);
  const left = sampling === "iid" ? all.filter(keepsTrace) : [];
  return { task, settings: all.filter(one => !left.includes(one)), left, samplings: [sampling], runs, steps, seed };
};

function refreshBench() {
  for (const key of ["task", "steps", "sampling", "runs", "seed"]) $(`bench-${key}`).value = state[key];
  for (const box of $("bench-learners").querySelectorAll("input")) box.checked = chosenNames().includes(box.value);
  drawCards();
  runBench(true);
}

function runBench(withMap = false) {
  const plan = bench.plan();
  if (!plan.settings.length) {
    $("bench-finding").textContent = `${namesOf(plan.left)} cannot learn from shuffled steps: a trace needs steps in order.`;
    return;
  }
  run("bench", plan, ([lines]) => { bench.lines = lines; bench.drawn = plan; drawBench(); });
  if (!withMap) { clearTimeout(bench.later); bench.later = setTimeout(() => runMap(bench.plan()), 250); } else runMap(plan);
}

function runMap(plan) {
  if (!plan.settings.length) return;
  const shorter = { ...plan, runs: Math.min(plan.runs, 3), steps: Math.min(plan.steps, STEPS) };
  askMap("bench map", shorter, plan.settings.map(one => one.learner), bench.alphas, rows => {
    bench.rows = rows;
    drawMap($("bench-map"), rows, bench.alphas, row => state[`${row.name}.alpha`], (row, alpha) => {
      choose(`${row.name}.alpha`, alpha);
      for (const show of bench.shows) show();
      runBench();
    });
    const runs = shorter.runs === 1 ? "1 run" : `${shorter.runs} runs`;
    $("bench-map-note").textContent = `Each cell: ${runs} of ${grouped(shorter.steps)} steps. Choose a cell to use its α.`;
  });
}

// Give every learner the α of its lowest mean error on the map.
function takeBest() {
  for (const row of bench.rows || []) {
    const meanErrors = row.found.map(found => found.diverged ? Infinity : found.meanError), best = meanErrors.indexOf(Math.min(...meanErrors));
    if (meanErrors[best] < Infinity) choose(`${row.name}.alpha`, bench.alphas[best]);
  }
  refreshBench();
}

function drawBench() {
  const { lines, drawn } = bench, left = drawn.left.length ? ` ${namesOf(drawn.left)} left out: a trace needs steps in order.` : "";
  const best = lines.filter(line => !line.found.diverged).sort((a, b) => a.found.meanError - b.found.meanError)[0];
  const lowest = best && lines.length > 1 ? ` ${best.label} has the lowest mean error, ${short(best.found.meanError)}.` : "";
  const sentence = `In ${grouped(drawn.steps)} steps ${fatesClause(lines)}.${lowest}${left}`;
  $("bench-finding").textContent = sentence;
  drawCurves($("bench-curves"), `Mean errors. ${sentence}`, lines, drawn.steps);
  drawScene();
}

function drawScene() {
  if (!bench.lines) return;
  const scene = Number($("bench-time").value) - 1, step = (scene + 1) * bench.drawn.steps / SCENES;
  $("bench-time").setAttribute("aria-valuetext", `after ${grouped(step)} steps`);
  $("bench-moment").textContent = `after ${grouped(step)} steps`;
  const label = `Values of the states after ${grouped(step)} steps of the first run, with the true values.`;
  drawValues($("bench-values"), label, TASKS[bench.drawn.task], bench.lines, scene);
}

function playTime() {
  clearInterval(bench.clock);
  $("bench-time").value = 1;
  drawScene();
  bench.clock = setInterval(() => {
    $("bench-time").value = Number($("bench-time").value) + 1;
    drawScene();
    if ($("bench-time").value === $("bench-time").max) clearInterval(bench.clock);
  }, 60);
}

function drawCards() {
  const box = $("bench-cards"), open = new Set([...box.querySelectorAll("details[open]")].map(one => one.dataset.name));
  box.textContent = "";
  bench.shows = [];
  for (const name of chosenNames()) {
    const learner = LEARNERS[name], card = element(box, "fieldset", { class: "card", style: `--colour:${learner.colour}` });
    element(card, "legend", {}, learner.label);
    for (const one of learner.parameters) bench.shows.push(slider(card, `${name}.${one.name}`, one, ` of ${learner.label}`, () => runBench()));
    if (learner.hasRhoMode) {
      const label = element(card, "label", {}, "place of ρ "), select = element(label, "select", {});
      for (const [mode, words] of [["R", "on the whole step"], ["T", "on the bootstrapped half"]]) element(select, "option", { value: mode }, words);
      select.value = state[`${name}.rho_mode`];
      select.onchange = () => { choose(`${name}.rho_mode`, select.value); runBench(); };
    }
    const equation = element(card, "details", { "data-name": name, ...(open.has(name) ? { open: "" } : {}) });
    element(equation, "summary", {}, "Equation");
    element(equation, "pre", { tabindex: 0, "aria-label": `Equation of ${learner.label}` }, learner.equation);
  }
}

function startBench() {
  TASKS.forEach((task, place) => element($("bench-task"), "option", { value: place }, task.title));
  for (const [name, learner] of Object.entries(LEARNERS)) {
    const label = element($("bench-learners"), "label", { class: "chip", style: `--colour:${learner.colour}` });
    const box = element(label, "input", { type: "checkbox", value: name });
    label.append(learner.label);
    box.onchange = () => {
      const chosen = [...$("bench-learners").querySelectorAll("input:checked")].map(one => one.value);
      if (!chosen.length) { box.checked = true; return; }
      choose("learners", chosen.join(","));
      refreshBench();
    };
  }
  for (const key of ["task", "steps", "runs", "seed"]) $(`bench-${key}`).onchange = event => {
    const { min, max } = event.target, value = Math.round(Number(event.target.value));
    choose(key, key === "task" || key === "steps" ? value : Math.min(Number(max), Math.max(Number(min), value || Number(min))));
    refreshBench();
  };
  $("bench-sampling").onchange = event => { choose("sampling", event.target.value); refreshBench(); };
  $("bench-time").oninput = () => { clearInterval(bench.clock); drawScene(); };
  $("bench-best").onclick = takeBest;
  $("bench-play").onclick = playTime;
  $("bench-play").hidden = calm.matches;
  actions("bench", bench.plan);
}
