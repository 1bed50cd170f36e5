"""Findings on the value of a policy: both estimates, the logging policy, propensities and coverage."""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.behaviour import cells
from gradient_dd.evaluation.findings import Finding, Found, finding, findings_of
from gradient_dd.evaluation.log_data import LogData, TargetPolicy
from gradient_dd.evaluation.maps import actions_of
from gradient_dd.evaluation.policy_value import PolicyValue
from gradient_dd.evaluation.result import ALONE, Support
from gradient_dd.evaluation.rows import Piece, joined
from gradient_dd.studies.intervals import Bounds

WIDE = 0.5  # half-width of the interval relative to the value, above which the value needs care
FAR, VERY_FAR = 2.0, 3.0  # gaps in standard errors for "with care" and "not"
FAR_OFF = 0.1  # smaller gaps relative to the value are ignored
FAR_POLICY = 0.5  # effective sample size, as a share, below which a policy is far from the logging policy
FEW_STEPS, MANY_STARTS = 3, 20  # steps that the ratios cover, with at least this many episodes
LITTLE = 0.5  # weight of the steps beyond those that the ratios can check
LONELY, TOO_LONELY = 0.01, 0.1  # shares of a policy's visits without similar data
UNTRIED = 0.01  # share of the target's actions that the log never takes
BADLY = 0.1  # largest difference of predicted and actual shares of actions
NEVER, TOO_OFTEN = 0.01, 0.1  # shares of a policy's visits to cells without data
FIFTH, BY_CHANCE = 0.2, 1e-3  # a cell has no data by chance unless a fifth of the policy's rate makes that so unlikely
VISITS = 5000  # number of a policy's visits examined


class PolicyEvidence(NamedTuple):
    """The evidence about the value of a policy.

    found, logging  its value, and the value of the logging policy
    data       the log;  scale  the larger of the two absolute values
    untried    share of the policy's actions that never occur in the log
    lonely     share of the policy's visits, states and actions, without similar data
    never      share of its visits to table cells without data, although the log often visits the state
    single     whether every episode is one row
    confidence confidence level of the interval
    """

    found: PolicyValue
    logging: PolicyValue
    policy: TargetPolicy
    data: LogData
    scale: float
    untried: float
    lonely: float
    never: float
    single: bool
    bounds: Bounds


class SampledChoices(NamedTuple):
    """A policy on the sample of a log.

    ratio   (n,) of the actions taken, None if actions are continuous;  untried  share of actions that never occur
    visits  rows that go on, at most VISITS of them;  there  (visits, actions) the policy's choices in the next state
    starts  initial rows;  here  (starts, actions) its choices there
    """

    ratio: Array | None
    untried: float
    visits: Piece
    there: Array
    starts: Piece
    here: Array


def sampled_choices(data: LogData, policy: TargetPolicy) -> SampledChoices:
    """Return what a policy does on the sample of a log."""
    pieces = data.sampled
    skipped, untried = sum(int((~piece.ended).sum()) for piece in pieces) - VISITS, 0.0
    lists: list[list[Any]] = [[] for _ in range(5)]
    ratios, visits, there, starts, here = lists
    occurs: Any = None
    if not policy.by_ratio and data.actions is not None and data.actions.named:
        occurs = np.zeros(data.actions.n_features, bool)
        for piece in pieces:
            occurs[piece.action[:, 0].astype(np.int64)] = True
    for piece in pieces:
        choices = policy.choices(piece, data.propensities(piece))
        ratios.append(choices.ratio)
        if occurs is not None:
            untried += float(choices.here[:, ~occurs].sum())
        rows = np.flatnonzero(~piece.ended)
        rows, skipped = rows[max(0, skipped) :], skipped - len(rows)
        visits.append(piece.part(rows))
        there.append(choices.there[rows])
        starts.append(piece.part(piece.starts))
        here.append(choices.here[piece.starts])
    n = sum(map(len, pieces))
    ratio = None if ratios[0] is None else np.concatenate(ratios)
    return SampledChoices(
        ratio, untried / n, joined(visits), np.concatenate(there), joined(starts), np.concatenate(here)
    )


