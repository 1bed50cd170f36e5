"""Attacks on the theory: every public function that takes a task, a setting or vectors."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from gradient_dd import tasks, theory
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import constant
from gradient_dd.learners import LEARNERS
from tests.adversary.odd import changed
from tests.adversary.rule import Attack, Case, described

TASKS = (tasks.random_walk(3), tasks.baird(3), tasks.random_mdp(3, 2, 2), tasks.random_mdp(3, 2, 3, episodic=True))
LINEAR = [name for name, rule in LEARNERS.items() if not rule.natural]


def good_words(rng: Random) -> dict[str, Any]:
    """Return a sound value for every argument that the functions below have."""
    task = rng.choice(TASKS)
    return {
        "task": task,
        "setting": LEARNERS[rng.choice(LINEAR)].setting(alpha=rng.choice([0.1, 1e-9, 1e9])),
        "learner": rng.choice(list(LEARNERS)),
        "sampling": rng.choice(["trajectory", "iid"]),
        "v": np.linspace(0.1, 1.0, task.n_features),
        "mu": 0.5,
        "kappa": 1.0,
        "alpha": 0.1,
        "zeta": 1.0,
        "steps": 5,
        "kappa_alphas": [0.1, 1.0],
        "count": 1,
    }


FUNCTIONS: dict[str, tuple[str, ...]] = {  # a public function, and which of its arguments are attacked
    "rate": ("task", "setting", "sampling"),
    "expected_run": ("task", "setting", "steps", "sampling"),
    "largest_stable_alpha": ("task", "learner", "sampling", "zeta"),
    "exact_limits": ("task", "setting", "sampling"),
    "diverging_mdps": ("count",),
    "flow_edge": ("task",),
    "interpolation": ("task", "kappa_alphas", "zeta"),
    "recursion_eigenvalues": ("task", "setting"),
    "check_assumptions": ("task", "setting"),
    "constrained_step": ("task", "v", "mu"),
    "penalised_step": ("task", "v", "kappa"),
    "kappa_of_mu": ("task", "v", "mu"),
    "natural_relation": ("task", "v", "mu", "alpha", "kappa"),
}


def attack_theory(rng: Random, folder: Path) -> Case:
    """A function of the theory with an odd argument."""
    name = rng.choice(list(FUNCTIONS))
    function, known = getattr(theory, name), good_words(rng)
    words = changed(rng, {argument: known[argument] for argument in FUNCTIONS[name]})
    for long in ("steps", "count"):
        if isinstance(words.get(long), int | np.integer) and 5 < words[long] < 2**63:
            words[long] = 2  # a long run is no mistake
    return Case(f"{name}({described(words)})", lambda: function(**words))


def attack_advice(rng: Random, folder: Path) -> Case:
    """Advice on an odd task or horizon, with a short budget."""
    given = {"schedule": constant, "measure": "mean_error", "learners": ("td",), "budget": 0.2}
    words = changed(rng, given | {"task": TASKS[0], "horizon": Horizon(steps=50), "sampling": "iid"})
    return Case(f"advise({described(words)})", lambda: theory.advise(**words))


ATTACKS: dict[str, Attack] = {"theory": attack_theory, "advice": attack_advice}
