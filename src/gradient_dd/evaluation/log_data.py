"""A log prepared for evaluation: its rows, actions and policies, and the features of its states.

A policy with known probabilities of all actions has action values. A policy with only the ratios of the actions taken
has state values: the policy is treated as a single action, whose rows are weighted by the ratios.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property, wraps
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, dimensions
from gradient_dd.errors import BadRequestError, GradientDDError, Unquoted, bad_request
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
from gradient_dd.stream.log.columns import Actions, LogColumns, find_columns, missing, plain
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
    ratio        (n,) target probability over behaviour probability of the action taken: the weight of the row if there
                 is a single action; None if actions are continuous
    """

    here: Array
    there: Array
    ratio: Array | None


OWN: Any = object()  # the target policy is given by the ratios in the log's own columns, if it has any


class TargetPolicy:
    """A policy as given by the user.

    given    None, the logging policy; OWN; a function of observations that returns probabilities (n, actions), or
             actions if they are continuous; a function of observations and actions; a table (states, actions); a column
             of the log with the probability of the action taken, or the common prefix of columns with the
             probabilities of all actions
    decode   returns observations as in the log, with their texts
    actions  of the log; None if it has no action column;  columns  carried by the rows
    by_ratio  whether only ratios are known; the policy is then treated as a single action
    """

    def __init__(
        self,
        name: str,
        given: Any,
        decode: Callable[[Array], Any],
        actions: Actions | None = None,
        columns: tuple[str, ...] = (),
        by_ratio: bool = False,
    ) -> None:
        self.name, self.decode, self.actions = name, decode, actions
        self.own, self.logging = given is OWN, given is None
        self.given = None if self.own else given
        self._column = columns.index(given) if isinstance(given, str) and given in columns else None
        self._places: list[int | None] = []
        if isinstance(given, str) and self._column is None and actions is not None:
            ending = {column[len(given) :]: k for k, column in enumerate(columns) if column.startswith(given)}
            self._places = [ending.get(str(one)) for one in actions.names]
        self.by_ratio = by_ratio or self.given is None or self._column is not None

    def choices(self, piece: Piece, behaviour: Array) -> Choices:
        """Return the policy's choices in the rows of a piece; `behaviour` (n,) has the propensities."""
        n, ended = len(piece), piece.ended
        if self.by_ratio:
            one = np.ones((n, 1))
            return Choices(one, one, self._ratios(piece, behaviour))
        if self._places:
            here = self._from_columns(piece.carried, np.zeros(n, bool))
            there = self._from_columns(piece.carried_after, ended)
        else:
            here, there = self.at(self.decode(piece.seen)), self.at(self.decode(piece.legal_after))
        assert self.actions is not None
        return Choices(here, there, here[np.arange(n), piece.taken] / behaviour if self.actions.named else None)

    def _ratios(self, piece: Piece, behaviour: Array) -> Array:
        """Return the ratio of each row, (n,), of a policy that gives only probabilities of the actions taken."""
        if self.given is None:
            return np.ones(len(piece)) if self.logging else piece.rho
        if self._column is not None:
            return np.asarray(piece.carried[:, self._column] / behaviour)
        assert self.actions is not None
        taken = np.array(self.actions.names, object)[piece.taken]
        if all(isinstance(one, int) for one in self.actions.names):
            taken = taken.astype(np.int64)
        return taken_probabilities(self.given, self.decode(piece.seen), taken) / behaviour

    def at(self, observations: Any) -> Array:
        """Return probabilities of all actions at observations, (n, actions), or features of continuous actions."""
        what, n = f"The policy {self.name!r}", len(observations)
        if self.by_ratio:
            return np.ones((n, 1))
        if isinstance(self.given, str):
            rule = "be a function or a table, to be evaluated at observations outside the log"
            raise bad_request(what, rule, self.given)
        assert self.actions is not None
        if self.actions.named:
            return all_probabilities(self.name, self.given, observations, self.actions.names)
        if not callable(self.given) or is_of_actions(self.given):
            raise bad_request(what, "be a function of observations that returns actions", self.given)
        chosen = np.asarray(called(self.name, self.given, observations), float)
        chosen = chosen[:, None] if chosen.ndim == 1 else chosen
        if chosen.shape != (n, self.actions.width):
            got = Unquoted(f"an array {chosen.shape}")
            raise bad_request(what, f"return actions ({n}, {self.actions.width})", got)
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


