"""Registration of the tasks with Gymnasium, without importing Gymnasium.

Gymnasium 1.x has no entry points for plugins, and importing it takes longer than the rest of `import gradient_dd`. The
tasks are therefore registered at once if Gymnasium is loaded, else right after a program imports Gymnasium.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def environment_name(task: str) -> str:
    """Return the Gymnasium name of a task, e.g. gradient_dd/RandomWalk-v0 for random_walk.

    Increase the version whenever a change to the table of a task could change results.
    """
    words = (word.upper() if word == "mdp" else word.capitalize() for word in task.split("_"))
    return f"gradient_dd/{''.join(words)}-v0"


def register_environments() -> None:
    """Register every task for `gymnasium.make`, now or when Gymnasium is imported."""
    if "gymnasium" in sys.modules:
        register_now()
    elif not any(isinstance(finder, AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, AfterGymnasium())


def register_now() -> None:
    """Register every task for `gymnasium.make`; this imports Gymnasium."""
    from gymnasium.envs.registration import register, registry

    from gradient_dd.tasks import TASKS

    for task in TASKS:
        name = environment_name(task)
        if name not in registry:
            register(name, entry_point="gradient_dd.tasks.environments:make", kwargs={"task": task})


class AfterGymnasium:
    """An import hook that waits for Gymnasium, lets the other finders load it, and then registers the tasks.

    The class has the method of `importlib.abc.MetaPathFinder` but does not import that slow module. The hook stays
    until Gymnasium is loaded, because a program may look up Gymnasium's spec without importing Gymnasium.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return Gymnasium's own spec, whose loader then registers the tasks; None for any other module."""
        if fullname != "gymnasium":
            return None
        others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register_now()
                if self in sys.meta_path:
                    sys.meta_path.remove(self)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec
