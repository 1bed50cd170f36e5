"""Search for the best setting of a rule, with the same number of updates for every rule.

    found = search(space_of(LEARNERS["td"]), evaluate)        # found.setting, found.trail

`evaluate(settings, runs)` returns errors (settings, runs) of tuning runs, numbered from 0. `searching` is the same
search, as a generator that yields (settings, runs) and receives the errors, so that several searches can share their
trajectories. The search has three stages:

coarse    every combination of the values to try; alpha gets as many values as the budget allows
refined   neighbours of the best points, with decreasing step sizes. A neighbour may lie outside the range of
          the values to try, but within the legal range of the parameter
finals    the best settings on more and more tuning runs (successive halving)

The search is deterministic, and it evaluates the same number of settings on the same runs for every rule.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from math import inf, log2, prod
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, unknown
from gradient_dd.learners import Parameter, Rule, Setting, find
from gradient_dd.studies.intervals import order
from gradient_dd.studies.study import Study, shortened

LAST_RUNG = 7.0  # coordinate of the upper bound, `high`; just below this coordinate the value is high (1 − 2⁻⁷)
SMALLEST = 0.01  # smallest coordinate of a positive parameter with an upper bound
FEWEST_ALPHAS = 4
DIGITS = 9  # number of decimals to which coordinates are rounded
CHUNK = 8  # number of best points whose axis neighbours are tried before their diagonal neighbours

Point = tuple[float, ...]
Evaluate = Callable[[Sequence[Setting], range], Array]
NONE = np.empty(0)
Request = tuple[list[Setting], range]  # settings and runs to evaluate


@dataclass(frozen=True)
class Budget:
    """The numbers of settings and of tuning runs that the search evaluates.

    coarse, refined   numbers of settings in the first two stages, each evaluated on runs 0 … runs − 1
    steps             step sizes of the refinements
    starts            number of best points that a refinement uses; the last refinement may use all points
    finals            pairs of a number of best settings and their total number of runs
    """

    coarse: int = 240
    refined: int = 320
    runs: int = 8
    steps: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125)
    starts: int = 16
    finals: tuple[tuple[int, int], ...] = ((32, 20), (12, 44), (4, 92))

    @property
    def lane_runs(self) -> int:
        """The number of (setting, run) pairs that a search evaluates."""
        counts, runs = zip(*self.finals, strict=True) if self.finals else ((), ())
        before = (self.runs, *runs[:-1])
        more = sum(count * (now - then) for count, now, then in zip(counts, runs, before, strict=False))
        return (self.coarse + self.refined) * self.runs + more

    @property
    def all_runs(self) -> int:
        """The number of tuning runs of the final settings."""
        return self.finals[-1][1] if self.finals else self.runs


FULL = Budget()
QUICK = Budget(coarse=96, refined=96, runs=3, finals=((12, 10), (4, 20)))


@dataclass(frozen=True)
class SearchAxis:
    """The values to try for a parameter, and a coordinate in which neighbours have equal distances.

    The coordinate of a parameter with an upper bound is −log₂(1 − value / high), else log₂ of the value. If 0 is
    among the values to try, the latter is log₂(value + the smallest other value).
    """

    parameter: Parameter
    values: tuple[float, ...]

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return self.parameter.name

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one value."""
        return len(self.values) == 1

    @cached_property
    def shift(self) -> float:
        """The offset that is added to a value before the logarithm."""
        return min((value for value in self.values if value), default=1.0) if 0.0 in self.values else 0.0

    @cached_property
    def unit(self) -> float:
        """The length of a step of size 1: 1 with an upper bound, else the mean distance between values, at least 1."""
        places = [self.coordinate(value) for value in self.values]
        even = (max(places) - min(places)) / max(1, len(places) - 1)
        return 1.0 if self.parameter.high < inf else max(1.0, even)

    @cached_property
    def given(self) -> dict[float, float]:
        """The values to try by coordinate, so that converting a coordinate back gives the exact value."""
        return {self.coordinate(value): value for value in self.values}

    def coordinate(self, value: float) -> float:
        """Return the coordinate of a value."""
        high = self.parameter.high
        if high == inf:
            return round(log2(value + self.shift), DIGITS)
        return LAST_RUNG if value >= high else min(LAST_RUNG, round(-log2(1 - value / high), DIGITS))

    def moved(self, place: float, step: float) -> float:
        """Return the coordinate after a step, kept inside the legal range."""
        place += step * self.unit
        if self.parameter.high < inf:
            place = min(LAST_RUNG, max(place, SMALLEST if self.parameter.positive else 0.0))
        elif self.shift:
            place = max(place, log2(self.shift))
        return round(place, DIGITS)

    def value(self, place: float) -> float:
        """Return the value at a coordinate."""
        if place in self.given:
            return self.given[place]
        high = self.parameter.high
        if high < inf:
            return high if place >= LAST_RUNG else high * (1 - 2.0**-place)
        return 2.0**place - self.shift

    def __str__(self) -> str:
        return f"{self.name} {shortened(self.values, 8)}{' (fixed)' if self.is_fixed else ''}"


