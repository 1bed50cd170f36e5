"""The tables of the comparison: every number of the pictures and verdicts, as CSV, and what an update cost.

standings.csv      a row for each problem and learner: its tuned setting, error on the shown runs, rank, ratio
tuning-NAME.csv    of a problem: every setting on the tuning runs
shown-NAME.csv     of a problem: the selected settings, run by run, on the shown runs
trials.csv         the trials beside the studies, number by number; a report is written again from it
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.experiments.family.contest import MEASURES, Contest, trace_length
from gradient_dd.experiments.family.problems import Problem, Scale
from gradient_dd.experiments.family.standings import Standing
from gradient_dd.experiments.family.trials import Trial
from gradient_dd.learners import Setting
from gradient_dd.studies.intervals import estimate, has_exploded
from gradient_dd.studies.store import Store

TIMED = ("collision", "walk-19", "random-mdp")  # problems whose costs are shown: few and many features, dense ones
MOST_TIMED = 5  # runs


def write_tables(contest: Contest, found: Sequence[Standing], scale: Scale, folder: Path) -> None:
    """Write all tables."""
    folder.mkdir(parents=True, exist_ok=True)
    write(
        folder / "standings.csv",
        "problem learner setting mean sem rank ratio low high diverged_runs exploded_settings settings edge",
        (
            (
                s.problem,
                s.learner,
                str(s.setting),
                s.mean,
                s.sem,
                s.rank,
                *s.ratio,
                s.diverged,
                s.exploded,
                s.of,
                s.edge,
            )
            for s in found
        ),
    )
    for problem in contest.problems:
        name = problem.name
        write(
            folder / f"tuning-{name}.csv",
            f"{SETTING} runs area_mean area_sem last100_mean last100_sem exploded_runs",
            tuning_rows(contest, name),
        )
        write(
            folder / f"shown-{name}.csv", f"{SETTING} run area last100", shown_rows(contest, name, scale.shown(problem))
        )


SETTING = "learner lam setting"


def facts(setting: Setting) -> tuple[Any, ...]:
    """Return the columns that tell which setting a row is of."""
    return setting.rule.name, trace_length(setting), str(setting)


def tuning_rows(contest: Contest, problem: str) -> Iterable[tuple[Any, ...]]:
    """Yield a row for each setting."""
    settings, errors = contest.tuning[problem]
    folded = [estimate(errors[measure]) for measure in MEASURES]
    gone = has_exploded(errors["area"], contest.first[problem]).sum(axis=1)
    for place, setting in enumerate(settings):
        measured = [value for one in folded for value in (one.mean[place], one.sem[place])]
        yield *facts(setting), errors["area"].shape[1], *measured, gone[place]


def shown_rows(contest: Contest, problem: str, runs: range) -> Iterable[tuple[Any, ...]]:
    """Yield a row for each selected setting and run."""
    settings, errors = contest.shown[problem]
    for place, setting in enumerate(settings):
        for number, run in enumerate(runs):
            yield *facts(setting), run, *(errors[measure][place, number] for measure in MEASURES)


def write_trials(trials: Sequence[Trial], target: Path) -> None:
    """Write the numbers of trials, each with all its digits."""
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = ((t.name, t.problem, name, repr(float(v))) for t in trials for name, some in t.shown.items() for v in some)
    write(target, "trial problem name error", rows)


def read_trials(source: Path) -> list[Trial]:
    """Return the trials that were written."""
    shown: dict[tuple[str, str], dict[str, list[float]]] = {}
    with source.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            parts = shown.setdefault((row["trial"], row["problem"]), {})
            parts.setdefault(row["name"], []).append(float(row["error"]))
    return [Trial(*key, {name: np.array(some) for name, some in parts.items()}) for key, parts in shown.items()]


def write(target: Path, head: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write a table."""
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head.split())
        writer.writerows(rows)


def costs_of(problems: Sequence[Problem], scale: Scale, store: Path) -> dict[str, dict[str, float]]:
    """Return by problem and learner the nanoseconds of an update, the median over the first tuning runs."""
    found: dict[str, dict[str, float]] = {}
    with Store(store) as opened:
        for problem in (one for one in problems if one.name in TIMED):
            times: dict[str, list[float]] = {}
            for run in scale.tuning(problem)[:MOST_TIMED]:
                for unit in opened.units([task.build() for task in problem.tasks_of(run)], range(run, run + 1)):
                    for learner, (seconds, updates) in unit.facts["costs"].items():
                        times.setdefault(learner, []).append(seconds / updates * 1e9)
            found[problem.name] = {learner: float(np.median(some)) for learner, some in times.items()}
    return found
