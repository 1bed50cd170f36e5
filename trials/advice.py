"""Compare the advice of `analyse` with the best settings of the paper's grids, on separate runs.

    python -m trials.advice                  all cases: about 20 minutes on two cores
    python -m trials.advice walk-20 boyan    the cases whose names begin with these words

Each case runs in its own process without cached kernels, so its time includes starting Python and compiling. The best
setting of a grid has the lowest mean error on the test runs themselves, which favours the grid. The grids are the
paper's, with its five learners; random MDPs use the grids of the walk. No design choice used the seeds of these MDPs.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter
from typing import NamedTuple

import numpy as np

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernel_folder import VARIABLE
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.experiments.paper.studies import BAIRD, BOYAN, WALK
from gradient_dd.learners import Setting
from gradient_dd.studies.study import Study
from gradient_dd.tasks import Task, baird, boyan_chain, random_mdp, random_walk
from gradient_dd.theory.advice import MEASURES, advise
from tools.programs import parser_of

SEED = 2_718_281  # of the test runs
MDPS = range(9000, 9050)
HEAD = "| task | measure | advice | error | best of the grid | error | ratio | not learning | seconds | of a core |"


@dataclass(frozen=True)
class Case:
    """A task, the length of a run, the study with the reference grids, and the number of test runs."""

    name: str
    task: Task
    horizon: Horizon
    schedule: Schedule
    study: Study
    runs: int


class Judged(NamedTuple):
    """A row of the table: the advice and the best setting of the grid, with their mean errors on test runs."""

    case: str
    measure: str
    advice: Setting
    error: float
    best: Setting
    best_error: float
    initial_error: float
    seconds: float
    core_seconds: float

    @property
    def ratio(self) -> float:
        """The error of the advice relative to the best setting of the grid."""
        return self.error / self.best_error

    def __str__(self) -> str:
        cells = self.case, self.measure, self.advice, f"{self.error:.3g}", self.best, f"{self.best_error:.3g}"
        numbers = f"{self.ratio:.2f}", f"{self.initial_error:.3g}", f"{self.seconds:.1f}", f"{self.core_seconds:.1f}"
        return f"| {' | '.join(map(str, (*cells, *numbers)))} |"


def cases() -> Iterator[Case]:
    """Yield every case, the paper's tasks first."""
    walk, boyan, steps = Horizon(WALK.episodes), Horizon(BOYAN.episodes), Horizon(steps=BAIRD.steps, every=BAIRD.every)
    for m, runs in ((10, 60), (20, 40), (40, 16)):
        for name, schedule in (("taper", WALK.schedule), ("constant", constant)):
            yield Case(f"walk-{m}-{name}", random_walk(m), walk, schedule, WALK, runs)
    for p, runs in ((20, 60), (50, 40)):
        yield Case(f"boyan-{p}", boyan_chain(p), boyan, BOYAN.schedule, BOYAN, runs)
    for n in (7, 20):
        for ratios in ("standard", "paper"):
            yield Case(f"baird-{n}-{ratios}", baird(n, ratios=ratios), steps, constant, BAIRD, 100)
    yield from map(mdp_case, MDPS)


def mdp_case(seed: int) -> Case:
    """Return a random MDP: on- or off-policy, with or without episodes, with or without a taper."""
    on_policy, episodic, tapers = seed % 2 == 0, seed // 2 % 2 == 0, seed // 4 % 2 == 0
    task = random_mdp(seed=seed, episodic=episodic)
    if on_policy:
        task = replace(task, target=task.behaviour)
    horizon = Horizon(episodes=5000) if episodic else Horizon(steps=40_000, every=20)
    schedule = tapered(1000, "episode" if episodic else "step") if tapers else constant
    return Case(f"mdp-{seed}-{'on' if on_policy else 'off'}-policy", task, horizon, schedule, WALK, 60)


def advised(name: str, measure: str) -> Setting:
    """Return the advice for a case."""
    case = next(case for case in cases() if case.name == name)
    best = advise(case.task, case.horizon, case.schedule, measure=measure).best
    assert best is not None, f"There was no advice for {name}."
    return best.setting


def timed_advice(name: str, measure: str) -> tuple[Setting, float, float]:
    """Return the advice for a case from a new process, its wall seconds, and its processor seconds."""
    begin, before = perf_counter(), getrusage(RUSAGE_CHILDREN)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        setting = pool.submit(advised, name, measure).result()
    seconds, after = perf_counter() - begin, getrusage(RUSAGE_CHILDREN)
    return setting, seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def judge(case: Case) -> Iterator[Judged]:
    """Yield a row for each measure."""
    advice = {measure: timed_advice(case.name, measure) for measure in MEASURES}
    settings = [*case.study.settings(), *(setting for setting, *_ in advice.values())]
    results = run_lanes(case.task, settings, case.horizon, schedule=case.schedule, seed=SEED, runs=case.runs)
    for place, (measure, (setting, *seconds)) in enumerate(advice.items()):
        means = getattr(results, measure).mean(axis=0)
        best = int(np.argmin(means[: -len(advice)]))
        error, still = float(means[place - len(advice)]), case.task.rmsve(case.task.initial_weights)
        yield Judged(case.name, measure, setting, error, settings[best], float(means[best]), still, *seconds)


def main(words: list[str] | None = None) -> None:
    """Print the table, row by row, and then its worst rows."""
    parser = parser_of(__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="only cases whose names begin with this text")
    chosen, rows = tuple(parser.parse_args(words).cases), []
    os.environ[VARIABLE] = "off"  # no kernels from disk
    print(f"{HEAD}\n{'|---' * HEAD.count(' |')}|", flush=True)
    for case in cases():
        if not chosen or case.name.startswith(chosen):
            for row in judge(case):
                rows.append(row)
                print(row, flush=True)
    ratios, seconds = np.array([row.ratio for row in rows]), np.array([row.seconds for row in rows])
    print(
        f"\nratio: median {np.median(ratios):.2f}, largest {ratios.max():.2f}, above 1.3 in {(ratios > 1.3).sum()} rows"
    )
    print(f"worse than not learning: {sum(row.error > row.initial_error for row in rows)} of {len(rows)} rows")
    print(f"seconds: median {np.median(seconds):.1f}, largest {seconds.max():.1f}")


if __name__ == "__main__":
    main()
