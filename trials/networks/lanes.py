"""Lanes of networks: settings × seeds × rules in one compiled program, in groups of a fixed width.

A program is compiled for WIDTH lanes, and the last group is filled with copies. So the bits of a lane depend neither on
the number of lanes nor on its position, although JAX sums in another order for another number of lanes. A diverged lane
stops and has infinite errors; the other lanes are not affected.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import bad_request, extra, whole_number
from gradient_dd.learners import Rule, Setting
from gradient_dd.networks.learner import update_numbers
from gradient_dd.networks.network import Network
from gradient_dd.networks.step import (
    Kind,
    NetworkSample,
    advance,
    check_rule,
    find_optimiser,
    first_state,
    keep_programs,
)
from trials.networks.joint import CHOICE, JointNetworkRule

with extra("neural"):
    import jax
    import jax.numpy as jnp

WIDTH = 16  # lanes of one compiled program; measured by `python -m benchmarks.networks`


class Lane(NamedTuple):
    """One setting on one stream; `seed` draws the initial weights; the other fields are as in NetworkLearner."""

    setting: Setting
    seed: int = 0
    stream: int = 0
    period: int = 1
    target_period: int | None = None
    pull: float = 0.0


class Streams(NamedTuple):
    """Transitions of several streams: states (streams, n, inputs), numbers (streams, n)."""

    s: Array
    reward: Array
    discount: Array
    s_next: Array
    rho: Array


class LaneMeasure(NamedTuple):
    """The definition of errors: √(Σ weight (V(s) − value)²) over states (m, inputs); values and weights are (m,)."""

    states: Array
    values: Array
    weights: Array


class LaneErrors(NamedTuple):
    """Errors at regular intervals, (lanes, points), and the final weights w, (lanes, weights)."""

    errors: Array
    w: Array


def run_lanes(
    network: Network,
    lanes: Sequence[Lane],
    streams: Streams,
    measure: LaneMeasure,
    *,
    batches: Integers | None = None,
    every: int = 100,
    optimiser: Any = "sgd",
    correction: bool = False,
    rules: Sequence[Rule] = (),
) -> LaneErrors:
    """Run lanes and return their errors at regular intervals.

    batches  (updates, streams, B) the rows of a stream for each update; default: one row after the other
    rules    the rules of the compiled program, which affect the bits of a lane; default: the rules of the lanes
    """
    lanes = list(lanes)
    kind = lanes_kind(network, lanes, optimiser, correction, rules)
    if batches is None:
        n = streams.reward.shape[1]
        batches = np.broadcast_to(np.arange(n)[:, None, None], (n, len(streams.reward), 1))
    if kind.rule.traces and batches.shape[2] > 1:
        raise bad_request(f"'batches' for {kind.rule.name}", "have one row each, for it keeps a trace", batches.shape)
    points = len(batches) // whole_number("'every'", every, at_most=len(batches))
    errors, weights = [], []
    with network.working():
        keep_programs()
        data = Streams(*(network.array(column) for column in streams))
        scale = LaneMeasure(*(network.array(column) for column in measure))
        rows = jnp.asarray(np.array(batches[: points * every], np.int32).reshape(points, every, *batches.shape[1:]))
        for begin in range(0, len(lanes), WIDTH):
            group = lanes[begin : begin + WIDTH]
            whole = filled(group)
            which = jnp.asarray([lane.stream for lane in whole], jnp.int32)
            found, w = lane_program(kind)(*first_lanes(kind, whole), which, data, scale, rows)
            errors.append(np.asarray(found).T[: len(group)])
            weights.append(np.asarray(w)[: len(group)])
    return LaneErrors(np.concatenate(errors).astype(float), np.concatenate(weights).astype(float))


def filled(group: Sequence[Lane]) -> list[Lane]:
    """Return WIDTH lanes: the lanes of a group, and copies of them."""
    return (list(group) * WIDTH)[:WIDTH]


def lanes_kind(
    network: Network, lanes: Sequence[Lane], optimiser: Any, correction: bool = False, rules: Sequence[Rule] = ()
) -> Kind:
    """Return the kind of program for these lanes, or raise: they must share placement of ρ and target."""
    kinds = {(lane.setting.rho_mode, lane.target_period is not None) for lane in lanes}
    if len(kinds) != 1:
        raise bad_request("Lanes", "be one or more of one rho_mode, all with a target copy or none", len(kinds))
    known = tuple(rules) or tuple(dict.fromkeys(lane.setting.rule for lane in lanes))
    for rule in known:
        check_rule(rule, network, correction)
        if rule.traces and len(known) > 1:
            raise bad_request("The rules of lanes", "be one, or several without traces", rule.name)
    ((rho_mode, target),) = kinds
    joint = known[0] if len(known) == 1 else JointNetworkRule(known)
    return Kind(joint, network, rho_mode, find_optimiser(optimiser), correction, target)


def first_lanes(kind: Kind, lanes: Sequence[Lane]) -> tuple[dict[str, Any], Any]:
    """Return the numbers (lanes,) that updates use, and the initial states."""
    network, plain = kind.network, kind.optimiser.transformation is None
    numbers = [update_numbers(lane.setting, plain, None, lane.pull) for lane in lanes]
    if isinstance(kind.rule, JointNetworkRule):
        places = {rule: place for place, rule in enumerate(kind.rule.rules)}
        blank = dict.fromkeys(kind.rule.defaults, 0.0)
        numbers = [blank | one | {CHOICE: places[lane.setting.rule]} for one, lane in zip(numbers, lanes, strict=True)]
    values = {name: network.array([one[name] for one in numbers]) for name in numbers[0]}
    values["period"] = jnp.asarray([lane.period for lane in lanes], jnp.int32)
    values["target_period"] = jnp.asarray([lane.target_period or 1 for lane in lanes], jnp.int32)
    w = network.array([network.first_w(lane.seed) for lane in lanes])
    eta = network.array([network.first_eta(lane.seed) for lane in lanes])
    return values, jax.vmap(lambda w, eta: first_state(kind, w, eta))(w, eta)


@cache
def lane_program(kind: Kind) -> Any:
    """Return the compiled run of WIDTH lanes: a scan over points that contains a scan over updates."""
    network = kind.network

    def step(values: Any, state: Any, alive: Any, stream: Any, data: Streams, rows: Any) -> tuple[Any, Any]:
        s, reward, discount, s_next, rho = (column[stream, rows] for column in data)
        one, none = jnp.ones((len(rows), 1), s.dtype), jnp.zeros_like(reward)
        new, _, sound = advance(
            kind, values, state, NetworkSample(s, one, reward, discount, s_next, one, rho, none, none, none)
        )
        alive &= sound
        return jax.tree.map(lambda after, before: jnp.where(alive, after, before), new, state), alive

    def error(w: Any, alive: Any, scale: LaneMeasure) -> Any:
        missed = network.values(w, scale.states)[:, 0] - scale.values
        return jnp.where(alive, jnp.sqrt((scale.weights * missed**2).sum()), jnp.inf)

    def run(values: Any, state: Any, which: Any, data: Streams, scale: LaneMeasure, rows: Any) -> tuple[Any, Any]:
        def update(carry: Any, rows: Any) -> tuple[Any, None]:
            return jax.vmap(step, (0, 0, 0, 0, None, 0))(values, *carry, which, data, rows[which]), None

        def point(carry: Any, rows: Any) -> tuple[Any, Any]:
            carry, _ = jax.lax.scan(update, carry, rows)
            return carry, jax.vmap(error, (0, 0, None))(carry[0].w, carry[1], scale)

        (state, _), errors = jax.lax.scan(point, (state, jnp.ones(WIDTH, bool)), rows)
        return errors, state.w

    return jax.jit(run)
