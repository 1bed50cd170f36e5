"""Suites of problems on which rules are ranked.

classic   problems from the literature
random    tasks drawn from fixed seeds in four families: on-policy, moderate ratios, large ratios, TD unstable

A problem is a task, several tasks whose errors are averaged, or a task drawn again for every run. Runs have a fixed
number of steps and constant step sizes. Tuning runs are numbered from 0, test runs from TEST.

A random task has sparse transitions (every action leads to `branches` states), Gaussian features X, and values that
are almost linear in X: V = X w + 0.3 ε with Gaussian w and ε; the reward of a state is r = V − γ P V. The policies
are Dirichlet draws; the behaviour policy takes each action with probability `floor` / actions or more. A family keeps
the seeds whose tasks meet its conditions on E[ρ²] and on the eigenvalues of A, as `trials.make_standings` checks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.errors import one_of
from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import Setting
from gradient_dd.studies.intervals import EXPLODED
from gradient_dd.studies.study import TaskSpec, task
from gradient_dd.tasks import Task, from_tables

MEASURES = ("mean_error", "last100")  # the mean error over the run, which selects the settings, and the final error
POINTS = 50  # number of recorded errors per run
TEST = 100_000  # the number of the first test run
UNSEEN = 0.3  # size of the part of the values that the features cannot represent, relative to the other part


class Family(NamedTuple):
    """A family of random tasks: the Dirichlet parameter and floor of its policies, its sizes and its conditions."""

    title: str
    sharpness: float
    floor: float
    sizes: tuple[tuple[int, int, int, int, float], ...]  # states, actions, branches, features, discount; used in turn
    ratios: tuple[float, float]  # bounds of E[ρ²]
    stable: bool = True
    on_policy: bool = False


class RandomTask(NamedTuple):
    """The random task of a seed; `place` is its number in the family, which determines the size of the task."""

    family: Family
    place: int
    seed: int

    def build(self) -> Task:
        """Return the task."""
        family, rng = self.family, np.random.default_rng(self.seed)
        n, actions, branches, p, discount = family.sizes[self.place % len(family.sizes)]
        P = np.zeros((n, actions, n))
        for state, action in np.ndindex(n, actions):
            P[state, action, rng.choice(n, branches, replace=False)] = rng.dirichlet(np.ones(branches))
        behaviour, target = rng.dirichlet(np.full(actions, family.sharpness), size=(2, n))
        behaviour = (1 - family.floor) * behaviour + family.floor / actions
        target = behaviour if family.on_policy else target
        X, w, rest = rng.standard_normal((n, p)), rng.standard_normal(p), rng.standard_normal(n)
        values = X @ w / np.sqrt(p) + UNSEEN * rest
        rewards = values - discount * np.einsum("sa,sat,t->s", target, P, values)
        R = np.repeat(rewards[:, None], actions, axis=1)
        return from_tables(P, R, discount, behaviour=behaviour, target=target, features=X, name="random")


@lru_cache(maxsize=1024)
def built(spec: TaskSpec | RandomTask) -> Task:
    """Return the task of a specification; each task is built once."""
    return spec.build()


@dataclass(frozen=True)
class Problem:
    """A problem: its tasks, or the name of a task that is drawn again for every run, and the steps of a run."""

    name: str
    title: str
    suite: str
    steps: int
    specs: tuple[TaskSpec | RandomTask, ...] = ()
    drawn: str = ""

    @property
    def horizon(self) -> Horizon:
        """The length of a run."""
        return Horizon(steps=self.steps, every=self.steps // POINTS)

    @cached_property
    def key(self) -> str:
        """The fingerprint of the length and of the tasks of the first tuning run and the first test run."""
        return fingerprint(self.steps, [task.key for run in (0, TEST) for task in self.tasks(run)])

    @cached_property
    def initial_error(self) -> float:
        """The error of the initial weights in the first test run."""
        return float(np.mean([task.rmsve(task.initial_weights) for task in self.tasks(TEST)]))

    def tasks(self, run: int) -> tuple[Task, ...]:
        """Return the tasks of a run."""
        return (built(task(self.drawn, seed=run)),) if self.drawn else tuple(map(built, self.specs))

    def errors(self, settings: Sequence[Setting], runs: Sequence[int]) -> Array:
        """Return the errors, (measures, settings, runs), each at most ten times the initial error."""
        found = np.empty((len(MEASURES), len(settings), len(runs)))
        for place, run in enumerate(runs):
            parts = []
            for one in self.tasks(run):
                lanes = LaneRun(one, settings, self.horizon, run=run)
                lanes.advance()
                results = lanes.results()
                parts.append([getattr(results, measure)[0] for measure in MEASURES])
            found[:, :, place] = np.mean(parts, axis=0)
        return np.minimum(found, EXPLODED * self.initial_error)


def classic(name: str, title: str, steps: int, task_name: str, **parameters: Any) -> Problem:
    """Return a problem from the literature."""
    return Problem(name, title, "classic", steps, (task(task_name, **parameters),))


CLASSIC = (
    Problem("collision", "Collision", "classic", 10_000, drawn="collision"),
    *(
        classic(f"walk-5-{kind}", f"five-state walk, {kind}", 3_000, "five_state_walk", features=kind)
        for kind in ("tabular", "inverted", "dependent")
    ),
    classic("boyan-4", "Boyan chain, p = 4", 10_000, "boyan_chain", n_features=4),
    classic("boyan-50", "Boyan chain, p = 50", 10_000, "boyan_chain", n_features=50),
    classic("baird-7", "Baird, N = 7", 10_000, "baird", n_states=7),
    classic("walk-19", "19-state walk", 5_000, "nineteen_state_walk"),
    classic("walk-20", "random walk, m = 20", 10_000, "random_walk", n_states=20),
    classic("walk-40", "random walk, m = 40", 20_000, "random_walk", n_states=40),
    Problem("dann", "random MDPs of Dann et al.", "classic", 4_000, drawn="dann_mdp"),
    *(
        Problem(name, title, "classic", 10_000, tuple(task("rooms", question=k, variance=level) for k in range(8)))
        for name, title, level in (("rooms", "Rooms", "low"), ("rooms-high", "High-Variance Rooms", "high"))
    ),
)

SMALL, LARGE = (6, 2, 2, 4, 0.9), (16, 3, 3, 8, 0.95)
RANDOM_STEPS = 5_000
FAMILIES = {
    "on-policy": Family("on-policy", 1.0, 0.2, (SMALL, LARGE), (1 - 1e-9, 1 + 1e-9), on_policy=True),
    "moderate": Family("moderate ratios", 1.0, 0.2, (SMALL, LARGE), (1.2, 2.0)),
    "large": Family("large ratios", 0.3, 0.1, (SMALL, LARGE), (4.0, 10.0)),
    "unstable": Family("TD unstable", 0.3, 0.1, (SMALL,), (1.0, 20.0), stable=False),
}
# The first seeds that meet the conditions, from `draw_seeds` of `trials.make_standings`. On-policy, 1 and 5 are missing
# because rounding rejected both when E[ρ²] = 1 was compared without a tolerance. The shipped results need these seeds.
SEEDS = {
    "on-policy": (0, 2, 3, 4, 6, 7, 8, 9),
    "moderate": (1, 6, 7, 12, 13, 17, 18, 19),
    "large": (4, 5, 11, 12, 14, 15, 16, 17),
    "unstable": (71, 1234, 1405, 1920, 2586, 2704, 3543, 3698),
}


def random_problems(seeds: Mapping[str, Sequence[int]]) -> tuple[Problem, ...]:
    """Return the random problems for the seeds of each family."""
    found = []
    for name, chosen in seeds.items():
        for place, seed in enumerate(chosen):
            one, number = RandomTask(FAMILIES[name], place, seed), place + 1
            found.append(Problem(f"{name}-{number}", f"{one.family.title}, {number}", "random", RANDOM_STEPS, (one,)))
    return tuple(found)


RANDOM = random_problems(SEEDS)
SUITES = {"classic": CLASSIC, "random": RANDOM, "all": (*CLASSIC, *RANDOM)}


def problems_of(suite: str) -> tuple[Problem, ...]:
    """Return the problems of a suite."""
    return SUITES[one_of("'suite'", suite, SUITES)]
