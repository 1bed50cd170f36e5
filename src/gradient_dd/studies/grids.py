"""What a study is made of: named tasks, and grids of the values of a learner's parameters."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from gradient_dd.errors import must, one_of, text
from gradient_dd.fingerprint import plain
from gradient_dd.learners import RHO_MODES, Rule, Setting, find
from gradient_dd.tasks import Task, build

MOST_SETTINGS = 2_000_000  # of a study: half a gigabyte, and some seconds to check them


@dataclass(frozen=True)
class TaskSpec:
    """A named task and its parameters, not yet built."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        text("The name of a task", self.name)
        if not isinstance(self.parameters, tuple | list) or not all(map(is_pair, self.parameters)):
            raise must(f"The parameters of the task {self.name!r}", "be pairs of a name and a value", self.parameters)
        object.__setattr__(self, "parameters", tuple((name, plain(value)) for name, value in self.parameters))

    def build(self) -> Task:
        """Return the task."""
        return build(self.name, **dict(self.parameters))


def task(name: str, **parameters: Any) -> TaskSpec:
    """Return a named task for a study."""
    return TaskSpec(name, tuple(parameters.items()))


@dataclass(frozen=True)
class Grid:
    """A learner with values for its parameters: every combination of them is a setting."""

    learner: str | Rule
    values: tuple[tuple[str, tuple[float, ...]], ...] = ()
    rho_mode: str = "R"

    def __post_init__(self) -> None:
        if not isinstance(self.learner, str | Rule):
            raise must("The learner of a grid", "be a name or a Rule", self.learner)
        name = self.learner if isinstance(self.learner, str) else self.learner.name
        one_of(f"'rho_mode' of a grid of {name}", self.rho_mode, RHO_MODES)
        if not isinstance(self.values, tuple | list) or not all(map(is_pair, self.values)):
            raise must(f"The values of a grid of {name}", "be pairs of a name and a tuple of numbers", self.values)
        for parameter, chosen in self.values:
            if not isinstance(chosen, tuple | list) or not chosen:
                raise must(f"{parameter!r} of a grid of {name}", "have at least one value", chosen)
        object.__setattr__(self, "values", tuple((parameter, tuple(chosen)) for parameter, chosen in self.values))

    @property
    def size(self) -> int:
        """How many settings the grid has, equal settings counted as often as they are named."""
        return prod(len(chosen) for _, chosen in self.values)

    def settings(self) -> Iterator[Setting]:
        """Yield every setting of the grid, checked."""
        rule, names = find(self.learner), [name for name, _ in self.values]
        for chosen in product(*(values for _, values in self.values)):
            yield rule.setting(rho_mode=self.rho_mode, **dict(zip(names, chosen, strict=True)))


def grid(learner: str | Rule, rho_mode: str = "R", **values: Any) -> Grid:
    """Return a grid; each value is a number or several: a list, a tuple, a range or an array with one axis."""
    several = {name: tuple(map(plain, v)) if is_several(v) else (plain(v),) for name, v in values.items()}
    return Grid(learner, tuple(several.items()), rho_mode)


def is_several(value: Any) -> bool:
    """Return whether a value is a row of numbers."""
    return isinstance(value, list | tuple | range) or getattr(value, "ndim", None) == 1


def is_pair(value: Any) -> bool:
    """Return whether a value is a pair of a name and anything."""
    return isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)
