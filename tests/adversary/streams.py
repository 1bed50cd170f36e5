"""Attacks on what learns from a stream: Learner, AutoLearner, Questions, networks and feature maps."""

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import gradient_dd as gdd
from gradient_dd import LEARNERS, DivergedError, Learner
from gradient_dd.engine.schedules import constant
from tests.adversary.odd import anything, array, changed, sparse
from tests.adversary.rule import Attack, Case, described, not_finite


def memory_of(agent: Learner) -> Any:
    """Return what a user can see of a learner."""
    return agent.w.tobytes(), agent.eta.tobytes(), agent.updates, agent.episodes


def attack_update(rng: Random, folder: Path) -> Case:
    """An odd transition for a learner that has seen a few."""
    agent = Learner(rng.choice(list(LEARNERS)), 3, alpha=rng.choice([0.1, 1.0, 10.0]))
    good = {"x": np.array([1.0, 0, 2]), "reward": 1.0, "discount": 0.9, "x_next": np.array([0.0, 1, 0]), "rho": 1.0}
    good |= {"pi": 0.5, "mu": 0.5}
    for _ in range(rng.randrange(4)):
        agent.update(**good)
    words = changed(rng, good | {"terminated": False, "truncated": False})
    if rng.random() < 0.2:
        words["x"] = anything(rng), anything(rng)
    call = lambda: agent.update(**words)  # noqa: E731
    complaint = lambda delta: not_finite(delta, agent.w, agent.eta)  # noqa: E731
    return Case(f"{agent!r}.update({described(words)})", call, lambda: memory_of(agent), complaint)


def attack_update_many(rng: Random, folder: Path) -> Case:
    """Odd transitions, many at once; one that diverges comes after those that were learnt."""
    agent = Learner(rng.choice(("td", "natural_tdc")), 3, alpha=rng.choice([0.1, 10.0]))
    shapes = {"x": (4, 3), "x_next": (4, 3), "reward": (4,), "discount": (4,), "rho": (4,)}
    words = changed(rng, {name: np.ones(shape) for name, shape in shapes.items()}, shapes)
    if rng.random() < 0.2:
        words |= {"x": sparse(rng, (4, 3)), "x_next": rng.choice([None, sparse(rng, (4, 3))])}
    if rng.random() < 0.2:
        words |= {name: (anything(rng, (4, 2)), array(rng, (4, 2))) for name in ("x", "x_next")}

    def call() -> Any:
        with suppress(DivergedError):
            agent.update_many(**words)
        return agent.w, agent.eta

    text = f"{agent!r}.update_many({described(words)})"
    return Case(text, call, lambda: memory_of(agent), lambda result: not_finite(*result))


def attack_predict(rng: Random, folder: Path) -> Case:
    """Odd features to predict for."""
    agent = Learner("td", 3, initial_w=rng.choice([1.0, 1e150]))
    x = rng.choice([anything, lambda rng: sparse(rng, (2, 3)), lambda rng: (anything(rng), anything(rng))])(rng)
    return Case(f"predict({described({'x': x})})", lambda: agent.predict(x), lambda: memory_of(agent), not_finite)


def attack_learner(rng: Random, folder: Path) -> Case:
    """An odd learner, and one update of it where it can be made."""
    name = rng.choice(list(LEARNERS))
    words = changed(rng, {"learner": name, "n_features": 3, "initial_w": 0.0, "schedule": constant, "rho_mode": "R"})
    words |= changed(rng, dict.fromkeys(LEARNERS[name].defaults, 1.0))

    def call() -> Any:
        agent = Learner(**words)
        agent.update(np.ones(agent.n_features), 1.0, 0.0, None, pi=0.5, mu=0.5)
        return agent.w

    return Case(f"Learner({described(words)})", call, complaint=not_finite)


