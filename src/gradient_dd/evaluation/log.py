"""`gdd.evaluate_log`: the value of a policy from a log, with an interval and a verdict, and state and action values.

It also answers many questions. A question is the case of a single action: its cumulants, discounts and ratios replace
those of the log, and its episodes restart after each of its ends and each gap in which it is not asked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, overload

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import BadRequestError, bad_request, whole_number
from gradient_dd.evaluation.by_learner import by_learner
from gradient_dd.evaluation.compare import answered, checked_confidence
from gradient_dd.evaluation.comparison import PolicyQuestion
from gradient_dd.evaluation.findings import Found, finding, findings_of, verdict_of
from gradient_dd.evaluation.log_data import OWN, LogData, TargetPolicy
from gradient_dd.evaluation.maps import too_wide
from gradient_dd.evaluation.result import ALONE, Evaluation, as_observations
from gradient_dd.evaluation.rows import KEPT_NUMBERS, EvaluationRows
from gradient_dd.evaluation.workers import one_thread, workers_at
from gradient_dd.learners import Rule, find
from gradient_dd.progress import Told, shown
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.columns import find_columns, missing
from gradient_dd.stream.log.rows import LogRows
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.question import ROLES, AskedQuestions, Batch, Question, batch_of
from gradient_dd.stream.questions import checked_questions
from gradient_dd.studies.intervals import Interval

MOST_ASKED = 10_000  # most distinct states whose values are returned
POINTS = 100  # initial states whose values are reported
TARGET, LOGGING = "target", "logging policy"
Tables = Callable[[], Iterator[LogRows]]


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of a log to questions: an `Evaluation` per name."""

    answers: Mapping[str, Evaluation]
    stated: tuple[str, ...]
    seconds: Mapping[str, float]

    def __getitem__(self, name: str) -> Evaluation:
        return self.answers[name]

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def table(self) -> list[dict[str, Any]]:
        """One record per question: name, initial value, interval, verdict, and rows."""
        records = []
        for name, one in self.answers.items():
            value = {"name": name, "value": one.start_value, "low": one.found.low, "high": one.found.high}
            records.append(value | {"verdict": one.verdict.word, "rows": one.rows})
        return records

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
    features   a feature map; a function of an observation; "table", a weight per distinct state; "raw", the unchanged
               observations; "standard", scaled and with a constant; "quadratic"; "tiles", "fourier",
               "radial" or "polynomial" over the range of the first rows; "network", features of an ensemble of networks
               trained on the log. Columns of text are categories. Default: "raw" for several columns named x… or
               feature…, a table for whole numbers and text, else the map that best predicts the returns of the log
    columns    columns by role, if their names are not recognised: {"reward": "r", "observation": ["a", "b"]}
    learner    "auto"; or a name in LEARNERS or a Rule whose weights are used instead, with its `parameters`
    skip_bad_rows  omit rows with missing or impossible numbers
    at         observations whose values are returned, or "all" for every distinct state of the log; default: initial
               observations
    confidence confidence level of the intervals
    questions  several `Question`s to answer instead: `Answers` has an evaluation of each. Questions have their own
               discount and target
    dask       address of a Dask cluster whose workers sum the files of a folder, or "local"; the bits are the same
    progress   whether to show progress on stderr; or a function of the work done and the total, 0 as long as it is
               unknown

    >>> import numpy as np
    >>> state = np.arange(400) % 4
    >>> log = {"obs": state, "reward": state == 3, "terminated": state == 3}
    >>> round(evaluate_log(log, discount=0.9).start_value, 3)
    0.729
    """
    confidence, seed = checked_confidence(confidence), whole_number("'seed'", seed, at_least=0)
    options: dict[str, Any] = {"features": features, "columns": columns, "skip_bad_rows": skip_bad_rows, "seed": seed}
    if questions is not None:
        single = {"discount": discount, "target": target, "learner": learner, "at": at, "dask": dask, **parameters}
        for name, value in single.items():
            if value is not None and not (isinstance(value, str) and value == "auto"):
                raise BadRequestError(f"{name!r} must be omitted with 'questions'. Got {value!r}.")
        with one_thread(), shown(progress, "Questions") as told:
            return evaluate_questions(log, questions, confidence, told=told, **options)
    started = perf_counter()
    named = not (isinstance(learner, str) and learner == "auto")
    if named:
        find(learner).setting(**parameters)  # raises if a value is wrong
    elif parameters:
        raise bad_request("'learner'", f"be a learner if {sorted(parameters)[0]!r} is given", learner)
    own = find_columns(open_log(log).names, columns)
    ratios = own.rho or (own.target_probability and own.behaviour_probability)
    asked = target if target is not None else OWN if ratios else None
    targets = {LOGGING: None} if asked is None else {LOGGING: None, TARGET: asked}
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


def evaluation_of(question: PolicyQuestion, data: LogData, words: str, at: Any = None) -> Evaluation:
    """Return the evaluation of the last policy of a question, with the requested states."""
    one, base = question.judged[-1], question.baseline.found
    policy, logging, difference = one.found.policy, None, None
    if len(question.judged) > 1:
        gap = question.gap(one, question.baseline)
        logging, difference = Interval(base.value, base.low, base.high), Interval(gap.apart, gap.low, gap.high)
    first = next(piece.part(piece.starts) for piece in data.rows.sample if len(piece.starts))
    first = first.part(np.sort(np.unique(first.seen, axis=0, return_index=True)[1])[:POINTS])
    here = np.ones((len(first), 1)) if policy.by_ratio else policy.choices(first, data.propensities(first)).here
    found = Evaluation(
        found=one.found,
        support=one.support,
        points=(one.found.map.matrix(first.seen), here),
        confidence=question.confidence,
        rows=data.rows.n,
        dimensions=first.seen.shape[1],
        chosen=words,
        logging=logging,
        difference=difference,
        verdict=one.verdict,
        stated=(*data.stated, *data.reader.stated_after(data.rows.read)),
        log=data.reader.source.name,
    )
    if at is None:
        return found
    asked = asked_for(at, data)
    X, U = found.point(asked)
    alone = int((one.support.leverage(U, X) > ALONE).sum())
    verdict = verdict_of([*one.verdict.findings, *findings_of("states", (len(asked), alone))])
    return replace(found, at=asked, points=(X, U), verdict=verdict)


@finding("states", "states asked for", "with care", "Collect data from there.")
def unseen_states(counts: tuple[int, int]) -> Found:
    """A requested state has no similar data. If the data have nothing in common with it, there is no value."""
    asked, unseen = counts
    if unseen:
        yield (
            "with care",
            f"{unseen:,} of the {asked:,} requested states have no similar data, so their intervals are as wide as the "
            "rewards allow.",
        )


def asked_for(at: Any, data: LogData) -> Any:
    """Return the observations whose values are requested, one per row."""
    reader = data.reader
    if isinstance(at, str):
        if at != "all":
            raise bad_request("'at'", "be observations, one per row, or 'all'", at)
        states = reader.states()
        if len(states) > MOST_ASKED:
            rule = f"be observations, because the log has more than {MOST_ASKED:,} distinct ones"
            raise bad_request("'at'", rule, at, "Name some: at=[...], or --at.")
        return reader.decoded(states)
    rows = np.asarray(at, dtype=object if reader.words else None)
    single = rows.ndim < 2 and len(reader.columns.observation) == 1
    return as_observations(rows.reshape(-1, 1) if single else np.atleast_2d(rows))


# Many questions ---------------------------------------------------------------------------------------------


class QuestionLog(LogData):
    """A log as seen by one question."""

    def __init__(self, reader: LogReader, tables: Tables, question: Question, features: Any, seed: int) -> None:
        self.reader, self.asked, self.actions, self.behaviour = reader, AskedQuestions([question]), None, None
        self.rows = EvaluationRows(reader, tables=partial(self._tables, tables), seed=seed)
        self.named, own = True, question.target is not None
        self.policies = [TargetPolicy(question.name, None, None, (), reader.decoded, own=own)]
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
    log: Any,
    questions: Sequence[Question],
    confidence: float,
    features: Any,
    columns: Mapping[str, Any] | None,
    skip_bad_rows: bool,
    seed: int,
    told: Told,
) -> Answers:
    """Return the answers of a log to questions; see `evaluate_log` for the arguments."""
    started = perf_counter()
    asked = checked_questions(questions)
    reader = reader_for(log, AskedQuestions(asked), columns, skip_bad_rows)
    tables = held_tables(reader)
    found: dict[str, Evaluation] = {}
    stated: tuple[str, ...] = ()
    for k, question in enumerate(asked):
        data = QuestionLog(reader, tables, question, features, seed)
        stated = stated or (*data.stated, *reader.stated_after(data.rows.read))
        (own,) = answered(data, confidence, [question.name])
        found[question.name] = evaluation_of(own, data, "LSTD")
        told(k + 1, len(asked))
    return Answers(found, stated, {"reading": reader.seconds, "all": perf_counter() - started})


def held_tables(reader: LogReader) -> Tables:
    """Return a function that yields the transitions of a log: from memory if they fit."""
    held, numbers = [], 0
    for table in reader.tables():
        numbers += 2 * table.observation.size + 8 * len(table)
        if numbers > KEPT_NUMBERS:
            return reader.tables
        held.append(table)
    return lambda: iter(held)


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
    actions: Integers | Array | None = None
    if rows.action.shape[1]:
        actions = rows.action[:, 0].astype(np.int64) if reader.actions and reader.actions.named else rows.action

    def plain(seen: Array) -> Array:
        if width > 1:
            return seen[:, :width]
        return seen[:, 0].astype(np.int64) if np.array_equal(seen[:, 0], np.round(seen[:, 0])) else seen[:, 0]

    return batch_of(len(rows), plain(rows.observation), actions, plain(rows.following), columns)
