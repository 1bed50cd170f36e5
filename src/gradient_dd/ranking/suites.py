"""The suites of problems that rules are ranked on.

classic   problems of the literature
random    tasks drawn from fixed seeds in four families: on-policy, moderate ratios, large ratios, TD unstable

A problem is a task, several tasks whose errors are averaged, or a task drawn again for every run. Its runs are counted
in steps, with constant step sizes. Tuning runs are numbered from 0, test runs from TEST.

A random task has sparse transitions (every action leads to `branches` states), Gaussian features X, and values that
are almost linear in them: V = X w + 0.3 ε with Gaussian w and ε; the reward of a state is r = V − γ P V. The policies
are Dirichlet draws; the behaviour policy takes each action with probability `floor` / actions or more. A family keeps
the seeds whose tasks meet its condition on E[ρ²] and on the eigenvalues of A; `acceptable` has the conditions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import count
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.errors import BadRequestError, one_of
from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import Setting
from gradient_dd.studies.intervals import EXPLODED
from gradient_dd.tasks import Task, build, from_tables

MEASURES = ("area", "last100")  # the mean error over the run, which settings are chosen by, and the final error
POINTS = 50  # errors of a run
TEST = 100_000  # the number of the first test run
UNSEEN = 0.3  # size of the part of the values that the features cannot represent, relative to the other part

Draw = Callable[[int], tuple[Task, ...]]


@dataclass(frozen=True)
class Problem:
    """A problem: its tasks by run, and how many steps a run has."""

    name: str
    title: str
    suite: str
    steps: int
    tasks: Draw = field(repr=False)

    @property
    def horizon(self) -> Horizon:
        """How long a run is."""
        return Horizon(steps=self.steps, every=self.steps // POINTS)

    @cached_property
    def key(self) -> str:
        """The fingerprint of its length and of the tasks of the first tuning run and of the first test run."""
        return fingerprint(self.steps, [task.key for run in (0, TEST) for task in self.tasks(run)])

    @cached_property
    def initial_error(self) -> float:
        """The error of the initial weights, in the first test run."""
        return float(np.mean([task.rmsve(task.initial_weights) for task in self.tasks(TEST)]))

    def errors(self, settings: Sequence[Setting], runs: Sequence[int]) -> Array:
        """Return the errors by measure, (measures, settings, runs), each ten times the initial error at most."""
        found = np.empty((len(MEASURES), len(settings), len(runs)))
        for place, run in enumerate(runs):
            tasks = self.tasks(run)
            parts = []
            for task in tasks:
                lanes = LaneRun(task, settings, self.horizon, run=run)
                lanes.advance()
                results = lanes.results()
                parts.append([getattr(results, measure)[0] for measure in MEASURES])
            found[:, :, place] = np.mean(parts, axis=0)
        return np.minimum(found, EXPLODED * self.initial_error)


@lru_cache(maxsize=1024)
def drawn(name: str, run: int) -> tuple[Task, ...]:
    """Return the task of a run whose task is drawn again for every run."""
    return (build(name, seed=run),)


@lru_cache
def built(name: str, parameters: tuple[tuple[str, object], ...]) -> Task:
    """Return a named task, built once."""
    return build(name, **dict(parameters))


def fixed(name: str, several: Sequence[dict[str, object]], run: int) -> tuple[Task, ...]:
    """Return tasks that are the same in every run."""
    return tuple(built(name, tuple(one.items())) for one in several)


def seeded(family: "Family", place: int, seed: int, run: int) -> tuple[Task, ...]:
    """Return a random task that is the same in every run."""
    return (random_task(family, place, seed),)


def classic_problem(name: str, title: str, task: str, steps: int, *several: dict[str, object]) -> Problem:
    """Return a problem of the literature; without parameters, its task is drawn again for every run."""
    return Problem(name, title, "classic", steps, partial(fixed, task, several) if several else partial(drawn, task))


def rooms(name: str, title: str, variance: str) -> Problem:
    """Return the eight questions about one stream through the rooms."""
    return classic_problem(name, title, "rooms", 10_000, *({"question": k, "variance": variance} for k in range(8)))


CLASSIC = (
    classic_problem("collision", "Collision", "collision", 10_000),
    *(
        classic_problem(f"walk-5-{kind}", f"five-state walk, {kind}", "five_state_walk", 3_000, {"features": kind})
        for kind in ("tabular", "inverted", "dependent")
    ),
    classic_problem("boyan-4", "Boyan chain, p = 4", "boyan_chain", 10_000, {"n_features": 4}),
    classic_problem("boyan-50", "Boyan chain, p = 50", "boyan_chain", 10_000, {"n_features": 50}),
    classic_problem("baird-7", "Baird, N = 7", "baird", 10_000, {"n_states": 7}),
    classic_problem("walk-19", "19-state walk", "nineteen_state_walk", 5_000, {}),
    classic_problem("walk-20", "random walk, m = 20", "random_walk", 10_000, {"n_states": 20}),
    classic_problem("walk-40", "random walk, m = 40", "random_walk", 20_000, {"n_states": 40}),
    classic_problem("dann", "random MDPs of Dann et al.", "dann_mdp", 4_000),
    rooms("rooms", "Rooms", "low"),
    rooms("rooms-high", "High-Variance Rooms", "high"),
)


class Family(NamedTuple):
    """A family of random tasks: the Dirichlet parameter and floor of its policies, its sizes, its condition."""

    title: str
    sharpness: float
    floor: float
    sizes: tuple[tuple[int, int, int, int, float], ...]  # states, actions, branches, features, discount; in turn
    ratios: tuple[float, float]  # bounds of E[ρ²]
    stable: bool = True
    on_policy: bool = False


SMALL, LARGE = (6, 2, 2, 4, 0.9), (16, 3, 3, 8, 0.95)
RANDOM_STEPS = 5_000
FAMILIES = {
    "on-policy": Family("on-policy", 1.0, 0.2, (SMALL, LARGE), (1.0, 1.0 + 1e-9), on_policy=True),
    "moderate": Family("moderate ratios", 1.0, 0.2, (SMALL, LARGE), (1.2, 2.0)),
    "large": Family("large ratios", 0.3, 0.1, (SMALL, LARGE), (4.0, 10.0)),
    "unstable": Family("TD unstable", 0.3, 0.1, (SMALL,), (1.0, 20.0), stable=False),
}
UNSTABLE = -0.02  # real part of an eigenvalue of A below which TD is unstable, relative to the largest one
EACH = 8  # problems of a family
SEEDS = {  # the first ones that meet the conditions: `draw_seeds(family, 0)`
    "on-policy": (0, 2, 3, 4, 6, 7, 8, 9),
    "moderate": (1, 6, 7, 12, 13, 17, 18, 19),
    "large": (4, 5, 11, 12, 14, 15, 16, 17),
    "unstable": (71, 1234, 1405, 1920, 2586, 2704, 3543, 3698),
}


@lru_cache(maxsize=256)
def random_task(family: Family, place: int, seed: int) -> Task:
    """Return the task of a seed; `place` is its number in the family, which decides its size."""
    n, actions, branches, p, discount = family.sizes[place % len(family.sizes)]
    rng = np.random.default_rng(seed)
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


def acceptable(family: Family, task: Task) -> bool:
    """Return whether a task meets the condition of its family."""
    weight = task.visits[:, None] * task.behaviour[task.states]
    low, high = family.ratios
    values = np.linalg.eigvals(task.moments.A)
    is_stable = values.real.min() > UNSTABLE * np.abs(values).max()
    return low <= (weight * task.rho[task.states] ** 2).sum() <= high and is_stable == family.stable


def draw_seeds(family: Family, first: int, how_many: int = EACH) -> Iterator[int]:
    """Yield the first seeds, from `first` on, whose tasks meet the condition of a family."""
    seeds = count(first)
    for place in range(how_many):
        for seed in seeds:
            try:
                task = random_task(family, place, seed)
            except BadRequestError:  # some state cannot be reached
                continue
            if acceptable(family, task):
                yield seed
                break


def random_problems(seeds: Mapping[str, Sequence[int]]) -> tuple[Problem, ...]:
    """Return the problems of given seeds by family."""
    found = []
    for name, chosen in seeds.items():
        for place, seed in enumerate(chosen):
            family, label = FAMILIES[name], f"{name}-{place + 1}"
            tasks = partial(seeded, family, place, seed)
            found.append(Problem(label, f"{family.title}, {place + 1}", "random", RANDOM_STEPS, tasks))
    return tuple(found)


RANDOM = random_problems(SEEDS)
SUITES = {"classic": CLASSIC, "random": RANDOM, "all": (*CLASSIC, *RANDOM)}


def problems_of(suite: str) -> tuple[Problem, ...]:
    """Return the problems of a suite."""
    return SUITES[one_of("'suite'", suite, SUITES)]
