"""evaluate_log: from a file or a frame to values, an interval and a verdict."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from inspect import signature
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, numbers
from gradient_dd.errors import Words, must, number, unknown, whole_number
from gradient_dd.evaluation.findings import Finding, findings_of
from gradient_dd.evaluation.log.columns import Columns, find_columns, missing
from gradient_dd.evaluation.log.findings import LogFacts
from gradient_dd.evaluation.log.rows import RowReader, Table, Target
from gradient_dd.evaluation.log.sources import Source, open_log
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.stream import Evaluator
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.evaluation.verdict import verdict_of
from gradient_dd.learners import Rule
from gradient_dd.stream.features import FEATURES, Features, Own, Rows, from_data
from gradient_dd.stream.features import Columns as ScaledColumns

PLAIN = ("raw", "standard")
OTHER_FEATURES = ("one_hot", "columns", "structured")  # the range of the first rows does not define them


def evaluate_log(
    log: Any,
    *,
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
) -> Evaluation:
    """Return the values of a policy, from transitions that another one made.

    log        a .parquet, .csv, .npz or .npy file, a pandas frame, a dictionary of arrays, "minari:NAME" or a Minari
               dataset. Files may be larger than memory
    discount   γ, unless the log has a column of discounts
    target     the policy to evaluate, unless the log has ratios or its propensities: a function of observations, or of
               (observations, actions), that returns the probability of each action taken, (n,), or of all actions,
               (n, actions); or a table (states, actions) where the observation is the number of a state. Without any
               of these the value is that of the policy that made the log
    features   a feature map; a function of an observation; "raw", the observations as they are; "standard", scaled and
               with a constant; "tiles", "fourier", "radial" or "polynomial" over the range of the first rows. Default:
               "raw" for several columns called x… or feature…, else "standard"
    columns    columns by their role, where names are not the usual ones: {"reward": "r", "observation": ["a", "b"]}
    at         observations whose values are wanted; default the first ones of episodes
    on_columns, on_progress
               are called with what each column was taken for, before anything is learnt, and with the rows read so far

    The other arguments are those of `Evaluator`.
    """
    started = perf_counter()
    source = open_log(log)
    found = find_columns(source.names, columns or {})
    gamma = checked_discount(found, discount)
    policy = checked_target(found, target, source.names)
    reader = LogReader(source, found, gamma, policy, skip_bad_rows)
    first = reader.first_rows()
    mapping, words = feature_map(features, found, first)
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
    stated = [*found.stated(), words, *ratio_words(found, policy)]
    on_columns(stated)
    for turn in range(1 if passes is None else whole_number("'passes'", passes)):
        if turn and evaluator.portfolio is None:
            break  # the log is short: the evaluator has kept it, and replays it
        begin = True
        for batch in reader.batches(mapping):
            if turn:
                evaluator.learn_again(batch, begin)
            else:
                evaluator.observe(batch)
            begin = False
            on_progress(reader.rows)
    if evaluator.rows == 0:
        raise must(f"{source.name}", "have at least one transition", Words(f"none in {reader.rows} rows"))
    result = evaluator.result()
    findings = [*result.verdict.findings, *reader.findings(named="observation" in (columns or {}))]
    stated += reader.stated()
    seconds = {"reading": reader.seconds, "all": perf_counter() - started}
    points = result.points if at is None else mapping.rows(numbers("'at'", at))
    return replace(result, verdict=verdict_of(findings), stated=tuple(stated), seconds=seconds, points=points)


class LogReader:
    """Reads a log, as often as asked, as batches of transitions; measures how long reading takes."""

    def __init__(
        self, source: Source, columns: Columns, discount: float | None, target: Target | None, skip: bool
    ) -> None:
        self.source, self.columns, self.skip = source, columns, skip
        self.discount, self.target = discount, target
        self.seconds = 0.0
        self.last: RowReader = self._fresh()

    @property
    def rows(self) -> int:
        """How many rows have been read."""
        return self.last.rows

    def _fresh(self) -> RowReader:
        return RowReader(self.columns, self.discount, self.target, self.skip)

    def tables(self) -> Iterator[Table]:
        """Yield the transitions, observations as they are in the log."""
        self.last = self._fresh()
        yield from self.last.read(self._timed(self.source.chunks(self.columns.needed)))

    def _timed(self, chunks: Iterator[Any]) -> Iterator[Any]:
        while True:
            begin = perf_counter()
            chunk = next(chunks, None)
            self.seconds += perf_counter() - begin
            if chunk is None:
                return
            yield chunk

    def first_rows(self) -> Array:
        """Return the observations of the first transitions."""
        for table in self.tables():
            return table.observation
        if self.last.rows == 0:
            raise must(f"The log {self.source.name}", "have rows", Words("none"))
        rule = "have a transition: two rows of one episode, or an end"
        raise must(f"The log {self.source.name}", rule, Words(f"{self.last.rows} rows without one"))

    def batches(self, features: Features) -> Iterator[Transitions]:
        """Yield the transitions with their features."""
        for table in self.tables():
            here = features.rows(table.observation)
            ended = table.discount == 0
            assert table.following is not None
            following = np.where(ended[:, None], table.observation, table.following)  # any legal observation will do
            there = features.rows(following)
            there = Rows(there.indices, np.where(ended[:, None], 0.0, there.values))
            yield Transitions(here, there, table.reward, table.discount, table.rho, table.episode, table.cut)

    def stated(self) -> list[str]:
        """Return what happened to rows that are not used."""
        found = []
        if self.last.n_skipped:
            where = ", ".join(f"{row:,} ({name})" for row, name in self.last.skipped)
            found.append(f"{self.last.n_skipped:,} bad rows were skipped, the first in row {where}.")
        if count := self.last.dropped.count:
            found.append(f"{count:,} rows were left out because their next observation is not known.")
        return found

    def findings(self, named: bool) -> list[Finding]:
        """Return what speaks against the columns, once the log was read; `named` are those of the observation."""
        last = self.last
        facts = LogFacts(self.columns, named, last.ends_inside, last.first_inside, last.dropped, last.used)
        return findings_of("log", facts)


def checked_discount(columns: Columns, discount: float | None) -> float | None:
    """Return γ; it must be given unless the log has a column of discounts."""
    if discount is None and columns.discount is None:
        hint = "Give discount=0.99, or --discount 0.99."
        raise must("'discount'", "be given where the log has no column of discounts", Words("none"), hint)
    return None if discount is None else number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)


def wants_actions(target: Any) -> bool:
    """Return whether a policy is called with observations and actions; one for `evaluate` takes observations alone."""
    try:
        wanted = signature(target).parameters.values()
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return True
    return len([one for one in wanted if one.default is one.empty and one.kind != one.KEYWORD_ONLY]) != 1


def checked_target(columns: Columns, target: Any, names: list[str]) -> Target | None:
    """Return the target policy as a function; what it needs must be in the log."""
    if target is None:
        return None
    for role, name in (("action", columns.action), ("behaviour_probability", columns.behaviour_probability)):
        if name is None:
            raise missing(f"With a target policy, a column of the role {role!r}", role, names)
    if callable(target):
        return target if wants_actions(target) else lambda observations, actions: target(observations)
    table = numbers("'target'", target)
    if table.ndim != 2:
        raise must("'target'", "be a function, or a table (states, actions)", target)

    def of_table(observations: Array, actions: Any) -> Array:
        state = observations[:, 0].astype(int)
        if observations.shape[1] != 1 or (state < 0).any() or (state >= len(table)).any():
            raise must("Observations", f"be numbers of states from 0 to {len(table) - 1}, for a table", observations[0])
        return np.asarray(table[state])

    return of_table


def feature_map(features: Any, columns: Columns, first: Array) -> tuple[Features, str]:
    """Return the feature map, and a sentence about it."""
    if isinstance(features, Features):
        return features, f"Features: {features!r}."
    if callable(features) or hasattr(features, "transform"):
        own = Own(features)
        own.rows(first[:2])
        return own, f"Features are your own: {own.n_features} of them."
    d = first.shape[1]
    kind = features or ("raw" if columns.are_features and d > 1 else "standard")  # one number alone needs a constant
    if kind == "raw":
        return ScaledColumns(
            np.zeros(d), np.ones(d), intercept=False
        ), f"Features are the {d} observations as they are."
    if kind == "standard":
        words = f"Features are the {d} observations, scaled by the first {len(first):,} rows, and a constant."
        return ScaledColumns.fitted(first), words
    kinds = [name for name in FEATURES if name not in OTHER_FEATURES]
    if kind in kinds:
        low, high = first.min(axis=0), first.max(axis=0)
        high = np.where(high > low, high, low + 1.0)
        mapping = from_data({"kind": kind, "low": low, "high": high, "outside": "clip"})
        return mapping, f"Features: {mapping!r}, over the range of the first {len(first):,} rows."
    if isinstance(features, str):
        raise unknown("features", features, [*PLAIN, *kinds])
    raise must("'features'", f"be a feature map, a function, or one of {', '.join([*PLAIN, *kinds])}", features)


def ratio_words(columns: Columns, target: Target | None) -> list[str]:
    """Return where the ratios come from."""
    if target is not None:
        return ["Ratios: the target policy over the propensities."]
    if columns.rho is not None:
        return []
    if columns.behaviour_probability and columns.target_probability:
        return ["Ratios: target over behaviour."]
    return ["There are no ratios: the value is that of the policy that made the log."]
