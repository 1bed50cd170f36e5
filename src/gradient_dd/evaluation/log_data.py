"""A log prepared for evaluation: its rows, actions and policies, and the features of its states.

A policy with known probabilities of all actions has action values. A policy with only the ratios of the actions taken
has state values: this is the case of a single action, whose rows are weighted by the ratios.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError, Unquoted, bad_request
from gradient_dd.evaluation.behaviour import Behaviour
from gradient_dd.evaluation.design import SortedFeatures
from gradient_dd.evaluation.maps import (
    RUNNERS_UP,
    FeatureMap,
    actions_of,
    default_maps,
    given_map,
    named_actions,
    too_wide,
)
from gradient_dd.evaluation.pieces import Piece, joined, parts_of
from gradient_dd.evaluation.rows import KEPT_NUMBERS, EvaluationRows
from gradient_dd.progress import Told
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
    """The choices of a policy in both states of each row.

    here, there  (n, actions) probabilities, or features of the action if actions are continuous
    weight       (n,) the weight of each row in the equations: its ratio with a single action; None for 1
    ratio        (n,) target over behaviour of the action taken; None if actions are continuous
    """

    here: Array
    there: Array
    weight: Array | None
    ratio: Array | None


class TargetPolicy:
    """A policy as given by the user.

    given    None, the logging policy; a function of observations that returns probabilities (n, actions), or actions
             if they are continuous; a function of observations and actions; a table (states, actions); a classifier
             with `predict_proba`; a column of the log with the probability of the action taken, or the common prefix
             of columns with the probabilities of all actions
    actions  of the log; None if it has no action column
    columns  carried by the rows;  decode  returns observations as in the log, with their texts
    by_ratio  whether only ratios are known, which is the case of a single action
    own      whether the ratios are columns of the log
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
        self._kept: dict[Any, Any] | None = None

    @property
    def logging(self) -> bool:
        """Whether this is the logging policy."""
        return self.given is None and not self.own

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker needs."""
        return self.__dict__ | {"_kept": None}

    def keep(self, kept: bool) -> None:
        """Start or stop caching."""
        self._kept = {} if kept else None

    def cached(self, what: str, piece: Piece, make: Callable[[], Any]) -> Any:
        """Return what `make` returns for a piece; cached between `keep(True)` and `keep(False)`."""
        if self._kept is None:
            return make()
        key = what, piece.key
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def choices(self, piece: Piece, behaviour: Array) -> Choices:
        """Return the policy's choices in the rows of a piece; `behaviour` (n,) has the propensities."""
        make = self._ratios if self.by_ratio else self._probabilities
        return self.cached("choices", piece, lambda: make(piece, behaviour))

    def _ratios(self, piece: Piece, behaviour: Array) -> Choices:
        n = len(piece)
        one = np.ones((n, 1))
        if self.logging:
            return Choices(one, one, None, np.ones(n))
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
            following = np.where(ended[:, None], piece.seen, piece.after)  # states after an end are not needed
            here, there = self.at(self.decode(piece.seen)), self.at(self.decode(following))
        taken = here[np.arange(n), piece.action[:, 0].astype(np.int64)] if self.actions.named else None
        return Choices(here, there, None, None if taken is None else taken / behaviour)

    def at(self, observations: Any) -> Array:
        """Return probabilities of all actions at observations, (n, actions), or features of continuous actions."""
        if self.by_ratio:
            return np.ones((len(observations), 1))
        if isinstance(self.given, str):
            rule = "be a function or a table, to be evaluated at observations outside the log"
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
        """Return probabilities from columns of the log; 0 for actions without a column."""
        found = np.column_stack([np.zeros(len(carried)) if k is None else carried[:, k] for k in self._places])
        total = found.sum(axis=1)
        wrong = ~ended & ~((found >= 0).all(axis=1) & (np.abs(total - 1) <= 1e-3))
        if wrong.any():
            got = Unquoted(np.array2string(found[np.argmax(wrong)], precision=4))
            raise bad_request(f"The columns {self.given}… of the policy", "contain probabilities that sum to 1", got)
        return np.asarray(np.where(ended[:, None], 0.0, found / np.where(ended, 1.0, total)[:, None]))


