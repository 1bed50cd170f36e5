"""The evaluation of one target policy on a log with actions: LSTD-Q and the doubly robust estimate, with a verdict."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import number, whole_number
from gradient_dd.evaluation.action_log import ActionLog
from gradient_dd.evaluation.action_rows import ActionRows, PolicyFeatures, TargetPolicy, product_rows
from gradient_dd.evaluation.choice import Spread
from gradient_dd.evaluation.data_findings import Data
from gradient_dd.evaluation.findings import Finding, findings_of, verdict_of
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.evaluation.policy_findings import PolicyEvidence
from gradient_dd.evaluation.policy_values import PolicyEstimate, PolicyValue, Valuer
from gradient_dd.evaluation.portfolio import NOT_ASKED, TdStability
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.row_findings import RowEvidence
from gradient_dd.evaluation.row_signs import row_signs
from gradient_dd.evaluation.stream import PIECE, Evaluator
from gradient_dd.evaluation.support import ALONE
from gradient_dd.evaluation.transitions import StateActions, Transitions, distinct, rows_of
from gradient_dd.studies.intervals import Bounds, Interval, student_factor

MOST_VISITS, FEW_VISITS = 5000, 500  # of a policy, that are looked at for data nearby; of one among many policies
POINTS = 100  # first states of episodes whose values are reported
TARGET, LOGGING = "target", "the policy that made the log"


def evaluate_actions(
    log: Any,
    target: Any,
    *,
    discount: float | None,
    features: Any,
    columns: Mapping[str, Any] | None,
    skip_bad_rows: bool,
    confidence: float,
    seed: int,
    on_columns: Callable[[list[str]], None],
    on_progress: Callable[[int], None],
) -> tuple[Evaluation, ActionLog]:
    """Return the evaluation of a target policy by action values, and the log that was read for it."""
    confidence = number("'confidence'", "be above 0 and below 1", confidence, low=1e-6, high=1 - 1e-6)
    seed = whole_number("'seed'", seed, at_least=0)
    read = ActionLog(
        log,
        {TARGET: target, LOGGING: None},
        discount=discount,
        features=features,
        columns=columns,
        skip_bad_rows=skip_bad_rows,
        on_columns=on_columns,
        on_progress=on_progress,
    )
    valuer = Valuer(read, read.rows, confidence=confidence, seed=seed, refit=True)
    policy = read.policies[TARGET]
    found, logging = (valuer.value(one) for one in (policy, read.policies[LOGGING]))
    verdict = verdict_of(findings_on(read, valuer, policy, found, logging))
    rows, starts = read.rows, np.flatnonzero(valuer.sums.begins)[:POINTS]
    choices = policy.choices(rows.part(starts))
    points = distinct([product_rows(choices.here, rows_of(rows.x, starts), read.p)])
    factor = 0.0 if len(found.copies) > 50 else student_factor(confidence, len(found.copies))
    spread = Spread(found.w, found.copies, found.starts, np.zeros(len(found.w)), factor, confidence)
    evaluation = Evaluation(
        w=found.w,
        chosen="LSTD-Q",
        spread=spread,
        support=valuer.support,
        points=points,
        start=found.start,
        candidates=(),
        stability=TdStability(NOT_ASKED, 0.0, 0.0),
        rows=read.n,
        passes=1,
        features=PolicyFeatures(read.mapping, policy, rows.seen.shape[1]),
        worth=Bounds(found.low, found.high),
        robust=Interval(*found.robust[:3]),
        logging=Interval(logging.value, logging.low, logging.high),
        difference=difference_of(found, logging, confidence),
        verdict=verdict,
    )
    return evaluation, read


def evaluate_by_learner(
    log: Any, target: Any, options: Mapping[str, Any], **reading: Any
) -> tuple[Evaluation, ActionLog]:
    """Return the action values of a target policy as a learner finds them, and the log that was read for it.

    The features are those of states and actions, so that no ratio enters. `options` are those of `Evaluator`.
    """
    read = ActionLog(log, {TARGET: target}, **reading)
    policy = read.policies[TARGET]
    features = PolicyFeatures(read.mapping, policy, read.rows.seen.shape[1])
    evaluator = Evaluator(features.n_features, features=features, **options)
    passes = options.get("passes") or 1
    for turn in range(passes):
        if turn and evaluator.portfolio is None:
            break
        for begin in range(0, len(read.rows), PIECE):
            batch = state_actions(read, policy, slice(begin, begin + PIECE))
            if turn:
                evaluator.learn_again(batch, begin == 0)
            else:
                evaluator.observe(batch)
    return evaluator.result(), read


def state_actions(read: ActionLog, policy: TargetPolicy, chosen: slice) -> StateActions:
    """Return some rows of a log with features of states and actions."""
    rows = read.rows.part(chosen)
    choices, taken = policy.choices(rows), read.actions.features(rows.action)
    pairs = ((taken, rows.x), (choices.there, rows.x_next), (choices.here, rows.x))
    x, x_next, first = (product_rows(u, one, read.p) for u, one in pairs)
    return StateActions(x, x_next, rows.reward, rows.discount, rows.rho, rows.episode, rows.cut, first)


def difference_of(found: PolicyValue, base: PolicyValue, confidence: float) -> Interval:
    """Return how much more a policy is worth than another, with an interval that holds both ways to estimate it."""
    pairs = ((found.action_values, base.action_values), (found.robust, base.robust))
    bounds = [paired(first, second, confidence) for first, second in pairs]
    low, high = min(one.low for one in bounds), max(one.high for one in bounds)
    return Interval(found.value - base.value, low, high)


def paired(first: PolicyEstimate, second: PolicyEstimate, confidence: float) -> Interval:
    """Return the difference of two estimates from the same bootstrap samples, with its interval."""
    apart = first.value - second.value
    half = float(np.quantile(np.abs(first.copies - second.copies - apart), confidence))
    return Interval(apart, apart - half, apart + half)


def findings_on(
    read: ActionLog, valuer: Valuer, policy: TargetPolicy, found: PolicyValue, logging: PolicyValue, signal: int = 0
) -> list[Finding]:
    """Return what speaks for and against the value of a policy: the data, the rows, and both estimates."""
    choices = policy.choices(valuer.rows)
    ratios = None if valuer.behaviour is not None else valuer.ratios(policy, choices.here)
    signs = row_signs(valuer.rows, valuer.influences(policy, found, signal), valuer.sums.taken)
    on_rows = findings_of("rows", RowEvidence(signs, max(abs(found.value), abs(logging.value))))
    on_policy = findings_on_policy(read, valuer, policy, found, logging, signal, MOST_VISITS)
    return [*findings_on_data(read, ratios), *on_rows, *on_policy]


def findings_on_policy(
    read: ActionLog,
    valuer: Valuer,
    policy: TargetPolicy,
    found: PolicyValue,
    logging: PolicyValue,
    signal: int = 0,
    visits: int = FEW_VISITS,
) -> list[Finding]:
    """Return what both estimates of a policy say about each other, and whether there are data where the policy goes."""
    named, scale = read.actions.named, max(abs(found.value), abs(logging.value))
    choices = policy.choices(valuer.rows)
    evidence = PolicyEvidence(
        found,
        logging,
        valuer.behaviour,
        untried_share(valuer.rows, choices.here, named),
        scale,
        named,
        valuer.reachable(signal),
        lonely_share(valuer, choices.there, visits),
        float(np.nan_to_num(found.rows / len(valuer.rows), nan=1.0)),
    )
    return findings_of("policy", evidence)


def lonely_share(valuer: Valuer, choices: Array, most: int) -> float:
    """Return the share of the last steps that lead the policy to a state and an action without data nearby."""
    rows = valuer.rows
    open_rows = np.flatnonzero(~rows.ended)[-most:]
    if not len(open_rows):
        return 0.0
    visits = product_rows(choices[open_rows], rows_of(rows.x_next, open_rows), valuer.log.p)
    return float((valuer.support.leverage(visits) > ALONE).mean())


def untried_share(rows: ActionRows, chances: Array, named: bool) -> float:
    """Return how much of a policy's probability is on actions that the log never takes."""
    if not named:
        return 0.0
    taken = np.bincount(rows.action[:, 0].astype(np.int64), minlength=chances.shape[1]) > 0
    return float(chances[:, ~taken].sum() / max(1, len(rows)))


def findings_on_data(read: ActionLog, ratios: Array | None) -> list[Finding]:
    """Return what the data themselves say, before anything is solved; ratios (n,) that the log knows, or None."""
    rows = read.rows
    rho = np.ones(len(rows)) if ratios is None else ratios
    batch = Transitions(rows.x, rows.x_next, rows.reward, rows.discount, rho, rows.episode, rows.cut)
    begins = np.diff(rows.episode, prepend=rows.episode[:1] - 1) != 0
    sums, diagnosis = GroupSums(read.p), copy(read.examined)
    sums.add(batch, read.group, begins)
    diagnosis.add(batch, begins)
    data = Data(diagnosis, sums, TdStability(NOT_ASKED, 0.0, 0.0), "lstd")
    return [one for one in findings_of("data", data) if ratios is not None or one.about != "ratios"]
