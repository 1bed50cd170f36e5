"""The roles of the columns of a log, given by the user or found by usual names; and the actions of a log.

observation   obs_0 obs_1 …, x0 x1 …, feature_0 …, state_0 …; or one column, of numbers or of lists: obs, x, state
next          the same names with the prefix next_, or x_next; without such columns, the next row of the episode
action, reward, discount, terminated, truncated, done, episode
rho           importance ratios; or propensities of the action taken: target_probability, behaviour_probability

Each named action has a number: whole numbers from 0 on keep their value, and other names are numbered in sorted order.
The features of a named action are one-hot. The features of a measured action, such as a force, are 1 and, for the value
a of each of its columns, a and a².
"""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, Array
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, show, unknown
from gradient_dd.stream.log.cells import EXACT, as_actions, as_matrix, number_of, text_of

USUAL = {  # the usual names of each role, in lower case; the first is the role's own name
    "action": ("action", "actions", "act", "a"),
    "reward": ("reward", "rewards", "rew", "r"),
    "discount": ("discount", "discounts", "gamma"),
    "terminated": ("terminated", "terminal", "terminals", "terminations", "termination", "is_terminal"),
    "truncated": ("truncated", "truncations", "truncation", "timeout", "timeouts"),
    "done": ("done", "dones", "is_done", "is_last"),
    "episode": ("episode", "episode_id", "episodes", "ep", "trajectory", "trajectory_id", "traj_id", "session_id"),
    "rho": ("rho", "ratio", "importance_ratio", "importance_weight"),
    "target_probability": ("target_probability", "target_prob", "target_propensity", "pi", "pi_e", "p_target"),
    "behaviour_probability": (
        *("behaviour_probability", "behaviour_prob", "behavior_prob", "behavior_probability", "propensity"),
        *("propensities", "pscore", "mu", "pi_b", "p_behaviour", "p_behavior", "action_prob", "action_probs"),
    ),
}
STEMS = ("obs", "observation", "observations", "x", "feature", "features", "state", "s")
FEATURE_STEMS = ("x", "feature", "features")  # columns with these names are used as features without a map
SEVERAL = ("observation", "next")  # roles that may have several columns
NEEDED = {"reward": "rewards", "action": "actions", "observation": "observations, such as obs_0, obs_1, …"}
MOST_ACTIONS = 1000  # maximum number of named actions; more distinct numbers are measured actions
MOST_SHOWN = 20  # maximum number of names in a sentence
MOST_BROKEN = 20  # maximum number of named actions if a number among them is not whole


@dataclass(frozen=True)
class LogColumns:
    """The columns of a log by their roles; None or () for a role that no column has."""

    observation: tuple[str, ...]
    next: tuple[str, ...] = ()
    action: str | None = None
    reward: str = ""
    discount: str | None = None
    terminated: str | None = None
    truncated: str | None = None
    done: str | None = None
    episode: str | None = None
    rho: str | None = None
    target_probability: str | None = None
    behaviour_probability: str | None = None
    unused: tuple[str, ...] = ()

    @property
    def single(self) -> dict[str, str]:
        """The column of each role that has exactly one column."""
        return {role: name for role in USUAL if (name := getattr(self, role)) is not None}

    @property
    def used(self) -> list[str]:
        """All columns with a role."""
        return list(dict.fromkeys([*self.observation, *self.next, *self.single.values()]))

    @property
    def are_features(self) -> bool:
        """Whether the observations are already features, judged by the name of their first column."""
        return re.sub(r"[_.]?\d+$", "", self.observation[0].lower()) in FEATURE_STEMS

    def stated(self) -> list[str]:
        """Return a sentence for each role that names its columns."""
        after = listed(self.next) if self.next else "the next row of the episode"
        found = [f"Observations are {listed(self.observation)}.", f"The next observation is {after}."]
        found += [f"{role.replace('_', ' ').capitalize()} is {name!r}." for role, name in self.single.items()]
        return found + [f"Not used: {listed(self.unused)}."] * bool(self.unused)


def listed(names: tuple[str, ...]) -> str:
    """Return names as text, without the middle of a long list."""
    shown = list(map(show, names))
    return ", ".join(shown if len(shown) <= 4 else [*shown[:2], "…", shown[-1]])


