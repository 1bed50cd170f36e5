"""The tables of the comparison: every number of the pictures and verdicts, as CSV, and what an update cost.

standings.csv      a row for each problem and learner: its tuned setting, error on the shown runs, rank, ratio
tuning-NAME.csv    of a problem: every setting on the tuning runs
shown-NAME.csv     of a problem: the selected settings, run by run, on the shown runs
trials.csv         the trials beside the studies, number by number; a report is written again from it
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradient_dd.experiments.experiment import Job, csv_text
from gradient_dd.experiments.family.contest import MEASURES, Contest, trace_length
from gradient_dd.experiments.family.standings import standings
from gradient_dd.learners import Setting
from gradient_dd.studies.checked import checked_costs
from gradient_dd.studies.statistics import estimate, has_exploded
from gradient_dd.studies.store import Store

TIMED = ("collision", "walk-19", "random-mdp")  # problems whose costs are shown: few and many features, dense ones
MOST_TIMED = 5  # runs
SETTING = "learner lam setting"
TUNING = f"{SETTING} runs area_mean area_sem last100_mean last100_sem exploded_runs"
STANDINGS = "problem learner setting mean sem rank ratio low high diverged_runs exploded_settings settings edge"


def tables(job: Job, contest: Contest) -> dict[str, str]:
    """Return all tables by name; that of the trials is written as soon as they are made."""
    ranked = ((*one[:2], str(one.setting), *one[3:6], *one.ratio, *one[7:]) for one in standings(contest))
    found = {"standings": csv_text(STANDINGS, ranked)}
    for problem in contest.problems:
        name, runs = problem.name, problem.runs_to_show(job.scale)
        found[f"tuning-{name}"] = csv_text(TUNING, tuning_rows(contest, name))
        found[f"shown-{name}"] = csv_text(f"{SETTING} run area last100", shown_rows(contest, name, runs))
    return found


def facts(setting: Setting) -> tuple[Any, ...]:
    """Return the columns that tell which setting a row is of."""
    return setting.rule.name, trace_length(setting), str(setting)


def tuning_rows(contest: Contest, problem: str) -> Iterable[tuple[Any, ...]]:
    """Yield a row for each setting."""
    settings, areas = contest.table(problem, "area")
    folded = [estimate(contest.table(problem, measure).errors) for measure in MEASURES]
    gone = has_exploded(areas, contest.first[problem]).sum(axis=1)
    for place, setting in enumerate(settings):
        measured = [value for one in folded for value in (one.mean[place], one.sem[place])]
        yield *facts(setting), areas.shape[1], *measured, gone[place]


def shown_rows(contest: Contest, problem: str, runs: range) -> Iterable[tuple[Any, ...]]:
    """Yield a row for each selected setting and run."""
    errors = [contest.table(problem, measure, fresh=True).errors for measure in MEASURES]
    for place, setting in enumerate(contest.table(problem, "area", fresh=True).settings):
        for number, run in enumerate(runs):
            yield *facts(setting), run, *(some[place, number] for some in errors)


def costs_of(job: Job, contest: Contest) -> dict[str, dict[str, float]]:
    """Return by problem and learner the nanoseconds of an update, the median over the first tuning runs."""
    found: dict[str, dict[str, float]] = {}
    with Store(job.store) as opened:
        for problem in (one for one in contest.problems if one.name in TIMED):
            times: dict[str, list[float]] = {}
            for run in problem.runs_to_tune(job.scale)[:MOST_TIMED]:
                for task in problem.tasks_of(run):
                    for learner, _, seconds, updates in checked_costs(opened, str(task.build()), range(run, run + 1)):
                        times.setdefault(learner, []).append(seconds / updates * 1e9)
            found[problem.name] = {learner: float(np.median(some)) for learner, some in times.items()}
    return found
