"""Mountain Car, Acrobot and Cart Pole as functions of arrays, so that lanes of agents run in one compiled program.

The equations are Gymnasium's, and one step from any state agrees with Gymnasium's to rounding. The state is the
environment's own; agents see the observation, which is scaled to about [−1, 1].
"""

from collections.abc import Callable
from functools import cache
from math import pi
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans
from gradient_dd.errors import extra, unknown

with extra("neural"):
    import jax
    import jax.numpy as jnp

FORCE, GRAVITY = 0.001, 0.0025  # of Mountain Car
FASTEST = 4 * pi, 9 * pi  # largest speeds of the joints of Acrobot
MOST_TURNS = 4  # largest number of turns of a joint of Acrobot in one step
EARTH, POLE, LENGTH, TOTAL, PUSH, TAU = 9.8, 0.1, 0.5, 1.1, 10.0, 0.02  # of Cart Pole: masses, half length, force, time
FALLEN, EDGE = 12 * 2 * pi / 360, 2.4


class Environment(NamedTuple):
    """An environment as three functions.

    start    maps uniform numbers in [0, 1] (states,) to an initial state
    step     maps state and action to the next state, the reward, and whether the episode ended
    observe  maps a state to the observation of agents (inputs,)
    longest  steps after which an episode is truncated;  better  whether long episodes are good
    """

    name: str
    inputs: int
    states: int
    actions: int
    start: Callable[[Any], Any]
    step: Callable[[Any, Any], tuple[Any, Any, Any]]
    observe: Callable[[Any], Any]
    longest: int
    better: str = "shorter"


def mountain_car_step(state: Any, action: Any) -> tuple[Any, Any, Any]:
    """Return state, reward and end after one step of Mountain Car: position and velocity."""
    position, velocity = state
    velocity = velocity + ((action - 1) * FORCE + jnp.cos(3 * position) * (-GRAVITY))
    velocity = jnp.clip(velocity, -0.07, 0.07)
    position = jnp.clip(position + velocity, -1.2, 0.6)
    velocity = jnp.where((position == -1.2) & (velocity < 0), 0.0, velocity)
    return jnp.stack([position, velocity]), -jnp.ones_like(position), (position >= 0.5) & (velocity >= 0)


def acrobot_slopes(state: Any, torque: Any) -> Any:
    """Return the time derivative of Acrobot's angles and velocities; links of mass and length 1."""
    first, second, fast_first, fast_second = state
    d1 = 0.5**2 + (1 + 0.5**2 + 2 * 0.5 * jnp.cos(second)) + 2.0
    d2 = (0.5**2 + 0.5 * jnp.cos(second)) + 1.0
    phi2 = 0.5 * 9.8 * jnp.cos(first + second - pi / 2.0)
    phi1 = (
        -0.5 * fast_second**2 * jnp.sin(second)
        - 2 * 0.5 * fast_second * fast_first * jnp.sin(second)
        + 1.5 * 9.8 * jnp.cos(first - pi / 2)
        + phi2
    )
    pulled = torque + d2 / d1 * phi1 - 0.5 * fast_first**2 * jnp.sin(second) - phi2
    faster_second = pulled / (0.5**2 + 1.0 - d2**2 / d1)
    return jnp.stack([fast_first, fast_second, -(d2 * faster_second + phi1) / d1, faster_second])


def within_a_turn(angle: Any) -> Any:
    """Return an angle in [−π, π], subtracting full turns one by one as Gymnasium does."""
    for _ in range(MOST_TURNS):
        angle = jnp.where(angle > pi, angle - 2 * pi, angle)
        angle = jnp.where(angle < -pi, angle + 2 * pi, angle)
    return angle


