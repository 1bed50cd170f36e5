"""Attacks on the laboratory: tasks, rules, schedules, studies and both engines."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.engine.schedules import Schedule, constant, parse_schedule, tapered
from gradient_dd.errors import show
from gradient_dd.learners import LEARNERS, Parameter, Rule
from gradient_dd.studies import Study, grid
from gradient_dd.studies import task as task_spec
from gradient_dd.tasks import TASKS, Task, from_tables
from tests.adversary.odd import anything, changed, scalar, sparse
from tests.adversary.rule import Attack, Case, described, not_finite

CHAIN = np.array([[[0, 1, 0], [0, 0.5, 0.5]], [[0.5, 0, 0.5], [0, 0, 1.0]], [[0, 0, 1.0], [0, 0, 1.0]]])
TABLES: dict[str, Any] = {
    "P": CHAIN,
    "R": np.zeros((3, 2, 3)),
    "discount": 0.9,
    "behaviour": np.full((3, 2), 0.5),
    "target": np.full((3, 2), 0.5),
    "start": 0,
    "features": np.eye(3)[:, :2],
    "initial_weights": np.zeros(2),
    "name": "mine",
}
TABLE_SHAPES = {
    "P": (3, 2, 3),
    "R": (3, 2, 3),
    "behaviour": (3, 2),
    "target": (3, 2),
    "start": (3,),
    "features": (3, 2),
    "initial_weights": (2,),
    "discount": (3,),
}
WALK, BAIRD = tasks.random_walk(3), tasks.baird(3)


def attack_rule(rng: Random, folder: Path) -> Case:
    """An odd rule."""
    td = LEARNERS["td"]
    fields = ("name", "label", "moves", "parameters", "reference", "module", "natural")
    words = changed(rng, {field: getattr(td, field) for field in fields} | {"step": td.step})

    def call() -> Any:
        rule = Rule(**words)
        return rule.setting(), rule.key, rule.doc, rule.equation

    return Case(f"Rule({described(words)})", call)


def attack_parameter(rng: Random, folder: Path) -> Case:
    """An odd parameter of a rule, and odd values of it."""
    words, value = (
        changed(rng, {"name": "alpha", "meaning": "step size", "default": 0.1, "positive": True}),
        scalar(rng),
    )
    return Case(
        f"Parameter({described(words)}).check({described({'_': value})})", lambda: Parameter(**words).check(value, "x")
    )


def derive(task: Task) -> Any:
    """Ask a task for all that follows from its table."""
    exact = (
        task.true_values,
        task.visits,
        task.features,
        *task.moments,
        task.fixed_point,
        task.rmsve(task.initial_weights),
    )
    return exact, task.key, str(task), task.transitions


def derived_complaint(result: Any) -> str:
    """Return a complaint if an exact quantity is not finite."""
    return not_finite(*result[0])


def attack_from_tables(rng: Random, folder: Path) -> Case:
    """An odd table."""
    words = changed(rng, TABLES, TABLE_SHAPES)
    if rng.random() < 0.1:
        words["features"] = sparse(rng, (3, 2))
    if rng.random() < 0.2:
        words["ratios"] = anything(rng, (3, 2))
    if rng.random() < 0.3:  # a table whose shapes are right, with an odd number in it
        name = rng.choice(["P", "R", "behaviour", "target", "features"])
        words[name] = np.array(TABLES[name], dtype=float)
        words[name].flat[rng.randrange(words[name].size)] = rng.choice(
            [1e-10, 1e-15, -1e-12, 1 - 1e-10, 1e49, -1e49, 1e-300]
        )
    return Case(f"from_tables({described(words)})", lambda: derive(from_tables(**words)), complaint=derived_complaint)


def attack_random_tables(rng: Random, folder: Path) -> Case:
    """A random table that may be sound: ill-conditioned, cut into parts, with tiny and large numbers."""
    draw = np.random.default_rng(rng.getrandbits(32))
    n, actions = rng.randint(1, 6), rng.randint(1, 3)
    P = draw.dirichlet(np.full(n, rng.choice([0.05, 0.3, 1.0])), size=(n, actions))
    if rng.random() < 0.5:
        P[rng.choice([1e-3, 0.1]) > P] = 0.0
    P /= np.maximum(P.sum(axis=2, keepdims=True), 1e-300)
    for end in range(rng.randrange(2)):
        P[end] = np.eye(n)[end]
    words = {
        "P": P,
        "R": draw.standard_normal((n, actions, n)) * rng.choice([0.0, 1.0, 1e-30, 1e30, 1e48]),
        "discount": rng.choice([0.0, 0.5, 0.9, 1.0, 1 - 1e-9, 1 - 1e-14]),
        "behaviour": draw.dirichlet(np.ones(actions), size=n),
        "target": draw.dirichlet(np.ones(actions), size=n),
        "features": draw.standard_normal((n, rng.randint(1, 4))) * rng.choice([1.0, 1e-20, 1e20, 1e-160]),
    }
    return Case(f"from_tables({described(words)})", lambda: derive(from_tables(**words)), complaint=derived_complaint)


GOOD_PARAMETERS: dict[str, dict[str, Any]] = {
    "random_walk": {"n_states": 5, "features": "tabular", "n_features": None, "start": None},
    "boyan_chain": {"n_features": 4},
    "baird": {"n_states": 5, "ratios": "standard"},
    "random_mdp": {"n_states": 4, "n_actions": 2, "n_features": 2, "discount": 0.9, "episodic": True, "seed": 0},
    "collision": {"seed": 0},
    "rooms": {"question": 0, "variance": "low"},
    "five_state_walk": {"features": "tabular"},
    "nineteen_state_walk": {},
    "dann_mdp": {"n_states": 4, "n_actions": 2, "n_features": 2, "seed": 0},
}


def attack_task(rng: Random, folder: Path) -> Case:
    """A named task with odd parameters."""
    name = rng.choice(list(TASKS))
    words = changed(rng, GOOD_PARAMETERS[name])
    if rng.random() < 0.1:
        words[show(scalar(rng))] = 1
    return Case(f"{name}({described(words)})", lambda: derive(tasks.build(name, **words)), complaint=derived_complaint)


def attack_environment(rng: Random, folder: Path) -> Case:
    """An odd action, or an odd policy to act by."""
    from gradient_dd.tasks.environments import TableEnv

    env, action = TableEnv(rng.choice([WALK, BAIRD])), anything(rng)
    if rng.random() < 0.8:
        env.reset(seed=0)
    return Case(f"{env.task}.step({described({'action': action})})", lambda: env.step(action), lambda: env._state)


def odd_schedule(rng: Random) -> tuple[str, Any]:
    """Return a schedule in words, and what makes it."""
    value, per = anything(rng), rng.choice(["episode", "step", scalar(rng)])
    text = described({"value": value, "per": per})
    made = rng.choice(["tapered", "function", "returns", "text"])
    if made == "tapered":
        return f"tapered({text})", lambda: tapered(value, per)
    if made == "function":
        return f"Schedule({text})", lambda: Schedule(value, per)
    if made == "text":
        words = rng.choice([value, f"tapered({show(value)}) per {show(per)}"])
        return f"parse_schedule({described({'text': words})})", lambda: parse_schedule(words)
    return f"Schedule(n -> {text})", lambda: Schedule(lambda n: value, per)


def attack_schedule(rng: Random, folder: Path) -> Case:
    """An odd schedule, asked for factors."""
    words, make = odd_schedule(rng)
    n = rng.choice([1, 2, 10**6])

    def call() -> Any:
        schedule = make()
        return float(schedule.factor(n)), np.asarray(schedule.factors(np.array([1, n]))), str(schedule)

    return Case(words, call, complaint=lambda result: not_finite(*result[:2]))


def attack_reference(rng: Random, folder: Path) -> Case:
    """An odd run of the reference engine."""
    good = {"task": rng.choice([WALK, BAIRD]), "learner": "gtd2", "steps": 5, "every": 1, "schedule": constant}
    good |= {"sampling": "trajectory", "seed": 0, "run": 0, "alpha": 0.1, "zeta": 1.0}
    words = within_reason(changed(rng, good))
    return Case(f"reference.run({described(words)})", lambda: reference.run(**words))


def attack_lanes(rng: Random, folder: Path) -> Case:
    """An odd run of the lane engine; the rule is TD, so that few kernels are compiled."""
    settings = [LEARNERS["td"].setting(alpha=rng.choice([0.1, 1e-300, 1e300])) for _ in range(2)]
    good = {"task": rng.choice([WALK, BAIRD]), "settings": settings, "schedule": constant, "sampling": "iid", "seed": 0}
    words, length = changed(rng, good | {"runs": 1, "workers": 1}), changed(rng, {"steps": 5, "every": 1})
    words, length = within_reason(words), within_reason(length)
    text = f"run_lanes({described(words)}, Horizon({described(length)}))"
    return Case(text, lambda: run_lanes(horizon=Horizon(**length), **words))


def within_reason(words: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords with lengths and counts that would run for hours, by right, made short."""
    long = ("steps", "episodes", "runs", "workers", "every")
    return {
        name: 4 if name in long and isinstance(value, int | np.integer) and 4 < value < 2**63 else value
        for name, value in words.items()
    }


