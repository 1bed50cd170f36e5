"""Findings on the value of a policy: both of its estimates, the logging policy, the propensities, where data are."""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.behaviour import cells
from gradient_dd.evaluation.findings import Finding, Found, finding, findings_of
from gradient_dd.evaluation.log_data import Choices, LogData, TargetPolicy
from gradient_dd.evaluation.maps import taken_rows
from gradient_dd.evaluation.policy_value import PolicyValue
from gradient_dd.evaluation.result import ALONE, Support
from gradient_dd.evaluation.rows import Piece
from gradient_dd.studies.intervals import Bounds

WIDE = 0.5  # half an interval, over the size of the value: beyond it the answer needs care
FAR, VERY_FAR = 2.0, 3.0  # a gap of so many standard errors needs care, or is a "not"
FAR_OFF = 0.1  # unless it is below this share of the value
FAR_POLICY = 0.5  # share of effective rows below which a policy is far from the logging policy
FEW_STEPS, MANY_STARTS = 3, 20  # that ratios allow to follow, among so many episodes
LITTLE = 0.5  # weight of what follows the steps that ratios can check
LONELY, TOO_LONELY = 0.01, 0.1  # shares of a policy's visits without data nearby
UNTRIED = 0.01  # share of the target's actions that the log never takes
BADLY = 0.1  # predicted and actual shares of actions that differ by more need care
NEVER, TOO_OFTEN = 0.01, 0.1  # shares of a policy's visits to cells that were never tried
FIFTH, BY_CHANCE = 0.2, 1e-3  # a cell was not tried by chance if a fifth of the policy's rate makes that so unlikely
VISITS = 5000  # of a policy, that are looked at


class PolicyEvidence(NamedTuple):
    """What is known of the value of a policy.

    found, logging  its value, and that of the policy that made the log
    data       the log;  scale  the size of values: the larger one of the two
    untried    share of the policy's actions that the log never takes anywhere
    lonely     share of the policy's visits, states and actions, without data nearby
    never      share of its visits to cells of a table without a row, although the log often visits the state
    single     whether every episode is one row
    confidence of the interval
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


def policy_findings(
    data: LogData,
    policy: TargetPolicy,
    found: PolicyValue,
    logging: PolicyValue,
    support: Support,
    piece: Piece,
    choices: Choices,
    signal: int,
) -> list[Finding]:
    """Return what speaks for and against the value of a policy; piece and choices are those of the sample."""
    scale = max(abs(found.value), abs(logging.value))
    untried = lonely = never = 0.0
    if not policy.by_ratio:
        untried = untried_share(data, piece, choices.here)
        rows = np.flatnonzero(~piece.ended)[-VISITS:]
        if len(rows):
            visits = np.where(piece.ended[:, None], piece.seen, piece.after)[rows]
            X, U = found.map.matrix(visits), choices.there[rows]
            if found.map.table:
                never = never_share(found, support, X, U, data, piece.part(rows))
            else:
                lonely = float((support.leverage(U, X) > ALONE).mean())
        if found.map.table:
            starts = piece.starts
            X, U = found.map.matrix(piece.seen[starts]), choices.here[starts]
            never += float(never_tried(support, X, U).mean()) if len(starts) else 0.0
    evidence = PolicyEvidence(
        found, logging, policy, data, scale, untried, lonely, never, data.rows.longest == 1, data.rows.bounds(signal)
    )
    return findings_of("policy", evidence)


def never_tried(support: Support, X: object, U: Array) -> Array:
    """Return the probability of actions that were never tried in each state, though they should have been, (n,)."""
    counts = support.counts[cells(X)]
    visits = counts.sum(axis=1, keepdims=True)
    unlikely = (1 - FIFTH * U) ** visits < BY_CHANCE
    return np.asarray((U * ((counts == 0) & unlikely)).sum(axis=1))


def never_share(found: PolicyValue, support: Support, X: object, U: Array, data: LogData, piece: Piece) -> float:
    """Return the share of the policy's visits to cells that were never tried, weighted as the policy visits rows."""
    taken, _ = taken_rows(found.map, piece, data.actions, data.rows.n)
    mass = np.maximum(taken.times(found.dual[:, None])[:, 0], 0.0)
    return float((mass * never_tried(support, X, U)).sum() / max(float(mass.sum()), 1e-300))


def untried_share(data: LogData, piece: Piece, chances: Array) -> float:
    """Return how much of a policy's probability is on actions that the log never takes."""
    if data.actions is None or not data.actions.named:
        return 0.0
    taken = np.bincount(piece.action[:, 0].astype(np.int64), minlength=chances.shape[1]) > 0
    return float(chances[:, ~taken].sum() / max(1, len(piece)))


@finding("policy", "interval", "with care")
def interval(seen: PolicyEvidence) -> Found:
    """Half of the interval is more than half of the value itself. Remedy: more data"""
    found = seen.found
    if (found.high - found.low) / 2 > WIDE * seen.scale:
        yield (
            "with care",
            f"The interval, {found.low:.4g} to {found.high:.4g}, is as wide as the value is large, so the log does not "
            "determine the value well. Collect more data.",
        )


@finding("policy", "doubly robust", "not")
def doubly_robust(seen: PolicyEvidence) -> Found:
    """LSTD-Q, and the same corrected by the returns as far as the ratios allow, differ by more than chance allows: the
    features cannot represent the values, or the propensities are wrong. Remedy: other features, the right propensities
    """
    found = seen.found
    if found.steps == 0 or seen.policy.logging:
        return
    both = f"LSTD-Q gives {found.q.value:.4g}, the returns correct it to {found.d.value:.4g}"
    far = found.gap > FAR and abs(found.d.value - found.q.value) > FAR_OFF * seen.scale
    if far and not seen.single:
        yield (
            "not" if found.gap > VERY_FAR else "with care",
            f"{both}: more than chance allows. The features cannot represent the values, or the propensities are "
            "wrong. Try other features, and check the propensities.",
        )
    else:
        steps = "1 step" if found.steps == 1 else f"{found.steps:,} steps"
        yield "fine", f"{both}, over {steps} that the ratios allow to follow."


@finding("policy", "possible values", "with care")
def possible_values(seen: PolicyEvidence) -> Found:
    """No policy can be worth more than the largest reward in every step, or less than the smallest. Remedy: other
    features, a policy nearer to the logging policy
    """
    if seen.found.impossible:
        low, high = seen.bounds
        yield (
            "with care",
            f"LSTD-Q gives {seen.found.q.value:.4g}, but rewards allow only {low:.4g} to {high:.4g}: the features "
            "cannot represent the values of this policy, and the number is cut. Try other features or more data.",
        )


@finding("policy", "features", "with care")
def other_features(seen: PolicyEvidence) -> Found:
    """Other features that predict the returns of the log nearly as well give another value. Remedy: name features that
    suit the problem, or collect more data
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
    """The ratios allow to follow few steps, and leave fewer than half of the rows in a single one: what comes later
    relies on the features alone. Remedy: a policy nearer to the logging policy, or more episodes
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
            "alone. Use more episodes, or a policy nearer to the logging policy.",
        )


@finding("policy", "logging policy", "not")
def logging_policy(seen: PolicyEvidence) -> Found:
    """The same features, asked about the logging policy, miss what its episodes paid. Remedy: other features, the right
    columns
    """
    base = seen.logging
    if not base.steps or (seen.found is base and not seen.policy.logging):
        return
    if base.gap > FAR and abs(base.d.value - base.q.value) > FAR_OFF * seen.scale:
        yield (
            "not" if base.gap > VERY_FAR else "with care",
            f"The episodes of the logging policy paid {base.d.value:.4g} on average, but the features give "
            f"{base.q.value:.4g}, so they miss a known value. Try other features, and check the columns.",
        )
    else:
        yield (
            "fine",
            f"The episodes of the logging policy paid {base.d.value:.4g} on average; features give {base.q.value:.4g}.",
        )


@finding("policy", "untried actions", "not")
def untried_actions(seen: PolicyEvidence) -> Found:
    """The policy takes actions that the log never takes: nothing is known of them. Remedy: data with those actions"""
    if seen.untried > UNTRIED:
        yield (
            "not",
            f"{seen.untried:.0%} of the policy's actions never occur in the log, so their values are unknown. Collect "
            "data with these actions.",
        )


@finding("policy", "visits without data", "not")
def lonely_visits(seen: PolicyEvidence) -> Found:
    """The policy comes to states and actions with fewer than two similar rows in the log. Remedy: data from there"""
    if seen.lonely > LONELY:
        yield (
            "not" if seen.lonely > TOO_LONELY else "with care",
            f"{seen.lonely:.0%} of the policy's visits have no data nearby, so their values are extrapolated. Collect "
            "data from there.",
        )


@finding("policy", "never tried", "not")
def never_tried_cells(seen: PolicyEvidence) -> Found:
    """The policy takes actions in states in which the log never takes them, though it visits the states often. Remedy:
    data with those actions there
    """
    if seen.never > NEVER:
        yield (
            "not" if seen.never > TOO_OFTEN else "with care",
            f"{seen.never:.0%} of the policy's visits are to actions that the logging policy never tries in that "
            "state, so their values are guessed from other states. Collect data with these actions there.",
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
        yield "with care", f"{words} Wrong propensities spoil the check by returns: record them in the log."
    else:
        yield "fine", words
