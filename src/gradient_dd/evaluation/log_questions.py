"""Many questions about one log: a value, an interval and a verdict for each, in one pass over the file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.errors import BadRequestError, Unquoted, bad_request
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.stream import Evaluator
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.learners import Rule
from gradient_dd.stream.features import Rows
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.columns import find_columns, missing
from gradient_dd.stream.log.rows import LogRows
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.question import ROLES, AskedQuestions, Batch, Question, batch_of
from gradient_dd.stream.questions import checked_questions

REFUSED = ("discount", "target", "passes", "order", "at")  # what a question says itself, or what needs one question


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


class OneQuestion:
    """The evaluator of one question, and where its present episode stands: it begins anew after each end and gap."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.episode, self.last = -1, (-1, -1, True)  # row, episode of the log, and whether the question ended there

    def observe(
        self, x: Rows, x_next: Rows, rows: LogRows, numbers: tuple[Array, Array, Array], seen: Booleans
    ) -> None:
        """Take the rows in which the question is asked; `numbers` are cumulants, discounts and ratios."""
        if not seen.any():
            return
        cumulant, discount, rho = (one[seen] for one in numbers)
        row, episode = rows.row[seen], rows.episode[seen]
        before = np.concatenate([[self.last[0]], row[:-1]]), np.concatenate([[self.last[1]], episode[:-1]])
        ended = np.concatenate([[self.last[2]], discount[:-1] == 0])
        begins = ended | (row != before[0] + 1) | (episode != before[1])
        own = self.episode + np.cumsum(begins)
        cut = rows.cut[seen] | np.concatenate([begins[1:] & (discount[:-1] != 0), [False]])
        self.episode, self.last = int(own[-1]), (int(row[-1]), int(episode[-1]), bool(discount[-1] == 0))
        whole = Transitions(x, x_next, *numbers, rows.episode, rows.cut).part(seen)
        gone = (discount == 0)[:, None]
        there = Rows(whole.x_next.indices, np.where(gone, 0.0, whole.x_next.values))
        self.evaluator.observe(Transitions(whole.x, there, cumulant, discount, rho, own, cut & (discount != 0)))


def evaluate_questions(
    log: Any,
    questions: Sequence[Question],
    *,
    features: Any = None,
    columns: Mapping[str, Any] | None = None,
    learner: str | Rule = "auto",
    skip_bad_rows: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    on_columns: Callable[[list[str]], None] = lambda stated: None,
    on_progress: Callable[[int], None] = lambda rows: None,
    **parameters: Any,
) -> Answers:
    """Return the answers of a log; the arguments are those of `evaluate_log`, and questions say the rest."""
    started = perf_counter()
    asked = AskedQuestions(checked_questions(questions))
    reader = reader_for(log, asked, columns, skip_bad_rows)
    mapping, words = reader.feature_map(features)
    options = {"learner": learner, "features": mapping, "confidence": confidence, "seed": seed, **parameters}
    each = [OneQuestion(Evaluator(mapping.n_features, **options)) for _ in asked.questions]
    stated = [*reader.columns.stated(), words]
    on_columns(stated)
    for x, x_next, rows in reader.batches(mapping):
        batch, ended = as_batch(reader, rows), (rows.discount == 0)[:, None]
        mu = np.where(np.isnan(rows.behaviour), 1.0, rows.behaviour)
        signals, seen = asked.cumulants(batch), asked.interests(batch)
        discount = np.where(ended, 0.0, asked.discounts(batch))
        rho = asked.probabilities(batch, mu) / mu[:, None]
        for k, one in enumerate(each):
            group = asked.group[k]
            numbers = signals[:, asked.signal[k]], discount[:, group], rho[:, group]
            one.observe(x, x_next, rows, numbers, seen[:, asked.view[group]])
        on_progress(reader.last.rows)
    for question, one in zip(asked.questions, each, strict=True):
        if one.evaluator.rows == 0:
            got = Unquoted(f"none in {reader.last.rows} rows")
            raise bad_request(f"The log of question {question.name!r}", "have at least one transition of it", got)
    found = {question.name: one.evaluator.result() for question, one in zip(asked.questions, each, strict=True)}
    seconds = {"reading": reader.seconds, "all": perf_counter() - started}
    return Answers(found, (*stated, *reader.stated_after()), seconds)


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
    for name in REFUSED:
        if given.get(name) not in (None, "log"):
            raise BadRequestError(f"{name!r} must be left out with 'questions'. Got {given[name]!r}.")
