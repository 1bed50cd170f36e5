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
    """Return the error of the first weights for each (task, size, reading); nan where they do not tell the task.

    A setting keeps these three and not its task.
    """
    found: dict[tuple[str, int, str], float] = {}
    for name, size, reading in dict.fromkeys(rows):
        task = task_of(name, size, reading)
        found[name, size, reading] = nan if task is None else task.rmsve(task.initial_weights)
    return found


def task_of(name: str, size: int, reading: str) -> Task | None:
    """Return the task that a setting names, or None where its row does not tell which it is.

    The size is the first parameter if that is a whole number. Of another first parameter the row says nothing.
    """
    if name not in TASKS or not 0 <= size <= LARGEST:
        return None
    parameters = list(signature(TASKS[name]).parameters.values())
    if parameters and not isinstance(parameters[0].default, int):
        return None
    stated = [part.partition("=") for part in reading.split(", ") if part not in OF_THE_RUN]
    chosen = {parameters[0].name: size} if parameters else {}
    try:
        return build(name, **chosen, **{key: parsed_value(value) for key, equals, value in stated if equals})
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
