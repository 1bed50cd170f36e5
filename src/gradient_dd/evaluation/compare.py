"""`gdd.compare`: which of several policies to deploy, from one log of another one."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.errors import Unquoted, bad_request, number, whole_number
from gradient_dd.evaluation.comparison import Judged, PolicyComparison, PolicyQuestion
from gradient_dd.evaluation.data_findings import data_facts, ratio_facts
from gradient_dd.evaluation.findings import Finding, findings_of, verdict_of
from gradient_dd.evaluation.log_data import Choices, LogData, TargetPolicy
from gradient_dd.evaluation.maps import taken_rows
from gradient_dd.evaluation.policy_findings import policy_findings
from gradient_dd.evaluation.policy_value import PolicyValue
from gradient_dd.evaluation.result import Support
from gradient_dd.evaluation.row_findings import RowEvidence
from gradient_dd.evaluation.row_signs import row_signs
from gradient_dd.evaluation.rows import Piece, joined
from gradient_dd.evaluation.value import values_of
from gradient_dd.studies.intervals import Bounds

TODAY = "today"  # the name of the policy that made the log, unless the user gives it another


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
    """Return what each of several policies is worth, how much more than the logging policy, and what to do.

    log        as `evaluate_log` takes it
    targets    policies by name. A policy is a function of observations that returns probabilities (n, actions); a table
               (states, actions); a classifier with `predict_proba` whose classes are the actions; the name of a column
               with its probabilities of the actions taken; or the beginning of the names of columns that hold all of
               its probabilities: "pi_greedy_" for pi_greedy_left and pi_greedy_right, with next_pi_greedy_left, … where
               the log has next observations. None is the logging policy, the baseline; it is "today" if it is left
               out. Where actions are measured, a policy is a function that returns actions (n, columns)
    discount   γ, or several of them, unless the log has a column of discounts
    reward     the column of rewards, or several: one question for each
    features   as in `evaluate_log`

    The other arguments are those of `evaluate_log`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> action = rng.integers(2, size=500)
    >>> log = {"obs": rng.integers(3, size=500), "action": action, "reward": action, "propensity": np.full(500, 0.5)}
    >>> compare(log, {"always 1": lambda seen: np.tile([0.0, 1.0], (len(seen), 1))}, discount=0.0).deploy
    'always 1'
    """
    started = perf_counter()
    confidence, seed = checked_confidence(confidence), whole_number("'seed'", seed, at_least=0)
    policies = checked_targets(targets)
    discounts, signals = several("'discount'", discount), several("'reward'", reward)
    questions: list[PolicyQuestion] = []
    seconds, stated, rows = 0.0, tuple[str, ...](), 0
    for gamma in discounts or [None]:
        data = LogData(
            log,
            policies,
            discount=gamma,
            features=features,
            columns=columns,
            signals=signals,
            skip_bad_rows=skip_bad_rows,
            seed=seed,
            on_columns=on_columns,
            on_progress=on_progress,
        )
        if gamma is not None and data.reader.columns.discount is not None:
            raise bad_request("'discount'", "be left out where the log has a column of discounts", discount)
        names = signals or [data.reader.columns.reward]
        questions += [one.question(str(name)) for name, one in zip(names, answered(data, confidence), strict=True)]
        seconds, rows = seconds + data.reader.seconds, data.rows.n
        stated = (*data.stated, *data.reader.stated_after(data.last))
        name = data.reader.source.name
    taken = {"reading": seconds, "all": perf_counter() - started}
    return PolicyComparison(tuple(questions), confidence, rows, stated, taken, name)


class Answered(NamedTuple):
    """All policies of a log by one signal, judged, the logging policy first."""

    data: LogData
    judged: list[Judged]
    supports: list[Support]
    bounds: Bounds
    confidence: float

    def question(self, reward: str) -> PolicyQuestion:
        """Return the question that is answered."""
        reader = self.data.reader
        gamma = None if reader.columns.discount is not None else reader.discount
        return PolicyQuestion(reward, gamma, self.judged, self.bounds, self.data.rows.episodes, self.confidence)


def answered(data: LogData, confidence: float) -> list[Answered]:
    """Return the values and verdicts of all policies of a log, for every signal."""
    values = values_of(data, data.policies, confidence)
    piece = joined(data.rows.sample)
    facts = findings_of("data", data_facts(data))
    found = []
    for k in range(len(data.rows.lowest)):
        on_rows = findings_of("rows", RowEvidence(row_signs(data, k), data.reader.columns.observation))
        base, bounds, judged, supports = values[0][k], data.rows.bounds(k), list[Judged](), list[Support]()
        known: dict[Any, Support] = {}
        for policy, value in zip(data.policies, (one[k] for one in values), strict=True):
            choices = policy.choices(piece, data.propensities(piece))
            key = value.map.name, policy.by_ratio
            if key not in known:
                known[key] = support_of(data, policy, value, piece, bounds)
            own = policy_findings(data, policy, value, base, known[key], piece, choices, k)
            all_findings = [*facts, *ratio_findings(data, policy, choices, piece), *on_rows, *own]
            judged.append(Judged(value, verdict_of(all_findings)))
            supports.append(known[key])
        found.append(Answered(data, judged, supports, bounds, confidence))
    return found


def support_of(data: LogData, policy: TargetPolicy, value: PolicyValue, piece: Piece, bounds: Bounds) -> Support:
    """Return where there are data for states and actions."""
    taken, _ = taken_rows(value.map, piece, None if policy.by_ratio else data.actions, data.rows.n)
    return Support(value.design, [taken], bounds)


def ratio_findings(data: LogData, policy: TargetPolicy, choices: Choices, piece: Piece) -> list[Finding]:
    """Return what the ratios of a policy show, where the log knows them."""
    if policy.logging or choices.ratio is None or data.behaviour is not None:
        return []
    return findings_of("ratios", ratio_facts(data, choices.ratio, piece))


def checked_confidence(confidence: float) -> float:
    """Return the confidence of intervals."""
    return number("'confidence'", "be above 0 and below 1", confidence, low=1e-6, high=1 - 1e-6)


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
