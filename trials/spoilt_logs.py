"""Logs that are spoilt on purpose, and healthy ones that look odd: kinds for the trial of trust.

python -m trials.spoilt_logs          rows and truth of one log of each kind

A kind is a function of a seed. A spoilt log was healthy before one thing was done to it; its truth is that of the
healthy one.
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
SOME = 100  # episodes of CartPole that are spoilt, for the sake of time


class Case(NamedTuple):
    """A log, the arguments of `evaluate_log` for it, and the true value."""

    log: Log
    options: dict[str, Any]
    truth: float


Kind = Callable[[int], Case]


def case_of(known: KnownLog, log: Log | None = None, **options: Any) -> Case:
    """Return the case of a known log, some of its options changed."""
    given = {"target": known.target, "discount": known.discount, "features": known.features}
    return Case(known.log if log is None else log, given | options, known.truth)


def of_kind(name: str, seed: int) -> tuple[KnownLog, Log, np.random.Generator]:
    """Return a healthy log, a copy of its columns, and random numbers."""
    known = KINDS[name](seed)
    return known, dict(known.log), np.random.default_rng([seed, 5])


def rows_of(log: Log, chosen: Any) -> Log:
    """Return some rows of a log."""
    return {name: column[chosen] for name, column in log.items()}


def without(log: Log, *beginnings: str) -> Log:
    """Return a log without the columns whose names begin so."""
    return {name: column for name, column in log.items() if not name.startswith(beginnings)}


def first_rows(log: Log) -> Array:
    """Return the numbers of the rows in which episodes begin."""
    return np.flatnonzero(np.diff(log["episode"], prepend=-1))


# Healthy logs -----------------------------------------------------------------------------------------------


@cache
def walk_setting(steps: int = 200, end: float = 0.1, number: int = 11) -> Setting:
    """Return a table of ten states; episodes are cut after so many steps."""
    rng = np.random.default_rng(number)
    world = TableWorld.random(rng, 10, 2, end)
    return Setting(world, 0.95, 200, steps, policies_of(world, 0.95, rng), OneHot(10))


def on_policy(seed: int) -> Case:
    """The value of the policy that made the log."""
    known = drawn(walk_setting(), seed, "today")
    return case_of(known, without(known.log, "propensity", "action"), target=None)


def marked_truncations(seed: int) -> Case:
    """Episodes are cut after 20 steps, and the log says so."""
    return case_of(drawn(walk_setting(20, 0.03), seed))


def truncations_without_next(seed: int) -> Case:
    """The same, without next observations."""
    known = drawn(walk_setting(20, 0.03), seed)
    return case_of(known, without(known.log, "next_"))


def without_next(seed: int) -> Case:
    """The next observation is that of the next row."""
    known = drawn(walk_setting(), seed)
    return case_of(known, without(known.log, "next_"))


@cache
def horizon_setting() -> Setting:
    """Return a table whose state has the time: five states, eight steps, the end after the last."""
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
    """Every episode has eight steps, and the state has the time."""
    return case_of(drawn(horizon_setting(), seed))


@cache
def goal_setting() -> Setting:
    """Return a walk of eight states to a goal that alone pays."""
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
    """Only the step into the goal pays."""
    return case_of(drawn(goal_setting(), seed))


def changing_behaviour(seed: int) -> Case:
    """The policy that acts changes in the middle of the log; the propensities say so."""
    known = drawn(walk_setting(), seed)
    before, after = known.log, drawn(slightly_setting(), seed + 10_000).log
    after = after | {"episode": after["episode"] + 1 + before["episode"][-1]}
    return case_of(known, {name: np.concatenate([before[name], after[name]]) for name in before})


@cache
def slightly_setting() -> Setting:
    """Return the walk, made by a policy that is a little nearer to the target."""
    setting = walk_setting()
    return setting._replace(policies={**setting.policies, "today": setting.policies["slightly"]})


@cache
def anew_setting() -> Setting:
    """Return a table in which every state is drawn anew, whatever was before."""
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
    """Contexts that have nothing to do with each other."""
    return case_of(drawn(anew_setting(), seed))


def named_states(seed: int) -> Case:
    """States and actions are texts."""
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
    """Return a kind of trials.logs as it is."""
    return lambda seed: case_of(KINDS[name](seed))


LEFT_OUT = ("far target", "cart pole, by the angle")  # the first is no healthy log, the second takes long
HEALTHY: dict[str, Kind] = {name: known_kind(name) for name in SETTINGS if name not in LEFT_OUT} | {
    "the policy that made the log": on_policy,
    "marked truncations": marked_truncations,
    "marked truncations, no next observations": truncations_without_next,
    "no next observations": without_next,
    "a fixed horizon, time in the state": fixed_horizon,
    "only the goal pays": sparse_goal,
    "a behaviour that changes, propensities known": changing_behaviour,
    "states drawn anew in every step": drawn_anew,
    "states and actions with names": named_states,
}


# Spoilt logs ------------------------------------------------------------------------------------------------


def other_propensities(seed: int) -> Case:
    """Propensities of another policy than the one that acted."""
    known, log, rng = of_kind("tabular", seed)
    factor = rng.uniform(0.4, 1.0, size=(10, 3))
    log["propensity"] = log["propensity"] * factor[log["obs_0"].astype(int), log["action"]]
    return case_of(known, log)


def other_actions(seed: int) -> Case:
    """The column of actions stands one row too low."""
    known, log, _ = of_kind("tabular", seed)
    log["action"] = np.roll(log["action"], 1)
    return case_of(known, log)


def random_actions(seed: int) -> Case:
    """In half of the rows another action was recorded than the one that was taken."""
    known, log, rng = of_kind("queue", seed)
    flip = rng.random(len(log["action"])) < 0.5
    log["action"] = np.where(flip, 1 - log["action"], log["action"])
    return case_of(known, log)


def swapped_states(seed: int) -> Case:
    """The columns of the state and of the next state are swapped."""
    known, log, _ = of_kind("recommender", seed)
    for i in range(4):
        log[f"obs_{i}"], log[f"next_obs_{i}"] = log[f"next_obs_{i}"], log[f"obs_{i}"]
    return case_of(known, log)


def standing_still(seed: int) -> Case:
    """The next observation is the observation itself."""
    known, log, _ = of_kind("tabular", seed)
    log["next_obs_0"] = log["obs_0"]
    return case_of(known, log)


def no_ends(seed: int) -> Case:
    """No column says where episodes end."""
    known, log, _ = of_kind("recommender", seed)
    return case_of(known, without(log, "terminated", "truncated", "next_"))


def late_ends(seed: int) -> Case:
    """The flag of the end stands one row too low, in the first row of the next episode."""
    known, log, _ = of_kind("tabular", seed)
    log["terminated"] = np.roll(log["terminated"], 1)
    return case_of(known, log)


def limits_as_ends(seed: int) -> Case:
    """Episodes are cut after 20 steps, and that is recorded as an end."""
    known = drawn(walk_setting(20, 0.03), seed)
    log = dict(known.log)
    log["terminated"] = log["terminated"] | log["truncated"]
    return case_of(known, without(log, "truncated"))


def leaked_return(seed: int) -> Case:
    """A column of the observation was computed from what came later."""
    known, log, rng = of_kind("queue", seed)
    reward, last = log["reward"], np.append(first_rows(log)[1:] - 1, len(log["reward"]) - 1)
    returns, ends = np.zeros(len(reward)), set(last.tolist())
    for row in range(len(reward) - 1, -1, -1):
        returns[row] = reward[row] + (0.0 if row in ends else known.discount * returns[row + 1])
    leak = returns + 0.05 * returns.std() * rng.standard_normal(len(returns))
    log |= {"obs_1": leak, "next_obs_1": np.append(leak[1:], 0.0)}
    return case_of(known, log, features="standard")


def rewards_jump(seed: int) -> Case:
    """In the first half of the log every reward is larger by half of their spread; the truth is that of the second."""
    known, log, _ = of_kind("tabular", seed)
    early = np.arange(len(log["reward"])) < len(log["reward"]) // 2
    log["reward"] = log["reward"] + 0.5 * log["reward"].std() * early
    return case_of(known, log)


def rewards_drift(seed: int) -> Case:
    """Rewards fall slowly to what they are today."""
    known, log, _ = of_kind("recommender", seed)
    log["reward"] = log["reward"] + np.linspace(0.5, 0.0, len(log["reward"]))
    return case_of(known, log)


def transitions_jump(seed: int) -> Case:
    """The first half of the log is from another world with the same states."""
    setting = walk_setting()
    known, other = drawn(setting, seed), drawn(walk_setting(number=12), seed + 10_000)
    first = rows_of(other.log, other.log["episode"] < 100)
    second = rows_of(known.log, known.log["episode"] >= 100)
    return case_of(known, {name: np.concatenate([first[name], second[name]]) for name in first})


def season(seed: int) -> Case:
    """Two of four quarters of the log pay more."""
    known, log, _ = of_kind("queue", seed)
    quarter = np.arange(len(log["reward"])) * 4 // len(log["reward"])
    log["reward"] = log["reward"] + 0.6 * np.isin(quarter, (0, 2))
    return case_of(known, log)


def heavy_tails(seed: int) -> Case:
    """Rewards have a Pareto part of index 1.1, of which most logs lack the largest."""
    known, log, rng = of_kind("tabular", seed)
    part = rng.pareto(1.1, size=len(log["reward"]))
    log["reward"] = log["reward"] + part
    return case_of(known, log)._replace(truth=known.truth + 10.0 * expected_steps())


@cache
def expected_steps() -> float:
    """Return the discounted number of steps of an episode of the tabular kind under the target."""
    setting = SETTINGS["tabular"]()
    world = setting.world
    assert isinstance(world, TableWorld)
    ones = TableWorld(world.P, np.where(world.ends[:, None], 0.0, np.ones_like(world.rewards)), world.ends, world.start)
    return ones.value(setting.policies["target"], setting.discount)


def copies(seed: int) -> Case:
    """Every episode stands six times in the log."""
    known = drawn(walk_setting(), seed)
    known = known._replace(log=rows_of(known.log, known.log["episode"] < 40))
    count = int(known.log["episode"][-1]) + 1
    parts = [known.log | {"episode": known.log["episode"] + k * count} for k in range(6)]
    return case_of(known, {name: np.concatenate([part[name] for part in parts]) for name in known.log})


def copies_of_visits(seed: int) -> Case:
    """Every visit to the shop stands five times in the log."""
    known = KINDS["recommender"](seed)
    known = known._replace(log=rows_of(known.log, known.log["episode"] < 60))
    count = int(known.log["episode"][-1]) + 1
    parts = [known.log | {"episode": known.log["episode"] + k * count} for k in range(5)]
    return case_of(known, {name: np.concatenate([part[name] for part in parts]) for name in known.log})


def shuffled(seed: int) -> Case:
    """The rows were shuffled, and there are no next observations."""
    known, log, rng = of_kind("tabular", seed)
    return case_of(known, rows_of(without(log, "next_", "episode"), rng.permutation(len(log["reward"]))))


def shuffled_with_next(seed: int) -> Case:
    """The rows were shuffled; next observations are there, but episodes begin anywhere."""
    known, log, rng = of_kind("cart pole", seed)
    log = rows_of(log, log["episode"] < SOME)
    return case_of(known, rows_of(without(log, "episode"), rng.permutation(len(log["reward"]))))


def every_tenth_missing(seed: int) -> Case:
    """Every tenth row is missing, and there are no next observations."""
    known, log, _ = of_kind("cart pole", seed)
    log = rows_of(log, log["episode"] < SOME)
    return case_of(known, rows_of(without(log, "next_"), np.arange(len(log["reward"])) % 10 != 7))


def every_third_missing(seed: int) -> Case:
    """Every third row of a table is missing, and there are no next observations."""
    known, log, _ = of_kind("queue", seed)
    return case_of(known, rows_of(without(log, "next_"), np.arange(len(log["reward"])) % 3 != 1))


def late_rewards(seed: int) -> Case:
    """Every reward stands one row too low."""
    known, log, _ = of_kind("tabular", seed)
    log["reward"] = np.roll(log["reward"], 1)
    return case_of(known, log)


def early_rewards(seed: int) -> Case:
    """Every reward stands one row too high."""
    known, log, _ = of_kind("queue", seed)
    log["reward"] = np.roll(log["reward"], -1)
    return case_of(known, log)


def part_of_the_state(seed: int) -> Case:
    """Of CartPole's state the position alone is read."""
    known, log, _ = of_kind("cart pole", seed)
    log = rows_of(log, log["episode"] < SOME)
    target, seen = known.target, np.column_stack([log[f"obs_{i}"] for i in range(4)])
    chances = target(seen)
    log = without(log, "obs_", "next_obs_") | {"obs_0": log["obs_0"], "next_obs_0": log["next_obs_0"]}
    taken = chances[np.arange(len(chances)), log["action"]]
    return case_of(known, without(log, "action") | {"target_probability": taken}, target=None)


