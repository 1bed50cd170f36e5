"""Measure how much ratios to TD depend on the search budget: the usual budget and twice the budget.

    python -m trials.search_robustness [STUDY ...] [--learners NAME ...] [--times 1 2] [--out FOLDER] [--workers N]

Every learner is tuned by the search of `gradient-dd reproduce` (src/gradient_dd/experiments/paper/studies.py). With
--times 2 the search has twice the settings in every stage. Each selected setting runs on the same 100 test runs. A row
of the table has the error of a learner relative to TD's with its 95 % interval for each budget, and says whether one
estimate lies outside the interval of the other. FOLDER stores all results; a second call runs only missing ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gradient_dd.experiments.job import Job, Scale
from gradient_dd.experiments.paper.asking import WHOLE
from gradient_dd.experiments.paper.studies import BUDGET, STUDIES, fully
from gradient_dd.experiments.running import run_afresh
from gradient_dd.experiments.tuning import SearchEvidence, search_all
from gradient_dd.learners import Setting
from gradient_dd.report.figure import NAMES
from gradient_dd.studies.intervals import Interval, ratio_interval
from gradient_dd.studies.results import Results
from gradient_dd.studies.search import SearchStudy
from tools.programs import parser_of

MEASURES = {"last100": "final error", "mean_error": "mean error"}
Ratios = dict[tuple[str, str, str], Interval]  # by case, measure and learner


def ratios(name: str, wanted: Sequence[str], times: int, job: Job) -> Ratios:
    """Return the error of learners relative to TD's on the test runs, with a multiple of the budget."""
    finals = tuple((times * count, runs) for count, runs in BUDGET.finals)
    larger = replace(BUDGET, coarse=times * BUDGET.coarse, refined=times * BUDGET.refined, finals=finals)
    base, study = job.scale.of(STUDIES[name]), job.scale.of(fully(STUDIES[name], larger))
    assert isinstance(study, SearchStudy)
    if wanted:
        study = replace(study, grids=tuple(grid for grid in study.grids if grid.learner in ("td", *wanted)))
    one = SearchEvidence(Results(study, job.store), beside=base)
    search_all([one], job)
    learners = [str(grid.learner) for grid in study.grids if grid.rho_mode == "R"]
    chosen = {
        (case, goal, learner): one.choose(case, WHOLE[learner], goal)
        for case in one.cases
        for goal in study.goals
        for learner in learners
    }
    work: dict[tuple[str, str], list[Setting]] = {(study.name, case): [] for case in one.cases}
    for (case, _, _), tuned in chosen.items():
        if tuned.setting not in work[study.name, case]:
            work[study.name, case].append(tuned.setting)
    run_afresh(work, {study.name: one}, job)
    for key, tuned in chosen.items():
        print(f"{times} x {key[0]} {key[1]}: {tuned.setting}, of {tuned.settings}", flush=True)
    return {
        (case, goal, learner): ratio_interval((tuned.errors(goal), chosen[case, goal, "td"].errors(goal)))
        for (case, goal, learner), tuned in chosen.items()
        if learner != "td"
    }


def rows(found: Sequence[Ratios]) -> Iterator[str]:
    """Yield the lines of the table."""
    for case, goal, learner in found[0]:
        several = [one[case, goal, learner] for one in found]
        cells = [f"{one.estimate:.2f} [{one.low:.2f}, {one.high:.2f}]" for one in several]
        moved = any(not one.low <= other.estimate <= one.high for one in several for other in several)
        yield f"| {' | '.join([case, MEASURES[goal], NAMES[learner], *cells, 'moved' if moved else ''])} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("studies", nargs="*", default=["walk", "boyan"])
    parser.add_argument("--learners", nargs="+", default=[], help="default: all learners of the study")
    parser.add_argument("--times", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--out", type=Path, default=Path("results-robustness"))
    parser.add_argument("--workers", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--episodes", type=int)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    scale = Scale(given.runs, given.episodes)
    job = Job((), given.out, scale, {"workers": given.workers}, print)
    lines = []
    for name in given.studies:
        lines += rows([ratios(name, given.learners, times, job) for times in given.times])
    budgets = " | ".join(f"budget × {times}" for times in given.times)
    print(f"| task | measure | learner | {budgets} | |", "|---" * (4 + len(given.times)) + "|", *lines, sep="\n")


if __name__ == "__main__":
    main()