def knows_all_actions(name: str, given: Any, observations: Any, actions: Actions) -> bool:
    """Return whether a function of observations and actions returns the probabilities of all actions of a log."""
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
    """A log with everything that an evaluation needs.

    rows      its rows in pieces;  actions  its actions, or None
    policies  the requested policies, the logging policy first
    maps      feature maps, the preferred map first;  behaviour  estimated propensities, or None
    stated    the columns used
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
        told: Told = lambda done, total: None,
        workers: Any = None,
    ) -> None:
        source = open_log(log)
        held = carried_columns(source.names, targets)
        for name in signals:
            if not isinstance(name, str):
                raise bad_request("'reward'", "be the name of a column, or a list of names", name)
            if name not in source.names:
                raise missing(f"The column {name!r} for 'reward'", name, source.names)
        if not isinstance(columns, Mapping | None):
            raise bad_request("'columns'", "be a dictionary of columns by their role", columns)
        named = {**(columns or {}), **({"reward": signals[0]} if signals else {})}
        found = find_columns(source.names, named)
        asked = [given for given in targets.values() if given is not None]
        own = any(given is OWN for given in targets.values())
        with_actions = bool(asked) and not own
        self.reader = LogReader(log, named, discount, skip_bad_rows, with_actions, held, tuple(signals[1:]), ratios=own)
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
        self.rows = EvaluationRows(self.reader, seed=seed, workers=workers, told=told)
        self._describe(features, seed)

    def _describe(self, features: Any, seed: int) -> None:
        """Choose the features of the states, and estimate propensities if the log has none."""
        self._features: dict[Any, SortedFeatures] = {}
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
                self.maps += default_maps(self.reader, self.rows, actions)[:RUNNERS_UP]  # to detect poor given ones
        self.stated = [*columns.stated(), self.maps[0].words, *self._stated_ratios()]
        self.behaviour = None
        if by_action and self.actions is not None and self.actions.named and columns.behaviour_probability is None:
            self.behaviour = Behaviour(self.maps[0], self.rows.sample, len(self.actions.names))

    def _stated_ratios(self) -> list[str]:
        """Return the source of the ratios of the policies, as sentences."""
        others = [one for one in self.policies if not one.logging]
        if not others:
            return ["There are no ratios: the value is the value of the logging policy."]
        if any(one.own for one in others):
            return [] if self.reader.columns.rho is not None else ["Ratios: target over behaviour."]
        if self.reader.columns.behaviour_probability is None:
            return []
        return ["Ratios: the target policy over the propensities."]

    def _all_actions(self, targets: Mapping[str, Any], held: tuple[str, ...], first: Any) -> Actions | None:
        """Return the actions of the log and the additional actions of policies."""
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

    def features(self, one: FeatureMap, piece: Piece) -> SortedFeatures:
        """Return the features of both states of a piece; cached if the log is in memory and they fit."""
        key = id(one), piece.key
        if key in self._features:
            return self._features[key]
        after = np.where(piece.ended[:, None], piece.seen, piece.after)  # after an end, any legal observation is fine
        actions = self.actions
        X, X2, U = one.matrix(piece.seen), one.matrix(after), actions_of(actions, piece)
        found = SortedFeatures(X, X2, piece.group, U, named_actions(actions, piece))
        widths = sum(min(one.p, 1000) if not one.table else 2 for one in self.maps)
        if self.rows.kept and self.rows.n * widths <= KEPT_NUMBERS // 2:
            self._features[key] = found
        return found

    def propensities(self, piece: Piece) -> Array:
        """Return the probability of the action taken in each row, (n,); NaN if it is not needed."""
        return piece.behaviour if self.behaviour is None else self.behaviour(piece)

    @cached_property
    def first(self) -> Piece:
        """The sample as one piece."""
        return joined(self.rows.sample)

    @cached_property
    def sampled(self) -> list[Piece]:
        """The sample in pieces."""
        return [part for piece in self.rows.sample for part in parts_of(piece, self.most)]

    @property
    def most(self) -> int:
        """Number of rows processed at a time."""
        return min(one.design(self.actions, self.rows.n).rows for one in self.maps)

    def sample(self) -> tuple[list[Piece], float]:
        """Return all pieces of a log in memory, else those of the sample, and their share of all episodes."""
        if self.rows.kept:
            return list(self.rows.pieces(self.most)), 1.0
        return self.sampled, sum(len(piece.starts) for piece in self.sampled) / self.rows.episodes

    def on_sample(self) -> "LogData":
        """Return the sample as a log in memory."""
        found = copy(self)
        found.rows, found._features = self.rows.on_sample(), {}
        return found


class OwnRatios:
    """The ratios in the log's own columns."""

    def __repr__(self) -> str:
        return "the ratios of the log"


OWN = OwnRatios()


def carried_columns(names: list[str], targets: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of the log that define policies: a column, or all columns with a prefix."""
    held: list[str] = []
    for given in targets.values():
        if not isinstance(given, str):
            continue
        own = [given] if given in names else [name for name in names if name.startswith(given)]
        if not own:
            raise missing(f"Columns whose names start with {given!r}", given, names)
        held += own
    return tuple(dict.fromkeys(held))
