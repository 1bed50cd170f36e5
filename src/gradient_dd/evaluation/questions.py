"""Many questions about one log: a value, an interval and a verdict for each.

A question is the case of one action: its cumulants, discounts and ratios stand in the place of the log's own, and its
episodes begin again after each of its ends and each gap in which it is not asked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, whole_number
from gradient_dd.evaluation.compare import answered, checked_confidence
from gradient_dd.evaluation.log_data import LogData, TargetPolicy
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.rows import EvaluationRows
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.columns import find_columns, missing
from gradient_dd.stream.log.rows import LogRows
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.question import ROLES, AskedQuestions, Batch, Question, batch_of
from gradient_dd.stream.questions import checked_questions


@dataclass(frozen=True, eq=False)
class Answers:
    """What a log says to each question, by name: an `Evaluation`."""

    answers: Mapping[str, Evaluation]
    stated: tuple[str, ...]
    seconds: Mapping[str, float]

    def __getitem__(self, name: str) -> Evaluation:
        return self.answers[name]

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def table(self) -> list[dict[str, Any]]:
        """One record for each question: its name, the value where it begins, the interval, the verdict, and rows."""
        records = []
        for name, found in self.answers.items():
            low, high = found.start_interval
            value = {"name": name, "value": found.start_value, "low": float(low), "high": float(high)}
            records.append(value | {"verdict": found.verdict.word, "rows": found.rows})
        return records

    def facts(self) -> dict[str, Any]:
        """Return all but the weights as plain data."""
        each = {name: found.facts() for name, found in self.answers.items()}
        return {"questions": self.table, "answers": each, "stated": list(self.stated), "seconds": dict(self.seconds)}


class QuestionData(LogData):
    """A log as one question sees it."""

    def __init__(self, reader: LogReader, asked: AskedQuestions, k: int, features: Any, seed: int) -> None:
        self.reader, self.asked, self.k, self.actions, self.behaviour = reader, asked, k, None, None
        question = asked.questions[k]
        width = reader.first_rows().shape[1]
        self.rows = EvaluationRows(self._tables, width, 0, seed=seed)
        self.last, self.named = reader.last, True
        if not self.rows.n:
            got = Unquoted(f"none in {reader.last.rows} rows")
            raise bad_request(f"The log of question {question.name!r}", "have at least one transition of it", got)
        with_ratios = question.target is not None
        self.policies = [TargetPolicy(question.name, None, None, (), reader.decoded, own=with_ratios)]
        self._describe(features, seed)

    def _tables(self) -> Iterator[LogRows]:
        """Yield the rows in which the question is asked, with its numbers."""
        asked, group = self.asked, self.asked.group[self.k]
        episode, last = -1, (-1, -1, True)  # row, episode of the log, and whether the question ended there
        for rows in self.reader.tables():
            batch = as_batch(self.reader, rows)
            mu = np.where(np.isnan(rows.behaviour), 1.0, rows.behaviour)
            seen = asked.interests(batch)[:, asked.view[group]]
            discount = np.where(rows.discount == 0, 0.0, asked.discounts(batch)[:, group])
            rho = asked.probabilities(batch, mu)[:, group] / mu
            reward = asked.cumulants(batch)[:, asked.signal[self.k]]
            made = replace(rows, reward=reward, discount=discount, rho=rho).part(seen)
            if not len(made):
                continue
            ended = made.discount == 0
            before = np.concatenate([[last[0]], made.row[:-1]]), np.concatenate([[last[1]], made.episode[:-1]])
            begins = np.concatenate([[last[2]], ended[:-1]]) | (made.row != before[0] + 1) | (made.episode != before[1])
            own: Integers = episode + np.cumsum(begins)
            last = int(made.row[-1]), int(made.episode[-1]), bool(ended[-1])
            episode = int(own[-1])
            made.cut = (made.cut | np.append(begins[1:], False)) & ~ended
            made.episode = own
            yield made


def evaluate_questions(
    log: Any,
    questions: Sequence[Question],
    *,
    features: Any = None,
    columns: Mapping[str, Any] | None = None,
    skip_bad_rows: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    on_columns: Callable[[list[str]], None] = lambda stated: None,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Answers:
    """Return the answers of a log; the arguments are those of `evaluate_log`, and questions say the rest."""
    from gradient_dd.evaluation.log import evaluation_of

    started = perf_counter()
    confidence, seed = checked_confidence(confidence), whole_number("'seed'", seed, at_least=0)
    asked = AskedQuestions(checked_questions(questions))
    reader = reader_for(log, asked, columns, skip_bad_rows)
    found: dict[str, Evaluation] = {}
    stated: tuple[str, ...] = ()
    for k, question in enumerate(asked.questions):
        data = QuestionData(reader, asked, k, features, seed)
        if not stated:
            on_columns(data.stated)
            stated = (*data.stated, *reader.stated_after(data.last))
        found[question.name] = evaluation_of(answered(data, confidence)[0], "LSTD")
        on_progress(data.rows.n * (k + 1))
    return Answers(found, stated, {"reading": reader.seconds, "all": perf_counter() - started})


def reader_for(log: Any, asked: AskedQuestions, columns: Any, skip_bad_rows: bool) -> LogReader:
    """Return a reader that has all columns which the questions name, and actions where one has a target."""
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
    return LogReader(log, columns, 1.0, None, skip_bad_rows, actions=actions, signals=named)


def as_batch(reader: LogReader, rows: LogRows) -> Batch:
    """Return rows of a log as questions read them; one column of observations is (n,), of whole numbers if all are."""
    width = rows.observation.shape[1] - len(reader.carried)
    columns = dict(zip(reader.carried, rows.observation[:, width:].T, strict=True))
    actions: Integers | Array | None = None
    if rows.action.shape[1]:
        actions = rows.action[:, 0].astype(np.int64) if reader.actions and reader.actions.named else rows.action
    seen, after = (plain(reader.observed(one)) for one in (rows.observation, rows.following))
    return batch_of(len(rows), seen, actions, after, columns)


def plain(observations: Array) -> Array:
    """Return observations of one column as (n,), as whole numbers where they are."""
    if observations.shape[1] > 1:
        return observations
    values = observations[:, 0]
    return values.astype(np.int64) if np.array_equal(values, np.round(values)) else values


def refuse_options(given: Mapping[str, Any]) -> None:
    """Raise if an option of one question is given beside many."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, str) and value == "auto"):
            raise BadRequestError(f"{name!r} must be left out with 'questions'. Got {value!r}.")
