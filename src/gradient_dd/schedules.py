"""Schedules: the factor that multiplies alpha (and so beta) at the n-th episode or step, n = 1, 2, ...

    constant                1
    tapered(n0)             (n0 + 1) / (n0 + n)          the paper's, with n0 = 1000 (walk) or 2000 (Boyan)
    Schedule(function)      a function of n of your own

The paper does not say whether n counts steps or episodes. Episodes is our reading: with a taper per step
both GTD2 and Gradient-DD stall far from the solution. `per="step"` stays available.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from gradient_dd.errors import must

PER = ("episode", "step")


@dataclass(frozen=True)
class Schedule:
    """alpha_n = alpha × function(n), n counting episodes or steps from 1."""

    function: Callable[[int], float]
    per: str = "episode"

    def __post_init__(self) -> None:
        if self.per not in PER:
            raise must("'per' of a schedule", "be 'episode' or 'step'", self.per)
        if not callable(self.function):
            raise must("The function of a schedule", "be a function of n", self.function)

    def factor(self, n: int) -> float:
        """Return the checked factor for the n-th episode or step."""
        value: Any = self.function(n)
        if not isinstance(value, int | float) or not isfinite(value) or value < 0:
            raise must(f"The schedule {self} at n = {n}", "be a finite number, zero or more", value)
        return float(value)

    def __str__(self) -> str:
        named = isinstance(self.function, Constant | Taper)
        name = str(self.function) if named else getattr(self.function, "__name__", "custom")
        return name if self.function == Constant() else f"{name} per {self.per}"


@dataclass(frozen=True)
class Constant:
    """1 at every n."""

    def __call__(self, n: int) -> float:
        return 1.0

    def __str__(self) -> str:
        return "constant"


@dataclass(frozen=True)
class Taper:
    """(n0 + 1) / (n0 + n): 1 at n = 1, one half at n = n0 + 2."""

    n0: float

    def __call__(self, n: int) -> float:
        return (self.n0 + 1) / (self.n0 + n)

    def __str__(self) -> str:
        return f"tapered({self.n0:g})"


constant = Schedule(Constant())


def tapered(n0: Any, per: str = "episode") -> Schedule:
    """Return the paper's schedule alpha (n0 + 1) / (n0 + n): alpha itself at n = 1."""
    if not isinstance(n0, int | float) or not isfinite(n0) or n0 < 0:
        raise must("'n0' of a tapered schedule", "be a number that is zero or more", n0)
    return Schedule(Taper(float(n0)), per)
