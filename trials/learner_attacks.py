"""Test AutoLearner on hostile tasks and on streams that change.

    python -m trials.learner_attacks

The protocol was fixed before the run. There are 10 hostile tasks of each type with 20,000 steps and 5 runs: one
feature; rewards with t-noise of 1.5 degrees of freedom; initial weights ten times as far off on the other side; ratios
of 50; a nearly singular A; a Boyan chain with 2,000 steps. The program prints the final error relative to the initial
error, and the numbers of runs that end above 1 and above 3 times the initial error. In 10 more tasks of 40,000 steps,
rewards change sign and size in the middle, or the target policy changes. The program prints the mean error after the
change relative to an `AutoLearner` that starts there.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.stream.auto import AutoLearner
from gradient_dd.tasks import Task, boyan_chain, from_tables, random_mdp
from tools.programs import parser_of
from trials.auto_learner import cases
from trials.auto_learner.rivals import Road

FIRST, TASKS, RUNS, STEPS = 76_000_000, 10, 5, 20_000


class Attack(NamedTuple):
    """The tasks of an attack, and its effect on the rewards."""

    make: Callable[[int], Task]
    steps: int = STEPS
    noise: float = 0.0


def off_policy(seed: int) -> Task:
    """Return a random MDP whose target policy differs from its behaviour policy."""
    return random_mdp(14, 3, 6, 0.95, seed=seed)


def far_off(seed: int) -> Task:
    """Return a task whose initial weights are −9 times the fixed point."""
    task = off_policy(seed)
    return replace(task, initial_weights=-9 * task.fixed_point)


def large_ratios(seed: int) -> Task:
    """Return a task whose target policy nearly always takes an action with behaviour probability 1/50."""
    rng, n = np.random.default_rng(seed), 10
    P, R = rng.dirichlet(np.full(n, 0.3), size=(n, 2)), rng.standard_normal((n, 2, n))
    rare = np.tile([0.98, 0.02], (n, 1))
    target = np.where(rng.random((n, 1)) < 0.5, np.array([[0.0, 1.0]]), rare)
    return from_tables(P, R, 0.9, rare, target, features=rng.random((n, 4)), name="large ratios")


def nearly_singular(seed: int) -> Task:
    """Return the first task of two features after a seed whose A has a singular value below 0.003."""
    while True:
        task = random_mdp(3, 2, 2, 0.99, seed=seed)
        if np.linalg.svd(task.moments.A)[1].min() < 0.003:
            return task
        seed += TASKS


ATTACKS = {
    "one feature": Attack(lambda seed: cases.small(seed, 1)),
    "t-noise": Attack(off_policy, noise=1.5),
    "start ten times off": Attack(far_off),
    "ratios of 50": Attack(large_ratios),
    "A nearly singular": Attack(nearly_singular),
    "Boyan, 2,000 steps": Attack(lambda seed: boyan_chain(8 + 6 * (seed % TASKS)), steps=2000),
}


def ends(attack: Attack) -> Iterator[float]:
    """Yield the final error relative to the initial error, for every task and run."""
    for seed in range(FIRST, FIRST + TASKS):
        task = cases.aimed_at_the_fixed_point(attack.make(seed))
        for run in range(RUNS):
            road, rng = Road(task, attack.steps, run), np.random.default_rng(run)
            agent = AutoLearner(task.n_features, initial_w=task.initial_weights)
            for row, next_row, reward, discount, rho in road.parts():
                noise = rng.standard_t(attack.noise, len(reward)) if attack.noise else 0.0
                agent.update_many(row, reward + noise, discount, next_row, rho)
            yield task.rmsve(agent.w) / cases.first_error(task)


def changed(kind: str, seed: int) -> tuple[Task, Task]:
    """Return a task before and after its change."""
    before = random_mdp(14, 3, 6, 0.9, seed=seed)
    if kind == "rewards":
        after = replace(before, cumulant=-3 * before.outcomes.reward)
    else:
        after = replace(before, target=before.target[:, ::-1].copy())
    return before, cases.aimed_at_the_fixed_point(after)


def after_change(kind: str) -> Iterator[float]:
    """Yield the mean error after the change relative to a learner that starts there."""
    for seed in range(FIRST + 100, FIRST + 100 + TASKS):
        before, after = changed(kind, seed)
        for run in range(RUNS):
            agent, fresh = (AutoLearner(after.n_features) for _ in range(2))
            for steps in Road(before, STEPS, run).parts():
                agent.update_many(steps.row, steps.reward, steps.discount, steps.next_row, steps.rho)
            road, errors = Road(after, STEPS, RUNS + run), []
            for steps in road.parts():
                for one in (agent, fresh):
                    one.update_many(steps.row, steps.reward, steps.discount, steps.next_row, steps.rho)
                errors.append(road.errors(np.column_stack([agent.w, fresh.w])))
            yield float(np.divide(*np.mean(errors, axis=0)))


def told(values: Array) -> dict[str, Any]:
    """Return ratios summarised as text."""
    mean, tail = np.exp(np.log(values).mean()), np.quantile(values, 0.95)
    above = {"above 1": int((values > 1).sum()), "above 3": int((values > 3).sum())}
    return (
        {"runs": len(values), "geometric mean": round(float(mean), 3), "95 %": round(float(tail), 2)}
        | above
        | {"worst": round(float(values.max()), 2)}
    )


def main(words: list[str] | None = None) -> None:
    """Run everything and print it."""
    parser_of(__doc__).parse_args(words)
    for name, attack in ATTACKS.items():
        print(name, json.dumps(told(np.array(list(ends(attack))))), flush=True)
    for kind in ("rewards", "target"):
        print(f"changed {kind}", json.dumps(told(np.array(list(after_change(kind))))), flush=True)


if __name__ == "__main__":
    main()
