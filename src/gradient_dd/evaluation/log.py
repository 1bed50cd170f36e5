"""`gdd.evaluate_log` and `gdd.compare`: the value of a policy from a log, and the best of several policies to deploy.

`evaluate_log` also answers questions. A question is evaluated as a log with a single action and with the question's own
cumulants, discounts and ratios. A new episode starts after each end of the question and after each gap in its rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, overload

import numpy as np

from gradient_dd.arrays import Array, Integers, dimensions
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, checked_seed, number, show
from gradient_dd.evaluation.comparison import PolicyComparison, PolicyQuestion, answered
from gradient_dd.evaluation.findings import verdict_of
from gradient_dd.evaluation.log_data import OWN, LogData, TargetPolicy
from gradient_dd.evaluation.maps import too_wide
from gradient_dd.evaluation.passes import by_learner
from gradient_dd.evaluation.result import Evaluation, evaluation_of
from gradient_dd.evaluation.rows import KEPT_NUMBERS, EvaluationRows, one_thread, workers_at
from gradient_dd.learners import Rule, find
from gradient_dd.progress import Told, shown
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.columns import find_columns, missing
from gradient_dd.stream.log.rows import LogRows
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.question import ROLES, AskedQuestions, Batch, Question, batch_of
from gradient_dd.stream.questions import checked_questions

Tables = Callable[[], Iterator[LogRows]]
TODAY = "today"  # default name of the logging policy


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """The answers of a log to questions: an `Evaluation` per question, by name."""

    answers: Mapping[str, Evaluation]
    stated: tuple[str, ...]
    seconds: Mapping[str, float]

    def __getitem__(self, name: str) -> Evaluation:
        return self.answers[name]

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        return f"<Answers to {len(self)} questions>"

    @property
    def table(self) -> list[dict[str, Any]]:
        """One record per question: name, initial value, interval, verdict, and rows."""
        return [
            {"name": name, "value": one.start_value, "low": one.found.low, "high": one.found.high}
            | {"verdict": one.verdict.word, "rows": one.rows}
            for name, one in self.answers.items()
        ]

    def facts(self) -> dict[str, Any]:
        """Return everything except the weights as plain data."""
        each = {name: found.facts() for name, found in self.answers.items()}
        return {"questions": self.table, "answers": each, "stated": list(self.stated), "seconds": dict(self.seconds)}


@overload
def evaluate_log(log: Any, *, questions: None = None, **options: Any) -> Evaluation: ...


@overload
def evaluate_log(log: Any, *, questions: Sequence[Question], **options: Any) -> Answers: ...


def evaluate_log(
    log: Any,
    *,
    questions: Sequence[Question] | None = None,
    discount: float | None = None,
    target: Any = None,
    features: Any = None,
    columns: Mapping[str, Any] | None = None,
    learner: str | Rule = "auto",
    skip_bad_rows: bool = False,
    at: Any = None,
    confidence: float = 0.95,
    seed: int = 0,
    dask: str | None = None,
    progress: bool | Told = True,
    **parameters: Any,
) -> Evaluation | Answers:
    """Return the value of a policy from transitions of another policy, with an interval and a verdict.

    Value, interval and verdict are the same as in `compare`; this function also returns state and action values.

    log        a .parquet, .csv, .npz or .npy file, a folder of Parquet files, a pandas frame, a dictionary of arrays,
               "minari:NAME" or a Minari dataset. Files may be larger than memory
    discount   γ, unless the log has a column of discounts
    target     the target policy, as for `compare`, or a function of (observations, actions) that returns the
               probability of each action taken, (n,). Default: the policy of the log's own ratios or propensities,
               or the logging policy if the log has neither
    features   a feature map; a function of an observation; "table", one weight per distinct state; "raw", the unchanged
               observations; "standard", scaled and with a constant; "quadratic"; "tiles", "fourier",
               "radial" or "polynomial" over the range of the first rows; "network", features of an ensemble of networks
               trained on the log. Columns of text are categories. Default: "raw" for several columns named x… or
               feature…, a table for whole numbers and text, else the map that best predicts the returns of the log
    columns    columns by role, if their names are not recognised: {"reward": "r", "observation": ["a", "b"]}
    learner    "auto"; or a name in LEARNERS or a Rule, whose weights replace the solution, with its `parameters`
    skip_bad_rows  omit rows with missing or impossible numbers
    at         observations whose values are returned, or "all" for every distinct state of the log; default: initial
               observations
    confidence confidence level of the intervals
    questions  `Question`s to answer instead of evaluating a target. The result is `Answers`, with an evaluation of each
               question. Questions have their own discount and target
    dask       address of a Dask cluster whose workers sum the files of a large folder, or "local"; Dask does not change
               the bits of the result
    progress   whether to show progress on stderr; or a function of the work done and the total work (0 if unknown)

    >>> import numpy as np
    >>> state = np.arange(400) % 4
    >>> log = {"obs": state, "reward": state == 3, "terminated": state == 3}
    >>> round(evaluate_log(log, discount=0.9).start_value, 3)
    0.729
    """
    confidence, seed = checked_confidence(confidence), checked_seed(seed)
    options: dict[str, Any] = {"features": features, "columns": columns, "skip_bad_rows": skip_bad_rows, "seed": seed}
    if questions is not None:
        single = {"discount": discount, "target": target, "learner": learner, "at": at, "dask": dask, **parameters}
        for name, value in single.items():
            if value is not None and not (isinstance(value, str) and value == "auto"):
                raise BadRequestError(f"{name!r} must be omitted with 'questions'. Got {value!r}.")
        with one_thread(), shown(progress, "Questions") as told:
            return evaluate_questions(log, questions, confidence, told, **options)
    started = perf_counter()
    named = not (isinstance(learner, str) and learner == "auto")
    if named:
        find(learner).setting(**parameters)  # raises if a value is wrong
    elif parameters:
        raise bad_request("'learner'", f"be a learner if {sorted(parameters)[0]!r} is given", learner)
    targets = {"logging policy": None, "target": OWN if target is None else target}
    with one_thread(), shown(progress, "Rows") as told, workers_at(dask, log, [target, features]) as workers:
        data = LogData(log, targets, discount=discount, told=told, workers=workers, **options)
        (question,) = answered(data, confidence, [data.reader.columns.reward])
        last = question.judged[-1]
        words = "AutoLearner" if too_wide(last.found.design) else "LSTD-Q"
        if named:
            value, more, words = by_learner(data, last.found, learner, parameters)
            question.judged[-1] = last._replace(found=value, verdict=verdict_of([*last.verdict.findings, *more]))
        found = evaluation_of(question, data, words, at)
    return replace(found, seconds={"reading": data.reader.seconds, "all": perf_counter() - started})


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

    log        as in `evaluate_log`
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
    confidence, seed = checked_confidence(confidence), checked_seed(seed)
    policies = checked_targets(targets)
    discounts, signals = several("'discount'", discount), several("'reward'", reward)
    options = {"features": features, "columns": columns, "skip_bad_rows": skip_bad_rows, "seed": seed}
    questions: list[PolicyQuestion] = []
    seconds, functions = 0.0, [*policies.values(), features]
    with one_thread(), shown(progress, "Rows") as told, workers_at(dask, log, functions) as workers:
        for gamma in discounts or [None]:
            data = LogData(log, policies, discount=gamma, signals=signals, told=told, workers=workers, **options)
            if gamma is not None and data.reader.columns.discount is not None:
                raise bad_request("'discount'", "be omitted if the log has a column of discounts", discount)
            questions += answered(data, confidence, signals or [data.reader.columns.reward])
            seconds += data.reader.seconds
    taken = {"reading": seconds, "all": perf_counter() - started}
    return PolicyComparison(tuple(questions), confidence, data.rows.n, data.stated, taken, data.reader.source.name)


def checked_confidence(confidence: float) -> float:
    """Return a confidence level after checking its range."""
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


# Questions --------------------------------------------------------------------------------------------------


class QuestionLog(LogData):
    """A log as seen by one question."""

    def __init__(self, reader: LogReader, tables: Tables, question: Question, features: Any, seed: int) -> None:
        self.reader, self.asked, self.actions, self.named = reader, AskedQuestions([question]), None, True
        self.rows = EvaluationRows(reader, tables=partial(self._tables, tables), seed=seed)
        own = question.target is not None
        self.policies = [TargetPolicy(question.name, OWN if own else None, reader.decoded)]
        self._describe(features, seed)

    def _tables(self, tables: Tables, part: int) -> Iterator[LogRows]:
        """Yield the rows in which the question is asked, with its cumulants, discounts and ratios."""
        asked = self.asked
        episode, last = -1, (-1, -1, True)  # row, episode of the log, and whether the question ended there
        for rows in tables():
            batch = as_batch(self.reader, rows)
            mu = np.where(np.isnan(rows.behaviour), 1.0, rows.behaviour)
            discount = np.where(rows.discount == 0, 0.0, asked.discounts(batch)[:, 0])
            rho = asked.probabilities(batch, mu)[:, 0] / mu
            made = replace(rows, reward=asked.cumulants(batch)[:, 0], discount=discount, rho=rho)
            made = made.part(asked.interests(batch)[:, 0])
            if not len(made):
                continue
            ended = made.discount == 0
            row, before, after_end = (
                np.concatenate([[first], column[:-1]])
                for first, column in zip(last, (made.row, made.episode, ended), strict=True)
            )
            begins = after_end.astype(bool) | (made.row != row + 1) | (made.episode != before)
            last = int(made.row[-1]), int(made.episode[-1]), bool(ended[-1])
            made.cut = (made.cut | np.append(begins[1:], False)) & ~ended
            made.episode = episode + np.cumsum(begins)
            episode = int(made.episode[-1])
            yield made


def evaluate_questions(
    log: Any, questions: Any, confidence: float, told: Told, features: Any, columns: Any, skip_bad_rows: bool, seed: int
) -> Answers:
    """Return the answers of a log to questions; see `evaluate_log` for the arguments."""
    started, asked = perf_counter(), checked_questions(questions)
    reader = reader_for(log, AskedQuestions(asked), columns, skip_bad_rows)
    held: list[LogRows] = []  # the transitions, if they fit in memory
    numbers = 0
    for table in reader.tables():
        numbers += 2 * table.observation.size + 8 * len(table)
        if numbers > KEPT_NUMBERS:
            break
        held.append(table)
    tables: Tables = reader.tables if numbers > KEPT_NUMBERS else lambda: iter(held)
    found: dict[str, Evaluation] = {}
    stated: tuple[str, ...] = ()
    for k, question in enumerate(asked):
        data = QuestionLog(reader, tables, question, features, seed)
        stated = stated or data.stated
        (own,) = answered(data, confidence, [question.name])
        found[question.name] = evaluation_of(own, data, "LSTD")
        told(k + 1, len(asked))
    return Answers(found, stated, {"reading": reader.seconds, "all": perf_counter() - started})


def reader_for(log: Any, asked: AskedQuestions, columns: Any, skip_bad_rows: bool) -> LogReader:
    """Return a reader of all columns that the questions name, with actions if a question has a target."""
    names = open_log(log).names
    found = find_columns(names, columns)
    values = [getattr(one, role) for one in asked.questions for role in ROLES]
    named = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    for name in named:
        if name not in names:
            raise missing(f"The column {name!r} of a question", name, names)
    wants = asked.needs_behaviour
    if wants is not None and found.behaviour_probability is None:
        what = f"With the target of question {wants.name!r}, a column of the role 'behaviour_probability'"
        raise missing(what, "behaviour_probability", names)
    actions = wants is not None and found.action is not None
    return LogReader(log, columns, 1.0, skip_bad_rows, actions=actions, signals=named)


def as_batch(reader: LogReader, rows: LogRows) -> Batch:
    """Return rows of a log as input of questions; a single observation column is (n,), integer if all values are."""
    width = rows.observation.shape[1] - len(reader.carried)
    columns = dict(zip(reader.carried, rows.observation[:, width:].T, strict=True))
    actions: Integers | Array | None = rows.action if rows.action.shape[1] else None
    if actions is not None and reader.actions and reader.actions.named:
        actions = rows.action[:, 0].astype(np.int64)

    def plain(seen: Array) -> Array:
        single = seen[:, 0]
        whole = width == 1 and np.array_equal(single, np.round(single))
        return seen[:, :width] if width > 1 else single.astype(np.int64) if whole else single

    return batch_of(len(rows), plain(rows.observation), actions, plain(rows.following), columns)
