"""Who is first on ten random off-policy tasks that nothing was designed on, and what changes if ρ stands elsewhere?

    python -m trials.family_unseen [--place R] [--runs 20] [--out unseen]

Every learner of the family chooses among its 144 settings on 8 other runs. Fixed before any result was
seen: four tasks of 8 states and 4 features, three of 20 states and 8 features, and three of 3 states and 2 features on
which TD diverges; seeds from 95,000,000, runs of 10,000 steps.

With `--place R` nothing of that runs. GTD2 and Gradient-DD then have ρ on the whole sample, as the study of the paper
has it, without a trace, on the off-policy problems of the family but the Rooms; beside it T, as the family has it.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from gradient_dd.experiments.experiment import Job, Scale
from gradient_dd.experiments.family.contest import Contest, Entrant, hold_contest
from gradient_dd.experiments.family.experiment import EXPERIMENT
from gradient_dd.experiments.family.problems import PROBLEMS, Problem, grid_of
from gradient_dd.experiments.family.ranks import mean_ranks
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import Grid, task
from gradient_dd.studies.intervals import ratio_interval
from gradient_dd.studies.sweep import run_all
from gradient_dd.tasks import random_mdp
from tools.programs import parser_of, print_table
from trials.auto_learner.trial import tune_then_show

FIRST = 95_000_000  # of the seeds of tasks, which nothing else uses
STEPS = 10_000
PLACED = ("walk-tabular", "walk-inverted", "walk-dependent", "baird-7", "collision", "random-mdp")
NO_TRACE = ("gradient_dd", "gtd2")  # the others have no ρ to place, or two stages


def diverging() -> Iterator[int]:
    """Yield the seeds of tasks of 3 states and 2 features on which TD diverges."""
    for seed in count(FIRST):
        values = np.linalg.eigvals(random_mdp(3, 2, 2, 0.99, seed=seed).moments.A)
        if values.real.min() < -0.01:
            yield seed


def unseen() -> list[Problem]:
    """Return the ten problems."""
    seeds = diverging()
    drawn = [(8, 3, 4, 0.9, FIRST + k) for k in range(4)] + [(20, 4, 8, 0.95, FIRST + k) for k in range(4, 7)]
    drawn += [(3, 2, 2, 0.99, next(seeds)) for _ in range(3)]
    problems = []
    for states, actions, features, discount, seed in drawn:
        one = task("random_mdp", n_states=states, n_actions=actions, n_features=features, discount=discount, seed=seed)
        problems.append(Problem(f"{states} states, seed {seed}", "random, off-policy", (one,), STEPS))
    return problems


def show_ranks(contest: Contest) -> None:
    """Print mean ranks with intervals, and ranks problem by problem."""
    ranks = mean_ranks(contest)
    by_problem = {}
    for problem in contest.problems:
        means = {name: contest.shown(problem.name, Entrant(name)).mean() for name in contest.learners}
        by_problem[problem.name] = {name: 1 + sum(one < mean for one in means.values()) for name, mean in means.items()}
    print("problems:", *by_problem, sep="\n  ")
    rows = [
        (
            LEARNERS[name].label,
            f"{one.mean:.1f} [{one.low:.1f}, {one.high:.1f}]",
            f"{100 * one.first:.0f} %",
            " ".join(f"{ranks[name]:2d}" for ranks in by_problem.values()),
        )
        for name, one in ranks.items()
    ]
    print_table(("learner", "mean rank, interval", "first in", "rank on each problem"), rows)


def grids_without_trace(problem: Problem, place: str) -> tuple[Grid, ...]:
    """Return the settings of both learners without a trace, with ρ at a place."""
    found = []
    for name in NO_TRACE:
        one = grid_of(LEARNERS[name], problem.example())
        values = tuple((key, (0.0,) if key == "lam" else some) for key, some in one.values)
        found.append(replace(one, values=values, rho_mode=place))
    return tuple(found)


def show_places(job: Job, workers: int) -> None:
    """Print the ratio of Gradient-DD to GTD2, without a trace, for both places of ρ."""
    rows = []
    for problem in (one for one in PROBLEMS if one.name in PLACED):
        tuning, shown = problem.runs_to_tune(job.scale), problem.runs_to_show(job.scale)
        told = []
        for place in ("T", "R"):
            studies = problem.studies(grids_without_trace(problem, place), range(shown.stop), name=f"-placed-{place}")
            results = run_all(studies, job.store, workers=workers)
            settings = list(results[0].study.settings())
            errors = np.concatenate([one.errors(name, "area")[1] for one in results for name in one.tasks], axis=1)
            found = []
            for name in NO_TRACE:
                ours = [at for at, one in enumerate(settings) if one.rule.name == name]
                found.append(tune_then_show(errors[ours], len(tuning))[1])
            ratio, low, high = ratio_interval((found[0], found[1]))
            told.append(f"{ratio:.3f} [{low:.3f}, {high:.3f}]")
        rows.append((problem.name, *told))
    print_table(("Gradient-DD / GTD2 on", "ρ placed T", "ρ placed R"), rows)


def main(words: list[str] | None = None) -> None:
    """Run one of the two trials."""
    parser = parser_of(__doc__)
    parser.add_argument("--place", choices=("R",), help="compare the places of ρ instead")
    parser.add_argument("--runs", type=int, default=20, help="runs that are shown")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("unseen"), help="the folder of the results file")
    chosen = parser.parse_args(words)
    chosen.out.mkdir(parents=True, exist_ok=True)
    scale = Scale(None if chosen.place else chosen.runs)
    job = Job(EXPERIMENT, (), chosen.out, scale, {"workers": chosen.workers}, print)
    if chosen.place:
        show_places(job, chosen.workers)
    else:
        show_ranks(hold_contest(job, unseen(), tuple(LEARNERS)))


if __name__ == "__main__":
    main()
