"""The actions of a log: names of any kind that are numbered, or numbers that are features themselves.

An action with a name has a number: whole numbers from 0 on are their own, any others are numbered in sorted order. The
features of an action taken are 0s and a 1. Actions that are measured, such as a force, are features as they are:
1, a and a² of each of their columns.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, Array
from gradient_dd.errors import Unquoted, bad_request, show
from gradient_dd.stream.log.cells import EXACT, as_actions, as_matrix, number_of, text_of
from gradient_dd.stream.log.sources import Source

MOST = 1000  # different actions that have names; more numbers than that are measurements
MOST_SHOWN = 20  # names in a sentence
MOST_BROKEN = 20  # different numbers, not all of them whole, that are still names


@dataclass(frozen=True)
class Actions:
    """What actions a log has.

    names  of all actions, in the order of the columns of a policy; () where actions are measured
    width  columns of an action that is measured, else 1
    text   whether some name is text, so that all are, numbers among them too
    note   a sentence about actions that are spelled in several ways
    """

    names: tuple[Any, ...]
    width: int = 1
    text: bool = False
    note: str = ""

    @property
    def n_features(self) -> int:
        """How many features an action has."""
        return len(self.names) or 1 + 2 * self.width

    @property
    def named(self) -> bool:
        """Whether actions have names, so that a policy gives a probability for each."""
        return bool(self.names)

    @property
    def counted(self) -> bool:
        """Whether actions are whole numbers from 0 on."""
        return self.names == tuple(range(len(self.names)))

    @property
    def order(self) -> str:
        """The order of a policy's columns as a sentence; empty if names are their places or actions are measured."""
        if self.counted or not self.named:
            return ""
        shown = ", ".join(map(show, self.names[:MOST_SHOWN]))
        return f"Actions, in the order of a policy's columns: {shown}{', …' * (len(self.names) > MOST_SHOWN)}."

    def with_more(self, names: Iterable[Any]) -> "Actions":
        """Return these actions and others, which a policy knows and the log never takes."""
        more = [name for name in names if name not in self.names]
        return replace(self, names=sorted_names({*self.names, *more})) if more else self

    def numbers(self, what: str, values: Any) -> Array:
        """Return actions as numbers (n, 1), or as they are where they are measured (n, width)."""
        found = np.asarray(values) if self.text else as_actions(np.asarray(values))
        if not self.named:
            numbers, _ = as_matrix(what, found, 0, self.width)
            return np.asarray(np.where(np.abs(numbers) <= LARGEST, numbers, np.nan))
        if found.ndim != 1:
            raise bad_request(what, "have one action in each row", Unquoted(f"an array {found.shape}"))
        if found.dtype.kind == "f":  # a float of this size may stand for several whole numbers
            found = np.where(np.abs(found) < EXACT, found, np.nan)
        place = {name: k for k, name in enumerate(self.names)}
        if self.text:
            texts, each = distinct(found)
            return np.array([place.get(as_text(one), np.nan) for one in texts], float)[each][:, None]
        seen, where = np.unique(found, return_inverse=True) if found.dtype.kind in "iufU" else distinct(found)
        return np.array([place.get(plain(one), np.nan) for one in seen], float)[where][:, None]

    def features(self, numbers: Array) -> Array:
        """Return the features of actions taken, (n, n_features)."""
        if not self.named:
            return np.column_stack([np.ones(len(numbers)), numbers, numbers**2])
        return np.eye(len(self.names))[numbers[:, 0].astype(np.int64)]


def plain(name: Any) -> Any:
    """Return a name as plain Python."""
    return name.item() if isinstance(name, np.generic) else name


def distinct(cells: Any) -> tuple[list[Any], Any]:
    """Return the different cells of a column of objects, and which of them each cell is."""
    place: dict[Any, int] = {}
    try:
        where = np.array([place.setdefault(plain(cell), len(place)) for cell in cells], np.int64)
    except TypeError:  # a list or a dictionary has no hash
        odd = next(cell for cell in cells if not isinstance(plain(cell), str | int | float | None))
        raise bad_request("An action", "be a number or text", odd) from None
    return list(place), where


def as_text(name: Any) -> str | None:
    """Return the name of an action as text, a whole number as it is written; None if it is missing."""
    name = plain(name)
    whole = isinstance(name, float) and abs(name) < LARGEST and name == int(name)
    return text_of(int(name) if whole else name)


def sorted_names(names: set[Any]) -> tuple[Any, ...]:
    """Return names in order; whole numbers from 0 on are all that lie between them too."""
    whole = all(isinstance(name, int) and not isinstance(name, bool) for name in names)
    if whole and names and min(names) >= 0 and max(names) < MOST:
        return tuple(range(max(names) + 1))
    return tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))


def find_actions(source: Source, column: str) -> Actions:
    """Return the actions that a log has, from its column of actions alone."""
    seen: set[Any] = set()
    texts: set[str | None] = set()
    for chunk in source.chunks([column], column):
        values = chunk[column]
        if not len(values):
            continue
        if values.ndim > 1 or isinstance(values[0], list | tuple | np.ndarray):
            return Actions((), as_matrix(column, values, 0, None)[0].shape[1])
        cells = as_actions(values)
        found = np.unique(cells).tolist() if cells.dtype.kind in "iufU" else distinct(cells)[0]
        seen |= {name for name in found if name is not None and name == name and name not in (np.inf, -np.inf)}
        texts |= {as_text(name) for name in (distinct(values)[0] if values.dtype.kind in "OU" else found)}
        if len(seen) > MOST:
            break
    if any(not isinstance(name, str | int | float) for name in seen):
        raise bad_request(f"Column {column!r}", "have numbers or names of actions", show(next(iter(seen))))
    words = any(isinstance(name, str) for name in seen)
    if words and len(seen) > MOST:
        raise bad_request(
            "The number of different actions", f"be at most {MOST:,}", Unquoted(f"more in column {column!r}")
        )
    if words:  # decided over the whole column, wherever the text stands in it
        return Actions(sorted_names(texts - {None}), text=True)
    broken = not words and any(name != int(name) for name in seen)
    if len(seen) > MOST or (broken and len(seen) > MOST_BROKEN):
        return Actions((), 1)
    if any(isinstance(name, float) and abs(name) >= EXACT for name in seen):
        rule = "have whole numbers below 2**53 where they are stored as floats, which cannot hold larger ones exactly"
        raise bad_request(f"Column {column!r}", rule, max(seen), "Store the actions as integers or as text.")
    names = sorted_names({int(one) if isinstance(one, float) and not broken else one for one in seen})
    return Actions(names, note=spelled_twice(column, texts))


def spelled_twice(column: str, texts: set[str | None]) -> str:
    """Return a sentence about actions that are spelled in several ways, such as 1 and 01; "" if there are none."""
    ways: dict[float | None, list[str]] = {}
    for text in sorted(text for text in texts if text is not None):
        ways.setdefault(number_of(text), []).append(text)
    several = [" and ".join(map(repr, some)) for some in ways.values() if len(some) > 1]
    return f"Column {column!r} spells one action in several ways: {', '.join(several[:3])}." if several else ""