def no_coverage(seed: int) -> Case:
    """One action of the target is never taken in half of the states."""
    return case_of(drawn(walk_setting(), seed), drawn(narrow_setting(), seed).log)


@cache
def narrow_setting() -> Setting:
    """Return the walk, made by a policy that takes one action alone in half of the states."""
    setting = walk_setting()
    table = setting.policies["today"](np.arange(11.0)[:, None]).copy()
    table[:5] = [1.0, 0.0]
    return setting._replace(policies={**setting.policies, "today": by_state(table)})


def far_target(seed: int) -> Case:
    """A target far from what made the log."""
    return case_of(KINDS["far target"](seed))


def five_episodes(seed: int) -> Case:
    """Five episodes alone."""
    known, log, _ = of_kind("tabular", seed)
    return case_of(known, rows_of(log, log["episode"] < 5))


def poor_features(seed: int) -> Case:
    """Features that do not carry the values: the number of a state, as if it were a quantity."""
    known, log, _ = of_kind("tabular", seed)
    return case_of(known, log, features="standard")


SPOILT: dict[str, Kind] = {
    "propensities of another policy": other_propensities,
    "actions one row too low": other_actions,
    "half of the actions recorded at random": random_actions,
    "state and next state swapped": swapped_states,
    "the next state is the state itself": standing_still,
    "no column of ends": no_ends,
    "ends one row too low": late_ends,
    "time limits recorded as ends": limits_as_ends,
    "a column that holds the return": leaked_return,
    "rewards that jump": rewards_jump,
    "rewards that drift": rewards_drift,
    "transitions that jump": transitions_jump,
    "seasons": season,
    "heavy tails": heavy_tails,
    "every episode six times": copies,
    "every visit five times": copies_of_visits,
    "shuffled rows": shuffled,
    "shuffled rows with next states": shuffled_with_next,
    "every tenth row missing": every_tenth_missing,
    "every third row missing": every_third_missing,
    "rewards one row too low": late_rewards,
    "rewards one row too high": early_rewards,
    "a part of the state": part_of_the_state,
    "an action that the log lacks": no_coverage,
    "a far target": far_target,
    "five episodes": five_episodes,
    "features that do not carry the values": poor_features,
}


def main(words: list[str] | None = None) -> None:
    """Print what the kinds are."""
    parser_of(__doc__).parse_args(words)
    rows = []
    for word, kinds in (("healthy", HEALTHY), ("spoilt", SPOILT)):
        for name, make in kinds.items():
            one = make(0)
            rows.append((word, name, str(len(one.log["reward"])), f"{one.truth:.4g}"))
    print_table(("", "kind", "rows", "truth"), rows)


if __name__ == "__main__":
    main()
