"""Findings on the value of a policy: both estimates, the logging policy, propensities and coverage."""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.behaviour import cells
from gradient_dd.evaluation.findings import Finding, Found, finding, findings_of, level_of
from gradient_dd.evaluation.log_data import LogData, TargetPolicy
from gradient_dd.evaluation.maps import actions_of
from gradient_dd.evaluation.pieces import Piece, joined
from gradient_dd.evaluation.result import ALONE, Support
from gradient_dd.evaluation.value import PolicyValue
from gradient_dd.studies.intervals import Bounds

FAR, VERY_FAR = 2.0, 3.0  # gaps in standard errors for "with care" and "not"
FAR_OFF = 0.1  # smaller gaps relative to the value are ignored
VISITS = 5000  # number of a policy's visits examined


class PolicyEvidence(NamedTuple):
    """The evidence about the value of a policy.

    found, logging  values of the policy and of the logging policy;  scale  the larger of the two absolute values
    data       the log;  bounds  smallest and largest possible value
    untried    share of the policy's actions that never occur in the log
    lonely     share of the policy's visits, states and actions, without similar data
    never      share of its visits to table cells without data, although the log often visits the state
    """

    found: PolicyValue
    logging: PolicyValue
    data: LogData
    bounds: Bounds
    scale: float
    untried: float
    lonely: float
    never: float


class SampledChoices(NamedTuple):
    """A policy on the sample of a log.

    ratio   (n,) ratios of the actions taken, None if continuous;  untried  share of actions not in the log
    visits  up to VISITS rows that end no episode;  there  (visits, actions) the policy's choices in the next state
    starts  initial rows;  here  (starts, actions) the policy's choices in these rows
    """

    ratio: Array | None
    untried: float
    visits: Piece
    there: Array
    starts: Piece
    here: Array


def sampled_choices(data: LogData, policy: TargetPolicy) -> SampledChoices:
    """Return the choices of a policy on the sample of a log."""
    pieces, parts = data.sampled, []
    skipped, untried = sum(int((~piece.ended).sum()) for piece in pieces) - VISITS, 0.0
    occurs = np.ones(1 if data.actions is None else data.actions.n_features, bool)
    if not policy.by_ratio and data.actions is not None and data.actions.named:
        occurs = np.isin(np.arange(len(occurs)), np.concatenate([piece.action[:, 0] for piece in pieces]))
    for piece in pieces:
        choices, begun, rows = data.choices(policy, piece), piece.starts, np.flatnonzero(~piece.ended)
        untried += 0.0 if occurs.all() else float(choices.here[:, ~occurs].sum())
        rows, skipped = rows[max(0, skipped) :], skipped - len(rows)
        parts.append((choices.ratio, piece.part(rows), choices.there[rows], piece.part(begun), choices.here[begun]))
    ratios, visits, there, starts, here = map(list, zip(*parts, strict=True))
    ratio = None if ratios[0] is None else np.concatenate(ratios)
    untried /= sum(map(len, pieces))
    return SampledChoices(ratio, untried, joined(visits), np.concatenate(there), joined(starts), np.concatenate(here))


def policy_findings(
    data: LogData, found: PolicyValue, logging: PolicyValue, support: Support, sampled: SampledChoices
) -> list[Finding]:
    """Return all findings on the value of a policy."""
    visits, starts, table = sampled.visits, sampled.starts, found.map.table and not found.policy.by_ratio
    lonely = never = 0.0
    if table and len(visits):
        taken, seen = actions_of(data.actions, visits), found.map.matrix(visits.seen)
        mass = np.maximum(found.design.times(seen, taken, found.dual[:, None])[:, 0], 0.0)  # visits of the policy
        missed = mass * never_tried(support, found.map.matrix(visits.after), sampled.there)
        never = float(missed.sum() / max(float(mass.sum()), 1e-300))
    elif len(visits) and not found.policy.by_ratio:
        lonely = float((support.leverage(sampled.there, found.map.matrix(visits.after)) > ALONE).mean())
    if table and len(starts):
        never += float(never_tried(support, found.map.matrix(starts.seen), sampled.here).mean())
    scale, shares = max(abs(found.value), abs(logging.value)), (sampled.untried, lonely, never)
    return findings_of("policy", PolicyEvidence(found, logging, data, support.bounds, scale, *shares))


def never_tried(support: Support, X: Any, U: Array) -> Array:
    """Return the policy's probability of actions that the log never takes in a state, for each state, (n,).

    A cell without data counts only if a lack of data is very unlikely even at a fifth of the policy's rate.
    """
    counts = support.counts[cells(X)]
    unlikely = (1 - 0.2 * U) ** counts.sum(axis=1, keepdims=True) < 1e-3
    return np.asarray((U * ((counts == 0) & unlikely)).sum(axis=1))


def steps_of(found: PolicyValue) -> str:
    """Return the number of steps that the ratios cover, as text."""
    return "1 step" if found.steps == 1 else f"{found.steps:,} steps"


@finding("policy", "interval", "with care", "Collect more data.")
def interval(seen: PolicyEvidence) -> Found:
    """The half-width of the interval is more than half of the value."""
    found = seen.found
    if (found.high - found.low) / 2 > 0.5 * seen.scale:
        yield (
            f"The interval, {found.low:.4g} to {found.high:.4g}, is wide relative to the value, so the log does not "
            "determine the value well."
        )


