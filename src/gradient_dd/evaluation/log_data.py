"""A log that was read for an evaluation: its rows, actions and policies, and the features that describe its states.

A policy that gives the probabilities of all actions has action values. A policy of which only the ratios of the actions
taken are known has state values: that is the case of one action, whose rows are weighted by the ratios.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError, Unquoted, bad_request
from gradient_dd.evaluation.behaviour import Behaviour
from gradient_dd.evaluation.maps import RUNNERS_UP, FeatureMap, default_maps, given_map, too_wide
from gradient_dd.evaluation.rows import KEPT_NUMBERS, Piece, parts_of, read_rows
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.actions import Actions
from gradient_dd.stream.log.columns import find_columns, missing
from gradient_dd.stream.log.sources import open_log
from gradient_dd.stream.policies import (
    all_probabilities,
    called,
    classifier_policy,
    taken_probabilities,
    wants_actions,
)


class Choices(NamedTuple):
    """What a policy does at both ends of each row.

    here, there  (n, actions) probabilities, or features of the action where actions are measured
    weight       (n,) how much each row counts in the equations: its ratio where there is one action, else 1
    ratio        (n,) target over behaviour of the action taken; None where actions are measured
    """

    here: Array
    there: Array
    weight: Array
    ratio: Array | None


class TargetPolicy:
    """A policy as the user gave it.

    given    None, the policy that made the log; a function of observations that returns probabilities (n, actions), or
             actions where they are measured; a function of observations and actions; a table (states, actions); a
             classifier with `predict_proba`; a column of the log with the probability of the action taken, or the
             beginning of the names of columns that hold the probabilities of all actions
    actions  of the log; None where it has no column of actions
    columns  that the rows carry;  decode  gives observations as the log has them, with their texts
    by_ratio  whether only ratios are known: there is one action then
    own      whether the ratios are those of the log's own columns
    """

    def __init__(
        self,
        name: str,
        given: Any,
        actions: Actions | None,
        columns: tuple[str, ...],
        decode: Callable[[Array], Any],
        own: bool = False,
        by_ratio: bool = False,
    ) -> None:
        self.name, self.given, self.actions, self.decode, self.own = name, given, actions, decode, own
        self._column = columns.index(given) if isinstance(given, str) and given in columns else None
        self._places: list[int | None] = []
        if isinstance(given, str) and self._column is None and actions is not None:
            ending = {column[len(given) :]: k for k, column in enumerate(columns) if column.startswith(given)}
            self._places = [ending.get(str(one)) for one in actions.names]
        self.by_ratio = by_ratio or given is None or self._column is not None
        self._kept: dict[int, Choices] | None = None

    @property
    def logging(self) -> bool:
        """Whether this is the policy that made the log."""
        return self.given is None and not self.own

    def keep(self, kept: bool) -> None:
        """Begin or end to keep what the policy does in each piece."""
        self._kept = {} if kept else None

    def choices(self, piece: Piece, behaviour: Array) -> Choices:
        """Return what the policy does in the rows of a piece; `behaviour` (n,) are the propensities."""
        if self._kept is not None and piece.number in self._kept:
            return self._kept[piece.number]
        found = self._ratios(piece, behaviour) if self.by_ratio else self._probabilities(piece, behaviour)
        if self._kept is not None:
            self._kept[piece.number] = found
        return found

    def _ratios(self, piece: Piece, behaviour: Array) -> Choices:
        n = len(piece)
        one = np.ones((n, 1))
        if self.logging:
            return Choices(one, one, np.ones(n), np.ones(n))
        if self.given is None:
            return Choices(one, one, piece.rho, piece.rho)
        if self._column is not None:
            above = piece.carried[:, self._column]
        else:
            rows = np.arange(n)
            names = np.array(self.actions.names, object) if self.actions is not None else np.empty(0)
            taken = names[piece.action[:, 0].astype(np.int64)]
            if all(isinstance(one, int) for one in names):
                taken = taken.astype(np.int64)
            above = taken_probabilities(self.given, self.decode(piece.seen), taken, rows)
        return Choices(one, one, above / behaviour, above / behaviour)

    def _probabilities(self, piece: Piece, behaviour: Array) -> Choices:
        n, ended = len(piece), piece.ended
        assert self.actions is not None
        if self._places:
            here = self._from_columns(piece.carried, np.zeros(n, bool))
            there = self._from_columns(piece.carried_after, ended)
        else:
            following = np.where(ended[:, None], piece.seen, piece.after)  # nothing is asked of what follows an end
            here, there = self.at(self.decode(piece.seen)), self.at(self.decode(following))
        taken = here[np.arange(n), piece.action[:, 0].astype(np.int64)] if self.actions.named else None
        return Choices(here, there, np.ones(n), None if taken is None else taken / behaviour)

    def at(self, observations: Any) -> Array:
        """Return probabilities of all actions at observations, (n, actions), or features of measured actions."""
        if self.by_ratio:
            return np.ones((len(observations), 1))
        if isinstance(self.given, str):
            rule = "be a function or a table, to be asked about other observations than those of the log"
            raise bad_request(f"The policy {self.name!r}", rule, self.given)
        assert self.actions is not None
        if self.actions.named:
            return all_probabilities(self.name, self.given, observations, self.actions.names)
        if not callable(self.given) or wants_actions(self.given):
            raise bad_request(
                f"The policy {self.name!r}", "be a function of observations that returns actions", self.given
            )
        chosen = np.asarray(called(self.name, self.given, observations), float)
        chosen = chosen[:, None] if chosen.ndim == 1 else chosen
        if chosen.shape != (len(observations), self.actions.width):
            rule = f"return actions ({len(observations)}, {self.actions.width})"
            raise bad_request(f"The policy {self.name!r}", rule, Unquoted(f"an array {chosen.shape}"))
        return self.actions.features(chosen)

    def _from_columns(self, carried: Array, ended: Any) -> Array:
        """Return the probabilities that columns of the log hold; columns are 0 for actions that they do not name."""
        found = np.column_stack([np.zeros(len(carried)) if k is None else carried[:, k] for k in self._places])
        total = found.sum(axis=1)
        wrong = ~ended & ~((found >= 0).all(axis=1) & (np.abs(total - 1) <= 1e-3))
        if wrong.any():
            got = Unquoted(np.array2string(found[np.argmax(wrong)], precision=4))
            raise bad_request(f"The columns {self.given}… of the policy", "hold probabilities that sum to 1", got)
        return np.asarray(np.where(ended[:, None], 0.0, found / np.where(ended, 1.0, total)[:, None]))


def knows_all_actions(name: str, given: Any, observations: Any, actions: Actions) -> bool:
    """Return whether a function of observations and actions tells the probabilities of all actions of a log."""
    if not callable(given) or not wants_actions(given):
        return True
    if not actions.named:
        return False
    try:
        all_probabilities(name, given, observations, actions.names)
    except BadRequestError:
        return False
    return True


class LogData:
    """A log with all that is asked about it.

    rows      its rows in pieces;  actions  what actions there are, or None
    policies  the policies that were asked for, the one that made the log first
    maps      feature maps, the one to take first;  behaviour  estimated propensities, or None
    stated    what each column is used for
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
        seed: int = 0,
        on_columns: Callable[[list[str]], None] = lambda stated: None,
        on_progress: Callable[[int], None] = lambda rows: None,
    ) -> None:
        source = open_log(log)
        held = carried_columns(source.names, targets)
        for name in signals:
            if name not in source.names:
                raise missing(f"The column {name!r} for 'reward'", name, source.names)
        named = {**(columns or {}), **({"reward": signals[0]} if signals else {})}
        found = find_columns(source.names, named)
        asked = [given for given in targets.values() if given is not None]
        own = any(given is OWN for given in targets.values())
        with_actions = bool(asked) and not own
        self.reader = LogReader(
            log, named, discount, None, skip_bad_rows, with_actions, held, tuple(signals[1:]), ratios=own
        )
        self.behaviour: Behaviour | None = None
        self.named = "observation" in (columns or {})
        first = self.reader.decoded(self.reader.first_rows()[:2])
        self.actions = self._all_actions(targets, held, first)
        self.reader.actions = self.actions
        self.policies = [self._policy(name, given, held, first) for name, given in targets.items()]
        needs = next((one for one in self.policies if one.by_ratio and not one.logging and not one.own), None)
        if needs is not None and found.behaviour_probability is None:
            what = f"With the policy {needs.name!r}, which gives probabilities of the actions taken alone, a column "
            raise missing(f"{what}of the role 'behaviour_probability'", "behaviour_probability", source.names)
        self.rows = read_rows(self.reader, seed=seed, on_progress=on_progress)
        self.last = self.reader.last  # what the pass over all rows has shown
        self._describe(features, seed)
        on_columns(self.stated)

    def _describe(self, features: Any, seed: int) -> None:
        """Find the features of the states, and the propensities where the log does not have them."""
        self._features: dict[tuple[int, int, int], tuple[Any, Any]] = {}
        columns = self.reader.columns
        plain = features is None and columns.are_features and self.rows.sample[0].seen.shape[1] > 1
        by_action = any(not one.by_ratio for one in self.policies)
        actions = self.actions if by_action else None
        if features is None and not plain:
            self.maps = default_maps(self.reader, self.rows, actions)
        else:
            given = given_map(self.reader, "raw" if plain else features, seed)
            self.maps = [given]
            if not (given.table or columns.are_features or too_wide(given.design(actions, self.rows.n))):
                self.maps += default_maps(self.reader, self.rows, actions)[:RUNNERS_UP]  # what the given ones may hide
        self.stated = [*columns.stated(), self.maps[0].words, *self._stated_ratios()]
        self.behaviour = None
        if by_action and self.actions is not None and self.actions.named and columns.behaviour_probability is None:
            self.behaviour = Behaviour(self.maps[0], self.rows.sample, len(self.actions.names))

    def _stated_ratios(self) -> list[str]:
        """Return where the ratios of the policies come from."""
        others = [one for one in self.policies if not one.logging]
        if not others:
            return ["There are no ratios: the value is that of the logging policy."]
        if any(one.own for one in others):
            return [] if self.reader.columns.rho is not None else ["Ratios: target over behaviour."]
        if self.reader.columns.behaviour_probability is None:
            return []
        return ["Ratios: the target policy over the propensities."]

    def _all_actions(self, targets: Mapping[str, Any], held: tuple[str, ...], first: Any) -> Actions | None:
        """Return the actions of the log and those that only a policy knows."""
        actions = self.reader.actions
        if actions is None or not actions.named:
            return actions
        text = any(isinstance(name, str) for name in actions.names)
        for name, given in targets.items():
            if isinstance(given, str) and given not in held:
                endings = [column[len(given) :] for column in held if column.startswith(given)]
                known = [int(one) if one.isdecimal() and not text else one for one in endings]
                actions = actions.with_more(one for one in known if str(one) not in map(str, actions.names))
            elif hasattr(given, "predict_proba"):
                known = [one.item() if isinstance(one, np.generic) else one for one in np.asarray(given.classes_)]
                actions = actions.with_more(one for one in known if str(one) not in map(str, actions.names))
            elif given is not None and given is not OWN and actions.counted and not isinstance(given, str):
                if callable(given) and wants_actions(given):
                    continue
                found = called(name, given, first) if callable(given) else np.asarray(given)
                if found.ndim == 2 and found.shape[1] > len(actions.names):
                    actions = actions.with_more(range(found.shape[1]))
        return actions

    def _policy(self, name: str, given: Any, held: tuple[str, ...], first: Any) -> TargetPolicy:
        if given is OWN:
            return TargetPolicy(name, None, None, held, self.reader.decoded, own=True)
        if hasattr(given, "predict_proba"):
            assert self.actions is not None
            given = classifier_policy(name, given, self.actions.names)
        by_ratio = callable(given) and not knows_all_actions(name, given, first, self.actions)  # type: ignore[arg-type]
        return TargetPolicy(name, given, self.actions, held, self.reader.decoded, by_ratio=by_ratio)

    def features(self, one: FeatureMap, piece: Piece) -> tuple[Any, Any]:
        """Return the features of both states of a piece, (n, p) each; kept where the log is kept and they fit."""
        key = self.maps.index(one), piece.number, len(piece)
        if key in self._features:
            return self._features[key]
        after = np.where(piece.ended[:, None], piece.seen, piece.after)  # any legal observation will do
        found = one.matrix(piece.seen), one.matrix(after)
        if self.rows.kept and self.rows.n * one.p <= KEPT_NUMBERS:
            self._features[key] = found
        return found

    def propensities(self, piece: Piece) -> Array:
        """Return the probability of the action taken in each row, (n,); NaN where nobody asks for it."""
        return piece.behaviour if self.behaviour is None else self.behaviour(piece)

    def sample(self, most: int) -> list[Piece]:
        """Return all pieces of a log that is kept, else those of the sample, and note their share of all episodes."""
        if self.rows.kept:
            return list(self.rows.pieces(most))
        found = [part for piece in self.rows.sample for part in parts_of(piece, most)]
        self.sampled_share = sum(len(piece.starts) for piece in found) / self.rows.episodes
        return found

    sampled_share = 1.0


class OwnRatios:
    """The ratios of the log's own columns."""

    def __repr__(self) -> str:
        return "the ratios of the log"


OWN = OwnRatios()


def carried_columns(names: list[str], targets: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of the log that policies are given by: a column, or all whose names begin with a text."""
    held: list[str] = []
    for given in targets.values():
        if not isinstance(given, str):
            continue
        own = [given] if given in names else [name for name in names if name.startswith(given)]
        if not own:
            raise missing(f"Columns whose names begin with {given!r}", given, names)
        held += own
    return tuple(dict.fromkeys(held))
