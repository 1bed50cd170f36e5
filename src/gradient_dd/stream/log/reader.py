"""LogReader: a log of any format as transitions with features, for `evaluate_log`."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request, boolean, number
from gradient_dd.stream.features import Categories, Features, map_of
from gradient_dd.stream.features.sparse import MOST_STATES, spread_out
from gradient_dd.stream.log.columns import find_actions, find_columns, missing
from gradient_dd.stream.log.rows import LogRows, ReadCounts, RowReader
from gradient_dd.stream.log.sources import Source, open_log

SMALL = 1_000_000  # rows of a folder up to which its files are one part


class LogReader:
    """A log that can be read repeatedly; `last` has the counts of the last pass, `seconds` the total reading time.

    log, columns, discount, skip_bad_rows   as for `evaluate_log`
    actions   whether rows have the actions taken and their probabilities, instead of ratios
    carried   further columns of numbers that belong to the observation, before and after a step: the column "a"
              after the step is "next_a", if the log has next observations
    signals   further columns of numbers that belong to the step, such as other rewards; `carried` begins with them
    ratios    whether rows have the ratios of the log's own columns, if they have no actions
    files     the files of each part of the log; no episode spans two parts
    """

    def __init__(
        self,
        log: Any,
        columns: Mapping[str, Any] | None = None,
        discount: float | None = None,
        skip_bad_rows: bool = False,
        actions: bool = False,
        carried: tuple[str, ...] = (),
        signals: tuple[str, ...] = (),
        ratios: bool = True,
    ) -> None:
        self.source = open_log(log)
        found = find_columns(self.source.names, columns, actions)
        self.carried, self.signals, self.ratios = (*signals, *carried), signals, ratios
        more = {*self.carried, *(f"next_{name}" for name in carried)}
        self.columns = replace(found, unused=tuple(name for name in found.unused if name not in more))
        self.actions = None
        if actions:
            name = str(found.action)
            self.actions = find_actions(name, (chunk[name] for chunk in self.source.chunks([name], name)))
        if discount is None and found.discount is None:
            hint = "Give discount=0.99, or --discount 0.99."
            raise bad_request("'discount'", "be given unless the log has a column of discounts", Unquoted("none"), hint)
        self.discount = 1.0 if discount is None else number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        self.skip = boolean("'skip_bad_rows'", skip_bad_rows)
        self.words: dict[str, dict[str, int]] = {}  # the texts of each column of text, and their numbers
        self.seconds, self.last = 0.0, ReadCounts()
        self._first = [0]
        self.files = dict(enumerate(self._split()))
        self._first = [0, *itertools.accumulate(self.sizes)]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker needs; the files of a part are sent with the part and opened by the worker."""
        return self.__dict__ | {"last": ReadCounts(), "source": None, "files": {}}

    @property
    def sizes(self) -> list[int]:
        """The number of rows of each part, 0 if unknown."""
        return [sum(one.rows for one in files) for files in self.files.values()]

    def _split(self) -> list[list[Source]]:
        """Return the files of each part; a log that is not a large folder is one part."""
        files = [one for one in self.source.files if one.rows]
        if len(files) < 2 or sum(one.rows for one in files) <= SMALL:
            return [[self.source]]
        found, roles = [[files[0]]], ("terminated", "truncated", "done", "discount", "episode")
        names = [name for role in roles if (name := getattr(self.columns, role)) is not None]
        for before, after in itertools.pairwise(files):
            ends = before.edge(names, True), after.edge(names, False)
            both = {name: np.concatenate([one[name] for one in ends]) for name in names}
            if self._new_pass().joins(both):
                found[-1].append(after)
            else:
                found.append([after])
        return found

    def _new_pass(self, part: int = 0) -> RowReader:
        columns = self.columns
        after = columns.next
        if after:  # the value of a signal after the step is not used
            after += tuple(name if name in self.signals else f"next_{name}" for name in self.carried)
        for name in after if self.source else ():
            if name not in self.source.names:
                raise missing(f"If the log has next observations, the column {name!r}", name, self.source.names)
        columns = replace(columns, observation=(*columns.observation, *self.carried), next=after)
        return RowReader(columns, self.discount, self.skip, self.actions, self.words, self.ratios, self._first[part])

    def tables(self, part: int | None = None) -> Iterator[LogRows]:
        """Yield the transitions of the log, or of a part, with observations as in the log and carried columns."""
        found = self._new_pass(part or 0)
        self.last = found.counts
        sources = [self.source] if part is None else self.files[part]

        def chunks() -> Iterator[Any]:
            begin = perf_counter()
            for one in sources:
                for chunk in one.chunks(found.needed, self.columns.episode):
                    self.seconds += perf_counter() - begin
                    yield chunk
                    begin = perf_counter()
            self.seconds += perf_counter() - begin

        yield from found.read(chunks())

    def first_rows(self) -> Array:
        """Return the observations of the first transitions."""
        for table in self.tables():
            return self.observed(table.observation)
        what = f"The log {self.source.name}"
        if self.last.rows == 0:
            raise bad_request(what, "have rows", Unquoted("none"))
        rule = "have a transition: two rows of one episode, or a row that ends one"
        raise bad_request(what, rule, Unquoted(f"{self.last.rows} rows without one"))

    def observed(self, wide: Array) -> Array:
        """Return observations without carried columns."""
        return wide[:, : wide.shape[1] - len(self.carried)]

    def states(self) -> Array:
        """Return the distinct observations of the log, including next ones, (n, d); stop beyond MOST_STATES."""
        found = np.empty((0, 0))
        for table in self.tables():
            seen, after = self.observed(table.observation), self.observed(table.following[table.discount > 0])
            found = np.unique(np.concatenate([seen, after, *([found] if found.size else [])]), axis=0)
            if len(found) > MOST_STATES:
                break
        return found

    def decoded(self, observations: Array) -> Any:
        """Return observations as in the log: numbers (n, d), or objects where a column is text."""
        if not self.words:
            return observations
        found = observations.astype(object)
        for i, texts in enumerate(self.texts):
            if texts is not None:
                found[:, i] = [texts[int(place)] if place >= 0 else None for place in observations[:, i]]
        return found

    @property
    def texts(self) -> list[list[str] | None]:
        """The texts of each observation column, None for a column of numbers."""
        return [list(self.words[name]) if name in self.words else None for name in self.columns.observation]

    def feature_map(self, features: Any) -> tuple[Features, str]:
        """Return the feature map that the user names or passes, and a sentence about it."""
        first = self.first_rows()
        if not self.words or not isinstance(features, str):
            return map_of(features, self.decoded(first), self.states)
        self.states()  # after this all texts are known
        spread = features != "table"
        numbers = spread_out(first, self.texts) if spread else first
        inner, sentence = map_of(features, numbers, self.states)
        return Categories(self.texts, inner, spread), f"{sentence[:-1]}; columns of text are categories."

    def stated_after(self, done: ReadCounts) -> list[str]:
        """Return sentences about an unusual format of the log, and about the rows that a pass omitted."""
        notes = self.source.note, self.actions.note if self.actions else ""
        found = [note for note in notes if note]
        if done.n_skipped:
            where = ", ".join(f"{row:,} ({name})" for row, name in done.skipped[:3])
            found.append(f"{done.n_skipped:,} bad rows were skipped, the first in row {where}.")
        if count := done.dropped.count:
            found.append(f"{count:,} rows were omitted because their next observation is unknown.")
        return found
