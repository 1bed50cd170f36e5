"""What policies are worth, from one log: LSTD-Q for the number, and a bootstrap over groups of episodes for the doubt.

The interval of a policy is the union of two: that of LSTD-Q, and that of the limited doubly robust estimate. The same
bootstrap samples serve all policies, so that differences between policies have samples too.

There are two ways to the samples. `refitted` solves LSTD-Q again in every sample. `linearised` takes the first-order
effect of each group on the estimate, its pull, which is quick for hundreds of policies, and wrong where there are about
as many features as episodes.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.action_log import ActionLog
from gradient_dd.evaluation.action_rows import FEW_EPISODES, ActionRows, TargetPolicy
from gradient_dd.evaluation.behaviour import Behaviour, BehaviourModel
from gradient_dd.evaluation.doubly_robust import FOLDS, FollowedSteps, follow, robust_values
from gradient_dd.evaluation.lstd_q import MOST_SUMS, LogSums, PolicySums, action_values, td_errors
from gradient_dd.evaluation.support import Support, reachable_values, support_of
from gradient_dd.stream.least_squares import TINY_RIDGE, scaled_solution
from gradient_dd.studies.intervals import Bounds, poisson_resamples, student_factor

SAMPLES = ((64, 200), (200, 100))  # bootstrap samples for up to so many features, where each is solved
FEW_SAMPLES = 30  # of more features, and wherever the behaviour is estimated
LINEAR_SAMPLES = 500
WIDE = 4.0  # fewer groups than features over this: pulls are not enough
FEWEST_GROUPS = 20


class PolicyEstimate(NamedTuple):
    """A value with its interval; copies (k,) are its values in the bootstrap samples."""

    value: float
    low: float
    high: float
    copies: Array

    @property
    def half(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2


class PolicyValue(NamedTuple):
    """What a policy is worth.

    value          that of LSTD-Q;  low, high  the union of both intervals
    action_values  LSTD-Q;  robust  the limited doubly robust estimate
    followed       how far the ratios could be followed
    rows           effective rows, (Σρ)² / Σρ²;  nan without ratios
    w              (q,) the weights;  copies  (k, q) those of the samples, and starts (k, q) the mean first features;
                   both are empty where the estimate is linearised
    start          (q,) the mean first features;  dual  (q,) solves Aᵀ u = start, A being a mean over rows
    impossible     how far the value was beyond what the rewards allow, before it was cut to that
    """

    name: str
    value: float
    low: float
    high: float
    action_values: PolicyEstimate
    robust: PolicyEstimate
    followed: FollowedSteps
    rows: float
    w: Array
    copies: Array
    start: Array
    starts: Array
    dual: Array
    impossible: float = 0.0


class Valuer:
    """Values policies on the rows of a log, with the same bootstrap samples for all."""

    def __init__(
        self, log: ActionLog, rows: ActionRows, *, confidence: float = 0.95, seed: int = 0, refit: bool | None = None
    ) -> None:
        self.log, self.rows, self.confidence = log, rows, confidence
        q = log.p * log.actions.n_features
        room = max(FEWEST_GROUPS, int(MOST_SUMS / q**2))
        used = np.unique(log.group, return_inverse=True)[1]
        self.refit = WIDE * q > used.max() + 1 if refit is None else refit
        self.group = used % room if self.refit else used
        groups = int(self.group.max()) + 1
        folds = self.group if self.refit else self.group % FOLDS
        self.sums = LogSums(rows, log.actions, log.p, folds, int(folds.max()) + 1)
        self.behaviour, self._model = self._propensities()
        samples = next((count for most, count in SAMPLES if q <= most), FEW_SAMPLES) if self.refit else LINEAR_SAMPLES
        if self.behaviour is not None:
            samples = min(samples, FEW_SAMPLES)
        self.weights = poisson_resamples(groups, samples, [seed, 2])
        self.weights[0] += self.weights.sum(axis=0) == 0  # a sample is not empty
        self._taken = self._taken_in_samples()

    @cached_property
    def support(self) -> Support:
        """Where there are data for states and actions, and what values can be at all."""
        C = self.sums.C.sum(axis=0)
        return support_of(np.diagonal(C).copy(), C, self.reachable(0))

    def reachable(self, signal: int) -> Bounds:
        """Return the smallest and the largest value that the rewards of the log allow."""
        rows = self.rows
        lengths = np.diff([*np.flatnonzero(self.sums.begins), len(rows)])
        rewards = Bounds(float(rows.signals[:, signal].min()), float(rows.signals[:, signal].max()))
        return reachable_values(rewards, float(rows.discount.max()), int(lengths.max()))

    def _propensities(self) -> tuple[Behaviour | None, BehaviourModel | None]:
        """Return the estimated behaviour, where the log does not know it."""
        if not self.log.actions.named or not np.isnan(self.rows.behaviour).any():
            return None, None
        model = BehaviourModel(self.rows, len(self.log.actions.names), self.log.p)
        return model.estimate(), model

    def _taken_in_samples(self) -> list[Array]:
        """Return the estimated propensities of the actions taken in each bootstrap sample, (n,) each."""
        return [] if self._model is None else list(self._model.of_samples(self.group, self.weights))

    def value(self, policy: TargetPolicy, signal: int = 0) -> PolicyValue:
        """Return what a policy is worth by one signal."""
        choices = policy.choices(self.rows)
        sums = self.sums.of_policy(choices)
        above = (choices.here * self.sums.taken).sum(axis=1)
        ratios = self.ratios(policy, choices.here)
        if ratios is None:
            followed, effective = follow(self.rows, np.zeros(len(self.rows)), self.group, len(self.weights)), np.nan
        else:
            followed = follow(self.rows, ratios, self.group, len(self.weights))
            effective = float(ratios.sum() ** 2 / max(1e-300, (ratios**2).sum()))
        again = [] if policy.logging or ratios is None else [above / taken for taken in self._taken]
        make = self._refitted if self.refit else self._linearised
        return make(policy.name, sums, followed, effective, again, signal)

    def ratios(self, policy: TargetPolicy, chances: Array) -> Array | None:
        """Return π(a|s) / μ(a|s) of the actions taken, (n,), for chances (n, actions); None where they are measured."""
        if policy.logging:
            return np.ones(len(self.rows))
        if not self.log.actions.named:
            return None
        above = (chances * self.sums.taken).sum(axis=1)
        return above / (self.rows.behaviour if self.behaviour is None else self.behaviour.taken)

    def _refitted(
        self, name: str, sums: PolicySums, followed: FollowedSteps, effective: float, again: list[Array], signal: int
    ) -> PolicyValue:
        each = np.column_stack([np.ones(len(self.weights)), self.weights])
        w, starts = sums.solutions(each)[:, :, signal], sums.mean_start(each)
        by_values = (w * starts).sum(axis=1)
        robust = robust_values(sums, followed, each if not again else each[:, :1], signal)
        for k, ratios in enumerate(again):
            refollowed = follow(self.rows, ratios, self.group, len(self.weights))
            robust = np.append(robust, robust_values(sums, refollowed, self.weights[:, [k]], signal))
        found = self._estimate(by_values[0], by_values[1:]), self._estimate(robust[0], robust[1:])
        dual = scaled_solution(sums.A.sum(axis=0).T / len(self.rows), starts[0][:, None], *self._ridge)[:, 0]
        return as_value(name, found, followed, effective, (w[0], w[1:], starts[0], starts[1:], dual))

    @property
    def _ridge(self) -> tuple[Array, float]:
        """The units of the features, and the ridge."""
        return self.sums.scale, TINY_RIDGE * self.sums.q

    def _linearised(
        self, name: str, sums: PolicySums, followed: FollowedSteps, effective: float, again: list[Array], signal: int
    ) -> PolicyValue:
        log, rows, groups = self.sums, self.rows, len(self.weights)
        one, n = np.ones((log.groups, 1)), len(rows)
        w, start = sums.solutions(one)[0][:, signal], sums.mean_start(one)[0]
        value, robust = float(start @ w), float(robust_values(sums, followed_by(followed, log), one, signal)[0])
        errors = td_errors(log, sums.choices, w[:, None], slice(None), signal)[:, 0]
        share = followed.weight / followed.sums.sum(axis=1)[followed.step]
        part = followed.row
        ahead = (sums.choices.there[part] * (share * rows.discount[part])[:, None]).T @ log.dense(rows.x_next, part)
        slope = start + ahead.ravel() - ((log.taken[part] * share[:, None]).T @ log.dense(rows.x, part)).ravel()
        z = scaled_solution(sums.A.sum(axis=0).T / n, np.column_stack([start, slope]), *self._ridge)
        along = np.einsum("nu,nuk->nk", log.taken, action_values(log, z, slice(None), rows.x)) * errors[:, None] / n
        first = np.flatnonzero(log.begins)
        begun = np.einsum("nu,nuk->n", sums.choices.here[first], action_values(log, w[:, None], first, rows.x))
        of_start = np.bincount(self.group[first], (begun - value) / len(first), minlength=groups)
        of_start *= len(first) >= FEW_EPISODES
        pulls = [np.bincount(self.group, along[:, k], minlength=groups) + of_start for k in (0, 1)]
        paid = share * errors[part]
        at_step = np.bincount(followed.step, paid, minlength=followed.steps)
        pulls[1] += np.bincount(self.group[part], paid, minlength=groups)
        pulls[1] -= (at_step / np.maximum(1e-300, followed.sums.sum(axis=1))) @ followed.sums
        copies = [centre + (self.weights - 1).T @ pull for centre, pull in zip((value, robust), pulls, strict=True)]
        for k, ratios in enumerate(again):
            refollowed = follow(rows, ratios, self.group, groups)
            copies[1][k] += robust_values(sums, followed_by(refollowed, log), one, signal)[0] - robust
        found = self._estimate(value, copies[0]), self._estimate(robust, copies[1])
        none = np.empty((0, log.q))
        return as_value(name, found, followed, effective, (w, none, start, none, z[:, 0]))

    def _estimate(self, value: float, copies: Array) -> PolicyEstimate:
        """Return a value with the interval that its copies give."""
        away, groups = np.abs(copies - value), len(self.weights)
        student = student_factor(self.confidence, max(1, groups - 1))
        if len(copies) > FEW_SAMPLES:
            half = float(np.quantile(away, self.confidence)) * student / student_factor(self.confidence, 1e6)
        else:
            half = student_factor(self.confidence, len(copies)) * float(np.sqrt(np.mean(away**2)))
        return PolicyEstimate(float(value), float(value - half), float(value + half), copies)

    def influences(self, policy: TargetPolicy, found: PolicyValue, signal: int = 0) -> Array:
        """Return how much each row pulls the value of a policy, times the rows, (n,)."""
        choices, log = policy.choices(self.rows), self.sums
        along = np.einsum("nu,nuk->n", log.taken, action_values(log, found.dual[:, None], slice(None), self.rows.x))
        pulls = along * td_errors(log, choices, found.w[:, None], slice(None), signal)[:, 0]
        first = np.flatnonzero(log.begins)
        begun = np.einsum("nu,nuk->n", choices.here[first], action_values(log, found.w[:, None], first, self.rows.x))
        pulls[first] += (begun - begun.mean()) * len(self.rows) / len(first)
        return pulls


def followed_by(followed: FollowedSteps, log: LogSums) -> FollowedSteps:
    """Return steps that are followed with the sums of all groups, as for weights of 1, over the groups of `log`."""
    total = np.zeros((followed.steps, log.groups))
    total[:, 0] = followed.sums.sum(axis=1)
    return followed._replace(sums=total)


def as_value(
    name: str,
    found: tuple[PolicyEstimate, PolicyEstimate],
    followed: FollowedSteps,
    effective: float,
    weights: tuple[Array, Array, Array, Array, Array],
) -> PolicyValue:
    """Return what a policy is worth: the number of LSTD-Q, and the union of both intervals."""
    low, high = min(one.low for one in found), max(one.high for one in found)
    return PolicyValue(name, found[0].value, low, high, *found, followed, effective, *weights)


def cut_to(found: PolicyValue, possible: Bounds) -> PolicyValue:
    """Return a value that is within what rewards allow.

    An estimate beyond is cut: it errs by what it was beyond at least, and as much is taken off on the other side.
    """
    cut = float(np.clip(found.value, *possible))
    beyond = abs(found.value - cut)
    if beyond == 0:
        return found
    both = [moved(one, float(np.clip(one.value, *possible))) for one in (found.action_values, found.robust)]
    low, high = min(one.low for one in both) - beyond, max(one.high for one in both) + beyond
    low, high = (float(bound) for bound in np.clip((low, high), *possible))
    return found._replace(
        value=cut, low=low, high=high, action_values=both[0], robust=both[1], impossible=float(beyond)
    )


def moved(one: PolicyEstimate, value: float) -> PolicyEstimate:
    """Return an estimate with another value, and all else as far from it as before."""
    shift = value - one.value
    return PolicyEstimate(value, one.low + shift, one.high + shift, one.copies + shift)