def attack_auto_learner(rng: Random, folder: Path) -> Case:
    """An odd learner with nothing to tune, or an odd transition for one."""
    made = {"n_features": 3, "quadratic": rng.random() < 0.5}
    if rng.random() < 0.3:
        made = changed(rng, made | {"alpha": None})
    good = {"x": np.array([1.0, 0, 2]), "reward": 1.0, "discount": 0.9, "x_next": np.array([0.0, 1, 0]), "rho": 1.0}
    words = changed(rng, good)

    def call() -> Any:
        agent = gdd.AutoLearner(**made)
        for _ in range(rng.randrange(3)):
            agent.update(**good)
        agent.update(**words)
        return agent.w, agent.predict(np.ones(agent.n_features))

    text = f"AutoLearner({described(made)}).update({described(words)})"
    return Case(text, call, complaint=lambda result: not_finite(*result))


def attack_auto_learner_many(rng: Random, folder: Path) -> Case:
    """Odd transitions for a learner with nothing to tune, many at once."""
    agent = gdd.AutoLearner(3, quadratic=rng.random() < 0.5)
    shapes = {"x": (4, 3), "x_next": (4, 3), "reward": (4,), "discount": (4,), "rho": (4,)}
    words = changed(rng, {name: np.ones(shape) for name, shape in shapes.items()}, shapes)
    if rng.random() < 0.2:
        words |= {"x": sparse(rng, (4, 3)), "x_next": rng.choice([None, sparse(rng, (4, 3))])}

    def call() -> Any:
        agent.update_many(**words)
        return agent.w, agent.predict(np.ones(3))

    text = f"AutoLearner.update_many({described(words)})"
    return Case(text, call, lambda: agent.w.tobytes(), lambda result: not_finite(*result))


def attack_question(rng: Random, folder: Path) -> Case:
    """An odd question, or an odd set of questions."""
    words = changed(rng, {"name": "a", "cumulant": 1.0, "discount": 0.5, "target": None, "interest": None})
    asked = changed(rng, {"n_features": 3, "learner": "td", "precision": "float64", "initial_w": 0.0, "alpha": 0.1})

    def call() -> Any:
        horde = gdd.Questions([gdd.Question(**words), gdd.Question("b", 0.0, 0.9)], **asked)
        horde.update_many(np.eye(3), x_next=np.eye(3)[::-1], actions=[0, 1, 0], behaviour_probability=np.full(3, 0.5))
        return horde.w, horde.predict(np.ones(3))

    text = f"Questions(Question({described(words)}), {described(asked)})"
    return Case(text, call, complaint=lambda result: not_finite(*result))


def attack_questions(rng: Random, folder: Path) -> Case:
    """Odd transitions for a set of questions."""
    policy = lambda seen: np.full((len(seen), 2), 0.5)  # noqa: E731
    asked = [gdd.Question("a", 1.0, 0.5), gdd.Question("b", "bump", 0.9, target=policy)]
    horde = gdd.Questions(asked, n_features=3, learner=rng.choice(("td", "tdrc")), alpha=rng.choice([0.1, 10.0]))
    shapes = {"x": (4, 3), "x_next": (4, 3), "actions": (4,), "behaviour_probability": (4,), "observations": (4, 2)}
    good: dict[str, Any] = {name: np.full(shape, 0.5) for name, shape in shapes.items()}
    good |= {"actions": np.array([0, 1, 1, 0]), "terminated": np.zeros(4, bool), "columns": {"bump": np.ones(4)}}
    words = changed(rng, good, shapes)
    if rng.random() < 0.2:
        words["columns"] = {rng.choice(["bump", "x", 3]): anything(rng, (4,))}

    def call() -> Any:
        with suppress(DivergedError):
            horde.update_many(**words)
        return horde.w, horde.predict(np.ones(3))

    text = f"Questions.update_many({described(words)})"
    return Case(text, call, lambda: horde.w.tobytes(), lambda result: not_finite(*result))


NETWORK = {"inputs": 2, "hidden": (2,), "activation": "tanh", "second": "head", "precision": "float32"}