def find_columns(names: list[str], given: Mapping[str, Any] | None, actions: bool = False) -> LogColumns:
    """Return the columns of a log by role, from their names.

    `given` has the columns that the user named, by role; `actions` states whether a column of actions is needed.
    """
    given = {} if given is None else given
    chosen = named_columns(names, given)
    lower = {name.lower(): name for name in reversed(names)}
    for role, usual in USUAL.items():
        if role not in chosen:
            chosen[role] = next((lower[word] for word in usual if word in lower), None)
    free = [name for name in names if name not in {v for v in chosen.values() if isinstance(v, str)}]
    observation = chosen.setdefault("observation", by_stem(free, ""))
    following = chosen.setdefault("next", by_stem(free, "next"))
    lacking = [role for role in NEEDED if not chosen[role] and (actions or role != "action")]
    if lacking == ["reward"]:
        raise missing("A column of rewards", "reward", names)
    if lacking == ["action"]:
        raise missing("With a target policy, a column of the role 'action'", "action", names)
    if lacking:
        flags = " ".join(f"--column {role}={'FEATURE,...' if role == 'observation' else 'NAME'}" for role in lacking)
        roles = ", ".join(f"{role!r}: {'[…]' if role == 'observation' else '…'}" for role in lacking)
        shown = ", ".join(map(show, names[:MOST_SHOWN])) + ", …" * (len(names) > MOST_SHOWN)
        *first, last = (NEEDED[role] for role in lacking)
        rule = f"have {', '.join(first)}{' and ' * bool(first)}{last}"
        hint = f"Name them: {flags}, or columns={{{roles}}}."
        raise bad_request("A log", rule, Unquoted(shown or "no columns"), hint)
    if following and len(following) != len(observation):
        got = Unquoted(f"{len(following)} for {len(observation)}")
        raise bad_request("The columns of the next observation", "be as many as the columns of the observation", got)
    ends = [[int(k) for name in group for k in re.findall(r"\d{1,9}$", name)] for group in (observation, following)]
    if following and ends[0] != ends[1] and not {*SEVERAL} & {*given}:
        got = Unquoted(f"{listed(following)} for {listed(observation)}")
        rule = "have the same numbers as the columns of the observation"
        raise bad_request("The columns of the next observation", rule, got)
    found = LogColumns(**chosen)
    return replace(found, unused=tuple(name for name in names if name not in found.used))


def named_columns(names: list[str], given: Any) -> dict[str, Any]:
    """Return the columns that the user named, by role."""
    if not isinstance(given, Mapping):
        raise bad_request("'columns'", "be a dictionary of columns by their role", given)
    chosen: dict[str, Any] = {}
    roles: dict[str, str] = {}  # by column
    for word, value in given.items():
        usual = (role for role, words in USUAL.items() if word in words)
        role = "next" if word == "next_observation" else next(usual, word)
        if role not in (*SEVERAL, *USUAL):
            raise unknown("role of a column", word, (*SEVERAL, *USUAL))
        ordered = isinstance(value, Iterable) and not isinstance(value, str | Mapping | Set)
        try:
            several = list(value) if ordered else [value]
        except TypeError:  # an array without dimensions claims to be iterable
            several = [value]
        most = len(several) if role in SEVERAL else 1
        texts = all(isinstance(name, str) for name in several)
        if role in chosen or not texts or not 0 < len(set(several)) == len(several) <= most:
            rule = "be a name, or a list of different names" if role in SEVERAL else "be one name"
            raise bad_request(f"The column for {role!r}", rule, value)
        for name in several:
            if name not in names:
                raise missing(f"The column {name!r} for {role!r}", name, names)
            if (other := roles.setdefault(name, role)) != role:
                raise BadRequestError(f"The column {name!r} must have one role. Got {other!r} and {role!r}.")
        chosen[role] = tuple(several) if role in SEVERAL else several[0]
    return chosen


def by_stem(names: list[str], before: str) -> tuple[str, ...]:
    """Return the columns obs_0, obs_1, … or the single column obs, for the first stem with a match."""
    for stem in STEMS:
        words = [stem] if not before else [f"{before}_{stem}", f"{before}{stem}", f"{stem}_{before}", before]
        for word in words:
            found = [(re.fullmatch(rf"{word}[_.]?(\d{{1,9}})", name.lower()), name) for name in names]
            if numbered := sorted((int(match[1]), name) for match, name in found if match):
                return tuple(name for _, name in numbered)
            if single := [name for name in names if name.lower() == word]:
                return (single[0],)
    return ()


def missing(what: str, wanted: str, names: list[str]) -> BadRequestError:
    """Return the error for a column that is not in the log, with the closest name in the log."""
    lower = {name.lower(): name for name in reversed(names)}
    close = get_close_matches(wanted.lower(), lower, n=1, cutoff=0.5)
    hint = f"Columns: {', '.join(map(show, names[:20]))}. Name it with --column."
    if close:
        hint = f"Did you mean {show(lower[close[0]])}?"
    return BadRequestError(f"{what} must be in the log. Got none of that name. {hint}")


