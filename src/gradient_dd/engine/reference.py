"""The reference engine: one rule, one setting, one stream, in plain NumPy that reads like the equations.

It is slow and easy to verify, and tests require every faster path to give equal results. Products of two vectors are
summed from left to right, so that their bits are defined: the order of NumPy's own sums depends on the machine.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, check_memory
from gradient_dd.engine.horizon import DIVERGED, Horizon
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Rule, Setting, find
from gradient_dd.learners.trace import Trace
from gradient_dd.tasks import Task

Memory = tuple[float, ...]


def dot(x: Array, y: Array) -> float:
    """Return x·y, summed from left to right."""
    return float(np.add.accumulate(x * y)[-1])


def product(matrix: Array, x: Array) -> Array:
    """Return the matrix times x, with each row summed from left to right over the non-zeros of x."""
    used = np.flatnonzero(x)
    if not len(used):
        return np.zeros(len(matrix))
    return np.add.accumulate(matrix[:, used] * x[used], axis=1)[:, -1]


class Before(NamedTuple):
    """The discount, ratio and probabilities of the previous transition, or zeros at the start of an episode."""

    discount: float
    rho: float
    pi: float
    mu: float


START = Before(0.0, 0.0, 0.0, 0.0)


def trace_numbers(
    trace: Trace, signals: Mapping[str, float], before: Before, memory: Memory, x_trace: float
) -> tuple[float, float, Memory]:
    """Return the decay and the gain of a trace in this step, and its new memory.

    `signals` come from `Setting.signals`; `x_trace` is the product of x with the trace before this step.
    """
    known = dict(signals) | {f"{name}_before": value for name, value in before._asdict().items()}
    known |= {"x_trace": x_trace} | dict(zip(trace.memory, memory, strict=True))
    decay, gain, *remembered = trace.step(*(known[name] for name in trace.arguments))
    return decay, gain, tuple(remembered)


def check_sampling(rule: Rule, sampling: str) -> None:
    """Raise if a rule with a trace would learn from independent draws, which form no trajectory."""
    if rule.traces and sampling != "trajectory":
        raise bad_request(
            f"'sampling' for {rule.name}", "be 'trajectory', because it keeps a trace", Unquoted(repr(sampling))
        )


CHUNK = 4096  # steps sampled at a time
PRODUCTS = ("x_x", "x_next", "next_next", "x_z", "z_z")
KNOWN_SIGNALS = (
    *("alpha", "beta", "rho", "rho_x", "discount", "delta", "x_eta", "x_change"),
    *("z_eta", "b_eta", *PRODUCTS),
)
KNOWN_MOVES = ("w_x", "w_next", "w_z", "w_change", "eta_x", "eta_next", "eta_z", "eta_eta")


class Sample(NamedTuple):
    """One transition, with the traces z and b after its x; rules without traces do not use z and b."""

    x: Array
    reward: float
    discount: float
    x_next: Array
    rho: float
    z: Array
    b: Array


def signals_of(
    setting: Setting, factor: float, sample: Sample, w: Array, eta: Array, change: Array
) -> dict[str, float]:
    """Return every signal of a transition; `factor` comes from the schedule, and `change` is w − w_prev."""
    x, reward, discount, x_next, rho, z, b = sample
    pairs = (x, x), (x, x_next), (x_next, x_next), (x, z), (z, z)
    return setting.signals(factor, rho) | {
        "discount": discount,
        "delta": reward + discount * dot(x_next, w) - dot(x, w),
        "x_eta": dot(x, eta),
        "x_change": dot(x, change),
        "z_eta": dot(z, eta),
        "b_eta": dot(b, eta),
        **{name: dot(*pair) for name, pair in zip(PRODUCTS, pairs, strict=True)},
    }


class Metric:
    """The metric of a natural rule, M = (ε I + Σ x xᵀ) / (n + 1) after n observations.

    `inverse` is (ε I + Σ x xᵀ)⁻¹, updated by the Sherman-Morrison formula. `times` multiplies this matrix by a vector:
    NumPy's own product is fastest, `product` has defined bits.
    """

    def __init__(self, n_features: int, ridge: float, times: Callable[[Array, Array], Array] = np.matmul) -> None:
        self.times = times
        self.inverse = np.eye(n_features) / ridge
        self.count = 0

    def observed(self, x: Array) -> "Metric":
        """Return the metric after one more observation x, without changing this metric."""
        v = self.times(self.inverse, x)
        taken = np.outer(v, v / (1 + dot(x, v)))
        after = copy(self)
        after.inverse, after.count = np.subtract(self.inverse, taken, out=taken), self.count + 1
        return after

    def observe(self, x: Array) -> None:
        """Add one more observation x to the mean."""
        after = self.observed(x)
        self.inverse, self.count = after.inverse, after.count

    def direction(self, x: Array) -> Array:
        """Return M⁻¹ x."""
        return (self.count + 1) * self.times(self.inverse, x)


class Weights:
    """w, η, the last change of w, the traces, and the metric of a natural rule.

    The change w − w_prev is stored as it was added. Subtracting the two weight vectors would lose a change that is much
    smaller than w to rounding, and a step size that amplifies changes would amplify the rounding error.
    """

    def __init__(self, setting: Setting, initial: Array) -> None:
        setting.rule.check_known("The reference engine", KNOWN_SIGNALS, KNOWN_MOVES)
        self.w = initial.astype(float)
        self.change = np.zeros_like(self.w)
        self.eta = np.zeros_like(self.w)
        self.metric = Metric(len(initial), setting.values["ridge"], product) if setting.rule.natural else None
        self.traces = {trace.name: np.zeros_like(self.w) for trace in setting.rule.traces}
        self.memory = {trace.name: (0.0,) * len(trace.memory) for trace in setting.rule.traces}
        self.before = START

    @property
    def w_prev(self) -> Array:
        """The weights one step earlier."""
        return self.w - self.change

    @w_prev.setter
    def w_prev(self, w_prev: Array) -> None:
        self.change = self.w - w_prev

    def advance(
        self,
        setting: Setting,
        factor: float,
        x: Array,
        reward: float,
        discount: float,
        x_next: Array,
        rho: float,
        pi: float = 1.0,
        mu: float = 1.0,
    ) -> None:
        """Make one step of the rule. The traces are updated first; all other right-hand sides use the old values.

        `pi` and `mu` are the probabilities of the action under the two policies.
        """
        eta, signals = self.eta, setting.signals(factor, rho)
        for trace in setting.rule.traces:
            z, memory = self.traces[trace.name], self.memory[trace.name]
            decay, gain, memory = trace_numbers(trace, signals, self.before, memory, dot(x, z))
            self.traces[trace.name], self.memory[trace.name] = decay * z + gain * x, memory
        self.before = Before(discount, rho, pi, mu) if discount else START
        none = np.zeros_like(x)
        z, b = self.traces.get("z", none), self.traces.get("b", none)
        x_next = x_next if discount else none  # x' of a terminal state is never used
        sample = Sample(x, reward, discount, x_next, rho, z, b)
        move = setting.rule.coefficients(signals_of(setting, factor, sample, self.w, eta, self.change))

        along, along_next = x, x_next
        if self.metric:
            self.metric.observe(x)
            along, along_next = self.metric.direction(x), self.metric.direction(x_next)
        last = self.change
        self.change = move["w_x"] * along + move["w_next"] * along_next
        if "z" in self.traces:
            self.change = self.change + move["w_z"] * z
        if move["w_change"]:
            self.change = self.change + move["w_change"] * last
        self.w = self.w + self.change
        self.eta = eta + move["eta_x"] * x + move["eta_eta"] * eta
        if "z" in self.traces:
            self.eta = self.eta + move["eta_z"] * z
        if move["eta_next"]:
            self.eta = self.eta + move["eta_next"] * x_next


@dataclass(frozen=True)
class ReferenceResults:
    """The results of a run of the reference engine.

    errors       (points,) RMSVE after every episode, or after every `every` steps; inf after divergence
    w, eta       (p,) the final weights
    steps        the number of steps made
    diverged_at  the step of the point at which the error exceeded 1e100 or was NaN, or None. (In a run counted in
                 steps, the lane engine also checks the error at each of the last 100 steps.)
    """

    errors: Array
    w: Array
    eta: Array
    steps: int
    diverged_at: int | None = None


def run(
    task: Task,
    learner: str | Rule,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    every: int = 1,
    schedule: Schedule = constant,
    sampling: str = "trajectory",
    seed: int = 0,
    run: int = 0,
    **parameters: Any,
) -> ReferenceResults:
    """Return the results of one learner with one setting on one run of a task.

    Give `episodes` to measure the error after each episode, or `steps` to measure it after every `every` steps.
    `parameters` are the parameters of the learner, e.g. alpha=0.1, kappa=1.
    """
    setting = find(learner).setting(**parameters)
    schedule = check_schedule(schedule)
    horizon = Horizon(episodes, steps, every)
    horizon.check(task)
    check_memory(f"The errors of {horizon.points} points", 8 * horizon.points, "Use fewer, or a larger 'every'.")
    errors = np.full(horizon.points, np.inf)
    weights = Weights(setting, task.initial_weights)
    rows = task.row_features.toarray()
    row, next_row, reward, discount, rho, ends = task.transitions
    pi, mu = task.action_probabilities
    check_sampling(setting.rule, sampling)
    sampler = OutcomeSampler(task, seed, run, sampling)

    step, episode, point = 0, 1, 0
    with np.errstate(over="ignore", invalid="ignore"):
        while point < horizon.points:
            for o in sampler.take(CHUNK):
                step += 1
                factor = schedule.factor(step if schedule.per == "step" else episode)
                x, x_next = rows[row[o]], rows[next_row[o]]
                if task.active[o]:
                    weights.advance(setting, factor, x, reward[o], discount[o], x_next, rho[o], pi[o], mu[o])
                episode += bool(ends[o])
                if ends[o] if episodes else step % every == 0:
                    error = task.rmsve(weights.w)
                    if not error <= DIVERGED:
                        return ReferenceResults(errors, weights.w, weights.eta, step, diverged_at=step)
                    errors[point] = error
                    point += 1
                    if point == horizon.points:
                        break
    return ReferenceResults(errors, weights.w, weights.eta, step)