def explained(name: str, given: Any, columns: LogColumns) -> Any:
    """Return a policy; errors of a function name the line and the columns of the observations."""
    if given is OWN or not callable(given) or hasattr(given, "predict_proba"):
        return given

    @wraps(given)
    def policy(*arguments: Any) -> Any:
        try:
            return given(*arguments)
        except GradientDDError:
            raise
        except Exception as error:
            file = getattr(getattr(given, "__code__", None), "co_filename", None)
            lines = [one.lineno for one in extract_tb(error.__traceback__) if one.filename == file]
            where = f" in line {lines[-1]} of {Path(str(file)).name}" if lines else ""
            got, order = Unquoted(f"{type(error).__name__}: {error}{where}"), ", ".join(map(repr, columns.observation))
            hint = f"It receives the columns {order}, in this order."
            raise bad_request(f"The policy {name!r}", "run on a batch of observations", got, hint) from error

    return policy


def is_of_actions(given: Any) -> bool:
    """Return whether a policy is a function of observations and actions."""
    return callable(given) and wants_actions(given)


class LogData:
    """A log with everything that an evaluation needs.

    rows      its rows in pieces;  actions  its actions, or None
    policies  the requested policies, the logging policy first
    maps      feature maps, the preferred map first;  behaviour  estimated propensities, or None
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
        told: Told | None = None,
        workers: Any = None,
    ) -> None:
        names = open_log(log).names
        for name in signals:
            if not isinstance(name, str):
                raise bad_request("'reward'", "be the name of a column, or a list of names", name)
            if name not in names:
                raise missing(f"The column {name!r} for 'reward'", name, names)
        if not isinstance(columns, Mapping | None):
            raise bad_request("'columns'", "be a dictionary of columns by their role", columns)
        named = {**(columns or {}), **({"reward": signals[0]} if signals else {})}
        found = find_columns(names, named, any(given is not OWN and given is not None for given in targets.values()))
        has_ratios = bool(found.rho or (found.target_probability and found.behaviour_probability))
        targets = {name: given for name, given in targets.items() if given is not OWN or has_ratios}
        own = any(given is OWN for given in targets.values())
        with_actions = not own and any(given is not None for given in targets.values())
        held, carried = policy_columns(names, targets)
        further = *signals[1:], *held
        self.reader = LogReader(log, named, discount, skip_bad_rows, with_actions, carried, further, ratios=own)
        self.named = "observation" in (columns or {})
        targets = {name: explained(name, given, self.reader.columns) for name, given in targets.items()}
        first = self.reader.decoded(self.reader.first_rows()[:2])
        self.actions = self._all_actions(targets, (*held, *carried), first)
        self.reader.actions = self.actions
        self.policies = [self._policy(name, given, (*held, *carried), first) for name, given in targets.items()]
        needs = next((one for one in self.policies if one.by_ratio and not one.logging and not one.own), None)
        if needs is not None and found.behaviour_probability is None:
            what = f"With the policy {needs.name!r}, which gives only probabilities of the actions taken, a column "
            raise missing(f"{what}of the role 'behaviour_probability'", "behaviour_probability", names)
        self.rows = EvaluationRows(self.reader, signals=max(1, len(signals)), seed=seed, workers=workers, told=told)
        self._describe(features, seed)

    def _describe(self, features: Any, seed: int) -> None:
        """Choose the features of the states, and estimate propensities if the log has none."""
        self._features: dict[Any, SortedFeatures] = {}
        self._known: tuple[Any, dict[Any, Choices]] = None, {}
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
                self.maps += default_maps(self.reader, self.rows, actions)[:RUNNERS_UP]  # to detect poor features
        self.behaviour: Behaviour | None = None
        if by_action and self.actions is not None and self.actions.named and columns.behaviour_probability is None:
            self.behaviour = Behaviour(self.maps[0], self.rows.sample, len(self.actions.names))

    @property
    def stated(self) -> tuple[str, ...]:
        """The columns used, the features, the source of the ratios, and unusual properties of the log, as sentences."""
        columns, others = self.reader.columns, [one for one in self.policies if not one.logging]
        ratios = ""
        if not others:
            ratios = "There are no ratios: the value is the value of the logging policy."
        elif any(one.own for one in others):
            ratios = "" if columns.rho is not None else "Ratios: target over behaviour."
        elif columns.behaviour_probability is not None:
            ratios = "Ratios: the target policy over the propensities."
        by_action = any(not one.by_ratio for one in self.policies)
        order = self.actions.order if by_action and self.actions is not None else ""
        unusual = self.reader.stated_after(self.rows.read)
        return tuple(filter(None, [*columns.stated(), order, self.maps[0].words, ratios, *unusual]))

    def _all_actions(self, targets: Mapping[str, Any], held: tuple[str, ...], first: Any) -> Actions | None:
        """Return the actions of the log and the additional actions of policies."""
        actions = self.reader.actions
        if actions is None or not actions.named:
            return actions
        text = any(isinstance(name, str) for name in actions.names)
        for name, given in targets.items():
            more: Iterable[Any] = ()
            if isinstance(given, str) and given not in held:
                endings = [column[len(given) :] for column in held if column.startswith(given)]
                more = [int(one) if one.isdecimal() and not text else one for one in endings]
            elif hasattr(given, "predict_proba"):
                more = map(plain, np.asarray(given.classes_))
            elif not (given is OWN or isinstance(given, str | None) or is_of_actions(given)) and actions.counted:
                found = called(name, given, first) if callable(given) else given
                more = range(np.shape(found)[1]) if dimensions(found) == 2 else ()
            known = set(map(str, actions.names))
            actions = actions.with_more(one for one in more if str(one) not in known)
        return actions

    def _policy(self, name: str, given: Any, held: tuple[str, ...], first: Any) -> TargetPolicy:
        if hasattr(given, "predict_proba"):
            assert self.actions is not None
            given = classifier_policy(name, given, self.actions.names)
        by_ratio = is_of_actions(given)
        if by_ratio and self.actions is not None and self.actions.named:
            with suppress(BadRequestError):  # a function of observations and actions may return all probabilities
                all_probabilities(name, given, first, self.actions.names)
                by_ratio = False
        return TargetPolicy(name, given, self.reader.decoded, self.actions, held, by_ratio)

    def features(self, one: FeatureMap, piece: Piece) -> SortedFeatures:
        """Return the features of both states of a piece; cached if the log is in memory and the features fit."""
        key = id(one), piece.key
        if key in self._features:
            return self._features[key]
        X, X2, U = one.matrix(piece.seen), one.matrix(piece.legal_after), actions_of(self.actions, piece)
        found = SortedFeatures(X, X2, piece.group, U, named_actions(self.actions, piece))
        widths = sum(min(one.p, 1000) if not one.table else 2 for one in self.maps)
        if self.rows.kept and self.rows.n * widths <= KEPT_NUMBERS // 2:
            self._features[key] = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker needs."""
        sample = {name: None for name in ("first", "sampled") if name in self.__dict__}
        return self.__dict__ | sample | {"_known": (None, {})}

    def choices(self, policy: TargetPolicy, piece: Piece) -> Choices:
        """Return a policy's choices in a piece; cached for the last policy, and all pieces if the log is in memory."""
        if self._known[0] is not policy:
            self._known = policy, {}
        known = self._known[1]
        if piece.key not in known:
            if not self.rows.kept:
                known.clear()
            known[piece.key] = policy.choices(piece, self.propensities(piece))
        return known[piece.key]

    def propensities(self, piece: Piece) -> Array:
        """Return the probability of the action taken in each row, (n,); NaN if no policy needs the probability."""
        return piece.behaviour if self.behaviour is None else self.behaviour(piece)

    @cached_property
    def first(self) -> Piece:
        """The sample as one piece."""
        return joined(self.rows.sample)

    @property
    def most(self) -> int:
        """Number of rows processed at a time."""
        return min(one.design(self.actions, self.rows.n).rows for one in self.maps)

    @cached_property
    def sampled(self) -> list[Piece]:
        """The sample in pieces."""
        return [part for piece in self.rows.sample for part in parts_of(piece, self.most)]

    def sample(self) -> tuple[list[Piece], float]:
        """Return all pieces of a log in memory, else the pieces of the sample, and their share of all episodes."""
        if self.rows.kept:
            return list(self.rows.pieces(self.most)), 1.0
        return self.sampled, sum(len(piece.starts) for piece in self.sampled) / self.rows.episodes

    def on_sample(self) -> "LogData":
        """Return the sample as a log in memory."""
        found = copy(self)
        found.rows, found._features, found._known = self.rows.on_sample(), {}, (None, {})
        return found


def policy_columns(names: list[str], targets: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that define policies: columns of the row's state only, and columns also of the next state.

    The former are probabilities of the action taken; the latter share a prefix and are probabilities of all actions.
    """
    texts = [given for given in targets.values() if isinstance(given, str)]
    carried = {name: None for given in texts if given not in names for name in names if name.startswith(given)}
    for given in texts:
        if given not in names and not any(name.startswith(given) for name in carried):
            raise missing(f"Columns whose names start with {given!r}", given, names)
    carried |= {given: None for given in texts if f"next_{given}" in names}
    return tuple(dict.fromkeys(given for given in texts if given in names and given not in carried)), tuple(carried)
