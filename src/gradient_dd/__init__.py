"""gradient-dd: a fast, exact laboratory for linear off-policy value prediction.

    import gradient_dd as gdd
    task = gdd.tasks.random_walk(n_states=20)
    agent = gdd.Learner("gradient_dd", n_features=task.n_features, alpha=0.1)

The names below are the public surface; they are loaded on first use, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradient_dd.registration import register_environments

if TYPE_CHECKING:
    from gradient_dd import exact, schedules, studies, tasks, testing
    from gradient_dd.engine import reference
    from gradient_dd.errors import BadRequestError, DivergedError, GradientDDError
    from gradient_dd.learner import Learner
    from gradient_dd.learners import LEARNERS, Parameter, Rule
    from gradient_dd.results import Results
    from gradient_dd.studies import Study
    from gradient_dd.sweep import run
    from gradient_dd.tasks import TASKS

__version__ = "0.1.0"

__all__ = [
    "LEARNERS",
    "TASKS",
    "BadRequestError",
    "DivergedError",
    "GradientDDError",
    "Learner",
    "Parameter",
    "Results",
    "Rule",
    "Study",
    "exact",
    "reference",
    "run",
    "schedules",
    "studies",
    "tasks",
    "testing",
]

_HOME = {
    "LEARNERS": "learners",
    "TASKS": "tasks",
    "BadRequestError": "errors",
    "DivergedError": "errors",
    "GradientDDError": "errors",
    "Learner": "learner",
    "Parameter": "learners",
    "Results": "results",
    "Rule": "learners",
    "Study": "studies",
    "run": "sweep",
    "reference": "engine.reference",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gradient_dd' has no attribute {name!r}")
    module = import_module(f"gradient_dd.{_HOME.get(name, name)}")
    return getattr(module, name, module)  # a public name is an attribute of its module, or the module itself


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


register_environments()
