"""Limits of alpha: exact ones, of the mean of a learner and of its mean square, and a measured one.

    stable   the largest alpha at which the mean converges (`stability`)
    safe     the largest alpha at which the mean square converges too (`mean_square`)
    rate     what the slowest mode of the mean loses in one step, at the alpha of the setting

They tell where not to go. They do not tell which alpha is best: that depends on noise and on the length of a run, and
`advice` finds it by trying. Large tasks take minutes here, so there is a limit of size, and one of time.

Measured is how quickly shadows grow: copies of a learner without rewards, from random starts. A shadow of a linear
learner forgets its start as quickly as the learner does, or diverges with it. So the growth of shadows says what nearly
every run does, where exact limits say what means and mean squares do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from math import log as logarithm
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError, bad_request
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task, random_mdp
from gradient_dd.theory.log import Log
from gradient_dd.theory.mean_square import SquareOperator, powers_of_alpha
from gradient_dd.theory.sample_maps import SampleMaps
from gradient_dd.theory.stability import SMALL, in_row_space, largest_stable, rate_of_alpha

if TYPE_CHECKING:
    from gradient_dd.engine.shadows import Exponents

MOST_UNKNOWNS = 5_000  # of the second moments: one alpha takes up to a second there
LEAST, MOST = 1e-6, 1e6  # where the search for a limit ends, in units of one over the largest drift
COARSE, PRECISION = 1.5, 0.01  # of that search
STEPS, STARTS, SEED = 20_000, 2, 20_261  # of the streams on which growth is measured
MULTIPLES = 1.25 ** np.arange(-20, 31)  # of alpha, among which the measured limit is searched: 0.012 to 807


class Limits(NamedTuple):
    """Limits of alpha for a learner with its other parameters; None where they cannot be computed, or not soon."""

    stable: float | None
    safe: float | None
    rate: float | None


class OutOfTimeError(Exception):
    """The time for a limit is over."""


class ScaledSquare(SquareOperator):
    """The operator of the second moments of a rule that is linear in alpha: T − I = S + αL + α²Q, made once."""

    def __init__(self, task: Task, setting: Setting, sampling: str) -> None:
        super().__init__(task, setting, sampling)
        one, two = self.maps.coefficients(1.0), self.maps.coefficients(2.0)
        if self.unknowns > MOST_UNKNOWNS or not all(map(is_double, one, two)):
            raise bad_request("The operator of the second moments", "be small, and its rule linear in alpha", setting)
        still, once, twice = (super(ScaledSquare, self).generator(factor) for factor in (0.0, 1.0, 2.0))
        self._still, (self._linear, self._square) = still, powers_of_alpha(still, once, twice)

    def generator(self, factor: float = 1.0) -> sp.csc_matrix:
        """Return T − I, alpha being multiplied by `factor`."""
        return sp.csc_matrix(self._still + factor * self._linear + factor**2 * self._square)


def is_double(one: Array, two: Array) -> bool:
    """Return whether every number of the second array is twice that of the first."""
    return bool(np.allclose(two, 2 * one, rtol=1e-12, atol=0.0))


def exact_limits(task: Task, setting: Setting, sampling: str = "trajectory", deadline: float = inf) -> Limits:
    """Return the limits for the learner of a setting and its other parameters; the search ends when time is over.

    `deadline` is a time by `thread_time`.
    """
    rule, alpha = setting.rule, setting.values["alpha"]
    others: dict[str, Any] = {**setting.values, "rho_mode": setting.rho_mode}
    del others["alpha"]
    reduced = in_row_space(task)
    parts = 1 + rule.has_eta + ("x_change" in rule.arguments)
    groups = 1 if sampling == "iid" else task.n_states
    if groups * parts * reduced.n_features > SMALL or thread_time() > deadline:
        return Limits(None, None, None)
    try:
        rate_at, scale = rate_of_alpha(task, rule, sampling, others)
    except BadRequestError:  # the steps of the rule are not affine
        return Limits(None, None, None)
    return Limits(
        stable=limit(lambda alpha: rate_at(alpha) > 0, alpha, scale, deadline),
        safe=safe_limit(reduced, rule.setting(**others, alpha=1.0), sampling, alpha, scale, deadline),
        rate=rate_at(alpha),
    )


def safe_limit(
    task: Task, setting: Setting, sampling: str, alpha: float, scale: float, deadline: float
) -> float | None:
    """Return the largest safe alpha; None where the second moments are too many, or time is over."""
    if thread_time() > deadline:
        return None
    try:
        operator = ScaledSquare(task, setting, sampling)
    except BadRequestError:
        return None
    return limit(operator.is_stable, alpha, scale, deadline)


def limit(is_stable: Callable[[float], bool], alpha: float, scale: float, deadline: float = inf) -> float | None:
    """Return the largest stable step size to a relative 1 %, searched upwards from alpha or, if need be, from below.

    0 where none is stable, inf where all are, None where time is over.
    """

    def in_time(alpha: float) -> bool:
        if thread_time() > deadline:
            raise OutOfTimeError
        return is_stable(alpha)

    try:
        while not in_time(alpha):
            alpha /= 10
            if alpha < LEAST * scale:
                return 0.0
        return largest_stable(in_time, alpha, MOST * scale, COARSE, PRECISION)
    except OutOfTimeError:
        return None


# Measured growth


class Growth(NamedTuple):
    """How quickly the shadows of a setting grow: the exponent of a step, its 95 % interval, and what follows.

    says             "grows", "shrinks" or "too slow to tell"
    no_growth_up_to  the largest alpha below which shadows do not grow; inf where none was found that grows
    """

    growth: float
    low: float
    high: float
    says: str
    no_growth_up_to: float
    steps: int = STEPS


def task_growth(task: Task, settings: Sequence[Setting], sampling: str) -> list[Growth | None]:
    """Return the measured growth of every setting on a task."""
    from gradient_dd.engine.shadows import exponents  # here, so that importing this file loads no compiler

    def measure(several: list[Setting]) -> "Exponents":
        return exponents(task, several, steps=STEPS, starts=STARTS, sampling=sampling, seed=SEED)

    return [growth_of(setting, measure) for setting in settings]


def log_growth(log: Log, settings: Sequence[Setting]) -> list[Growth | None]:
    """Return the measured growth of every setting on transitions of a log, drawn at random."""
    # Imported here, so that importing this file loads no compiler.
    from gradient_dd.engine.shadows import RewardlessRows, log_exponents

    part = log.part(np.random.default_rng(SEED).integers(len(log.reward), size=STEPS))
    rows = RewardlessRows(part.x, part.discount, part.x_next, part.rho)

    def measure(several: list[Setting]) -> "Exponents":
        return log_exponents(rows, several, starts=STARTS, seed=SEED)

    return [growth_of(setting, measure) for setting in settings]


def growth_of(setting: Setting, measure: Callable[[list[Setting]], "Exponents"]) -> Growth | None:
    """Return the growth at the setting's alpha, and up to which alpha there is none; None if the step is not linear."""
    if not is_linear(setting):
        return None
    alphas = setting.values["alpha"] * MULTIPLES
    found = measure([replace(setting, values={**setting.values, "alpha": alpha}) for alpha in alphas.tolist()])
    at = int(np.flatnonzero(MULTIPLES == 1)[0])
    growing = np.flatnonzero([says(*one) == "grows" for one in zip(found.mean, found.low, found.high, strict=True)])
    limit = inf if not growing.size else float(alphas[growing[0] - 1]) if growing[0] else 0.0
    mean, low, high = (float(array[at]) for array in (found.mean, found.low, found.high))
    return Growth(mean, low, high, says(mean, low, high), limit)


def says(growth: float, low: float, high: float) -> str:
    """Return what an exponent and its interval say in words; a growth below tenfold in the steps seen is no growth."""
    if growth * STEPS > logarithm(10) and low > 0:
        return "grows"
    return "shrinks" if high < 0 else "too slow to tell"


def is_linear(setting: Setting) -> bool:
    """Return whether a step is linear in the weights, rewards apart; else shadows do not grow as learners do."""
    try:
        found = SampleMaps(random_mdp(2, 2, 2), setting).coefficients()
    except BadRequestError:
        return False
    return not found.constants.any() and not setting.rule.natural
