"""The answers of a log to many questions: an evaluation of each.

A question is the case of a single action: its cumulants, discounts and ratios replace those of the log, and its
episodes restart after each of its ends and each gap in which it is not asked.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.comparison import answered
from gradient_dd.evaluation.log_data import OWN, LogData, TargetPolicy
from gradient_dd.evaluation.result import Evaluation, evaluation_of
from gradient_dd.evaluation.rows import KEPT_NUMBERS, EvaluationRows
from gradient_dd.progress import Told
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.columns import find_columns, missing
from gradient_dd.stream.log.rows import LogRows
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.question import ROLES, AskedQuestions, Batch, Question, batch_of
from gradient_dd.stream.questions import checked_questions

Tables = Callable[[], Iterator[LogRows]]


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """The answers of a log to questions: an `Evaluation` per name."""

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
        records = []
        for name, one in self.answers.items():
            value = {"name": name, "value": one.start_value, "low": one.found.low, "high": one.found.high}
            records.append(value | {"verdict": one.verdict.word, "rows": one.rows})
        return records

    def facts(self) -> dict[str, Any]:
        """Return everything except the weights as plain data."""
        each = {name: found.facts() for name, found in self.answers.items()}
        return {"questions": self.table, "answers": each, "stated": list(self.stated), "seconds": dict(self.seconds)}


class QuestionLog(LogData):
    """A log as seen by one question."""

    def __init__(self, reader: LogReader, tables: Tables, question: Question, features: Any, seed: int) -> None:
        self.reader, self.asked, self.actions, self.behaviour = reader, AskedQuestions([question]), None, None
        self.rows = EvaluationRows(reader, tables=partial(self._tables, tables), seed=seed)
        self.named, own = True, question.target is not None
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
    log: Any,
    questions: Any,
    confidence: float,
    told: Told,
    *,
    features: Any,
    columns: Any,
    skip_bad_rows: bool,
    seed: int,
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
        stated = stated or data.stated
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
