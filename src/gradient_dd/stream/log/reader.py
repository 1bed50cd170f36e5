"""Reads a log of any form as transitions with features, for `evaluate_log`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request, boolean, number
from gradient_dd.stream.features import Categories, Features, Rows
from gradient_dd.stream.features.named import Named, map_of
from gradient_dd.stream.features.sparse import MOST_STATES, spread_out
from gradient_dd.stream.log.actions import Actions, find_actions
from gradient_dd.stream.log.columns import LogColumns, find_columns, missing
from gradient_dd.stream.log.rows import LogRows, RowReader, with_texts
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.policies import LogPolicy, log_policy


class LogReader:
    """Reads a log, as often as asked. `last` has what the last pass found, `seconds` how long reading took.

    log, columns, discount, target, skip_bad_rows   as `evaluate_log` takes them
    actions   whether rows have the actions taken and their probabilities, instead of ratios
    carried   further columns of numbers that go along with the observation, in its place before and after a step: a
              column "a" after the step is "next_a", if the log has next observations
    ratios    whether rows have the ratios of the log's own columns, where actions are not asked for
    signals   further columns of numbers that belong to the step, such as other rewards; `carried` begins with them
    """

    def __init__(
        self,
        log: Any,
        columns: Mapping[str, Any] | None = None,
        discount: float | None = None,
        target: Any = None,
        skip_bad_rows: bool = False,
        actions: bool = False,
        carried: tuple[str, ...] = (),
        signals: tuple[str, ...] = (),
        ratios: bool = True,
    ) -> None:
        self.source = open_log(log)
        found = find_columns(self.source.names, columns)
        self.carried, self.signals = (*signals, *carried), signals
        more = {*self.carried, *(f"next_{name}" for name in carried)}
        self.columns = replace(found, unused=tuple(name for name in found.unused if name not in more))
        self.actions = self._find_actions() if actions else None
        self.ratios = ratios
        self.discount = checked_discount(self.columns, discount)
        self.target = checked_target(self.columns, target, self.source.names)
        self.skip = boolean("'skip_bad_rows'", skip_bad_rows)
        self.words: dict[str, dict[str, int]] = {}  # the texts of each column of text, and their places
        self.seconds, self.last = 0.0, self._new_pass()

    def _find_actions(self) -> Actions:
        if self.columns.action is None:
            raise missing("With a target policy, a column of the role 'action'", "action", self.source.names)
        return find_actions(self.source, self.columns.action)

    def _new_pass(self) -> RowReader:
        after = tuple(self._name_after(name) for name in self.carried) if self.columns.next else ()
        before = replace(
            self.columns, observation=(*self.columns.observation, *self.carried), next=(*self.columns.next, *after)
        )
        return RowReader(before, self.discount, self.target, self.skip, self.actions, self.words, self.ratios)

    def _name_after(self, name: str) -> str:
        """Return the column that has after a step what `name` has before the step; a signal is not looked at there."""
        after = f"next_{name}"
        if name in self.signals:
            return name
        if after not in self.source.names:
            raise missing(f"Where the log has next observations, the column {after!r}", after, self.source.names)
        return after

    def tables(self) -> Iterator[LogRows]:
        """Yield the transitions of the log once, observations as they are in the log, with what they carry."""
        self.last = self._new_pass()
        yield from self.last.read(self._timed(self.source.chunks(self.last.needed, self.columns.episode)))

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
            return self.observed(table.observation)
        what = f"The log {self.source.name}"
        if self.last.rows == 0:
            raise bad_request(what, "have rows", Unquoted("none"))
        rule = "have a transition: two rows of one episode, or an end"
        raise bad_request(what, rule, Unquoted(f"{self.last.rows} rows without one"))

    def observed(self, wide: Array) -> Array:
        """Return observations without what they carry."""
        return wide[:, : wide.shape[1] - len(self.carried)]

    def batches(self, features: Features) -> Iterator[tuple[Rows, Rows, LogRows]]:
        """Yield the features of both states, 0 after an end, and the rows they are made of."""
        rows = features.of_numbers if isinstance(features, Categories) else features.rows
        for table in self.tables():
            seen, after = self.observed(table.observation), self.observed(table.following)
            ended = (table.discount == 0)[:, None]
            here = rows(seen)
            there = rows(np.where(ended, seen, after))  # any legal observation will do
            yield here, Rows(there.indices, np.where(ended, 0.0, there.values)), table

    def states(self) -> Array:
        """Return the distinct observations of the log, next ones too, (n, d); this reads all of it."""
        found = np.empty((0, 0))
        for table in self.tables():
            seen, after = self.observed(table.observation), self.observed(table.following[table.discount > 0])
            found = np.unique(np.concatenate([seen, after, *([found] if found.size else [])]), axis=0)
            if len(found) > MOST_STATES:
                break
        return found

    def decoded(self, observations: Array) -> Any:
        """Return observations as the log has them, with their texts."""
        return with_texts(observations, self.columns.observation, self.words)

    def feature_map(self, features: Any, default: str = "standard") -> tuple[Features, str]:
        """Return the feature map that the user asks for, and a sentence about it."""
        first = self.first_rows()
        if features is None:  # one number alone needs a constant
            plain = self.columns.are_features and first.shape[1] > 1
            features = "table" if len(self.words) == first.shape[1] else "raw" if plain else default
        if not self.words:
            return map_of(features, Named(first, self.states))
        if isinstance(features, Features) or not isinstance(features, str):
            return map_of(features, Named(self.decoded(first), self.states))
        self.states()  # after this all texts are known
        texts = [list(self.words[name]) if name in self.words else None for name in self.columns.observation]
        spread = features != "table"
        numbers = spread_out(first, texts) if spread else first
        inner, sentence = map_of(features, Named(numbers, self.states))
        return Categories(texts, inner, spread), f"{sentence[:-1]}; text is taken as categories."

    def stated(self, features: str) -> list[str]:
        """Return what each column was taken for, the sentence about features, and where the ratios come from."""
        columns, ratios = self.columns, ["There are no ratios: the value is that of the policy that made the log."]
        if self.target is not None:
            ratios = ["Ratios: the target policy over the propensities."]
        elif columns.rho is not None:
            ratios = []
        elif columns.behaviour_probability and columns.target_probability:
            ratios = ["Ratios: target over behaviour."]
        return [*columns.stated(), features, *ratios]

    def stated_after(self, done: RowReader | None = None) -> list[str]:
        """Return what happened to rows that are not used, in a pass that is done; by default in the last one."""
        found, last = [], done or self.last
        if last.n_skipped:
            where = ", ".join(f"{row:,} ({name})" for row, name in last.skipped)
            found.append(f"{last.n_skipped:,} bad rows were skipped, the first in row {where}.")
        if count := last.dropped.count:
            found.append(f"{count:,} rows were left out because their next observation is not known.")
        return found


def checked_discount(columns: LogColumns, discount: float | None) -> float:
    """Return γ, which must be given unless the log has a column of discounts; γ is then not used."""
    if discount is None and columns.discount is None:
        hint = "Give discount=0.99, or --discount 0.99."
        raise bad_request("'discount'", "be given where the log has no column of discounts", Unquoted("none"), hint)
    return 1.0 if discount is None else number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)


def checked_target(columns: LogColumns, target: Any, names: list[str]) -> LogPolicy | None:
    """Return the target policy as a function; the log must have what the policy needs."""
    if target is None:
        return None
    for role in ("action", "behaviour_probability"):
        if getattr(columns, role) is None:
            raise missing(f"With a target policy, a column of the role {role!r}", role, names)
    return log_policy(target)
