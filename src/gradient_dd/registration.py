"""The Gymnasium names of the tasks, registered without loading Gymnasium.

Gymnasium 1.x has no entry points for plugins, and importing it takes longer than all the rest of `import gradient_dd`.
So the names are registered at once where Gymnasium is loaded already, and otherwise right after it is imported.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def environment_name(task: str) -> str:
    """Return the Gymnasium name of a task: that of random_walk is gradient_dd/RandomWalk-v0.

    The version of a task must go up whenever a change of its table could change results; none has changed so far.
    """
    words = (word.upper() if word == "mdp" else word.capitalize() for word in task.split("_"))
    return f"gradient_dd/{''.join(words)}-v0"


def register_environments() -> None:
    """Make every task known to `gymnasium.make`, now or when Gymnasium is imported."""
    if "gymnasium" in sys.modules:
        register_now()
    elif not any(isinstance(finder, AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, AfterGymnasium())


def register_now() -> None:
    """Make every task known to `gymnasium.make`; imports Gymnasium."""
    from gymnasium.envs.registration import register, registry

    from gradient_dd.tasks import TASKS

    for task in TASKS:
        name = environment_name(task)
        if name not in registry:
            register(name, entry_point="gradient_dd.tasks.environments:make", kwargs={"task": task})


class AfterGymnasium:
    """An import hook that waits for Gymnasium, lets the usual finders load it, and then registers the tasks.

    It has the methods that `importlib.abc` asks for, and so has its loader. Importing that module would take longer
    than all the rest of `import gradient_dd`.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return Gymnasium's own spec with a loader that registers afterwards; None for any other module.

        The hook stays until Gymnasium is loaded: a program may ask whether there is one without importing it.
        """
        if fullname != "gymnasium":
            return None
        place = sys.meta_path.index(self)
        sys.meta_path.remove(self)
        try:
            spec = find_spec(fullname)
        finally:
            sys.meta_path.insert(place, self)
        if spec is not None and spec.loader is not None:
            spec.loader = RegisteringLoader(spec.loader, self)  # type: ignore[assignment]
        return spec


class RegisteringLoader:
    """Gymnasium's loader, followed by the registration of the tasks."""

    def __init__(self, loader: Any, hook: AfterGymnasium) -> None:
        self.loader = loader
        self.hook = hook

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module that the loader makes."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then register the tasks. The module keeps its own loader, as if there had been no hook."""
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        register_now()
        if self.hook in sys.meta_path:
            sys.meta_path.remove(self.hook)
