"""evaluate_log: from a file or a frame to values, an interval and a verdict."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, overload

import numpy as np

from gradient_dd.errors import BadRequestError, Unquoted, bad_request, whole_number
from gradient_dd.evaluation.action_evaluation import evaluate_actions, evaluate_by_learner
from gradient_dd.evaluation.action_log import TooWideError
from gradient_dd.evaluation.findings import findings_of, verdict_of
from gradient_dd.evaluation.log_findings import LogFacts
from gradient_dd.evaluation.log_questions import Answers, evaluate_questions, refuse_options
from gradient_dd.evaluation.network_map import network_map
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.stream import PASSES_THAT_END, Evaluator
from gradient_dd.evaluation.support import ALONE
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.learners import Rule
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.actions import find_actions
from gradient_dd.stream.policies import all_probabilities, wants_actions
from gradient_dd.stream.question import Question

MOST_ASKED = 10_000  # distinct states whose values are given


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
    passes: int | None = None,
    order: str = "log",
    skip_bad_rows: bool = False,
    at: Any = None,
    confidence: float = 0.95,
    seed: int = 0,
    on_columns: Callable[[list[str]], None] = lambda stated: None,
    on_progress: Callable[[int], None] = lambda rows: None,
    **parameters: Any,
) -> Evaluation | Answers:
    """Return the values of a policy, from transitions that another one made.

    log        a .parquet, .csv, .npz or .npy file, a pandas frame, a dictionary of arrays, "minari:NAME" or a Minari
               dataset. Files may be larger than memory
    discount   γ, unless the log has a column of discounts
    target     the policy to evaluate, unless the log has ratios or its propensities: a function of observations, or of
               (observations, actions), that returns the probability of each action taken, (n,), or of all actions,
               (n, actions); or a table (states, actions) where the observation is the number of a state. Without any
               of these the value is that of the policy that made the log
    features   a feature map; a function of an observation; "table", a weight for each distinct state; "raw", the
               observations as they are; "standard", scaled and with a constant; "tiles", "fourier", "radial" or
               "polynomial" over the range of the first rows; "network", what an ensemble of networks learns from
               the log. Columns of text are categories. Default: "raw" for several columns called x… or feature…,
               "table" for text alone, else "standard"
    columns    columns by their role, where names are not the usual ones: {"reward": "r", "observation": ["a", "b"]}
    at         observations whose values are wanted, or "all": every distinct state of the log; default the first ones
               of episodes
    questions  several `Question`s to answer in one pass, instead of the value of a policy: `Answers` has an evaluation
               of each. They say their own discount and target
    on_columns, on_progress
               are called with what each column was taken for, before anything is learnt, and with the rows read so far

    The other arguments are those of `Evaluator`.
    """
    if questions is not None:
        refuse_options({"discount": discount, "target": target, "passes": passes, "order": order, "at": at})
        options = {"features": features, "columns": columns, "learner": learner, "skip_bad_rows": skip_bad_rows}
        options |= {"confidence": confidence, "seed": seed, "on_columns": on_columns, "on_progress": on_progress}
        return evaluate_questions(log, questions, **options, **parameters)
    started = perf_counter()
    by_network = isinstance(features, str) and features == "network"
    named = learner if isinstance(learner, str) else ""
    by_ratios = by_network or named == "lstd"
    if target is not None and not by_ratios and takes_actions(log, target, columns, skip_bad_rows):
        reading = {"discount": discount, "features": features, "columns": columns, "skip_bad_rows": skip_bad_rows}
        reading |= {"on_columns": on_columns, "on_progress": on_progress}
        given: dict[str, Any] = {"confidence": confidence, "seed": seed}
        with suppress(TooWideError):  # with so many features the learners of linear time take the ratios
            if named == "auto":
                found, read = evaluate_actions(log, target, **reading, **given)
            else:
                given |= {"learner": learner, "passes": passes, "order": order, **parameters}
                found, read = evaluate_by_learner(log, target, given, **reading)
            return with_log(found, read.reader, columns, read.stated, asked_for(at, read.reader), started)
    turns = 1 if passes is None else whole_number("'passes'", passes, at_most=PASSES_THAT_END)
    reader = LogReader(log, columns, discount, target, skip_bad_rows)
    mapping, words = network_map(reader, seed) if by_network else reader.feature_map(features)
    evaluator = Evaluator(
        mapping.n_features,
        learner=learner,
        features=mapping,
        passes=passes,
        order=order,
        confidence=confidence,
        seed=seed,
        **parameters,
    )
    stated = reader.stated(words)
    on_columns(stated)
    for turn in range(turns):
        if turn and evaluator.portfolio is None:
            break  # the log is short: the evaluator has kept it, and replays it
        begins = True
        for x, x_next, rows in reader.batches(mapping):
            batch = Transitions(x, x_next, rows.reward, rows.discount, rows.rho, rows.episode, rows.cut)
            if turn:
                evaluator.learn_again(batch, begins)
            else:
                evaluator.observe(batch)
            begins = False
            on_progress(reader.last.rows)
    if evaluator.rows == 0:
        raise bad_request(
            f"{reader.source.name}", "have at least one transition", Unquoted(f"none in {reader.last.rows} rows")
        )
    return with_log(evaluator.result(), reader, columns, stated, asked_for(at, reader), started)


def with_log(
    result: Evaluation,
    reader: LogReader,
    columns: Mapping[str, Any] | None,
    stated: list[str],
    asked: Any,
    started: float,
) -> Evaluation:
    """Return an evaluation with what reading the log has shown, and with the states that were asked for."""
    assert result.features is not None
    points = result.points if asked is None else result.features.rows(asked)
    alone = 0 if asked is None else int((result.support.leverage(points) > ALONE).sum())
    last, named = reader.last, "observation" in (columns or {})
    seen = last.ends_inside, last.first_inside, last.dropped, last.used
    facts = LogFacts(reader.columns, named, *seen, reader.discount, 0 if asked is None else len(asked), alone)
    return replace(
        result,
        verdict=verdict_of([*result.verdict.findings, *findings_of("log", facts)]),
        stated=(*stated, *reader.stated_after()),
        seconds={"reading": reader.seconds, "all": perf_counter() - started},
        at=asked,
        points=points,
    )


def takes_actions(log: Any, target: Any, columns: Mapping[str, Any] | None, skip_bad_rows: bool) -> bool:
    """Return whether a target policy tells the probabilities of all actions of a log, or which action it takes.

    A function that only knows the probabilities of the actions taken leaves the ratios.
    """
    if not callable(target) or not wants_actions(target):
        return True
    reader = LogReader(log, columns, 1.0, None, skip_bad_rows)
    if reader.columns.action is None:
        return False
    actions = find_actions(reader.source, reader.columns.action)
    try:
        all_probabilities("target", target, reader.decoded(reader.first_rows()[:2]), actions.names)
    except BadRequestError:
        return False
    return actions.named


def asked_for(at: Any, reader: LogReader) -> Any:
    """Return the observations whose values are wanted, one a row; None for the first ones of episodes."""
    if at is None:
        return None
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
    return rows.reshape(-1, 1) if rows.ndim < 2 and d == 1 else np.atleast_2d(rows)
