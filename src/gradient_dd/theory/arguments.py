"""Checks of what a user gives to the theory, by the names of the arguments.

They are made by the public functions of `gradient_dd.theory`, where the room is entered. Inside it the same functions
call each other thousands of times, and check nothing twice.
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, numbers
from gradient_dd.engine.horizon import LONGEST, Horizon
from gradient_dd.engine.schedules import check_schedule
from gradient_dd.engine.trajectories import SAMPLINGS
from gradient_dd.errors import GradientDDError, Unquoted, bad_request, number, one_of, whole_number
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.tasks.exact import Moments
from gradient_dd.theory.log import Log

VECTORS = ("v", "w", "first", "second")
MATRICES = ("A_eff",)
KINDS: dict[str, tuple[type, str]] = {
    "task": (Task, "a Task, e.g. tasks.random_walk(20)"),
    "setting": (Setting, "a setting, e.g. LEARNERS['td'].setting(alpha=0.1)"),
    "horizon": (Horizon, "a Horizon, e.g. Horizon(steps=10_000)"),
    "log": (Log, "a Log, made by log_of or read_log"),
}
COUNTS = {"steps": 0, "count": 1}  # and the least of each
SCALARS = ("budget", "alpha", "kappa", "zeta", "mu", "kappa_alpha")
SEVERAL = ("kappa_alphas",)


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arguments checked; what floats cannot compute is refused in one sentence as well."""
    parameters = signature(function)

    @wraps(function)
    def entered(*arguments: Any, **keywords: Any) -> Any:
        given = parameters.bind(*arguments, **keywords)
        for name, value in given.arguments.items():
            given.arguments[name] = checked_value(name, value)
        check_shapes(given.arguments)
        try:
            with np.errstate(all="ignore"):
                return function(*given.args, **given.kwargs)
        except GradientDDError:
            raise
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            rule = "be of sizes that floats can compute with"
            raise bad_request(f"The numbers given to {function.__name__}", rule, Unquoted(error)) from None

    return entered


def checked_value(name: str, value: Any) -> Any:
    """Return a value that is of the kind its name stands for, or raise."""
    if name in KINDS and not isinstance(value, KINDS[name][0]):
        raise bad_request(f"{name!r}", f"be {KINDS[name][1]}", value)
    if isinstance(value, Task):
        value.check_asked_everywhere("the theory")
    if name == "learners":
        return several_learners(value)
    if name == "sampling":
        return one_of("'sampling'", value, SAMPLINGS)
    if name in COUNTS and not (name == "steps" and value is None):
        return whole_number(f"{name!r}", value, at_least=COUNTS[name], at_most=LONGEST)
    if name == "schedule":
        return check_schedule(value)
    if name == "problem":
        return checked_problem(value)
    if name in SCALARS:
        return number(f"{name!r}", "be a finite number", value, low=-LARGEST, high=LARGEST)
    if name in (*VECTORS, *MATRICES, *SEVERAL):
        array = numbers(f"{name!r}", value, LARGEST)
        wanted = 2 if name in MATRICES else 1
        if array.ndim != wanted:
            raise bad_request(
                f"{name!r}", "be a matrix" if wanted == 2 else "be a vector", Unquoted(f"shape {array.shape}")
            )
        return array
    return value


def several_learners(value: Any) -> list[Any]:
    """Return learners as a list, or raise; each of them is looked up where it is used."""
    try:
        return [value] if isinstance(value, str) else list(value)
    except TypeError:
        raise bad_request("'learners'", "be names of learners, or rules", value) from None


def checked_problem(value: Any) -> Any:
    """Return a task, or A, b and C as arrays of numbers; their shapes are checked where they are used."""
    if isinstance(value, Task):
        return value
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise bad_request("'problem'", "be a Task, or A, b and C", value)
    return Moments(*(numbers(f"{name} of 'problem'", one, LARGEST**2) for name, one in zip("AbC", value, strict=True)))


def check_shapes(given: dict[str, Any]) -> None:
    """Raise unless all vectors and matrices have one length: that of the task's weights, where there is one."""
    source = given.get("task", given.get("problem"))
    lengths = {name: len(given[name]) for name in (*VECTORS, *MATRICES) if name in given}
    p = source.n_features if isinstance(source, Task) else np.size(source.b) if source is not None else None
    p = next(iter(lengths.values()), 0) if p is None else p
    for name, length in lengths.items():
        shape = np.shape(given[name])
        if length != p or len(set(shape)) > 1:
            raise bad_request(f"The shape of {name!r}", f"be {(p,) * len(shape)}", shape)
