"""Which ladder between TD and GTD2 could be best?

    python -m trials.shadows_forms

Six families lead from a safe learner to a quick one by one number: c in the forms of GTD2 and TDC, κ of Gradient-DD,
reg of TDRC, λ of GTD2 and of TD. For each the best value in hindsight, tuned on every task as in the trial, is
what a ladder over it could reach at most without switching. The tasks have seeds of their own. Another λ has another
fixed point, except where the features can express the true values (walks, Boyan, Baird); errors here are distances to
that of λ = 0.
"""

from itertools import product
from typing import Any

import numpy as np

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.shadows import cases as shadows_cases
from gradient_dd.experiments.shadows import trial
from gradient_dd.experiments.tuning import tune_then_show
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import baird, boyan_chain, random_walk
from tools.programs import parser_of

FIRST = 71_000_000
FAMILIES = {
    "c, GTD2 form": ("gtd2_to_td", "c", (0.0, 0.1, 0.3, 0.6, 1.0)),
    "c, TDC form": ("tdc_to_td", "c", (0.0, 0.1, 0.3, 0.6, 1.0)),
    "κ of Gradient-DD": ("gradient_dd", "kappa", (0.0, 0.25, 1.0, 4.0, 16.0)),
    "reg of TDRC": ("tdrc", "reg", (0.0, 0.1, 0.3, 1.0, 3.0)),
    "λ of GTD2": ("gtd2", "lam", (0.0, 0.3, 0.6, 0.9, 1.0)),
    "λ of TD": ("td", "lam", (0.0, 0.3, 0.6, 0.9, 1.0)),
}
ZETAS = (0.25, 1.0, 4.0)


def forms_cases() -> list[shadows_cases.Case]:
    """Return the tasks: walks and chains, Baird, random MDPs, and two kinds on which TD diverges."""
    cases = [shadows_cases.Case("paper", str(task), task) for task in (random_walk(12), boyan_chain(15))]
    cases += [
        shadows_cases.Case("Baird", f"Baird {n}", shadows_cases.with_random_start(baird(n), FIRST + n))
        for n in (6, 7, 9)
    ]
    cases += [*shadows_cases.random_cases("on", 4, FIRST), *shadows_cases.random_cases("off", 4, FIRST)]
    return [*cases, *shadows_cases.diverging_cases(5, FIRST), *shadows_cases.greedy_cases(6, FIRST)]


def measures(case: shadows_cases.Case, steps: int = trial.STEPS, tuned: int = 2, total: int = 5) -> dict[str, float]:
    """Return the measure of every family on a task: its best setting of the first runs, on the others."""
    task = shadows_cases.aimed_at_the_fixed_point(case.task)
    scale = trial.unit_of(task)
    found = {}
    for family, (name, parameter, ladder) in FAMILIES.items():
        grid = product(trial.ALPHAS[1::2], ZETAS, ladder)
        chosen: list[dict[str, Any]] = [{"alpha": a * scale, "zeta": zeta, parameter: v} for a, zeta, v in grid]
        if name == "td":  # it has no ζ: as many settings by a finer α
            fine = product(np.geomspace(trial.ALPHAS[1], trial.ALPHAS[-2], len(chosen) // len(ladder)), ladder)
            chosen = [{"alpha": a * scale, parameter: v} for a, v in fine]
        settings = [LEARNERS[name].setting(**values) for values in chosen]
        areas = []
        for run in range(total):
            lanes = LaneRun(task, settings, Horizon(steps=steps, every=trial.EVERY), seed=FIRST, run=run)
            lanes.advance()
            areas.append(lanes.results().area[0])
        found[family] = float(tune_then_show(np.transpose(areas), tuned)[1].mean())
    return found


def main(words: list[str] | None = None) -> None:
    """Print the geometric mean of the ratio to the best family of each task, by group."""
    parser_of(__doc__).parse_args(words)
    rows = []
    for case in forms_cases():
        found = measures(case)
        rows.append((case.group, np.array(list(found.values())) / min(found.values())))
        print(f"{case.name:50} " + "  ".join(f"{value:.3g}" for value in found.values()), flush=True)
    for group in ("all", *dict.fromkeys(name for name, _ in rows)):
        table = np.minimum([ratio for name, ratio in rows if group in ("all", name)], trial.CAP)
        means = np.exp(np.log(table).mean(axis=0))
        print(f"{group:20} " + "  ".join(f"{name} {mean:.2f}" for name, mean in zip(FAMILIES, means, strict=True)))


if __name__ == "__main__":
    main()
