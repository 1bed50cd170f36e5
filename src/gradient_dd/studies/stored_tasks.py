"""The tasks of a store, built again from what its rows say of them."""

from collections.abc import Iterable
from inspect import signature
from math import nan
from typing import Any

from gradient_dd.errors import BadRequestError
from gradient_dd.tasks import TASKS, Task, build

LARGEST = 20_000  # states or features: a damaged size must not fill the memory
OF_THE_RUN = ("iid", "rho_mode=T")  # parts of a reading that are not of the task


def first_errors(rows: Iterable[tuple[str, int, str]]) -> dict[tuple[str, int, str], float]:
    """Return the error of the first weights for each (task, size, reading); nan for tasks that are not of this project.

    A setting keeps these three and not its task.
    """
    found: dict[tuple[str, int, str], float] = {}
    for name, size, reading in dict.fromkeys(rows):
        task = task_of(name, size, reading)
        found[name, size, reading] = nan if task is None else task.rmsve(task.initial_weights)
    return found


def task_of(name: str, size: int, reading: str) -> Task | None:
    """Return the task that a setting names, or None where it is not one of this project."""
    if name not in TASKS or not 0 < size <= LARGEST:
        return None
    known = next(iter(signature(TASKS[name]).parameters))
    said = [part.partition("=") for part in reading.split(", ") if part not in OF_THE_RUN]
    try:
        return build(name, **{known: size}, **{key: parsed_value(value) for key, equals, value in said if equals})
    except (BadRequestError, TypeError):
        return None


def parsed_value(text: str) -> Any:
    """Return a number, a truth value or a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"True": True, "False": False}.get(text, text)
