"""The tasks, one file for each; `TASKS` lists the named tasks, and `from_tables` makes a task from your tables."""

from collections.abc import Callable, Mapping
from inspect import signature
from types import MappingProxyType
from typing import Any

from gradient_dd.errors import unknown
from gradient_dd.tasks.baird import baird
from gradient_dd.tasks.boyan_chain import boyan_chain
from gradient_dd.tasks.collision import collision
from gradient_dd.tasks.dann_mdp import dann_mdp
from gradient_dd.tasks.five_state_walk import five_state_walk
from gradient_dd.tasks.from_gymnasium import from_gymnasium
from gradient_dd.tasks.from_tables import from_tables
from gradient_dd.tasks.nineteen_state_walk import nineteen_state_walk
from gradient_dd.tasks.random_mdp import random_mdp
from gradient_dd.tasks.random_walk import random_walk
from gradient_dd.tasks.rooms import rooms
from gradient_dd.tasks.task import Outcomes, Task

__all__ = [
    "TASKS",
    "Outcomes",
    "Task",
    "baird",
    "boyan_chain",
    "build",
    "collision",
    "dann_mdp",
    "five_state_walk",
    "from_gymnasium",
    "from_tables",
    "nineteen_state_walk",
    "random_mdp",
    "random_walk",
    "rooms",
]

BUILDERS = (
    random_walk,
    boyan_chain,
    baird,
    random_mdp,
    collision,
    rooms,
    five_state_walk,
    nineteen_state_walk,
    dann_mdp,
)
TASKS: Mapping[str, Callable[..., Task]] = MappingProxyType({one.__name__: one for one in BUILDERS})  # read-only


def build(name: str, /, **parameters: Any) -> Task:
    """Return the task with this name and these parameters."""
    if not isinstance(name, str) or name not in TASKS:
        raise unknown("task", name, TASKS)
    known = signature(TASKS[name]).parameters
    for parameter in parameters:
        if parameter not in known:
            raise unknown(f"parameter of {name}:", parameter, known)
    return TASKS[name](**parameters)
