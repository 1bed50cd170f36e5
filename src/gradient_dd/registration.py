"""The Gymnasium names of the tasks. No task is imported, so `import gradient_dd` stays quick."""

from gymnasium.envs.registration import register, registry

# A version goes up whenever a change of the task could change results.
ENVIRONMENTS = {
    "gradient_dd/RandomWalk-v0": "random_walk",
    "gradient_dd/BoyanChain-v0": "boyan_chain",
    "gradient_dd/Baird-v0": "baird",
    "gradient_dd/RandomMDP-v0": "random_mdp",
}


def register_environments() -> None:
    """Make every task known to `gymnasium.make`."""
    for name, task in ENVIRONMENTS.items():
        if name not in registry:
            register(name, entry_point="gradient_dd.environments:make", kwargs={"task": task})