def acrobot_step(state: Any, action: Any) -> tuple[Any, Any, Any]:
    """Return state, reward and end after one step of Acrobot, by the Runge-Kutta method."""
    torque, dt = action - 1.0, 0.2
    k1 = acrobot_slopes(state, torque)
    k2 = acrobot_slopes(state + dt / 2 * k1, torque)
    k3 = acrobot_slopes(state + dt / 2 * k2, torque)
    k4 = acrobot_slopes(state + dt * k3, torque)
    after = state + dt / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    first, second = (within_a_turn(angle) for angle in after[:2])
    speeds = [jnp.clip(speed, -limit, limit) for speed, limit in zip(after[2:], FASTEST, strict=True)]
    ended = -jnp.cos(first) - jnp.cos(second + first) > 1.0
    return jnp.stack([first, second, *speeds]), jnp.where(ended, 0.0, -1.0), ended


def cart_pole_step(state: Any, action: Any) -> tuple[Any, Any, Any]:
    """Return state, reward and end after one step of Cart Pole: position, velocity, angle, angular velocity."""
    x, x_dot, theta, theta_dot = state
    cos, sin = jnp.cos(theta), jnp.sin(theta)
    pushed = (jnp.where(action == 1, PUSH, -PUSH) + POLE * LENGTH * theta_dot**2 * sin) / TOTAL
    theta_acc = (EARTH * sin - cos * pushed) / (LENGTH * (4.0 / 3.0 - POLE * cos**2 / TOTAL))
    x_acc = pushed - POLE * LENGTH * theta_acc * cos / TOTAL
    x, theta = x + TAU * x_dot, theta + TAU * theta_dot
    ended = (x < -EDGE) | (x > EDGE) | (theta < -FALLEN) | (theta > FALLEN)
    after = jnp.stack([x, x_dot + TAU * x_acc, theta, theta_dot + TAU * theta_acc])
    return after, jnp.ones_like(x), ended


def acrobot_view(state: Any) -> Any:
    """Return the observation of Acrobot: cosines and sines of the angles, and scaled velocities."""
    first, second, fast_first, fast_second = state
    seen = jnp.cos(first), jnp.sin(first), jnp.cos(second), jnp.sin(second)
    return jnp.stack([*seen, fast_first / FASTEST[0], fast_second / FASTEST[1]])


MOUNTAIN_CAR = Environment(
    "mountain_car", 2, 2, 3,
    start=lambda u: jnp.stack([-0.6 + 0.2 * u[0], 0.0 * u[1]]),
    step=mountain_car_step,
    observe=lambda state: jnp.stack([(state[0] + 0.3) / 0.9, state[1] / 0.07]),
    longest=1000,
)  # fmt: skip
ACROBOT = Environment(
    "acrobot", 6, 4, 3, start=lambda u: -0.1 + 0.2 * u, step=acrobot_step, observe=acrobot_view, longest=500
)
CART_POLE = Environment(
    "cart_pole", 4, 4, 2,
    start=lambda u: -0.05 + 0.1 * u,
    step=cart_pole_step,
    observe=lambda state: jnp.stack([state[0] / EDGE, state[1] / 2.0, state[2] / FALLEN, state[3] / 2.0]),
    longest=500,
    better="longer",
)  # fmt: skip

ENVIRONMENTS = {one.name: one for one in (MOUNTAIN_CAR, ACROBOT, CART_POLE)}


@cache
def compiled_steps(environment: Environment) -> Any:
    """Return the compiled step of many states at once."""
    return jax.jit(jax.vmap(environment.step))


def many_steps(environment: Environment, states: Array, actions: Any) -> tuple[Array, Array, Booleans]:
    """Return next states (n, states), rewards and ends (n,) in double precision, as NumPy arrays."""
    with jax.enable_x64(True):
        after, reward, ended = compiled_steps(environment)(states, np.asarray(actions))
        return np.asarray(after), np.asarray(reward), np.asarray(ended)


def find_environment(name: str) -> Environment:
    """Return the environment of a name."""
    if name not in ENVIRONMENTS:
        raise unknown("environment", name, ENVIRONMENTS)
    return ENVIRONMENTS[name]