@dataclass(frozen=True)
class SearchSpace:
    """A search space: a rule, an axis for each of its parameters, and the placement of ρ."""

    rule: Rule
    axes: tuple[SearchAxis, ...]
    rho_mode: str = "R"

    def __str__(self) -> str:
        return f"{self.rule.name}: {', '.join(map(str, self.axes))}"

    def facts(self) -> list[Any]:
        """Return the definition of the space, for a fingerprint."""
        return [self.rho_mode, *([axis.name, list(axis.values)] for axis in self.axes)]

    def coarse(self) -> list[Point]:
        """Return the points of the coarse grid."""
        return list(product(*(tuple(axis.given) for axis in self.axes)))

    def setting(self, point: Point) -> Setting:
        """Return the setting at a point."""
        values = {axis.name: axis.value(place) for axis, place in zip(self.axes, point, strict=True)}
        return self.rule.setting(self.rho_mode, **values)

    def neighbours(self, points: Sequence[Point], step: float) -> Iterator[Point]:
        """Yield the neighbours of points: along each axis first, then along diagonals of alpha and another axis."""
        free = [place for place, axis in enumerate(self.axes) if not axis.is_fixed]
        single = [((place, sign),) for place in free for sign in (1, -1)]
        double = [(*one, *other) for one in single[:2] for other in single[2:]]
        for first in range(0, len(points), CHUNK):
            for moves in (single, double):
                for point, move in product(points[first : first + CHUNK], moves):
                    moved = list(point)
                    for place, sign in move:
                        moved[place] = self.axes[place].moved(point[place], sign * step)
                    yield tuple(moved)


