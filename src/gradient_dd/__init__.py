"""gradient-dd: linear off-policy value prediction with Gradient-DD and the TD family.

    import gradient_dd as gdd
    task = gdd.tasks.random_walk(n_states=20)
    agent = gdd.Learner("gradient_dd", n_features=task.n_features, alpha=0.1)

The names below are the public API. Each name is imported on first use, so that the command line starts quickly:
`import gradient_dd` by itself imports neither NumPy nor Gymnasium nor Numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradient_dd.registration import register_environments

if TYPE_CHECKING:
    from gradient_dd import exact as exact
    from gradient_dd import features as features
    from gradient_dd import schedules as schedules
    from gradient_dd import studies as studies
    from gradient_dd import tasks as tasks
    from gradient_dd import testing as testing
    from gradient_dd.engine import reference as reference
    from gradient_dd.errors import BadRequestError as BadRequestError
    from gradient_dd.errors import DivergedError as DivergedError
    from gradient_dd.errors import GradientDDError as GradientDDError
    from gradient_dd.evaluation import collect as collect
    from gradient_dd.evaluation import compare as compare
    from gradient_dd.evaluation import evaluate as evaluate
    from gradient_dd.evaluation import evaluate_log as evaluate_log
    from gradient_dd.learners import LEARNERS as LEARNERS
    from gradient_dd.learners import Parameter as Parameter
    from gradient_dd.learners import Rule as Rule
    from gradient_dd.learners import Setting as Setting
    from gradient_dd.learners import register as register
    from gradient_dd.networks.control import NetworkControl as NetworkControl
    from gradient_dd.networks.learner import NetworkLearner as NetworkLearner
    from gradient_dd.networks.network import Network as Network
    from gradient_dd.ranking import rank as rank
    from gradient_dd.stream import Learner as Learner
    from gradient_dd.stream.auto import AutoLearner as AutoLearner
    from gradient_dd.stream.question import Question as Question
    from gradient_dd.stream.questions import Questions as Questions
    from gradient_dd.studies.results import Results as Results
    from gradient_dd.studies.study import Study as Study
    from gradient_dd.studies.study import grid as grid
    from gradient_dd.studies.study import task as task
    from gradient_dd.studies.sweep import run as run
    from gradient_dd.tasks import TASKS as TASKS

__version__ = "1.0.0"

_NAMES = {  # the public names of each module; a module that lists its own name is public as a whole
    "engine.reference": ("reference",),
    "errors": ("BadRequestError", "DivergedError", "GradientDDError"),
    "evaluation": ("collect", "compare", "evaluate", "evaluate_log"),
    "exact": ("exact",),
    "features": ("features",),
    "learners": ("LEARNERS", "Parameter", "Rule", "Setting", "register"),
    "networks.control": ("NetworkControl",),
    "networks.learner": ("NetworkLearner",),
    "networks.network": ("Network",),
    "ranking": ("rank",),
    "schedules": ("schedules",),
    "stream": ("Learner",),
    "stream.auto": ("AutoLearner",),
    "stream.question": ("Question",),
    "stream.questions": ("Questions",),
    "studies": ("studies",),
    "studies.results": ("Results",),
    "studies.study": ("Study", "grid", "task"),
    "studies.sweep": ("run",),
    "tasks": ("TASKS", "tasks"),
    "testing": ("testing",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gradient_dd' has no attribute {name!r}")
    module = import_module(f"gradient_dd.{_HOME[name]}")
    return module if module.__name__.endswith(f".{name}") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


register_environments()
