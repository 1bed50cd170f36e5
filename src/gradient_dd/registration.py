"""The Gymnasium names of the tasks, registered without loading Gymnasium.

Gymnasium 1.x has no entry points for plugins, and importing it takes longer than all the rest of `import gradient_dd`.
So the names are registered at once where Gymnasium is loaded already, and otherwise right after it is imported.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


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

    It has the method that `importlib.abc` asks for; importing that module would take longer than all the rest of
    `import gradient_dd`.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return Gymnasium's own spec, whose loader then registers the tasks; None for any other module.

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
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register_now()
                if self in sys.meta_path:
                    sys.meta_path.remove(self)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec
