"""Findings on the value of a policy: both of its estimates, the policy that made the log, the propensities."""

from typing import NamedTuple

import numpy as np

from gradient_dd.evaluation.behaviour import Behaviour
from gradient_dd.evaluation.findings import Found, finding
from gradient_dd.evaluation.policy_values import PolicyEstimate, PolicyValue
from gradient_dd.studies.intervals import Bounds

IMPOSSIBLE = "possible values"  # what that finding is about
WIDE = 0.5  # half an interval, over the size of the value: beyond it the answer needs care
FAR, VERY_FAR = 2.0, 3.0  # a gap of so many standard deviations needs care, or is a "not"
FAR_OFF = 0.1  # unless it is below this share of the value
FAR_POLICY = 0.5  # share of effective rows below which a policy is far from the one that made the log
FEW_STEPS, MANY_STARTS = 3, 20  # that ratios allow to follow, among so many episodes
BEYOND = 0.01  # of the largest possible value, by which an estimate may miss it
LITTLE = 0.5  # weight of what follows the steps that ratios can check
LONELY, TOO_LONELY = 0.01, 0.1  # shares of a policy's visits without data nearby
UNTRIED = 0.01  # share of the target's actions that the log never takes
BADLY = 0.1  # predicted and actual shares of actions that differ by more need care


class PolicyEvidence(NamedTuple):
    """What is known of the value of a policy.

    found      its value;  logging  that of the policy that made the log
    behaviour  the estimated propensities, or None where the log has them
    untried    share of the policy's actions that the log never takes
    scale      the size of values: the larger one of the two policies
    named      whether actions have names, so that there can be ratios
    reachable  the smallest and the largest value that the rewards of the log allow
    lonely     share of the policy's visits, states and actions, without data nearby
    share      of the rows that the ratios of a single step leave; 1 without ratios
    """

    found: PolicyValue
    logging: PolicyValue
    behaviour: Behaviour | None
    untried: float
    scale: float
    named: bool
    reachable: Bounds
    lonely: float = 0.0
    share: float = 1.0


@finding("policy", "interval", "with care")
def interval_of_policy(seen: PolicyEvidence) -> Found:
    """That of the value: wider than the value itself, it needs care. Remedy: more data"""
    found = seen.found
    level = "with care" if (found.high - found.low) / 2 > WIDE * seen.scale else "fine"
    yield level, f"The value where episodes begin is {found.value:.4g}, from {found.low:.4g} to {found.high:.4g}."


@finding("policy", "doubly robust", "not")
def doubly_robust(seen: PolicyEvidence) -> Found:
    """LSTD-Q, and the same corrected by the returns as far as the ratios allow. Where they differ by more than chance
    allows, the features do not carry the values, or the propensities are wrong. Remedy: other features
    """
    if not seen.named or seen.found.followed.steps == 0:
        return
    apart, words = gap(seen.found.action_values, seen.found.robust)
    both = f"LSTD-Q says {seen.found.value:.4g}, the doubly robust estimate {seen.found.robust.value:.4g}"
    if apart > FAR and abs(words) > FAR_OFF * seen.scale:
        yield (
            "not" if apart > VERY_FAR else "with care",
            f"{both}: more apart than chance allows. The features do not carry the values, or ratios are wrong.",
        )
    else:
        yield "fine", f"{both}, over {seen.found.followed.steps} steps that the ratios allow to follow."


@finding("policy", IMPOSSIBLE, "not")
def possible_values(seen: PolicyEvidence) -> Found:
    """No policy can be worth more than the largest reward in every step, or less than the smallest. Remedy: other
    features, a policy nearer to the one that made the log
    """
    low, high = seen.reachable
    room = BEYOND * max(abs(low), abs(high))
    if not low - room <= seen.found.value <= high + room:
        yield "not", f"A value of {seen.found.value:.4g} is impossible: rewards allow {low:.4g} to {high:.4g}."


@finding("policy", "horizon", "with care")
def horizon(seen: PolicyEvidence) -> Found:
    """The ratios allow to follow few steps, and leave fewer than half of the rows in a single one: what comes later
    rests on the features alone. Remedy: a policy nearer to the one that made the log, or more episodes
    """
    followed = seen.found.followed
    far = seen.share < FAR_POLICY or (followed.starts >= MANY_STARTS and followed.steps < FEW_STEPS)
    if seen.named and followed.rest > LITTLE and far:
        yield (
            "with care",
            f"The returns check {followed.steps} steps; {followed.rest:.0%} of the weight comes later and rests on the "
            "features alone.",
        )


@finding("policy", "logging policy", "not")
def logging_policy(seen: PolicyEvidence) -> Found:
    """The same method, asked about the policy that made the log, misses what the log paid. Remedy: other features, the
    right columns
    """
    apart, off = gap(seen.logging.action_values, seen.logging.robust)
    both = f"The policy that made the log is worth {seen.logging.value:.4g}; its returns average to"
    if apart > FAR and abs(off) > FAR_OFF * seen.scale:
        level = "not" if apart > VERY_FAR else "with care"
        yield level, f"{both} {seen.logging.robust.value:.4g}, more apart than chance allows."
    else:
        yield "fine", f"{both} {seen.logging.robust.value:.4g}."


@finding("policy", "untried actions", "not")
def untried_actions(seen: PolicyEvidence) -> Found:
    """The policy takes actions that the log never takes: nothing is known of them. Remedy: data with those actions"""
    if seen.untried > UNTRIED:
        yield "not", f"{seen.untried:.0%} of the policy's actions are never taken in the log."


@finding("policy", "visits without data", "not")
def lonely_visits(seen: PolicyEvidence) -> Found:
    """The policy comes to states and actions of which fewer than two rows of the log say something. Remedy: data from
    there
    """
    if seen.lonely > LONELY:
        level = "not" if seen.lonely > TOO_LONELY else "with care"
        yield level, f"{seen.lonely:.0%} of the policy's visits have no data nearby: their values are made up."


@finding("policy", "propensities", "with care")
def propensities(seen: PolicyEvidence) -> Found:
    """The log has no propensities: they are estimated, and the interval holds the doubt about them. Predicted and
    actual shares of actions should agree. Remedy: record propensities
    """
    if seen.behaviour is not None:
        gap_of, worst = seen.behaviour.gap, seen.behaviour.worst
        yield (
            "with care" if worst > BADLY else "fine",
            f"The log has no propensities. They were estimated by {seen.behaviour.words}: predicted and actual shares "
            f"of actions differ by {gap_of:.1%} in the mean, and by {worst:.1%} at most.",
        )


def gap(first: PolicyEstimate, second: PolicyEstimate) -> tuple[float, float]:
    """Return how many standard deviations of their difference two estimates are apart, and the difference."""
    apart = second.copies - first.copies
    off = second.value - first.value
    spread = float(np.sqrt(np.mean((apart - off) ** 2)))
    return abs(off) / max(spread, 1e-12 * max(1.0, abs(first.value))), off
