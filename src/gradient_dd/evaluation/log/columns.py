"""Which column of a log is what: named by the user, or found by the usual names, and always printed.

observation   obs_0 obs_1 …, x0 x1 …, feature_0 …, state_0 …; or one column, of numbers or of lists: obs, x, state
next          the same with next_ in front, or x_next; without them, the next row of the episode
action, reward, discount, terminated, truncated, done, episode
rho           importance ratios; or propensities of the action taken: target_probability, behaviour_probability
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gradient_dd.errors import BadRequestError, Words, must, unknown

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
FEATURE_STEMS = ("x", "feature", "features")  # these are taken as features as they are
SEVERAL = ("observation", "next")  # roles of several columns
OTHER_WORDS = {"next_observation": "next", "behavior_probability": "behaviour_probability"}  # for roles


@dataclass(frozen=True)
class Columns:
    """The columns of a log by their roles; None or () where there is none."""

    observation: tuple[str, ...]
    next: tuple[str, ...] = ()
    action: str | None = None
    reward: str | None = None
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
    def needed(self) -> list[str]:
        """All columns to read."""
        return list(dict.fromkeys([*self.observation, *self.next, *self.single.values()]))

    @property
    def are_features(self) -> bool:
        """Whether the observations are features already, by their name."""
        return re.sub(r"[_.]?\d+$", "", self.observation[0].lower()) in FEATURE_STEMS

    def stated(self) -> list[str]:
        """Return a sentence for each thing that was taken for something."""
        names = listed(self.observation)
        found = [f"Observations are {names}."]
        after = listed(self.next) if self.next else "the next row of the episode"
        found.append(f"The next observation is {after}.")
        found += [f"{role.replace('_', ' ').capitalize()} is {name!r}." for role, name in self.single.items()]
        return found


def listed(names: tuple[str, ...]) -> str:
    """Return names as text, the middle ones left out."""
    return ", ".join(map(repr, names)) if len(names) <= 4 else f"{names[0]!r}, {names[1]!r}, …, {names[-1]!r}"


def find_columns(names: list[str], given: Mapping[str, Any]) -> Columns:
    """Return the columns of a log that has these names; `given` are those that the user named, by role."""
    chosen: dict[str, Any] = {}
    for role, value in ((OTHER_WORDS.get(role, role), value) for role, value in given.items()):
        if role not in (*SEVERAL, *USUAL):
            raise unknown("role of a column", role, (*SEVERAL, *USUAL))
        several = [value] if isinstance(value, str) else list(value)
        for name in several:
            if name not in names:
                raise missing(f"The column {name!r} for {role!r}", name, names)
        chosen[role] = tuple(several) if role in SEVERAL else several[0]
    lower = {name.lower(): name for name in reversed(names)}
    for role, usual in USUAL.items():
        if role not in chosen:
            chosen[role] = next((lower[one] for one in usual if one in lower), None)
    free = [name for name in names if name not in {v for v in chosen.values() if isinstance(v, str)}]
    if "observation" not in chosen:
        chosen["observation"] = by_stem(free, "")
    if "next" not in chosen:
        chosen["next"] = by_stem(free, "next")
    if not chosen["observation"]:
        hint = f"Name them: --column observation={','.join(free[:3])}, or columns={{'observation': {free[:3]}}}."
        raise must(
            "A log",
            "have observations, such as obs_0, obs_1, …",
            Words(listed(tuple(names)) or "none"),
            hint if free else "",
        )
    if chosen["reward"] is None:
        raise missing("A column of rewards", "reward", names)
    if chosen["next"] and len(chosen["next"]) != len(chosen["observation"]):
        got = Words(f"{len(chosen['next'])} for {len(chosen['observation'])}")
        raise must("The columns of the next observation", "be as many as those of the observation", got)
    found = Columns(**chosen)
    return replace(found, unused=tuple(name for name in names if name not in found.needed))


def by_stem(names: list[str], before: str) -> tuple[str, ...]:
    """Return the columns obs_0, obs_1, … or the one column obs, for the first stem that has any."""
    for stem in STEMS:
        stems = [stem] if not before else [f"{before}_{stem}", f"{before}{stem}", f"{stem}_{before}", before]
        for one in stems:
            numbered = [(int(m[1]), name) for name in names if (m := re.fullmatch(rf"{one}[_.]?(\d+)", name.lower()))]
            if numbered:
                return tuple(name for _, name in sorted(numbered))
            single = [name for name in names if name.lower() == one]
            if single:
                return (single[0],)
    return ()


def missing(what: str, wanted: str, names: list[str]) -> BadRequestError:
    """Return the error for a column that is not there, with the nearest one that is."""
    from difflib import get_close_matches

    close = get_close_matches(wanted.lower(), [name.lower() for name in names], n=1, cutoff=0.5)
    original = next((name for name in names if close and name.lower() == close[0]), None)
    hint = f"Did you mean {original!r}?" if original else f"Columns: {', '.join(names[:20])}. Name it with --column."
    return BadRequestError(f"{what} must be in the log. Got none of that name. {hint}")
