"""Which column of a log has which role: named by the user, or found by its usual name, and always printed.

observation   obs_0 obs_1 …, x0 x1 …, feature_0 …, state_0 …; or one column, of numbers or of lists: obs, x, state
next          the same with next_ in front, or x_next; without them, the next row of the episode
action, reward, discount, terminated, truncated, done, episode
rho           importance ratios; or propensities of the action taken: target_probability, behaviour_probability
"""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from gradient_dd.errors import BadRequestError, Unquoted, bad_request, show, unknown

USUAL = {  # the usual names of each role, in lower case; the first is ours
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
FEATURE_STEMS = ("x", "feature", "features")  # columns of these names are taken as features as they are
SEVERAL = ("observation", "next")  # roles of several columns
NO_STATE = re.compile(r"action|^act_|decision|choice|treatment|^arm$|^move$|^next|^pi_|reward")  # no hint for a state
MOST = 50  # columns of a hint
OTHER_WORDS = {"next_observation": "next", "behavior_probability": "behaviour_probability"}  # for roles


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
        """The roles that have one column, and that column."""
        return {role: name for role in USUAL if (name := getattr(self, role)) is not None}

    @property
    def used(self) -> list[str]:
        """All columns that have a role."""
        return list(dict.fromkeys([*self.observation, *self.next, *self.single.values()]))

    @property
    def are_features(self) -> bool:
        """Whether the observations are features already, by their name."""
        return re.sub(r"[_.]?\d+$", "", self.observation[0].lower()) in FEATURE_STEMS

    def one_step(self, discount: float) -> bool:
        """Return whether every row is an episode of its own: γ is 0, and no column tells of episodes."""
        told = (self.discount, self.terminated, self.truncated, self.done, self.episode)
        return discount == 0.0 and not any(told)

    def stated(self) -> list[str]:
        """Return a sentence for each role: which column has it."""
        after = listed(self.next) if self.next else "the next row of the episode"
        found = [f"Observations are {listed(self.observation)}.", f"The next observation is {after}."]
        return found + [f"{role.replace('_', ' ').capitalize()} is {name!r}." for role, name in self.single.items()]


def listed(names: tuple[str, ...]) -> str:
    """Return names as text, the middle ones left out."""
    return (
        ", ".join(map(show, names)) if len(names) <= 4 else f"{show(names[0])}, {show(names[1])}, …, {show(names[-1])}"
    )


def find_columns(names: list[str], given: Mapping[str, Any] | None) -> LogColumns:
    """Return the columns of a log that has these names; `given` are the columns that the user named, by role."""
    chosen = named_columns(names, {} if given is None else given)
    lower = {name.lower(): name for name in reversed(names)}
    for role, usual in USUAL.items():
        if role not in chosen:
            chosen[role] = next((lower[word] for word in usual if word in lower), None)
    free = [name for name in names if name not in {v for v in chosen.values() if isinstance(v, str)}]
    observation = chosen.setdefault("observation", by_stem(free, ""))
    following = chosen.setdefault("next", by_stem(free, "next"))
    if not observation:
        likely = [name for name in free if len(name) < 40 and not NO_STATE.search(name.lower())]
        hint = (
            f"Name them: --column observation={repr(','.join(likely))[1:-1]}, or columns={{'observation': {likely}}}."
        )
        got = Unquoted(listed(tuple(names)) or "none")
        raise bad_request(
            "A log", "have observations, such as obs_0, obs_1, …", got, hint if 0 < len(likely) <= MOST else ""
        )
    if chosen["reward"] is None:
        raise missing("A column of rewards", "reward", names)
    if following and len(following) != len(observation):
        got = Unquoted(f"{len(following)} for {len(observation)}")
        raise bad_request("The columns of the next observation", "be as many as those of the observation", got)
    apart = given_numbers(following) != given_numbers(observation)
    if following and apart and not {*SEVERAL} & {*(given or {})}:
        got = Unquoted(f"{listed(following)} for {listed(observation)}")
        raise bad_request(
            "The columns of the next observation", "have the same numbers as those of the observation", got
        )
    found = LogColumns(**chosen)
    return replace(found, unused=tuple(name for name in names if name not in found.used))


def named_columns(names: list[str], given: Any) -> dict[str, Any]:
    """Return the columns that the user named, by role."""
    if not isinstance(given, Mapping):
        raise bad_request("'columns'", "be a dictionary of columns by their role", given)
    chosen: dict[str, Any] = {}
    for word, value in given.items():
        role = OTHER_WORDS.get(word, word)
        if role not in (*SEVERAL, *USUAL):
            raise unknown("role of a column", word, (*SEVERAL, *USUAL))
        ordered = isinstance(value, Iterable) and not isinstance(value, str | Mapping | Set)
        try:
            several = list(value) if ordered else [value]
        except TypeError:  # an array without dimensions says that it can be iterated over
            several = [value]
        most = len(several) if role in SEVERAL else 1
        texts = all(isinstance(name, str) for name in several)
        if role in chosen or not texts or not 0 < len(set(several)) == len(several) <= most:
            rule = "be a name, or a list of different names" if role in SEVERAL else "be one name"
            raise bad_request(f"The column for {role!r}", rule, value)
        for name in several:
            if name not in names:
                raise missing(f"The column {name!r} for {role!r}", name, names)
        chosen[role] = tuple(several) if role in SEVERAL else several[0]
    return chosen


def by_stem(names: list[str], before: str) -> tuple[str, ...]:
    """Return the columns obs_0, obs_1, … or the one column obs, for the first stem that has any."""
    for stem in STEMS:
        stems = [stem] if not before else [f"{before}_{stem}", f"{before}{stem}", f"{stem}_{before}", before]
        for word in stems:
            numbered = [
                (int(m[1]), name) for name in names if (m := re.fullmatch(rf"{word}[_.]?(\d{{1,9}})", name.lower()))
            ]
            if numbered:
                return tuple(name for _, name in sorted(numbered))
            single = [name for name in names if name.lower() == word]
            if single:
                return (single[0],)
    return ()


def given_numbers(names: tuple[str, ...]) -> list[int]:
    """Return the numbers at the end of names such as obs_0 and obs_1."""
    return [int(found[0]) for name in names if (found := re.search(r"\d{1,9}$", name))]


def missing(what: str, wanted: str, names: list[str]) -> BadRequestError:
    """Return the error for a column that the log does not have, with the nearest name that it has."""
    close = get_close_matches(wanted.lower(), [name.lower() for name in names], n=1, cutoff=0.5)
    original = next((name for name in names if close and name.lower() == close[0]), None)
    hint = f"Columns: {', '.join(map(show, names[:20]))}. Name it with --column."
    if original:
        hint = f"Did you mean {show(original)}?"
    return BadRequestError(f"{what} must be in the log. Got none of that name. {hint}")