def attack_study(rng: Random, folder: Path) -> Case:
    """An odd study: described, estimated, and all its keys made."""
    good: dict[str, Any] = {
        "name": "s",
        "tasks": (task_spec("random_walk", n_states=3),),
        "grids": (grid("td", alpha=(0.1, 0.3)),),
        "schedule": constant,
        "episodes": 3,
        "steps": None,
        "every": 1,
        "runs": 2,
        "first_run": 0,
        "seed": 0,
        "sampling": "trajectory",
    }
    words = within_reason(changed(rng, good))

    def call() -> Any:
        study = Study(**words)
        keys = [key for task in study.built_tasks for key, *_ in study.lanes(task)]
        return str(study), study.estimate(), keys, hash(study)

    return Case(f"Study({described(words)})", call)


def attack_parts_of_a_study(rng: Random, folder: Path) -> Case:
    """An odd task or an odd grid for a study."""
    part = rng.choice(["task", "grid"])
    if part == "task":
        words = changed(rng, {"name": "random_mdp", "n_states": 3, "seed": 0, "episodic": True})
        return Case(f"task({described(words)})", lambda: task_spec(**words).build())
    words = changed(rng, {"learner": "gradient_dd", "rho_mode": "R", "alpha": (0.1, 0.2), "kappa": 1.0})
    if rng.random() < 0.3:
        words["alpha"] = [scalar(rng) for _ in range(2)]

    def call() -> Any:
        one = grid(**words)
        return list(one.settings()), hash(one)

    return Case(f"grid({described(words)})", call)


def attack_tables_of_gymnasium(rng: Random, folder: Path) -> Case:
    """A table in the form of Gymnasium with an odd entry."""
    row = [0.5, 0, 1.0, False]
    row[rng.randrange(4)] = scalar(rng)
    table: Any = {0: {0: [tuple(row), (0.5, 0, 0.0, True)]}}
    if rng.random() < 0.3:
        table = rng.choice([scalar(rng), {0: scalar(rng)}, {0: {0: scalar(rng)}}, [[[scalar(rng)]]]])
    env = type("Odd", (), {"P": table, "unwrapped": property(lambda self: self)})()
    words = changed(rng, {"discount": 0.9, "start": 0})
    text = f"from_gymnasium({described({'P': table})}, {described(words)})"
    return Case(text, lambda: derive(tasks.from_gymnasium(env, **words)), complaint=derived_complaint)


ATTACKS: dict[str, Attack] = {
    name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")
}
