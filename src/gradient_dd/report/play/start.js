"use strict";
// Startup: sliders, workers, the first runs.

const shows = [], found = readAddress();
startPool(TASKS, Math.max(1, Math.min(navigator.hardwareConcurrency || 2, 8)));
const again = name => () => run(name, stops[name].plan(), stops[name].draw);
const KAPPA = { low: 0, high: 13, step: 0.25 };
const ALPHA = parameterOf("td", "alpha");
shows.push(slider($("baird-controls"), "baird.alpha", ALPHA, " of all three", again("baird"), { log: true, low: 1e-4, high: 0.1 }));
shows.push(slider($("walk-controls"), "walk.kappa", parameterOf("gradient_dd", "kappa"), " of Gradient-DD", again("walk"), KAPPA));
shows.push(slider($("walk-controls"), "walk.alpha", ALPHA, " of all three", again("walk"), { log: true, low: 0.01, high: 1 }));
shows.push(slider($("shuffle-controls"), "shuffle.kappa", parameterOf("gradient_dd", "kappa"), " of Gradient-DD", again("shuffle"), KAPPA));
for (const [name, stop] of Object.entries(stops)) actions(name, stop.plan);
startBench();
refresh();
askMap("baird map", baird.plan(), ["td", "gtd2", "gradient_dd"], baird.alphas, rows => { baird.rows = rows; baird.map(); });
for (const link of document.querySelectorAll('a[href^="#"]')) link.onclick = event => { // the address holds the choices, so it must not change
  const target = $(link.hash.slice(1));
  event.preventDefault();
  target.tabIndex = -1;
  target.focus();
  target.scrollIntoView();
};
addEventListener("hashchange", () => { readAddress(); refresh(); });
addEventListener("resize", () => { clearTimeout(pool.resized); pool.resized = setTimeout(refresh, 200); });
if (found.get("at") && $(found.get("at"))) $(found.get("at")).scrollIntoView();