@dataclass(frozen=True)
class Actions:
    """The actions of a log.

    names  the names of all actions, in the order of a policy's columns; () if actions are measured
    width  the number of columns of a measured action, else 1
    text   whether any name is text; then all names are text, including numbers
    note   a sentence about actions that are spelled in several ways
    """

    names: tuple[Any, ...]
    width: int = 1
    text: bool = False
    note: str = ""

    @property
    def n_features(self) -> int:
        """The number of features of an action."""
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
        """The order of a policy's columns as a sentence; empty if actions are counted or measured."""
        if self.counted or not self.named:
            return ""
        shown = ", ".join(map(show, self.names[:MOST_SHOWN]))
        return f"Actions, in the order of a policy's columns: {shown}{', …' * (len(self.names) > MOST_SHOWN)}."

    def with_more(self, names: Iterable[Any]) -> "Actions":
        """Return these actions and further actions that a policy knows but the log does not contain."""
        more = [name for name in names if name not in self.names]
        return replace(self, names=sorted_names({*self.names, *more})) if more else self

    def numbers(self, what: str, values: Any) -> Array:
        """Return the numbers of actions (n, 1), or measured actions (n, width); NaN where unknown."""
        found = np.asarray(values) if self.text else as_actions(np.asarray(values))
        if not self.named:
            numbers, _ = as_matrix(what, found, 0, self.width)
            return np.asarray(np.where(np.abs(numbers) <= LARGEST, numbers, np.nan))
        if found.ndim != 1:
            raise bad_request(what, "have one action in each row", Unquoted(f"an array {found.shape}"))
        if found.dtype.kind == "f":  # a larger float may stand for several whole numbers
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
    """Return the distinct cells of a column of objects, and the place of each cell among the distinct cells."""
    place: dict[Any, int] = {}
    try:
        where = np.array([place.setdefault(plain(cell), len(place)) for cell in cells], np.int64)
    except TypeError:  # a list or a dictionary has no hash
        odd = next(cell for cell in cells if not isinstance(plain(cell), str | int | float | None))
        raise bad_request("An action", "be a number or text", odd) from None
    return list(place), where


def as_text(name: Any) -> str | None:
    """Return the name of an action as text, whole numbers without a decimal point; None if it is missing."""
    name = plain(name)
    whole = isinstance(name, float) and abs(name) < LARGEST and name == int(name)
    return text_of(int(name) if whole else name)


def sorted_names(names: set[Any]) -> tuple[Any, ...]:
    """Return names in order; for whole numbers from 0 on, return all numbers up to the largest."""
    whole = all(isinstance(name, int) and not isinstance(name, bool) for name in names)
    if whole and names and min(names) >= 0 and max(names) < MOST_ACTIONS:
        return tuple(range(max(names) + 1))
    return tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))


def find_actions(column: str, pieces: Iterable[Any]) -> Actions:
    """Return the actions of a log, from the name and the pieces of its column of actions."""
    seen: set[Any] = set()
    texts: set[str | None] = set()
    for values in pieces:
        if not len(values):
            continue
        if values.ndim > 1 or isinstance(values[0], list | tuple | np.ndarray):
            return Actions((), as_matrix(column, values, 0, None)[0].shape[1])
        cells = as_actions(values)
        found = np.unique(cells).tolist() if cells.dtype.kind in "iufU" else distinct(cells)[0]
        seen |= {name for name in found if name is not None and name == name and name not in (np.inf, -np.inf)}
        texts |= {as_text(name) for name in (distinct(values)[0] if values.dtype.kind in "OU" else found)}
        if len(seen) > MOST_ACTIONS:
            break
    if any(not isinstance(name, str | int | float) for name in seen):
        raise bad_request(f"Column {column!r}", "have numbers or names of actions", show(next(iter(seen))))
    if any(isinstance(name, str) for name in seen):
        if len(seen) > MOST_ACTIONS:
            got = Unquoted(f"more in column {column!r}")
            raise bad_request("The number of different actions", f"be at most {MOST_ACTIONS:,}", got)
        return Actions(sorted_names(texts - {None}), text=True)
    broken = any(name != int(name) for name in seen)
    if len(seen) > (MOST_BROKEN if broken else MOST_ACTIONS):
        return Actions((), 1)
    if any(isinstance(name, float) and abs(name) >= EXACT for name in seen):
        rule = "have whole numbers below 2**53 where they are stored as floats, which cannot hold larger ones exactly"
        raise bad_request(f"Column {column!r}", rule, max(seen), "Store the actions as integers or as text.")
    names = sorted_names({int(one) if isinstance(one, float) and not broken else one for one in seen})
    spellings: dict[float | None, list[str]] = {}  # such as 1 and 01
    for text in sorted(text for text in texts if text is not None):
        spellings.setdefault(number_of(text), []).append(text)
    several = [" and ".join(map(repr, some)) for some in spellings.values() if len(some) > 1]
    note = f"Column {column!r} spells one action in several ways: {', '.join(several[:3])}." if several else ""
    return Actions(names, note=note)
