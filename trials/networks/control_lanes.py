"""Lanes of control agents: settings × seeds on one environment, in one compiled program.

Every lane has its own environment, transition memory and random numbers. Episodes are truncated at the environment's
limit, and their last transition still bootstraps.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import extra
from gradient_dd.learners import Rule
from gradient_dd.networks.control import action_sample, policy
from gradient_dd.networks.network import Network
from gradient_dd.networks.step import Kind, advance, keep_programs
from trials.networks.environments import Environment
from trials.networks.lanes import WIDTH, Lane, filled, first_lanes, lanes_kind

with extra("neural"):
    import jax
    import jax.numpy as jnp


class ControlPlan(NamedTuple):
    """The training of agents: steps, discount, ε, batch size, and steps between two points."""

    steps: int
    every: int
    discount: float = 0.99
    epsilon: float = 0.1
    batch: int = 16
    first_value: float = 0.0  # initial value of all states and actions


class Episodes(NamedTuple):
    """Numbers of ended episodes, and of truncated ones among them, up to each point, (lanes, points)."""

    ended: Array
    cut: Array
    alive: Array


def run_control(
    network: Network,
    lanes: Sequence[Lane],
    environment: Environment,
    plan: ControlPlan,
    optimiser: Any = "adam",
    rules: Sequence[Rule] = (),
) -> Episodes:
    """Run agents and return the episodes ended by each point; `stream` of a lane seeds its random numbers."""
    lanes = list(lanes)
    kind = lanes_kind(replace(network, outputs=environment.actions), lanes, optimiser, rules=rules)
    network, found = kind.network, []
    with network.working():
        keep_programs()
        for begin in range(0, len(lanes), WIDTH):
            group = filled(lanes[begin : begin + WIDTH])
            values, state = first_lanes(kind, group)
            bias = state.w.at[:, -network.outputs :].add(plan.first_value)
            state = state._replace(w=bias, copy=bias, target=bias if kind.target else ())
            keys = jnp.stack([jax.random.key(lane.stream) for lane in group])
            made = control_program(kind, environment, plan)(values, state, keys)
            found.append([np.asarray(one).T[: len(lanes) - begin] for one in made])
    return Episodes(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


@cache
def control_program(kind: Kind, environment: Environment, plan: ControlPlan) -> Any:
    """Return the compiled run of WIDTH agents."""
    network = kind.network

    def act(state: Any, world: Any, clock: Any, key: Any) -> Any:
        chances = jax.random.split(key, 3)
        seen = environment.observe(world)
        chosen = policy(network.values(state.w, seen[None])[0], plan.epsilon)
        action = jax.random.categorical(chances[0], jnp.log(chosen))
        after, reward, ended = environment.step(world, action)
        clock += 1
        cut = ~ended & (clock >= environment.longest)
        row = seen, action, reward, jnp.where(ended, 0.0, plan.discount).astype(seen.dtype), environment.observe(after)
        again = environment.start(jax.random.uniform(chances[1], (environment.states,), seen.dtype))
        world, clock = jnp.where(ended | cut, again, after), jnp.where(ended | cut, 0, clock)
        return row, world, clock, jnp.stack([ended | cut, cut]).astype(jnp.int32), chances[2]

    def learn(values: Any, state: Any, alive: Any, batch: Any) -> Any:
        new, _, sound = advance(kind, values, state, action_sample(kind, state, batch, 0.0))
        alive &= sound
        return jax.tree.map(lambda after, before: jnp.where(alive, after, before), new, state), alive

    def run(values: Any, state: Any, keys: Any) -> Any:
        def step(carry: Any, t: Any) -> Any:
            state, alive, world, clock, counts, memory = carry
            own = jax.vmap(lambda key: jax.random.fold_in(key, t))(keys)
            row, world, clock, over, draws = jax.vmap(act)(state, world, clock, own)
            memory = tuple(column.at[t].set(one) for column, one in zip(memory, row, strict=True))
            places = jax.vmap(lambda key: jax.random.randint(key, (plan.batch,), 0, t + 1))(draws)
            batch = tuple(column[places, jnp.arange(WIDTH)[:, None]] for column in memory)
            state, alive = jax.vmap(learn)(values, state, alive, batch)
            return (state, alive, world, clock, counts + over, memory), None

        def point(carry: Any, first: Any) -> Any:
            carry, _ = jax.lax.scan(step, carry, first + jnp.arange(plan.every))
            return carry, (carry[4][:, 0], carry[4][:, 1], carry[1])

        kind_of = state.w.dtype
        uniform = jax.vmap(lambda key: jax.random.uniform(key, (environment.states,), kind_of))(keys)
        world = jax.vmap(environment.start)(uniform)
        seen, number = jnp.zeros((plan.steps, WIDTH, network.inputs), kind_of), jnp.zeros((plan.steps, WIDTH), kind_of)
        memory = seen, number.astype(jnp.int32), number, number, seen
        clock, counts = jnp.zeros(WIDTH, jnp.int32), jnp.zeros((WIDTH, 2), jnp.int32)
        first = state, jnp.ones(WIDTH, bool), world, clock, counts, memory
        return jax.lax.scan(point, first, jnp.arange(0, plan.steps, plan.every))[1]

    return jax.jit(run)
