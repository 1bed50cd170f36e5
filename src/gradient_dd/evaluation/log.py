"""`gdd.evaluate_log`: the value of a policy from a log, an interval and a verdict, and values of states and actions.

It answers many questions too. A question is the case of one action: its cumulants, discounts and ratios stand in the
place of the log's own, and its episodes begin again after each of its ends and each gap in which it is not asked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, overload

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, whole_number
from gradient_dd.evaluation.by_learner import by_learner
from gradient_dd.evaluation.compare import Answered, answered, checked_confidence
from gradient_dd.evaluation.findings import Found, finding, findings_of, verdict_of
from gradient_dd.evaluation.log_data import OWN, LogData, TargetPolicy
from gradient_dd.evaluation.maps import too_wide
from gradient_dd.evaluation.result import ALONE, Evaluation, as_observations
from gradient_dd.evaluation.rows import EvaluationRows
from gradient_dd.learners import Rule, find
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.columns import find_columns, missing
from gradient_dd.stream.log.rows import LogRows
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.question import ROLES, AskedQuestions, Batch, Question, batch_of
from gradient_dd.stream.questions import checked_questions
from gradient_dd.studies.intervals import Interval

MOST_ASKED = 10_000  # distinct states whose values are given
POINTS = 100  # first states of episodes whose values are reported
TARGET, LOGGING = "target", "logging policy"


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
    on_columns: Callable[[list[str]], None] = lambda stated: None,
    on_progress: Callable[[int], None] = lambda rows: None,
    **parameters: Any,
) -> Evaluation | Answers:
    """Return the value of a policy, from transitions that another one made, with an interval and a verdict.

    The number, the interval and the verdict are those of `compare`; values of states and actions come on top.

    log        a .parquet, .csv, .npz or .npy file, a folder of Parquet files, a pandas frame, a dictionary of arrays,
               "minari:NAME" or a Minari dataset. Files may be larger than memory
    discount   γ, unless the log has a column of discounts
    target     the policy to evaluate, as `compare` takes it; a function of (observations, actions) that returns the
               probability of each action taken, (n,), is one too. Without it the policy is that of the log's own
               ratios or propensities, and without these the one that made the log
    features   a feature map; a function of an observation; "table", a weight for each distinct state; "raw", the
               observations as they are; "standard", scaled and with a constant; "quadratic"; "tiles", "fourier",
               "radial" or "polynomial" over the range of the first rows; "network", what an ensemble of networks learns
               from the log. Columns of text are categories. Default: "raw" for several columns called x… or feature…, a
               table for whole numbers and text, else the map that best predicts the returns of the log
    columns    columns by their role, where names are not the usual ones: {"reward": "r", "observation": ["a", "b"]}
    learner    "auto"; or "lstd", a name in LEARNERS or a Rule, whose weights are used instead. `parameters` are its own
    skip_bad_rows  leave out rows with missing or impossible numbers
    at         observations whose values are wanted, or "all": every distinct state of the log; default the first ones
               of episodes
    confidence of the intervals
    questions  several `Question`s to answer instead of the value of a policy: `Answers` has an evaluation of each. They
               say their own discount and target
    on_columns, on_progress
               are called with what each column is used for, before anything is solved, and with the rows read so far

    >>> import numpy as np
    >>> state = np.arange(400) % 4
    >>> log = {"obs": state, "reward": state == 3, "terminated": state == 3}
    >>> round(evaluate_log(log, discount=0.9).start_value, 3)
    0.729
    """
    options: dict[str, Any] = {"features": features, "columns": columns, "skip_bad_rows": skip_bad_rows, "seed": seed}
    options |= {"on_columns": on_columns, "on_progress": on_progress}
    if questions is not None:
        refuse_options({"discount": discount, "target": target, "learner": learner, "at": at, **parameters})
        return evaluate_questions(log, questions, confidence=confidence, **options)
    started = perf_counter()
    named = isinstance(learner, str) and learner in ("auto", "lstd")
    if named and parameters:
        raise bad_request("'learner'", f"be a learner where {sorted(parameters)[0]!r} is given", learner)
    if not named:
        find(learner).setting(**parameters)  # raises where one is wrong
    confidence, options["seed"] = checked_confidence(confidence), whole_number("'seed'", seed, at_least=0)
    own = find_columns(open_log(log).names, columns)
    ratios = own.rho or (own.target_probability and own.behaviour_probability)
    asked = target if target is not None else OWN if ratios else None
    targets = {LOGGING: None} if asked is None else {LOGGING: None, TARGET: asked}
    data = LogData(log, targets, discount=discount, **options)
    found = answered(data, confidence)[0]
    words = "AutoLearner" if too_wide(found.judged[-1].found.design) else "LSTD-Q"
    if not (isinstance(learner, str) and learner == "auto"):
        value, more, words = by_learner(data, data.policies[-1], found.judged[-1].found, learner, parameters)
        last = found.judged[-1]
        found.judged[-1] = last._replace(found=value, verdict=verdict_of([*last.verdict.findings, *more]))
    evaluation = evaluation_of(found, words)
    seconds = {"reading": data.reader.seconds, "all": perf_counter() - started}
    return replace(with_states(evaluation, data, at), seconds=seconds)


def evaluation_of(found: Answered, words: str) -> Evaluation:
    """Return the evaluation of the last policy of a log."""
    data, one = found.data, found.judged[-1]
    policy = data.policies[-1]
    logging = difference = None
    if len(found.judged) > 1:
        base, gap = found.judged[0].found, found.question("").gap(one, found.judged[0])
        logging, difference = Interval(base.value, base.low, base.high), Interval(gap.apart, gap.low, gap.high)
    starts = [piece.part(piece.starts) for piece in data.rows.sample if len(piece.starts)][:1]
    first = starts[0].part(np.sort(np.unique(starts[0].seen, axis=0, return_index=True)[1][:POINTS]))
    here = np.ones((len(first), 1))
    if not policy.by_ratio:
        here = policy.choices(replace(first, number=-1), data.propensities(first)).here
    return Evaluation(
        found=one.found,
        policy=policy,
        support=found.supports[-1],
        points=(one.found.map.matrix(first.seen), here),
        confidence=found.confidence,
        rows=data.rows.n,
        dimensions=first.seen.shape[1],
        chosen=words,
        logging=logging,
        difference=difference,
        verdict=one.verdict,
        stated=(*data.stated, *data.reader.stated_after(data.last)),
    )


def with_states(found: Evaluation, data: LogData, at: Any) -> Evaluation:
    """Return an evaluation with the states that were asked for."""
    if at is None:
        return found
    asked = asked_for(at, data)
    X, U = found._asked(asked)
    alone = int((found.support.leverage(U, X) > ALONE).sum())
    verdict = verdict_of([*found.verdict.findings, *findings_of("states", (len(asked), alone))])
    return replace(found, at=asked, points=(X, U), verdict=verdict)


@finding("states", "states asked for", "with care")
def unseen_states(counts: tuple[int, int]) -> Found:
    """A state that you asked for has no data nearby: its interval is as wide as the rewards allow, and where nothing in
    the data is like it there is no value. Remedy: data from there
    """
    asked, unseen = counts
    if unseen:
        yield (
            "with care",
            f"{unseen:,} of the {asked:,} states asked for have no data nearby: their intervals are as wide as the "
            "rewards allow. Collect data from there.",
        )


def asked_for(at: Any, data: LogData) -> Any:
    """Return the observations whose values are wanted, one a row."""
    reader = data.reader
    if isinstance(at, str):
        if at != "all":
            raise bad_request("'at'", "be observations, one a row, or 'all'", at)
        states = reader.states()
        if len(states) > MOST_ASKED:
            rule = f"be observations, where the log has more than {MOST_ASKED:,} distinct ones"
            raise bad_request("'at'", rule, at, "Name some: at=[...], or --at.")
        return reader.decoded(states)
    rows = np.asarray(at, dtype=object if reader.words else None)
    d = len(reader.columns.observation)
    return as_observations(rows.reshape(-1, 1) if rows.ndim < 2 and d == 1 else np.atleast_2d(rows))


# Many questions ---------------------------------------------------------------------------------------------


class QuestionLog(LogData):
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
    started = perf_counter()
    confidence, seed = checked_confidence(confidence), whole_number("'seed'", seed, at_least=0)
    asked = AskedQuestions(checked_questions(questions))
    reader = reader_for(log, asked, columns, skip_bad_rows)
    found: dict[str, Evaluation] = {}
    stated: tuple[str, ...] = ()
    for k, question in enumerate(asked.questions):
        data = QuestionLog(reader, asked, k, features, seed)
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
