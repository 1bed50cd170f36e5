"""Guidance: which learner, which alpha, which kappa, for a task with known tables or for a log of transitions.

For each candidate

    stable   the largest alpha at which its mean converges (`stability`)
    safe     the largest alpha at which its mean square does too (`mean_square`), where that can be computed
    alpha    the one below half of both at which the slowest mode of the mean is fastest, and its rate

The candidate with the greatest rate is recommended. Noise has no part in it: with a constant step size the weights keep
moving about the solution, more for a larger alpha, so taper it once the error stops falling.
"""

from collections.abc import Callable
from math import inf, isinf
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task
from gradient_dd.theory.largest_stable import largest_stable
from gradient_dd.theory.log import Log
from gradient_dd.theory.mean_square import SquareOperator
from gradient_dd.theory.sample_maps import SampleMaps
from gradient_dd.theory.stability import contraction, in_row_space, rate_of_alpha

CANDIDATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("td", {}),
    ("tdrc", {}),
    ("tdc", {}),
    ("gtd2", {}),
    *(("gradient_dd", {"kappa": kappa}) for kappa in (0.25, 1.0, 4.0)),
)
MARGIN = 0.5  # of the largest stable and the largest safe alpha
SHARES = np.geomspace(1e-2, 1.0, 7)  # of that, tried for the fastest
RESAMPLES = 100
STILL = 1e-12  # rates and eigenvalues below this are those of what does not move
MOST_UNKNOWNS = 50_000  # of the second moments: more take minutes
FIRST, LEAST = 1e-2, 1e-6  # where the search for a limit begins and ends, in units of one over the largest drift
COARSE, PRECISION = 1.5, 0.01  # of that search


class Candidate(NamedTuple):
    """A learner with its limits; `safe` is None where the mean square was too large to compute."""

    learner: str
    parameters: dict[str, Any]
    stable: float
    safe: float | None
    alpha: float
    rate: float

    @property
    def name(self) -> str:
        """The learner and its parameters in words."""
        return self.learner + "".join(f", {name} {value:g}" for name, value in self.parameters.items())


class Doubt(NamedTuple):
    """How sure a recommendation from a log is, from bootstrap samples of its transitions.

    stable     share of the samples in which the recommended setting is stable in the mean
    rate       5 % and 95 % of its rate
    td_stable  share of the samples in which TD is stable for small step sizes
    """

    stable: float
    rate: tuple[float, float]
    td_stable: float


def candidates(
    task: Task, sampling: str = "trajectory", said: Callable[[str], None] = lambda sentence: None
) -> list[Candidate]:
    """Return every candidate with its limits on a task; `said` hears of each before it is looked at."""
    found = []
    for learner, parameters in CANDIDATES:
        said(", ".join([learner, *(f"{name} {value:g}" for name, value in parameters.items())]))
        setting = LEARNERS[learner].setting(**parameters, alpha=1.0)
        rate_at, scale = rate_of_alpha(task, learner, sampling, parameters)
        square = squares(task, setting, sampling)
        safe = None if square is None else limit(square.is_stable, scale)
        stable = limit(lambda alpha, rate_at=rate_at: rate_at(alpha) > 0, scale)  # type: ignore[misc]
        found.append(candidate(learner, parameters, rate_at, stable, safe))
    return found


def squares(task: Task, setting: Setting, sampling: str) -> SquareOperator | None:
    """Return the operator of the second moments; None where it is too large to be worth the wait."""
    try:
        operator = SquareOperator(in_row_space(task), setting, sampling)
    except BadRequestError:
        return None
    return operator if operator.unknowns <= MOST_UNKNOWNS else None


def limit(is_stable: Callable[[float], bool], scale: float) -> float:
    """Return the largest stable step size to a relative 1 %: 0 or inf where there is none on either side."""
    alpha = FIRST * scale
    while not is_stable(alpha):
        alpha /= 10
        if alpha < LEAST * scale:
            return 0.0
    return largest_stable(is_stable, alpha, scale / LEAST, COARSE, PRECISION)