def space_of(
    rule: Rule, grid: Mapping[str, Sequence[float]] | None = None, task: Any = None, budget: Budget = FULL
) -> SearchSpace:
    """Return the search space of a rule: the values in `grid`, else the declared values, which may depend on `task`.

    A parameter without values is an error. The values of alpha span a range with as many values as the budget allows.
    """
    given = dict(grid or {})
    for name in given:
        if name not in rule.defaults:
            raise unknown(f"parameter of {rule.name}:", name, rule.defaults)
    chosen: dict[str, tuple[float, ...]] = {}
    for one in rule.parameters:
        values: Any = given.get(one.name, one.grid(task) if callable(one.grid) else one.grid)
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or getattr(values, "ndim", 1) != 1:
            raise bad_request(f"The values to try for {one.name!r}", "be a list of numbers", values)
        if not len(values):
            raise BadRequestError(
                f"The parameter {one.name!r} of {rule.name} has no values to try. Pass some: "
                f"Parameter({one.name!r}, …, grid=(0.1, 1.0)), grid={{{one.name!r}: (0.1, 1.0)}} or "
                f"--grid {one.name}=0.1,1."
            )
        chosen[one.name] = tuple(sorted({one.check(value, rule.name) for value in values}))
    others = prod(len(values) for name, values in chosen.items() if name != "alpha")
    if others * FEWEST_ALPHAS > budget.coarse:
        most = budget.coarse // FEWEST_ALPHAS
        what = f"The values to try for {rule.name}"
        raise bad_request(what, f"have at most {most} combinations besides alpha", Unquoted(str(others)))
    low, high = chosen["alpha"][0], chosen["alpha"][-1]
    chosen["alpha"] = tuple(map(float, np.geomspace(low, high, budget.coarse // others))) if low < high else (low,)
    by_name = {one.name: one for one in rule.parameters}
    axes = tuple(SearchAxis(by_name[name], chosen[name]) for name in sorted(chosen, key=lambda name: name != "alpha"))
    return SearchSpace(rule, axes, "T" if rule.has_rho_mode else "R")  # T is the placement of ρ that extends to traces


class Tried(NamedTuple):
    """An evaluated setting: the stage that proposed it, and its errors on the tuning runs 0, 1, … (runs,)."""

    setting: Setting
    stage: str
    errors: Array


class Found(NamedTuple):
    """The result of a search: the best setting, and all evaluated settings, best first."""

    setting: Setting
    trail: list[Tried]

    @property
    def coarse(self) -> list[Tried]:
        """The settings of the coarse grid."""
        return [one for one in self.trail if one.stage == "coarse"]


def searching(space: SearchSpace, budget: Budget = FULL) -> Generator[Request, Array, Found]:
    """Search as a generator: yield requests, receive the requested errors, and return the result."""
    tried: dict[Point, Tried] = {}

    def evaluate(points: Sequence[Point], stage: str, runs: range) -> Generator[Request, Array, None]:
        """Evaluate points on runs; points that were evaluated before keep their stage and errors."""
        several = [tried[point] if point in tried else Tried(space.setting(point), stage, NONE) for point in points]
        if several:
            errors = yield [one.setting for one in several], runs
            for point, one, row in zip(points, several, errors, strict=True):
                tried[point] = one._replace(errors=np.concatenate([one.errors, row]))

    def ranked(runs: int) -> list[Point]:
        """Return the points that have errors on exactly `runs` runs, best first."""
        whole = [point for point, one in tried.items() if len(one.errors) == runs]
        return [whole[place] for place in order(np.stack([tried[point].errors for point in whole]))]

    runs = budget.runs
    yield from evaluate(space.coarse(), "coarse", range(runs))
    for place, step in enumerate(budget.steps):
        left = len(budget.steps) - place
        room = (budget.coarse + budget.refined - len(tried)) // left
        near = space.neighbours(ranked(runs)[: budget.starts if left > 1 else None], step)
        new = (point for point in dict.fromkeys(near) if point not in tried)
        yield from evaluate(list(islice(new, room)), "refined", range(runs))
    for count, more in budget.finals:
        yield from evaluate(ranked(runs)[:count], "", range(runs, more))
        runs = more
    counts = sorted({len(one.errors) for one in tried.values()}, reverse=True)
    trail = [tried[point] for runs in counts for point in ranked(runs)]
    return Found(trail[0].setting, trail)


def search(space: SearchSpace, evaluate: Evaluate, budget: Budget = FULL) -> Found:
    """Run a search within the budget; return the best setting on the tuning runs, and all evaluated settings."""
    steps = searching(space, budget)
    wanted = next(steps)
    while True:
        try:
            wanted = steps.send(evaluate(*wanted))
        except StopIteration as end:
            found: Found = end.value
            return found


# Studies with a search ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchStudy(Study):
    """A study in which the search tunes every learner, once per goal.

    A grid defines the coarse values of a learner. `runs` is the number of tuning runs of the final settings.
    """

    budget: Budget = FULL
    goals: tuple[str, ...] = ("last100", "mean_error")

    @property
    def budget_at_scale(self) -> Budget:
        """The budget with its numbers of runs scaled, so that the final settings get the runs of the study."""
        whole, finals = self.budget, []
        first = before = max(1, whole.runs * self.runs // whole.all_runs)
        for count, several in whole.finals:
            runs = several * self.runs // whole.all_runs
            if runs > before:
                finals.append((count, runs))
                before = runs
        return replace(whole, runs=first, finals=tuple(finals))

    def spaces(self) -> list[SearchSpace]:
        """Return the search space of each grid."""
        found = []
        for one in self.grids:
            rule = find(one.learner)
            by_name = {parameter.name: parameter for parameter in rule.parameters}
            axes = (SearchAxis(by_name[name], values) for name, values in one.values)
            found.append(SearchSpace(rule, tuple(axes), one.rho_mode))
        return found

    def estimate(self) -> dict[str, float]:
        """Return an upper bound on the work of the searches; the goals share the coarse grid."""
        budget, plain = self.budget_at_scale, super().estimate()
        shared = (len(self.goals) - 1) * budget.coarse * budget.runs
        lane_runs = len(self.grids) * (len(self.goals) * budget.lane_runs - shared)
        factor = lane_runs / plain["settings"] / plain["runs"]
        return plain | {name: factor * plain[name] for name in ("updates", "core_seconds", "bytes")}
