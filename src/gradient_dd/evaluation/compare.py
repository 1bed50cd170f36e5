"""`gdd.compare`: which of several policies to deploy, from one log of another policy."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from gradient_dd.arrays import dimensions
from gradient_dd.errors import Unquoted, bad_request, number, show, whole_number
from gradient_dd.evaluation import drift  # noqa: F401  registers its finding
from gradient_dd.evaluation.comparison import Judged, PolicyComparison, PolicyQuestion
from gradient_dd.evaluation.data_findings import ratio_facts
from gradient_dd.evaluation.findings import Finding, findings_of, verdict_of
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.maps import actions_of, named_actions
from gradient_dd.evaluation.policy_findings import policy_findings, sampled_choices
from gradient_dd.evaluation.policy_value import PolicyValue
from gradient_dd.evaluation.result import Support
from gradient_dd.evaluation.row_findings import row_evidence
from gradient_dd.evaluation.value import values_of
from gradient_dd.evaluation.workers import one_thread, workers_at
from gradient_dd.progress import Told, shown
from gradient_dd.studies.intervals import Bounds

PASSES = 2  # over the log for each policy
TODAY = "today"  # default name of the logging policy


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
    dask: str | None = None,
    progress: bool | Told = True,
) -> PolicyComparison:
    """Return the value of several policies, their differences to the logging policy, and a recommendation.

    log        as `evaluate_log` takes it
    targets    policies by name. A policy is a function of observations that returns probabilities (n, actions); a table
               (states, actions); a classifier with `predict_proba` whose classes are the actions; the name of a column
               with the probabilities of the actions taken; or the common prefix of columns with the probabilities of
               all actions: "pi_greedy_" for pi_greedy_left and pi_greedy_right, and next_pi_greedy_left, … if the log
               has next observations. None is the logging policy, the baseline; its default name is "today". If actions
               are continuous, a policy is a function that returns actions (n, columns)
    discount   one γ or several, unless the log has a column of discounts
    reward     one reward column or several: one question for each
    features   as in `evaluate_log`

    See `evaluate_log` for the other arguments.

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
    seconds = 0.0
    functions = [*policies.values(), features]
    with one_thread(), shown(progress, "Rows") as told, workers_at(dask, log, functions) as workers:
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
                told=told,
                workers=workers,
            )
            if gamma is not None and data.reader.columns.discount is not None:
                raise bad_request("'discount'", "be omitted if the log has a column of discounts", discount)
            questions += answered(data, confidence, signals or [data.reader.columns.reward])
            seconds += data.reader.seconds
    stated = (*data.stated, *data.reader.stated_after(data.rows.read))
    taken = {"reading": seconds, "all": perf_counter() - started}
    return PolicyComparison(tuple(questions), confidence, data.rows.n, stated, taken, data.reader.source.name)


def answered(data: LogData, confidence: float, names: Sequence[Any]) -> list[PolicyQuestion]:
    """Return the values and verdicts of all policies of a log, the logging policy first, for every signal."""
    rows, reader = data.rows, data.reader
    gamma = None if reader.columns.discount is not None else reader.discount
    facts = findings_of("data", data)
    on_rows = [findings_of("rows", one) for one in row_evidence(data)]
    found = [
        PolicyQuestion(str(name), gamma, [], rows.bounds(k), rows.episodes, confidence) for k, name in enumerate(names)
    ]
    known: dict[Any, Support] = {}
    rows.progress.plan(PASSES * rows.n * len(data.policies))
    base: list[PolicyValue] = []
    for policy, values in zip(data.policies, values_of(data, data.policies, confidence), strict=True):
        base = base or values
        sampled = sampled_choices(data, policy)
        ratios: list[Finding] = []
        if not (policy.logging or sampled.ratio is None or data.behaviour is not None):
            ratios = findings_of("ratios", ratio_facts(data, sampled.ratio))
        for k, (question, value) in enumerate(zip(found, values, strict=True)):
            key = value.map.name, policy.by_ratio, k
            if key not in known:
                known[key] = support_of(data, value, question.bounds)
            own = policy_findings(data, value, base[k], known[key], sampled, k)
            question.judged.append(Judged(value, verdict_of([*facts, *ratios, *on_rows[k], *own]), known[key]))
    return found


def support_of(data: LogData, value: PolicyValue, bounds: Bounds) -> Support:
    """Return which states and actions the log covers."""
    actions = None if value.policy.by_ratio else data.actions
    taken = (
        (value.map.matrix(piece.seen), actions_of(actions, piece), named_actions(actions, piece))
        for piece in data.sampled
    )
    return Support(value.design, taken, bounds)


def checked_confidence(confidence: float) -> float:
    """Return the confidence level of the intervals."""
    return number("'confidence'", "be above 0 and below 1", confidence, low=1e-6, high=1 - 1e-6)


def checked_targets(targets: Any) -> dict[str, Any]:
    """Return policies by name, the logging policy first."""
    if not isinstance(targets, Mapping) or not all(isinstance(name, str) for name in targets):
        raise bad_request("'targets'", "be a dictionary of policies by name", targets)
    logging = [name for name, given in targets.items() if given is None]
    if len(logging) > 1:
        raise bad_request(
            "'targets'", "have at most one policy that is None, the logging policy", Unquoted(", ".join(logging))
        )
    if not logging and TODAY in targets:
        raise bad_request(f"{TODAY!r} in 'targets'", "be None, the logging policy", targets[TODAY])
    return {logging[0] if logging else TODAY: None} | {name: one for name, one in targets.items() if one is not None}


def several(what: str, given: Any) -> list[Any]:
    """Return one or several values as a list; an empty list for None."""
    if given is None:
        return []
    found = [given] if isinstance(given, str) or not dimensions(given) else list(given)
    if not found or len({one if isinstance(one, str) else show(one) for one in found}) < len(found):
        raise bad_request(what, "be one value or several distinct ones", given)
    return found