@finding("policy", "doubly robust", "not", "Try other features, and check the propensities.")
def doubly_robust(seen: PolicyEvidence) -> Found:
    """LSTD-Q and its correction by returns, as far as the ratios allow, are significantly different: the features
    cannot represent the values, or the propensities are wrong.
    """
    found = seen.found
    if found.steps == 0 or found.policy.logging:
        return
    both = f"LSTD-Q gives {found.q.value:.4g}, the returns correct it to {found.d.value:.4g}"
    level, single = level_of(found.gap, FAR, VERY_FAR), seen.data.rows.longest == 1  # every episode is one row
    if level == "fine" or single or abs(found.d.value - found.q.value) <= FAR_OFF * seen.scale:
        yield "fine", f"{both}, over {steps_of(found)} that the ratios cover."
    else:
        why = "The features cannot represent the values, or the propensities are wrong."
        yield level, f"{both}: a significant difference. {why}"


@finding("policy", "possible values", "with care", "Try other features or more data.")
def possible_values(seen: PolicyEvidence) -> Found:
    """The value is outside the range that the rewards allow: the largest or the smallest reward in every step."""
    found = seen.found
    if found.impossible or found.outside:
        low, high = seen.bounds
        words = f"LSTD-Q gives {found.q.value:.4g}" if found.impossible else f"Both estimates give {found.blend:.4g}"
        yield (
            f"{words}, but rewards allow only {low:.4g} to {high:.4g}: the features cannot represent the values of "
            "this policy, and the value is clipped."
        )


@finding("policy", "features", "with care", "Name features that suit the problem, or collect more data.")
def other_features(seen: PolicyEvidence) -> Found:
    """Other features that predict the returns of the log nearly as well give a different value."""
    if seen.found.apart > FAR_OFF * seen.scale:
        yield (
            f"Other features that predict the returns of the log about as well change the value by "
            f"{seen.found.apart:.3g}, so the value depends on a choice that the log cannot decide."
        )


@finding("policy", "horizon", "with care", "Use more episodes, or a policy closer to the logging policy.")
def horizon(seen: PolicyEvidence) -> Found:
    """The ratios cover few steps, or the effective sample size of a single step is below half: later steps rely on the
    features alone.
    """
    found, n = seen.found, seen.data.rows.n
    if seen.found.policy.logging or np.isnan(found.effective):
        return
    far = found.effective < 0.5 * n or (seen.data.rows.episodes >= 20 and found.steps < 3)
    if found.rest > 0.5 and far:
        reach = f"Beyond {steps_of(found)}, the" if found.steps else "The"
        yield (
            f"{reach} ratios are too uneven to check the value against observed returns, so {found.rest:.0%} of its "
            "weight rests on the fitted model alone."
        )


@finding("policy", "logging policy", "not", "Try other features, and check the columns.")
def logging_policy(seen: PolicyEvidence) -> Found:
    """The same features give a wrong value of the logging policy, whose returns are known."""
    base = seen.logging
    if not base.steps or (seen.found is base and not seen.found.policy.logging):
        return
    words, level = f"The mean return of the logging policy is {base.d.value:.4g}", level_of(base.gap, FAR, VERY_FAR)
    if level == "fine" or abs(base.d.value - base.q.value) <= FAR_OFF * seen.scale:
        yield "fine", f"{words}; the features give {base.q.value:.4g}."
    else:
        why = "so they probably miss the value of the target too"
        yield level, f"{words}, but the features give {base.q.value:.4g}, {why}."


@finding("policy", "untried actions", "not", "Collect data with these actions.")
def untried_actions(seen: PolicyEvidence) -> Found:
    """The policy takes actions that the log never takes."""
    if seen.untried > 0.01:
        share = f"{seen.untried:.0%} of the policy's actions"
        yield f"{share} never occur in the log, so their values are unknown."


@finding("policy", "visits without data", "not", "Collect data from these states and actions.")
def lonely_visits(seen: PolicyEvidence) -> Found:
    """The policy visits states and actions with fewer than two similar rows in the log."""
    if (level := level_of(seen.lonely, 0.01, 0.1)) != "fine":
        share = f"{seen.lonely:.0%} of the policy's visits"
        yield level, f"{share} have no similar data, so their values are extrapolated."


@finding("policy", "never tried", "not", "Collect data with these actions in these states.")
def never_tried_cells(seen: PolicyEvidence) -> Found:
    """The policy takes actions in states where the log never takes them, although it visits these states often."""
    if (level := level_of(seen.never, 0.01, 0.1)) != "fine":
        share = f"{seen.never:.0%} of the policy's visits"
        why = "so their values are extrapolated from other states"
        yield level, f"{share} are to actions that the logging policy never tries in that state, {why}."


@finding("policy", "propensities", "with care", "Record propensities in the log.")
def propensities(seen: PolicyEvidence) -> Found:
    """The log has no propensities, and predicted and actual shares of actions differ. Propensities are estimated, and
    the interval includes their uncertainty.
    """
    behaviour = seen.data.behaviour
    if behaviour is None or seen.found.policy.by_ratio:
        return
    words = (
        f"The log has no propensities. They were estimated by {behaviour.words}: predicted and actual shares of "
        f"actions differ by {behaviour.gap:.1%} on average and by {behaviour.worst:.1%} at most."
    )
    if behaviour.worst > 0.1:
        yield f"{words} Wrong propensities invalidate the check by returns."
    else:
        yield "fine", words