def policy_findings(
    data: LogData,
    policy: TargetPolicy,
    found: PolicyValue,
    logging: PolicyValue,
    support: Support,
    sampled: SampledChoices,
    signal: int,
) -> list[Finding]:
    """Return all findings on the value of a policy."""
    scale = max(abs(found.value), abs(logging.value))
    lonely = never = 0.0
    visits, starts = sampled.visits, sampled.starts
    if not policy.by_ratio and len(visits):
        X = found.map.matrix(visits.after)
        if found.map.table:
            never = never_share(found, support, X, sampled.there, data, visits)
        else:
            each = support.cached_leverages(X) if support.by_action else None
            lonely = float((support.leverage(sampled.there, X, each) > ALONE).mean())
    if not policy.by_ratio and found.map.table and len(starts):
        never += float(never_tried(support, found.map.matrix(starts.seen), sampled.here).mean())
    single = data.rows.longest == 1
    bounds = data.rows.bounds(signal)
    evidence = PolicyEvidence(found, logging, policy, data, scale, sampled.untried, lonely, never, single, bounds)
    return findings_of("policy", evidence)


def never_tried(support: Support, X: object, U: Array) -> Array:
    """Return the probability of actions that the log never takes in each state, beyond chance, (n,)."""
    counts = support.counts[cells(X)]
    visits = counts.sum(axis=1, keepdims=True)
    unlikely = (1 - FIFTH * U) ** visits < BY_CHANCE
    return np.asarray((U * ((counts == 0) & unlikely)).sum(axis=1))


def never_share(found: PolicyValue, support: Support, X: object, U: Array, data: LogData, piece: Piece) -> float:
    """Return the share of the policy's visits to table cells without data, weighted by its visits to rows."""
    taken = actions_of(data.actions, piece)
    mass = np.maximum(found.design.times(found.map.matrix(piece.seen), taken, found.dual[:, None])[:, 0], 0.0)
    return float((mass * never_tried(support, X, U)).sum() / max(float(mass.sum()), 1e-300))


@finding("policy", "interval", "with care")
def interval(seen: PolicyEvidence) -> Found:
    """The half-width of the interval is more than half of the value. Remedy: more data"""
    found = seen.found
    if (found.high - found.low) / 2 > WIDE * seen.scale:
        yield (
            "with care",
            f"The interval, {found.low:.4g} to {found.high:.4g}, is as wide as the value is large, so the log does not "
            "determine the value well. Collect more data.",
        )


@finding("policy", "doubly robust", "not")
def doubly_robust(seen: PolicyEvidence) -> Found:
    """LSTD-Q and its correction by returns, as far as the ratios allow, are significantly different: the features
    cannot represent the values, or the propensities are wrong. Remedy: other features, correct propensities
    """
    found = seen.found
    if found.steps == 0 or seen.policy.logging:
        return
    both = f"LSTD-Q gives {found.q.value:.4g}, the returns correct it to {found.d.value:.4g}"
    far = found.gap > FAR and abs(found.d.value - found.q.value) > FAR_OFF * seen.scale
    if far and not seen.single:
        yield (
            "not" if found.gap > VERY_FAR else "with care",
            f"{both}: a significant difference. The features cannot represent the values, or the propensities are "
            "wrong. Try other features, and check the propensities.",
        )
    else:
        steps = "1 step" if found.steps == 1 else f"{found.steps:,} steps"
        yield "fine", f"{both}, over {steps} that the ratios cover."


@finding("policy", "possible values", "with care")
def possible_values(seen: PolicyEvidence) -> Found:
    """The value is outside the range that the rewards allow: the largest or the smallest reward in every step. Remedy:
    other features, a policy closer to the logging policy
    """
    found = seen.found
    if found.impossible or found.outside:
        low, high = seen.bounds
        blend = found.share * found.q.value + (1 - found.share) * found.d.value
        words = f"LSTD-Q gives {found.q.value:.4g}" if found.impossible else f"Both estimates give {blend:.4g}"
        yield (
            "with care",
            f"{words}, but rewards allow only {low:.4g} to {high:.4g}: the features "
            "cannot represent the values of this policy, and the value is clipped. Try other features or more data.",
        )


