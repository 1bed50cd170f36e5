"use strict";
// Sentences about the runs on the screen, made from their settings and their numbers.

function joined(parts) { return parts.length < 2 ? parts.join("") : parts.slice(0, -1).join(", ") + " and " + parts[parts.length - 1]; }
const labels = lines => joined(lines.map(line => line.label));
const many = (lines, one, more) => lines.length === 1 ? one : more;
const percent = share => `${Math.round(100 * share)}\u00a0%`;

function divergedClause(lines) {
  const all = lines.every(line => line.found.diverged === line.found.runs && line.found.divergedAt !== null);
  const steps = lines.map(line => grouped(line.found.divergedAt)), runs = lines.map(line => `${line.found.diverged} of ${line.found.runs} runs`);
  return `${labels(lines)} ${many(lines, "diverges", "diverge")} ${all ? `at step ${joined(steps)}` : `in ${joined(runs)}`}`;
}

// The clause that names the lines that diverge, grow and stay bounded, with their final errors.
function fatesClause(lines) {
  const of = (...fates) => lines.filter(line => fates.includes(fateOf(line.found))), ends = some => joined(some.map(line => short(line.found.last)));
  const diverging = of("diverges"), growing = of("grows"), bounded = of("bounded", "fast"), clauses = [];
  if (diverging.length) clauses.push(divergedClause(diverging));
  if (growing.length) clauses.push(`${labels(growing)} ${many(growing, "grows", "grow")} to an error of ${ends(growing)}`);
  if (bounded.length) clauses.push(`${labels(bounded)} ${many(bounded, "stays", "stay")} bounded and ${many(bounded, "ends", "end")} at ${ends(bounded)}`);
  return clauses.join("; ");
}

function bairdSentence(lines) {
  const { first } = lines[0].found, { alpha } = lines[0].setting.values, near = lines.some(line => line.found.last < first / 10);
  return `With α = ${alpha}, ${fatesClause(lines)}. The initial error is ${short(first)}${near ? "" : "; no error comes near 0"}.`;
}

function mapSentence(row, alphas) {
  const up = row.found.filter(found => fateOf(found) === "diverges" || fateOf(found) === "grows").length;
  return `${row.label} ends above its initial error at ${up === alphas.length ? "all" : up + " of"} ${alphas.length} step sizes.`;
}

// The way of Gradient-DD from GTD2 (0) to TD (1), by mean errors; null if one diverges or TD is not better than GTD2.
function wayToTd([td, gtd2, dd]) {
  if (td.found.diverged || gtd2.found.diverged || dd.found.diverged || !(gtd2.found.meanError > td.found.meanError)) return null;
  return (gtd2.found.meanError - dd.found.meanError) / (gtd2.found.meanError - td.found.meanError);
}

function walkSentence(lines) {
  const { kappa } = lines[2].setting.values;
  const [from, to, here] = [lines[1].found.meanError, lines[0].found.meanError, lines[2].found.meanError], way = wayToTd(lines);
  if (way === null) return `With κ = ${kappa}, ${fatesClause(lines)}.`;
  if (here === from) return `With κ = ${kappa}, Gradient-DD is GTD2: the two curves coincide.`;
  const numbers = `mean error ${short(here)}, where GTD2 has ${short(from)} and TD ${short(to)}`;
  if (here < to) return `With κ = ${kappa}, Gradient-DD has gone all the way from GTD2 to TD, and past it: ${numbers}.`;
  if (here > from) return `With κ = ${kappa}, Gradient-DD is worse than GTD2: ${numbers}.`;
  return `With κ = ${kappa}, Gradient-DD has gone ${percent(way)} of the way from GTD2 to TD: ${numbers}.`;
}

function gain([gtd2, dd]) { return 1 - dd.found.meanError / gtd2.found.meanError; }
function difference(share) {
  if (share === 0) return "the same as";
  if (Math.abs(share) < 0.005) return "within 0.5\u00a0% of";
  return `${percent(Math.abs(share))} ${share > 0 ? "below" : "above"}`;
}

function shuffleSentence(ordered, shuffled) {
  const { kappa } = ordered[1].setting.values;
  const diverged = [["in order", ordered], ["shuffled", shuffled]].map(([how, lines]) => [how, lines.filter(line => line.found.diverged)])
    .filter(([, lines]) => lines.length).map(([how, lines]) => `${how}, ${divergedClause(lines)}`);
  if (diverged.length) return `With κ = ${kappa}: ${diverged.join("; ")}.`;
  const [before, after] = [gain(ordered), gain(shuffled)];
  const end = before > 0.02 && after < before / 10 ? " The gain has vanished." : "";
  return `With κ = ${kappa}, Gradient-DD's mean error is ${difference(before)} GTD2's with the steps in order, ` +
    `and ${difference(after)} GTD2's with the same number of shuffled steps.${end}`;
}

// The call that makes the same runs in Python.
function pythonOf(plan) {
  const text = value => typeof value === "string" ? JSON.stringify(value) : String(value);
  const own = plan.settings.map(one => LEARNERS[one.learner]).filter(one => one.load);
  const settings = plan.settings.map(one => {
    const learner = LEARNERS[one.learner], values = Object.entries(one.values).map(([name, value]) => `${name}=${text(value)}`);
    if (learner.hasRhoMode && one.rhoMode !== "R") values.push(`rho_mode="${one.rhoMode}"`);
    return `    (${learner.load || text(one.learner)}, dict(${values.join(", ")})),`;
  });
  const sampling = plan.samplings.map(one => `"${one}"`).join(", ");
  return [
    "import gradient_dd as gdd", ...(own.length ? ["from gradient_dd.studies import load_rule"] : []), "",
    `task = ${TASKS[plan.task].python}`, "settings = [", ...settings, "]",
    `for sampling in [${sampling}]:`, "    for learner, values in settings:",
    `        how = dict(steps=${plan.steps}, every=${plan.steps / POINTS}, seed=${plan.seed}, sampling=sampling)`,
    `        runs = [gdd.reference.run(task, learner, run=run, **how, **values) for run in range(${plan.runs})]`,
    "        print(sampling, learner, values, sum(one.errors.mean() for one in runs) / len(runs))", "",
  ].join("\n");
}
