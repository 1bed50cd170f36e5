"""Contracts about the step itself: a function of scalars that uses what it declares, and nothing else."""

from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.engine import reference, schedules
from gradient_dd.learners import Rule
from gradient_dd.testing.forms import for_each_form
from gradient_dd.testing.mean_update import away_from_zero

DRAWS = 50  # places at which a step is called
SIGNED = ("delta", "x_eta", "x_change", "z_eta", "b_eta", "x_next", "x_z", "x_trace")  # signals that may be negative


def random_signals(rule: Rule, arguments: Iterable[str] | None = None) -> list[dict[str, float]]:
    """Return a value for each argument of the step, or those given, DRAWS times; only ratios and parameters above 1."""
    rng = np.random.default_rng(0)

    free = {parameter.name for parameter in rule.parameters if parameter.high == inf} - {"alpha", "zeta"}

    def draw(name: str) -> float:
        high = 2.0 if name.startswith("rho") or name in free else 0.9
        return rng.normal() if name in SIGNED else rng.uniform(0.1, high)

    wanted = rule.arguments if arguments is None else arguments
    return [{name: float(draw(name)) for name in wanted} for _ in range(DRAWS)]


@for_each_form
def is_a_pure_function(rule: Rule) -> None:
    """The same numbers in give the same numbers out, one for each move."""
    draws = random_signals(rule)
    first, second = ([rule.step(**draw) for draw in order] for order in (draws, draws[::-1]))
    assert first == second[::-1], f"{rule.name} remembers: its step gives other numbers when called again"
    assert {len(moves) for moves in first} == {len(rule.moves)}, f"{rule.name} returns tuples of two lengths"


@for_each_form
def uses_all_it_declares(rule: Rule) -> None:
    """Every parameter is asked for, every argument changes something, and every move moves something."""
    arguments = {*rule.arguments, *rule.trace_arguments} | ({"zeta"} if "beta" in rule.arguments else set())
    for parameter in rule.parameters:
        used = rule.natural if parameter.shared else parameter.name in arguments
        assert used, f"{rule.name} declares the parameter {parameter.name!r} and does not use it"
    draws = random_signals(rule)
    for name in rule.arguments:
        changed = [rule.step(**draw) != rule.step(**draw | {name: 0.6 * draw[name]}) for draw in draws]
        assert any(changed), f"{rule.name} asks for {name!r}, which changes nothing"
    for trace in rule.traces:
        draws_of_trace = random_signals(rule, trace.arguments)
        for name in trace.arguments:
            changed = [trace.step(**draw) != trace.step(**draw | {name: 0.6 * draw[name]}) for draw in draws_of_trace]
            assert any(changed), f"A trace of {rule.name} asks for {name!r}, which changes nothing"
    for name, values in zip(rule.moves, zip(*(rule.step(**draw) for draw in draws), strict=True), strict=True):
        assert any(values), f"{rule.name} declares the move {name!r}, which is always zero"


@for_each_form
def keeps_to_its_step_sizes(rule: Rule) -> None:
    """With alpha = 0 a w that did not change stays where it is; with beta = 0 η does."""
    for step_size, still, weights in (("alpha", {"x_change": 0.0}, "w"), ("beta", {}, "eta")):
        for draw in random_signals(rule):
            at_rest = {step_size: 0.0} | still
            signals = {name: at_rest.get(name, value) for name, value in draw.items()}
            made = rule.coefficients(signals) | {"w_change": 0.0}  # along a change that is 0
            moves = {name: move for name, move in made.items() if name.startswith(weights)}
            assert not any(moves.values()), f"{rule.name} moves {weights} with {step_size} = 0: {moves}"


@for_each_form
def never_looks_past_the_end(rule: Rule) -> None:
    """With discount = 0 an episode has ended, and w does not move along x'."""
    for draw in random_signals(rule):
        signals = {name: 0.0 if name == "discount" else value for name, value in draw.items()}
        for weights in ("w", "eta"):
            move = rule.coefficients(signals)[f"{weights}_next"]
            assert move == 0, (
                f"{rule.name} moves {weights} by {move:.3g} along x' although discount = 0 ended the episode"
            )


@for_each_form
def stands_still_with_step_size_zero(rule: Rule) -> None:
    """With a schedule that is zero nothing changes, whatever the data."""
    task = tasks.random_mdp(seed=4)
    still = schedules.Schedule(lambda n: 0.0)
    values: dict[str, Any] = {**away_from_zero(rule)}
    trace = reference.run(task, rule, steps=50, schedule=still, **values)
    assert np.array_equal(trace.w, task.initial_weights), f"{rule.name} moves w with step size zero"
    assert not trace.eta.any(), f"{rule.name} moves η with step size zero"