def candidate(
    learner: str, parameters: dict[str, Any], rate_at: Callable[[float], float], stable: float, safe: float | None
) -> Candidate:
    """Return a candidate with the fastest alpha below half of its limits."""
    most = MARGIN * min(stable, inf if safe is None else safe)
    if most == 0 or isinf(most):
        return Candidate(learner, parameters, stable, safe, 0.0, 0.0)
    rates = [rate_at(most * share) for share in SHARES]
    if min(rates) <= 0:  # unstable somewhere below: tapering would lead there
        return Candidate(learner, parameters, stable, safe, 0.0, 0.0)
    best = int(np.argmax(rates))
    return Candidate(learner, parameters, stable, safe, float(most * SHARES[best]), rates[best])


def recommended(found: list[Candidate]) -> Candidate | None:
    """Return the candidate whose slowest mode is fastest; None where none is stable.

    One whose mean square is not known has no say beside those whose is: its limit would be too generous.
    """
    known = [one for one in found if one.safe is not None] or found
    best = max(known, key=lambda one: one.rate)
    return best if best.rate > STILL else None


# From a log ---------------------------------------------------------------------------------------------------------


class LogMap:
    """The estimated mean map of a setting: M(alpha) = I' + alpha K, for independent draws from a log."""

    def __init__(self, log: Log, setting: Setting) -> None:
        self.maps = SampleMaps(log, setting)
        self.slopes, _, self.shrink = self.maps.coefficients()
        self.still = self.maps.carried.toarray() - np.eye(self.maps.size)

    def drift(self, weight: Array) -> Array:
        """Return K, the transitions having these weights."""
        K = np.zeros((self.maps.size, self.maps.size))
        for along, slopes in zip(self.maps.directions, self.slopes, strict=True):
            for of, slope in zip(self.maps.functionals, slopes, strict=True):
                K += (along.T @ sp.diags(weight * slope) @ of).toarray()
        eta = np.arange(self.maps.size)[self.maps.part("eta")]
        K[eta, eta] += weight @ self.shrink
        return K

    def rate(self, K: Array, alpha: float) -> float:
        """Return 1 − |q| of the slowest mode that moves; a feature that no transition shows stands still."""
        g = np.linalg.eigvals(self.still + alpha * K).astype(complex)
        moving = g[np.abs(g) > STILL]
        return float(contraction(moving).min()) if len(moving) else 0.0


def candidates_of_log(log: Log) -> list[Candidate]:
    """Return every candidate with its limits, estimated from a log.

    `safe` is a rule of thumb here: alpha ρ ‖x‖² at most 1 for every transition, rare large ratios included.
    """
    reduced = log.in_row_space()
    safe = float(1 / (np.maximum(log.rho, 1.0) * (log.x**2).sum(axis=1)).max())
    found = []
    for learner, parameters in CANDIDATES:
        estimated = LogMap(reduced, LEARNERS[learner].setting(**parameters, alpha=1.0))
        K = estimated.drift(reduced.weight)
        scale = 1 / max(float(np.abs(np.linalg.eigvals(K)).max()), 1e-300)

        def rate_at(alpha: float, estimated: LogMap = estimated, K: Array = K) -> float:
            return estimated.rate(K, alpha)

        stable = limit(lambda alpha, rate_at=rate_at: rate_at(alpha) > 0, scale)  # type: ignore[misc]
        found.append(candidate(learner, parameters, rate_at, stable, safe))
    return found


def doubt(log: Log, best: Candidate, seed: int = 0) -> Doubt:
    """Return how the recommendation fares on bootstrap samples of the log."""
    rng, reduced = np.random.default_rng(seed), log.in_row_space()
    estimated = LogMap(reduced, LEARNERS[best.learner].setting(**best.parameters, alpha=1.0))
    rates, td = [], []
    for _ in range(RESAMPLES):
        sample = reduced.resampled(rng)
        rates.append(estimated.rate(estimated.drift(sample.weight), best.alpha))
        drift = np.linalg.eigvals(sample.moments.A)
        td.append(drift[np.abs(drift) > STILL].real.min(initial=inf) > 0)
    low, high = np.quantile(rates, [0.05, 0.95])
    return Doubt(float(np.mean(np.array(rates) > 0)), (float(low), float(high)), float(np.mean(td)))