def attack_network(rng: Random, folder: Path) -> Case:
    """An odd network, or an odd learner on one; no program is compiled, so that it is quick."""
    gdd.Network(**NETWORK)  # imports JAX, which changes the environment
    words = changed(rng, NETWORK)
    rule = rng.choice(["td", "gradient_dd", "tdrc", "natural_tdc", "pgtd2"])
    made = changed(rng, {"learner": rule, "alpha": 0.1, "optimiser": "sgd", "seed": 0, "period": 1, "pull": 0.0})

    def call() -> Any:
        return repr(gdd.NetworkLearner(network=gdd.Network(**words), **made))

    return Case(f"NetworkLearner({described(made)}, Network({described(words)}))", call)


def attack_network_update(rng: Random, folder: Path) -> Case:
    """An odd transition for a learner on a small network."""
    agent = gdd.NetworkLearner("gradient_dd", gdd.Network(**NETWORK), alpha=0.1)
    shapes = {"observation": (2,), "next_observation": (2,)}
    good = {"observation": np.ones(2), "reward": 1.0, "discount": 0.9, "next_observation": np.zeros(2), "rho": 1.0}
    words = changed(rng, good, shapes)

    def call() -> Any:
        with suppress(DivergedError):
            agent.update(**words)
        return agent.predict(np.ones((1, 2)))

    text = f"NetworkLearner.update({described(words)})"
    return Case(text, call, lambda: (agent.updates, agent.predict(np.ones((1, 2))).tobytes()), not_finite)


def attack_network_control(rng: Random, folder: Path) -> Case:
    """An odd transition for a learner of action values."""
    agent = gdd.NetworkControl("td", gdd.Network(**NETWORK | {"outputs": 2}), actions=2, alpha=0.1)
    good = {"observation": np.ones(2), "action": 1, "reward": 1.0, "discount": 0.9, "next_observation": np.zeros(2)}
    words = changed(rng, good, {"observation": (2,), "next_observation": (2,)})

    def call() -> Any:
        with suppress(DivergedError):
            agent.update(**words)
        return agent.predict(np.ones(2))

    text = f"NetworkControl.update({described(words)})"
    return Case(text, call, lambda: agent.predict(np.ones(2)).tobytes(), not_finite)


FEATURE_WORDS: dict[str, dict[str, Any]] = {
    "tiles": {"low": [0.0, 0.0], "high": [1.0, 2.0], "tiles": 3, "tilings": 2, "wrap": False, "size": None},
    "fourier": {"low": [0.0, 0.0], "high": [1.0, 2.0], "order": 2, "outside": "refuse"},
    "radial": {"low": [0.0, 0.0], "high": [1.0, 2.0], "per_dimension": 3, "width": 1.0, "normalised": True},
    "polynomial": {"low": [0.0, 0.0], "high": [1.0, 2.0], "degree": 2, "outside": "clip"},
    "one_hot": {"sizes": [2, 3]},
    "columns": {"shift": [0.0, 0.0], "scale": [1.0, 2.0], "intercept": True, "largest": 5.0},
}


def attack_features(rng: Random, folder: Path) -> Case:
    """An odd feature map, or odd observations for a sound one."""
    kind = rng.choice(list(FEATURE_WORDS))
    words = changed(rng, {"kind": kind} | FEATURE_WORDS[kind], dict.fromkeys(("low", "high", "shift", "scale"), (2,)))
    seen = rng.choice([np.ones((2, 2)), anything(rng, (2, 2))])

    def call() -> Any:
        made = gdd.features.from_data(words)
        rows = made.rows(seen)
        return rows.values, made(np.ones(2)), gdd.features.from_data(made.as_data()).rows(seen).values, repr(made)

    def complaint(result: Any) -> str:
        return not_finite(result[0]) or (
            "" if np.array_equal(result[0], result[2]) else "is another map when read back"
        )

    return Case(f"from_data({described(words)}).rows({described({'X': seen})})", call, complaint=complaint)


ATTACKS: dict[str, Attack] = {
    name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")
}
