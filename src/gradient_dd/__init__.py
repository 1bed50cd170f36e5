"""gradient-dd: a fast, exact laboratory for linear off-policy value prediction.

    import gradient_dd as gdd
    task = gdd.tasks.random_walk(n_states=20)
    agent = gdd.Learner("gradient_dd", n_features=task.n_features, alpha=0.1)

The names below are the public surface. Each is loaded on first use, so that the command line answers at once:
`import gradient_dd` alone loads neither NumPy nor Gymnasium nor Numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradient_dd.registration import register_environments

if TYPE_CHECKING:
    from gradient_dd import exact, features, schedules, studies, tasks, testing
    from gradient_dd.engine import reference
    from gradient_dd.errors import BadRequestError, DivergedError, GradientDDError
    from gradient_dd.evaluation import collect, compare, evaluate, evaluate_log
    from gradient_dd.learners import LEARNERS, Parameter, Rule, Setting, register
    from gradient_dd.networks.control import NetworkControl
    from gradient_dd.networks.learner import NetworkLearner
    from gradient_dd.networks.network import Network
    from gradient_dd.ranking import rank
    from gradient_dd.stream import Learner
    from gradient_dd.stream.auto import AutoLearner
    from gradient_dd.stream.question import Question
    from gradient_dd.stream.questions import Questions
    from gradient_dd.studies.results import Results
    from gradient_dd.studies.study import Study, grid, task
    from gradient_dd.studies.sweep import run
    from gradient_dd.tasks import TASKS

__version__ = "1.0.0"

_HOME = {  # the module of each public name; a module that is itself public stands for all of it
    "LEARNERS": "learners",
    "TASKS": "tasks",
    "AutoLearner": "stream.auto",
    "BadRequestError": "errors",
    "DivergedError": "errors",
    "GradientDDError": "errors",
    "Learner": "stream",
    "Network": "networks.network",
    "NetworkControl": "networks.control",
    "NetworkLearner": "networks.learner",
    "Parameter": "learners",
    "Question": "stream.question",
    "Questions": "stream.questions",
    "Results": "studies.results",
    "Rule": "learners",
    "Setting": "learners",
    "Study": "studies.study",
    "collect": "evaluation",
    "compare": "evaluation",
    "evaluate": "evaluation",
    "evaluate_log": "evaluation",
    "exact": "exact",
    "features": "features",
    "grid": "studies.study",
    "rank": "ranking",
    "reference": "engine.reference",
    "register": "learners",
    "run": "studies.sweep",
    "schedules": "schedules",
    "studies": "studies",
    "task": "studies.study",
    "tasks": "tasks",
    "testing": "testing",
}

__all__ = [
    "LEARNERS",
    "TASKS",
    "AutoLearner",
    "BadRequestError",
    "DivergedError",
    "GradientDDError",
    "Learner",
    "Network",
    "NetworkControl",
    "NetworkLearner",
    "Parameter",
    "Question",
    "Questions",
    "Results",
    "Rule",
    "Setting",
    "Study",
    "collect",
    "compare",
    "evaluate",
    "evaluate_log",
    "exact",
    "features",
    "grid",
    "rank",
    "reference",
    "register",
    "run",
    "schedules",
    "studies",
    "task",
    "tasks",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gradient_dd' has no attribute {name!r}")
    home = _HOME[name]
    module = import_module(f"gradient_dd.{home}")
    return module if home.split(".")[-1] == name else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


register_environments()
