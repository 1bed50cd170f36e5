"""Attacks on the theory: every public function that takes a task, a setting or vectors."""

from collections.abc import Callable
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
    p = task.n_features
    vector = np.linspace(0.1, 1.0, p)
    return {
        "task": task,
        "problem": rng.choice([task, task.moments]),
        "setting": LEARNERS[rng.choice(LINEAR)].setting(alpha=rng.choice([0.1, 1e-9, 1e9])),
        "learner": rng.choice(list(LEARNERS)),
        "sampling": rng.choice(["trajectory", "iid"]),
        "A_eff": np.eye(p),
        **dict.fromkeys(("first", "second", "v", "w"), vector),
        "mu": 0.5,
        "kappa": 1.0,
        "alpha": 0.1,
        "zeta": 1.0,
        "kappa_alpha": 0.1,
        "steps": 5,
        "kappa_alphas": [0.1, 1.0],
        "n_features": p,
        "count": 1,
    }


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    **{
        name: (getattr(theory, name), arguments)
        for name, arguments in {
            "spectral_radius": ("task", "setting", "sampling"),
            "rate": ("task", "setting", "sampling"),
            "mean_square_radius": ("task", "setting", "sampling"),
            "expected_run": ("task", "setting", "steps", "sampling"),
            "largest_stable_alpha": ("task", "learner", "sampling", "zeta"),
            "best_alpha": ("task", "learner", "sampling"),
            "exact_limits": ("task", "setting", "sampling"),
            "diverging_mdps": ("count",),
            "averaged_matrix": ("task", "kappa_alpha"),
            "effective_matrix": ("task", "alpha", "kappa"),
            "flow_rate": ("task", "A_eff", "zeta"),
            "interpolation": ("task", "kappa_alphas", "zeta"),
            "expected_recursion": ("task", "setting"),
            "recursion_eigenvalues": ("task", "setting"),
            "rest_point": ("task", "setting"),
            "check_assumptions": ("task", "setting"),
            "angle": ("problem", "first", "second"),
            "constrained_step": ("problem", "v", "mu"),
            "penalised_step": ("problem", "v", "kappa"),
            "contraction_factors": ("problem", "kappa"),
            "generalised_eigenvalues": ("problem",),
            "kappa_of_mu": ("problem", "v", "mu"),
            "mu_of_kappa": ("problem", "v", "kappa"),
            "kkt": ("problem", "v", "w", "mu", "kappa"),
            "natural_direction": ("problem", "w"),
            "plain_direction": ("problem", "w"),
            "settled_direction": ("problem", "w", "alpha", "kappa"),
            "natural_relation": ("problem", "v", "mu", "alpha", "kappa"),
            "prox_run": ("task", "kappa", "steps"),
        }.items()
        if hasattr(theory, name)
    }
}


def attack_theory(rng: Random, folder: Path) -> Case:
    """A function of the theory with an odd argument."""
    name = rng.choice(list(FUNCTIONS))
    function, arguments = FUNCTIONS[name]
    known = good_words(rng)
    p = known["n_features"]
    words = changed(rng, {argument: known[argument] for argument in arguments}, {"A_eff": (p, p)})
    for long in ("steps", "count"):
        if isinstance(words.get(long), int | np.integer) and 5 < words[long] < 2**63:
            words[long] = 2  # a long run is no mistake
    return Case(f"{name}({described(words)})", lambda: function(**words))


def attack_advice(rng: Random, folder: Path) -> Case:
    """Advice on an odd task or horizon, with a short budget."""
    given = {"schedule": constant, "measure": "area", "learners": ("td",), "budget": 0.2}
    words = changed(rng, given | {"task": TASKS[0], "horizon": Horizon(steps=50), "sampling": "iid"})
    return Case(f"advise({described(words)})", lambda: theory.advise(**words))


ATTACKS: dict[str, Attack] = {"theory": attack_theory, "advice": attack_advice}
