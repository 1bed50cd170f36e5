"""`gdd.compare`: which of several policies to deploy, from one log of another one, read once."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.errors import Unquoted, bad_request, number, whole_number
from gradient_dd.evaluation.action_evaluation import findings_on, findings_on_data, findings_on_policy
from gradient_dd.evaluation.action_log import ActionLog
from gradient_dd.evaluation.comparison import Judged, PolicyComparison, PolicyQuestion
from gradient_dd.evaluation.findings import Finding, findings_of, verdict_of
from gradient_dd.evaluation.log_findings import LogFacts
from gradient_dd.evaluation.policy_findings import IMPOSSIBLE
from gradient_dd.evaluation.policy_gaps import max_t_factor
from gradient_dd.evaluation.policy_values import PolicyValue, Valuer, cut_to

TODAY = "today"  # the name of the policy that made the log, unless the user gives it another
SECONDS = 3.0  # of solving LSTD-Q again in bootstrap samples, beyond which pulls are taken instead
SOLVE = 8e-10  # seconds of a solution with one feature, of which q³ are needed
FEW_ROWS = 20  # rows for each feature, below which solutions are always taken again
MOST_JUDGED = 20  # policies whose ratios are examined one by one


def compare(
    log: Any,
    targets: Mapping[str, Any],
    *,
    discount: float | Sequence[float] | None = None,
    reward: str | Sequence[str] | None = None,
    features: Any = None,
    columns: Mapping[str, Any] | None = None,
    skip_bad_rows: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    on_columns: Callable[[list[str]], None] = lambda stated: None,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> PolicyComparison:
    """Return what each of several policies is worth, how much more than the one that made the log, and what to do.

    log        as `evaluate_log` takes it; it has actions, and is read once
    targets    policies by name. A policy is a function of observations that returns probabilities (n, actions); a table
               (states, actions); or the beginning of the names of columns that hold its probabilities: "pi_greedy_" for
               pi_greedy_left and pi_greedy_right, with next_pi_greedy_left, … where the log has next observations.
               None is the policy that made the log, the baseline; it is "today" if it is left out. Where actions are
               measured, a policy is a function that returns actions (n, columns)
    discount   γ, or several of them, unless the log has a column of discounts
    reward     the column of rewards, or several: one question for each
    features   as in `evaluate_log`; default "quadratic": scaled observations, squares and products

    The other arguments are those of `evaluate_log`.
    """
    started = perf_counter()
    confidence = number("'confidence'", "be above 0 and below 1", confidence, low=1e-6, high=1 - 1e-6)
    seed = whole_number("'seed'", seed, at_least=0)
    policies = checked_targets(targets)
    discounts = several("'discount'", discount)
    for one in discounts:
        number("'discount'", "be in [0, 1]", one, low=0.0, high=1.0)
    signals = several("'reward'", reward)
    read = ActionLog(
        log,
        policies,
        discount=1.0 if discounts else None,
        features=features,
        columns=columns,
        signals=signals,
        skip_bad_rows=skip_bad_rows,
        on_columns=on_columns,
        on_progress=on_progress,
    )
    if discounts and read.reader.columns.discount is not None:
        raise bad_request("'discount'", "be left out where the log has a column of discounts", discount)
    named = "observation" in (columns or {})
    questions = []
    for gamma in discounts or [None]:
        rows = read.rows if gamma is None else read.with_discount(gamma)
        valuer = Valuer(read, rows, confidence=confidence, seed=seed, refit=affordable(read, len(policies)))
        for k, name in enumerate(signals or [read.reader.columns.reward]):
            judged = judge(read, valuer, k, shared_findings(read, named, 1.0 if gamma is None else gamma))
            used = [judged[0], *(one for one in judged[1:] if one.usable)]
            factor = max_t_factor([one.found for one in used], confidence)
            questions.append(PolicyQuestion(str(name), gamma, judged, factor, read.episodes))
    stated = (*read.stated, *read.reader.stated_after())
    seconds = {"reading": read.reader.seconds, "all": perf_counter() - started}
    return PolicyComparison(tuple(questions), confidence, read.n, stated, seconds)


def checked_targets(targets: Any) -> dict[str, Any]:
    """Return policies by name, the one that made the log first."""
    if not isinstance(targets, Mapping) or not all(isinstance(name, str) for name in targets):
        raise bad_request("'targets'", "be a dictionary of policies by name", targets)
    logging = [name for name, given in targets.items() if given is None]
    if len(logging) > 1:
        raise bad_request(
            "'targets'", "have one policy that is None, the one that made the log", Unquoted(", ".join(logging))
        )
    if not logging and TODAY in targets:
        raise bad_request(f"{TODAY!r} in 'targets'", "be None, the policy that made the log", targets[TODAY])
    return {logging[0] if logging else TODAY: None} | {name: one for name, one in targets.items() if one is not None}


def several(what: str, given: Any) -> list[Any]:
    """Return one or several things as a list; none for None."""
    if given is None:
        return []
    found = [given] if isinstance(given, str) or not np.ndim(given) else list(given)
    if not found or len(set(map(str, found))) < len(found):
        raise bad_request(what, "be one, or several that differ", given)
    return found


def affordable(read: ActionLog, policies: int) -> bool:
    """Return whether LSTD-Q is solved again in every bootstrap sample: it is cheap, or pulls would be wrong."""
    q = read.p * read.actions.n_features
    return q * FEW_ROWS > len(read.rows) or policies * 500 * (SOLVE * q**3 + 1e-4) < SECONDS


def judge(read: ActionLog, valuer: Valuer, signal: int, shared: list[Finding]) -> list[Judged]:
    """Return all policies with their values and verdicts, the baseline first."""
    found: list[Judged] = []
    few = len(read.policies) <= MOST_JUDGED
    data = [] if few else findings_on_data(read, None)
    base: PolicyValue | None = None
    for policy in read.policies.values():
        value = valuer.value(policy, signal)
        base = base or value
        on_policy = (findings_on if few else findings_on_policy)(read, valuer, policy, value, base, signal)
        none = np.empty((0, 0))
        light = value._replace(copies=none, starts=none, followed=value.followed.summary())
        cut = cut_to(light, valuer.reachable(signal))
        found.append(Judged(cut, verdict_of([*shared, *data, *map(eased, on_policy)])))
    return found


def eased(one: Finding) -> Finding:
    """Return a finding as it counts here: an impossible value is cut and its interval widened, which needs care."""
    if one.about != IMPOSSIBLE or one.level != "not":
        return one
    return one._replace(level="with care", sentence=f"{one.sentence} It is cut, and its interval is that much wider.")


def shared_findings(read: ActionLog, named: bool, discount: float) -> list[Finding]:
    """Return the findings on the columns and rows of the log."""
    last = read.reader.last
    seen = last.ends_inside, last.first_inside, last.dropped, last.used
    return findings_of("log", LogFacts(read.reader.columns, named, *seen, discount))
