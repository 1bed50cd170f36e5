"""Checks of the arguments of the public functions of the theory, by name."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

import numpy as np

from gradient_dd.arrays import LARGEST, numbers
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.trajectories import SAMPLINGS
from gradient_dd.errors import GradientDDError, Unquoted, bad_request, one_of
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task

P = ParamSpec("P")
R = TypeVar("R")
TYPES: dict[str, tuple[type, str]] = {
    "task": (Task, "a Task, e.g. tasks.random_walk(20)"),
    "setting": (Setting, "a setting, e.g. LEARNERS['td'].setting(alpha=0.1)"),
    "horizon": (Horizon, "a Horizon, e.g. Horizon(steps=10_000)"),
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with checked arguments; numbers that floats cannot hold are a bad request too."""
    parameters = signature(function)

    @wraps(function)
    def entered(*arguments: P.args, **keywords: P.kwargs) -> R:
        given = parameters.bind(*arguments, **keywords)
        for name in given.arguments.keys() & TYPES.keys():
            if not isinstance(given.arguments[name], TYPES[name][0]):
                raise bad_request(f"{name!r}", f"be {TYPES[name][1]}", given.arguments[name])
        if "task" in given.arguments:
            given.arguments["task"].check_asked_everywhere("the theory")
        if "sampling" in given.arguments:
            one_of("'sampling'", given.arguments["sampling"], SAMPLINGS)
        if "v" in given.arguments:
            v, p = numbers("'v'", given.arguments["v"], LARGEST), given.arguments["task"].n_features
            if v.shape != (p,):
                raise bad_request("The shape of 'v'", f"be {(p,)}", v.shape)
            given.arguments["v"] = v
        try:
            with np.errstate(all="ignore"):
                return function(*given.args, **given.kwargs)
        except (ArithmeticError, ValueError) as error:  # of NumPy too: a LinAlgError is a ValueError
            if isinstance(error, GradientDDError):
                raise
            rule = "be of sizes that floats can compute with"
            raise bad_request(f"The numbers given to {function.__name__}", rule, Unquoted(error)) from None

    return entered
