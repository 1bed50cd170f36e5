"""Policies as users give them, asked about the rows of a log: probabilities of actions, and ratios.

A policy that gives the probabilities of all actions has action values. A policy of which only the ratios of the actions
taken are known has state values: that is the case of one action, whose rows are weighted by the ratios.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError, Unquoted, bad_request
from gradient_dd.evaluation.rows import Piece
from gradient_dd.stream.log.actions import Actions
from gradient_dd.stream.policies import all_probabilities, called, taken_probabilities, wants_actions

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
