"use strict";
// The three stops: each asks the engine for its runs and draws them.

function lineOf(setting, found) {
  const { label, colour, dash, strong } = LEARNERS[setting.learner];
  return { label, colour, dash, strong, found, setting };
}

function jobsOf(plan, brief = false) {
  return plan.samplings.flatMap(sampling => plan.settings.map(setting => ({ task: plan.task, setting, seed: plan.seed, runs: plan.runs, sampling,
    steps: plan.steps, every: plan.steps / POINTS, scenes: SCENES, brief })));
}

// Run a plan and draw it: `draw` gets the lines of each type of sampling.
function run(channel, plan, draw) {
  ask(channel, jobsOf(plan), found => {
    const count = plan.settings.length;
    draw(plan.samplings.map((_, s) => plan.settings.map((setting, i) => lineOf(setting, found[s * count + i]))));
  });
}

function askMap(channel, plan, names, alphas, draw) {
  const settingAt = (name, alpha) => { const one = plan.settings.find(s => s.learner === name); return { ...one, values: { ...one.values, alpha } }; };
  const settings = names.flatMap(name => alphas.map(alpha => settingAt(name, alpha))), count = alphas.length;
  const rowsOf = found => names.map((name, r) => ({ name, ...LEARNERS[name], found: found.slice(r * count, (r + 1) * count) }));
  ask(channel, jobsOf({ ...plan, settings }, true), found => draw(rowsOf(found)), true);
}

const stopPlan = (task, settings, samplings = ["trajectory"]) => ({ task, settings, samplings, runs: 10, steps: STEPS, seed: 0 });
const alphasFrom = (low, high) => Array.from({ length: Math.round(4 * Math.log10(high / low)) + 1 }, (_, i) => rounded(low * 10 ** (i / 4)));

const baird = {
  alphas: alphasFrom(1e-4, 0.1),
  plan: () => stopPlan(DATA.stops.baird, ["td", "gtd2", "gradient_dd"].map(name => settingOf(name, { alpha: state["baird.alpha"] }))),
  draw([lines]) {
    const sentence = bairdSentence(lines);
    $("baird-finding").textContent = sentence;
    drawCurves($("baird-curves"), `Mean error over 10,000 steps. ${sentence}`, lines, STEPS);
    if (baird.rows) baird.map();
  },
  map() {
    drawMap($("baird-map"), baird.rows, baird.alphas, () => state["baird.alpha"], (row, alpha) => {
      choose("baird.alpha", alpha);
      for (const show of shows) show();
      again("baird")();
    });
    $("baird-map-finding").textContent = mapSentence(baird.rows[0], baird.alphas);
  },
};

const walk = {
  plan: () => stopPlan(DATA.stops.walk, [settingOf("td", { alpha: state["walk.alpha"] }), settingOf("gtd2", { alpha: state["walk.alpha"] }),
    settingOf("gradient_dd", { alpha: state["walk.alpha"], kappa: state["walk.kappa"] })]),
  draw([lines]) {
    const sentence = walkSentence(lines);
    $("walk-finding").textContent = sentence;
    const way = wayToTd(lines);
    $("walk-gauge").hidden = way === null;
    $("walk-way").style.width = `${100 * Math.min(1, Math.max(0, way))}%`;
    drawCurves($("walk-curves"), `Mean error over 10,000 steps. ${sentence}`, lines, STEPS, rangeOf(lines, [0.045, 0.25]));
    const label = "Values of the 20 states after 10,000 steps, with the true values.";
    drawValues($("walk-values"), label, TASKS[DATA.stops.walk], lines, SCENES - 1);
  },
};

const shuffle = {
  plan: () => stopPlan(DATA.stops.walk, [settingOf("gtd2", { alpha: state["shuffle.alpha"] }),
    settingOf("gradient_dd", { alpha: state["shuffle.alpha"], kappa: state["shuffle.kappa"] })], ["trajectory", "iid"]),
  draw([ordered, shuffled]) {
    const sentence = shuffleSentence(ordered, shuffled);
    $("shuffle-finding").textContent = sentence;
    const range = rangeOf([...ordered, ...shuffled], [0.045, 0.25]);
    drawCurves($("shuffle-ordered"), `Steps in order. ${sentence}`, ordered, STEPS, range);
    drawCurves($("shuffle-shuffled"), `Shuffled steps. ${sentence}`, shuffled, STEPS, range);
  },
};
const stops = { baird, walk, shuffle };

function refresh() {
  for (const show of shows) show();
  for (const [name, stop] of Object.entries(stops)) run(name, stop.plan(), stop.draw);
  refreshBench();
}

// Copying ------------------------------------------------------------------------------------------------------------

// Copy a text, or show it if the browser does not let the page copy.
async function copy(text, button, shown) {
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch (refused) {
    button.textContent = "Copy it from below";
    shown.textContent = text;
    shown.hidden = false;
  }
  setTimeout(() => { button.textContent = said; }, 1500);
}

function actions(name, plan) {
  const box = $(`${name}-actions`), python = element(box, "button", { type: "button" }, "Copy the Python for this");
  const link = element(box, "button", { type: "button" }, "Copy the link");
  const shown = element(box, "pre", { tabindex: 0, hidden: "", "aria-label": "Text to copy" });
  python.onclick = () => {
    shown.textContent = pythonOf(plan());
    shown.hidden = false;
    copy(shown.textContent, python, shown);
  };
  link.onclick = () => copy(location.href.split("#")[0] + address(name), link, shown);
}
