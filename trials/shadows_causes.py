"""Why the learner that chooses is worse than 1.5 × the best rival on some tasks of a trial.

    python -m trials.shadows_causes shadows_trial.rows

Every such task is run again on ten fresh runs: the learner with its tuned setting, the best rival with its own, and
every rung of the ladder alone. The first cause that applies is given:

    luck       on fresh runs it is within 1.5 ×; what it was on the shown runs came from a few bursts
    alpha      another step size of the grid is within 1.5 × on the shown runs: three runs chose a wrong one
    ladder     no rung alone is within 1.5 × of the rival: the ladder has nothing like it
    too quick  a rung alone would do, and the error rose above 1.1 × where it began: an unstable rung was read out
    too slow   a rung alone would do, and the error fell, too late
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine import ladder
from gradient_dd.engine.choosing import run_shadow_learner
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.shadows import trial
from gradient_dd.experiments.shadows.cases import Case, aimed_at_the_fixed_point
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task
from tools.programs import parser_of
from trials.shadows_trial import suite

BOUND, RISEN = 1.5, 1.1
FRESH = range(trial.TUNED + trial.SHOWN, trial.TUNED + trial.SHOWN + 10)


class Cause(NamedTuple):
    """A task beyond the bound: why, its ratio in the trial and on fresh runs, that of the best rung, the rival."""

    chooser: str
    group: str
    task: str
    cause: str
    ratio: float
    fresh: float
    best_alpha: float
    best_rung: float
    risen: float
    rival: str


def causes(row: dict[str, Any], case: Case) -> Iterator[Cause]:
    """Yield why the learner is beyond the bound on a task, with alpha tuned and with nothing tuned."""
    rivals = {name: measure for name, measure in row["measure"].items() if name not in trial.CHOOSERS}
    best = min(rivals, key=lambda name: rivals[name])
    beyond = [name for name in trial.CHOOSERS if row["measure"][name] > BOUND * rivals[best]]
    if not beyond:
        return
    task = aimed_at_the_fixed_point(case.task)
    scale = 1 / float(task.visits @ (task.features**2).sum(axis=1))
    setting = trial.rivals(task, trial.ALPHAS)[best][row["setting"][best]]
    rival = mean_areas(task, [setting])[0]
    for name in beyond:
        alpha = trial.ALPHAS[row["setting"][name]] * scale if name == trial.CHOOSERS[0] else None
        errors = [shadow_errors(task, alpha, run) for run in FRESH]
        fresh = float(np.mean(errors)) / rival
        best_alpha = min(row["every_setting"][name]) / rivals[best]
        rungs = mean_areas(task, rung_settings(alpha, scale))
        best_rung = min(*rungs, row["start"]) / rival
        risen = float(np.mean(errors, axis=0).max()) / row["start"]
        word = named(fresh, best_alpha if alpha else np.inf, best_rung, risen)
        ratio = row["measure"][name] / rivals[best]
        words = f"{best}: {setting} (start {row['start'] / rivals[best]:.2f})"
        yield Cause(name, row["group"], row["task"], word, ratio, fresh, best_alpha, best_rung, risen, words)


def named(fresh: float, best_alpha: float, best_rung: float, risen: float) -> str:
    """Return the first cause that applies."""
    if fresh <= BOUND:
        return "luck"
    if best_alpha <= BOUND:
        return "alpha"
    if best_rung > BOUND:
        return "ladder"
    return "too quick" if risen > RISEN else "too slow"


def shadow_errors(task: Task, alpha: float | None, run: int) -> Array:
    """Return the errors of the learner in a run, (points,)."""
    common: dict[str, Any] = {"steps": trial.STEPS, "every": trial.EVERY, "seed": trial.SEED}
    return run_shadow_learner(task, alpha, run=run, shadow_seed=run, **common).errors


def mean_areas(task: Task, settings: list[Setting]) -> list[float]:
    """Return the measure of settings over the fresh runs."""
    areas = []
    for run in FRESH:
        lanes = LaneRun(task, settings, Horizon(steps=trial.STEPS, every=trial.EVERY), seed=trial.SEED, run=run)
        lanes.advance()
        areas.append(lanes.results().area[0])
    means: list[float] = np.mean(areas, axis=0).tolist()
    return means


def rung_settings(alpha: float | None, scale: float) -> list[Setting]:
    """Return the rungs that learn as settings of learners."""
    unit = ladder.UNIT * scale if alpha is None else alpha
    kept = ladder.WIDE if alpha is None else ladder.NARROW
    made = []
    for rung in kept.rungs:
        if rung.direct:
            made.append(LEARNERS["td"].setting(alpha=rung.multiple * unit))
        elif rung.multiple:
            made.append(LEARNERS["gtd2_to_td"].setting(alpha=rung.multiple * unit, zeta=rung.zeta, c=rung.c))
    return made


def main(words: list[str] | None = None) -> None:
    """Print every task beyond the bound with its cause, and how many there are of each."""
    parser = parser_of(__doc__)
    parser.add_argument("rows", type=Path, help="the .rows file of a trial with constant step sizes")
    rows = trial.read_rows(parser.parse_args(words).rows)
    cases = {case.name: case for name in ("whole", "greedy") for case in suite(name)}
    found = [cause for row in rows for cause in causes(row, cases[row["task"]])]
    for name in trial.CHOOSERS:
        mine = sorted((one for one in found if one.chooser == name), key=lambda one: (one.cause, -one.ratio))
        print(f"{name}: {len(mine)} of {len(rows)} tasks")
        for one in mine:
            print(
                f"  {one.cause:10} {one.ratio:6.2f}  fresh {one.fresh:6.2f}  best alpha {one.best_alpha:5.2f}"
                f"  best rung {one.best_rung:5.2f}  rose to {one.risen:5.2f}  {one.task}  {one.rival}"
            )


if __name__ == "__main__":
    main()
