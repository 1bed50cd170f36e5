"""Schedules: the factor that multiplies alpha (and so beta) at the n-th episode or step, n = 1, 2, ...

    constant                1
    tapered(n0)             (n0 + 1) / (n0 + n)          the paper's schedule, n0 = 1000 (walk) or 2000 (Boyan)
    Schedule(function)      any function of n

The paper does not say whether n counts steps or episodes. We count episodes by default: with a taper per step, GTD2 and
Gradient-DD stall far from the solution. With `per="step"`, n counts steps.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from gradient_dd.errors import Unquoted, bad_request, number, one_of

PER = ("episode", "step")
NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"


@dataclass(frozen=True)
class Schedule:
    """A step-size schedule: alpha_n = alpha × function(n), where n counts episodes or steps from 1."""

    function: Callable[[int], float]
    per: str = "episode"

    def __post_init__(self) -> None:
        one_of("'per' of a schedule", self.per, PER)
        if not callable(self.function):
            raise bad_request("The function of a schedule", "be a function of n", self.function)
        self._call(1)  # rejects a function of another argument, such as len

    def _call(self, n: int) -> Any:
        try:
            return self.function(n)
        except Exception as error:  # a user's function may raise any exception
            got = Unquoted(f"{type(error).__name__}: {error}")
            raise bad_request(
                f"The schedule {self}", f"be a function of n that does not fail at n = {n}", got
            ) from error

    def factor(self, n: int) -> float:
        """Return the checked factor for the n-th episode or step."""
        factor = self._call(n)
        if type(factor) is float and 0 <= factor < inf:
            return factor  # the common case skips formatting the message
        return number(f"The schedule {self} at n = {n}", "be a finite number, zero or more", factor, low=0.0)

    def factors(self, numbers: Any) -> Any:
        """Return the factors for an array of numbers n; a custom function is called once for each n."""
        if isinstance(self.function, Constant | Taper):
            return self.function(numbers) * np.ones(len(numbers))
        known, which = np.unique(numbers, return_inverse=True)
        return np.array([self.factor(int(n)) for n in known])[which]

    def __str__(self) -> str:
        named = isinstance(self.function, Constant | Taper)
        name = str(self.function) if named else getattr(self.function, "__name__", "custom")
        return name if self.function == Constant() else f"{name} per {self.per}"


@dataclass(frozen=True)
class Constant:
    """The factor 1 at every n."""

    def __call__(self, n: int) -> float:
        return 1.0

    def __str__(self) -> str:
        return "constant"


@dataclass(frozen=True)
class Taper:
    """The factor (n0 + 1) / (n0 + n): 1 at n = 1, one half at n = n0 + 2."""

    n0: float

    def __call__(self, n: int) -> float:
        return (self.n0 + 1) / (self.n0 + n)

    def __str__(self) -> str:
        return f"tapered({self.n0:g})"


constant = Schedule(Constant())


def tapered(n0: Any, per: str = "episode") -> Schedule:
    """Return the paper's schedule alpha (n0 + 1) / (n0 + n): alpha itself at n = 1.

    n counts episodes, unless per="step".

    >>> tapered(1000).factor(1002)
    0.5
    """
    return Schedule(Taper(number("'n0' of a tapered schedule", "be a number that is zero or more", n0, low=0.0)), per)


def parse_schedule(given: str) -> Schedule:
    """Return the schedule that a string describes: "constant", "tapered(1000)" or "tapered(1000) per step"."""
    words = given.strip() if isinstance(given, str) else ""
    match = re.fullmatch(rf"(constant|tapered\((?P<n0>{NUMBER})\))(?: per (?P<per>episode|step))?", words)
    if not match:
        raise bad_request("'schedule'", "be 'constant', 'tapered(1000)' or 'tapered(1000) per step'", given)
    return tapered(float(match["n0"]), match["per"] or "episode") if match["n0"] else constant


def check_schedule(schedule: Any) -> Schedule:
    """Return a schedule, after parsing it if it is a string; raise for anything else."""
    if isinstance(schedule, str):
        return parse_schedule(schedule)
    if not isinstance(schedule, Schedule):
        raise bad_request("'schedule'", "be a Schedule or a string, e.g. 'tapered(1000)'", schedule)
    return schedule