@finding("policy", "features", "with care")
def other_features(seen: PolicyEvidence) -> Found:
    """Other features that predict the returns of the log nearly as well give a different value. Remedy: name features
    that suit the problem, or collect more data
    """
    if seen.found.apart > FAR_OFF * seen.scale:
        yield (
            "with care",
            f"Other features that predict the log's returns about as well move the value by {seen.found.apart:.3g}, so "
            "it depends on a choice that the log cannot decide. Name features that suit the problem, or collect more "
            "data.",
        )


@finding("policy", "horizon", "with care")
def horizon(seen: PolicyEvidence) -> Found:
    """The ratios cover few steps, and the effective sample size of a single step is below half: later steps rely on the
    features alone. Remedy: a policy closer to the logging policy, or more episodes
    """
    found, n = seen.found, seen.data.rows.n
    if seen.policy.logging or np.isnan(found.effective):
        return
    far = found.effective < FAR_POLICY * n or (seen.data.rows.episodes >= MANY_STARTS and found.steps < FEW_STEPS)
    if found.rest > LITTLE and far:
        steps = "1 step" if found.steps == 1 else f"{found.steps:,} steps"
        yield (
            "with care",
            f"The returns check only {steps}; {found.rest:.0%} of the weight comes later and relies on the features "
            "alone. Use more episodes, or a policy closer to the logging policy.",
        )


@finding("policy", "logging policy", "not")
def logging_policy(seen: PolicyEvidence) -> Found:
    """The same features miss the known value of the logging policy. Remedy: other features, the right
    columns
    """
    base = seen.logging
    if not base.steps or (seen.found is base and not seen.policy.logging):
        return
    if base.gap > FAR and abs(base.d.value - base.q.value) > FAR_OFF * seen.scale:
        yield (
            "not" if base.gap > VERY_FAR else "with care",
            f"The mean return of the logging policy is {base.d.value:.4g}, but the features give "
            f"{base.q.value:.4g}, so they miss a known value. Try other features, and check the columns.",
        )
    else:
        yield (
            "fine",
            f"The mean return of the logging policy is {base.d.value:.4g}; the features give {base.q.value:.4g}.",
        )


@finding("policy", "untried actions", "not")
def untried_actions(seen: PolicyEvidence) -> Found:
    """The policy takes actions that the log never takes: their values are unknown. Remedy: data with these actions"""
    if seen.untried > UNTRIED:
        yield (
            "not",
            f"{seen.untried:.0%} of the policy's actions never occur in the log, so their values are unknown. Collect "
            "data with these actions.",
        )


@finding("policy", "visits without data", "not")
def lonely_visits(seen: PolicyEvidence) -> Found:
    """The policy visits states and actions with fewer than two similar rows in the log. Remedy: data from there"""
    if seen.lonely > LONELY:
        yield (
            "not" if seen.lonely > TOO_LONELY else "with care",
            f"{seen.lonely:.0%} of the policy's visits have no similar data, so their values are extrapolated. Collect "
            "data from there.",
        )


@finding("policy", "never tried", "not")
def never_tried_cells(seen: PolicyEvidence) -> Found:
    """The policy takes actions in states where the log never takes them, although it visits these states often. Remedy:
    data with these actions there
    """
    if seen.never > NEVER:
        yield (
            "not" if seen.never > TOO_OFTEN else "with care",
            f"{seen.never:.0%} of the policy's visits are to actions that the logging policy never tries in that "
            "state, so their values are extrapolated from other states. Collect data with these actions there.",
        )


@finding("policy", "propensities", "with care")
def propensities(seen: PolicyEvidence) -> Found:
    """The log has no propensities: they are estimated, and the interval includes their uncertainty. Predicted and
    actual shares of actions should agree. Remedy: record propensities
    """
    behaviour = seen.data.behaviour
    if behaviour is None or seen.policy.by_ratio:
        return
    words = (
        f"The log has no propensities. They were estimated by {behaviour.words}: predicted and actual shares of "
        f"actions differ by {behaviour.gap:.1%} on average and by {behaviour.worst:.1%} at most."
    )
    if behaviour.worst > BADLY:
        yield "with care", f"{words} Wrong propensities invalidate the check by returns: record them in the log."
    else:
        yield "fine", words
