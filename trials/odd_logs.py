"""Make unusual but valid logs for the trial of trust.

python -m trials.odd_logs          rows and true value of one log of each type

A type is a function of a seed.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.stream.features import OneHot
from tools.programs import parser_of, print_table
from trials.logs import KINDS, SETTINGS, KnownLog, Setting, by_state, drawn, policies_of
from trials.worlds import TableWorld

Log = dict[str, Any]
SOME = 100  # episodes of CartPole in a corrupted log, to limit the time


class Case(NamedTuple):
    """A log, the arguments of `evaluate_log` for it, and the true value."""

    log: Log
    options: dict[str, Any]
    truth: float


Kind = Callable[[int], Case]


def case_of(known: KnownLog, log: Log | None = None, **options: Any) -> Case:
    """Return the case of a known log with some changed options."""
    given = {"target": known.target, "discount": known.discount, "features": known.features}
    return Case(known.log if log is None else log, given | options, known.truth)


def of_kind(name: str, seed: int) -> tuple[KnownLog, Log, np.random.Generator]:
    """Return a valid log, a copy of its columns, and random numbers."""
    known = KINDS[name](seed)
    return known, dict(known.log), np.random.default_rng([seed, 5])


def rows_of(log: Log, chosen: Any) -> Log:
    """Return some rows of a log."""
    return {name: column[chosen] for name, column in log.items()}


def without(log: Log, *beginnings: str) -> Log:
    """Return a log without the columns whose names begin with a text."""
    return {name: column for name, column in log.items() if not name.startswith(beginnings)}


def first_rows(log: Log) -> Array:
    """Return the row numbers at which episodes begin."""
    return np.flatnonzero(np.diff(log["episode"], prepend=-1))


# Valid logs -----------------------------------------------------------------------------------------------


@cache
def walk_setting(steps: int = 200, end: float = 0.1, number: int = 11) -> Setting:
    """Return a table of ten states; episodes are cut after a number of steps."""
    rng = np.random.default_rng(number)
    world = TableWorld.random(rng, 10, 2, end)
    return Setting(world, 0.95, 200, steps, policies_of(world, 0.95, rng), OneHot(10))


def on_policy(seed: int) -> Case:
    """Return a log with the logging policy as the target."""
    known = drawn(walk_setting(), seed, "today")
    return case_of(known, without(known.log, "propensity", "action"), target=None)


def marked_truncations(seed: int) -> Case:
    """Return a log of episodes cut after 20 steps, with marked truncations."""
    return case_of(drawn(walk_setting(20, 0.03), seed))


def truncations_without_next(seed: int) -> Case:
    """Return the log of `marked_truncations` without next observations."""
    known = drawn(walk_setting(20, 0.03), seed)
    return case_of(known, without(known.log, "next_"))


def without_next(seed: int) -> Case:
    """Return a log without next observations, which are taken from the next rows."""
    known = drawn(walk_setting(), seed)
    return case_of(known, without(known.log, "next_"))


@cache
def horizon_setting() -> Setting:
    """Return a table whose state contains the time: five states, and episodes of eight steps."""
    rng = np.random.default_rng(21)
    S, H = 5, 8
    inner = rng.dirichlet(np.full(S, 0.5), size=(S, 2))
    P, R = np.zeros((S * H + 1, 2, S * H + 1)), np.zeros((S * H + 1, 2))
    for t in range(H):
        for s in range(S):
            R[t * S + s] = rng.standard_normal(2) + 0.5
            if t == H - 1:
                P[t * S + s, :, S * H] = 1.0
            else:
                P[t * S + s, :, (t + 1) * S : (t + 2) * S] = inner[s]
    P[S * H, :, S * H] = 1.0
    start = np.zeros(S * H + 1)
    start[:S] = 1 / S
    world = TableWorld(P, R, np.eye(S * H + 1, dtype=bool)[S * H], start, noise=0.3)
    return Setting(world, 1.0, 500, 100, policies_of(world, 0.999, rng), OneHot(S * H + 1))


def fixed_horizon(seed: int) -> Case:
    """Return a log of episodes with eight steps, whose state contains the time."""
    return case_of(drawn(horizon_setting(), seed))


@cache
def goal_setting() -> Setting:
    """Return a walk of eight states to a goal, the only reward."""
    S = 8
    P, R = np.zeros((S + 1, 2, S + 1)), np.zeros((S + 1, 2))
    for s in range(S):
        for a, chance in ((0, 0.3), (1, 0.7)):
            P[s, a, s + 1] += chance
            P[s, a, max(0, s - 1)] += 1 - chance
    P[S, :, S] = 1.0
    R[S - 1] = [0.3, 0.7]
    start = np.eye(S + 1)[0]
    world = TableWorld(P, R, np.eye(S + 1, dtype=bool)[S], start)
    tables = {"today": np.tile([0.4, 0.6], (S + 1, 1)), "target": np.tile([0.2, 0.8], (S + 1, 1))}
    return Setting(world, 0.97, 300, 300, {name: by_state(table) for name, table in tables.items()}, OneHot(S + 1))


def sparse_goal(seed: int) -> Case:
    """Return a log in which only the step that reaches the goal is rewarded."""
    return case_of(drawn(goal_setting(), seed))


def changing_behaviour(seed: int) -> Case:
    """Return a log whose logging policy changes in the middle, as its propensities record."""
    known = drawn(walk_setting(), seed)
    before, after = known.log, drawn(slightly_setting(), seed + 10_000).log
    after = after | {"episode": after["episode"] + 1 + before["episode"][-1]}
    return case_of(known, {name: np.concatenate([before[name], after[name]]) for name in before})


@cache
def slightly_setting() -> Setting:
    """Return the walk with a logging policy slightly closer to the target."""
    setting = walk_setting()
    return setting._replace(policies={**setting.policies, "today": setting.policies["slightly"]})


@cache
def anew_setting() -> Setting:
    """Return a table in which every state is drawn independently of the previous one."""
    rng = np.random.default_rng(31)
    world = TableWorld.random(rng, 6, 2, 0.1)
    P = world.P.copy()
    P[:6, :, :6] = 0.9 * rng.dirichlet(np.full(6, 2.0))
    P[:6, :, 6] = 0.1
    return Setting(
        TableWorld(P, world.rewards, world.ends, world.start, 0.5),
        0.9,
        200,
        200,
        policies_of(world, 0.9, rng),
        OneHot(7),
    )


def drawn_anew(seed: int) -> Case:
    """Return a log of contexts that are independent of each other."""
    return case_of(drawn(anew_setting(), seed))


def named_states(seed: int) -> Case:
    """Return a log with text as states and actions."""
    known = drawn(walk_setting(), seed)
    log = dict(known.log)
    for name in ("obs_0", "next_obs_0"):
        log[name] = np.array([f"room {int(s)}" for s in log[name]])
    log["action"] = np.array(["stay", "go"])[log["action"]]

    def target(seen: Any) -> Array:
        return known.target(np.array([[float(str(one).split()[1])] for one in np.asarray(seen)[:, 0]]))

    # actions are in the order of their names: "go", "stay"
    return case_of(known, log, target=lambda seen: target(seen)[:, ::-1], features=None)


def known_kind(name: str) -> Kind:
    """Return an unchanged type of trials.logs."""
    return lambda seed: case_of(KINDS[name](seed))


LEFT_OUT = ("far target", "cart pole, by the angle")  # the first is not a valid log, the second takes too long
VALID: dict[str, Kind] = {name: known_kind(name) for name in SETTINGS if name not in LEFT_OUT} | {
    "the policy that made the log": on_policy,
    "marked truncations": marked_truncations,
    "marked truncations, no next observations": truncations_without_next,
    "no next observations": without_next,
    "a fixed horizon, time in the state": fixed_horizon,
    "only the goal pays": sparse_goal,
    "a behaviour that changes, propensities known": changing_behaviour,
    "independent states": drawn_anew,
    "states and actions with names": named_states,
}


def print_kinds(**several: dict[str, Kind]) -> None:
    """Print the rows and the truth of one log of each type."""
    rows = []
    for word, kinds in several.items():
        for name, make in kinds.items():
            one = make(0)
            rows.append((word, name, str(len(one.log["reward"])), f"{one.truth:.4g}"))
    print_table(("", "type", "rows", "truth"), rows)


def main(words: list[str] | None = None) -> None:
    """Print the types."""
    parser_of(__doc__).parse_args(words)
    print_kinds(valid=VALID)


if __name__ == "__main__":
    main()
