"""Reads a log for the sake of action values: one pass, with all policies, signals and discounts that are asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from gradient_dd.errors import BadRequestError, Unquoted, bad_request
from gradient_dd.evaluation.action_rows import ActionRows, TargetPolicy
from gradient_dd.evaluation.diagnosis import Diagnosis
from gradient_dd.evaluation.episodes import Blocks, EpisodeSample
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.columns import missing
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.policies import called, wants_actions

MOST_FEATURES = 3000  # of states and actions, for which LSTD-Q is solved
MOST_DEFAULT = 300  # features of a state where the user names none
MOST_NUMBERS = 16_000_000  # entries of the feature rows that are kept


class TooWideError(BadRequestError):
    """There are more features of states and actions than LSTD-Q can solve for."""


class ActionLog:
    """A log that was read with its actions.

    rows      the transitions, or a sample of whole episodes of a log too long to keep;  group  the group of each
    whole     whether all of the log was kept;  n  rows that the log has;  episodes  episodes that it has
    actions   what actions there are;  policies  the policies that were asked for, by name
    mapping   observations to features;  stated  what was taken for what
    """

    def __init__(
        self,
        log: Any,
        targets: Mapping[str, Any],
        *,
        discount: float | None = None,
        features: Any = None,
        columns: Mapping[str, Any] | None = None,
        signals: Sequence[str] = (),
        skip_bad_rows: bool = False,
        on_columns: Callable[[list[str]], None] = lambda stated: None,
        on_progress: Callable[[int], None] = lambda rows: None,
    ) -> None:
        source = open_log(log)
        prefixes = tuple(dict.fromkeys(given for given in targets.values() if isinstance(given, str)))
        held = tuple(name for name in source.names if name.startswith(prefixes)) if prefixes else ()
        for prefix in prefixes:
            if not any(name.startswith(prefix) for name in held):
                raise missing(f"Columns whose names begin with {prefix!r}", prefix, source.names)
        for name in signals:
            if name not in source.names:
                raise missing(f"The column {name!r} for 'reward'", name, source.names)
        named = {**(columns or {}), **({"reward": signals[0]} if signals else {})}
        others = tuple(signals[1:])
        self.reader = LogReader(log, named, discount, None, skip_bad_rows, actions=True, carried=held, signals=others)
        held_at = len(others)
        self.mapping, words = self.reader.feature_map(features, default_features(self.reader))
        assert self.reader.actions is not None
        self.actions = self.reader.actions
        self.actions = self._all_actions(targets, held)
        self.reader.actions = self.actions
        self.policies = {
            name: TargetPolicy(name, given, self.actions, held, self.reader.decoded) for name, given in targets.items()
        }
        if (q := self.p * self.actions.n_features) > MOST_FEATURES:
            hint = "Take fewer features, or name a learner."
            raise TooWideError(f"Features of states and actions must be {MOST_FEATURES:,} or fewer. Got {q:,}. {hint}")
        self.stated = [*self.reader.columns.stated(), words]
        on_columns(self.stated)
        self._read(held_at, on_progress)

    def _all_actions(self, targets: Mapping[str, Any], held: tuple[str, ...]) -> Any:
        """Return the actions of the log and those that only a policy knows."""
        actions = self.actions
        if not actions.named:
            return actions
        text = any(isinstance(name, str) for name in actions.names)
        first = self.reader.decoded(self.reader.first_rows()[:2])
        for name, given in targets.items():
            if isinstance(given, str):
                endings = [column[len(given) :] for column in held if column.startswith(given)]
                known = [int(one) if one.isdecimal() and not text else one for one in endings]
                actions = actions.with_more(one for one in known if str(one) not in map(str, actions.names))
            elif given is not None and actions.counted and not (callable(given) and wants_actions(given)):
                found = called(name, given, first) if callable(given) else np.asarray(given)
                if found.ndim == 2 and found.shape[1] > len(actions.names):
                    actions = actions.with_more(range(found.shape[1]))
        return actions

    def _read(self, held_at: int, on_progress: Callable[[int], None]) -> None:
        """Read all rows, and keep them or a sample of whole episodes."""
        blocks, sample = Blocks(), EpisodeSample(MOST_NUMBERS)
        self.n = self.episodes = 0
        for x, x_next, table in self.reader.batches(self.mapping):
            seen, after = (self.reader.observed(one) for one in (table.observation, table.following))
            more, more_after = (wide[:, seen.shape[1] :] for wide in (table.observation, table.following))
            batch = ActionRows(
                *(x, x_next, table.reward, table.discount, np.ones(len(table)), table.episode, table.cut),
                action=table.action,
                signals=np.column_stack([table.reward, more[:, :held_at]]),
                behaviour=table.behaviour,
                seen=seen,
                after=after,
                carried=more[:, held_at:],
                carried_after=more_after[:, held_at:],
            )
            sample.add(batch, blocks.groups(batch.episode))
            self.n, self.episodes = self.n + len(batch), int(batch.episode[-1]) + 1
            on_progress(self.reader.last.rows)
        if not self.n:
            name = self.reader.source.name
            raise bad_request(name, "have at least one transition", Unquoted(f"none in {self.reader.last.rows} rows"))
        rows, self.group = sample.joined()
        assert isinstance(rows, ActionRows)
        self.rows, self.whole = rows, sample.whole
        if not self.whole:
            some = f"{len(rows):,} of {self.n:,} transitions are used"
            self.stated.append(f"The log is long: {some}, whole episodes spread over all of it.")

    @cached_property
    def examined(self) -> Diagnosis:
        """What can be seen in the rows themselves, whatever the policy; nothing is counted yet."""
        found = Diagnosis(self.p)
        found.examine(self.rows)
        return found

    @property
    def p(self) -> int:
        """How many features a state has."""
        return self.mapping.n_features

    def with_discount(self, discount: float) -> ActionRows:
        """Return the rows with another discount; the log was read with 1."""
        return replace(self.rows, discount=self.rows.discount * discount)


def default_features(reader: LogReader) -> str:
    """Return the features of a log whose user named none: quadratic, unless there would be too many of them."""
    d = reader.first_rows().shape[1]
    return "quadratic" if (d + 1) * (d + 2) // 2 <= MOST_DEFAULT else "standard"
