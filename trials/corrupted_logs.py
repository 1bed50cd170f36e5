"""Make corrupted logs for the trial of trust.

python -m trials.corrupted_logs          rows and true value of one log of each type

A type is a function of a seed. Each function corrupts a valid log in one way. The true value is the value of the valid
log.
"""

from functools import cache

import numpy as np

from tools.programs import parser_of
from trials.logs import KINDS, SETTINGS, Setting, by_state, drawn
from trials.odd_logs import SOME, Case, Kind, case_of, first_rows, of_kind, print_kinds, rows_of, walk_setting, without
from trials.worlds import TableWorld


def other_propensities(seed: int) -> Case:
    """Return a log with the propensities of a policy other than the logging policy."""
    known, log, rng = of_kind("tabular", seed)
    factor = rng.uniform(0.4, 1.0, size=(10, 3))
    log["propensity"] = log["propensity"] * factor[log["obs_0"].astype(int), log["action"]]
    return case_of(known, log)


def other_actions(seed: int) -> Case:
    """Return a log with the column of actions shifted down by one row."""
    known, log, _ = of_kind("tabular", seed)
    log["action"] = np.roll(log["action"], 1)
    return case_of(known, log)


def random_actions(seed: int) -> Case:
    """Return a log in which half of the recorded actions are not the actions taken."""
    known, log, rng = of_kind("queue", seed)
    flip = rng.random(len(log["action"])) < 0.5
    log["action"] = np.where(flip, 1 - log["action"], log["action"])
    return case_of(known, log)


def swapped_states(seed: int) -> Case:
    """Return a log with swapped columns of the state and of the next state."""
    known, log, _ = of_kind("recommender", seed)
    for i in range(4):
        log[f"obs_{i}"], log[f"next_obs_{i}"] = log[f"next_obs_{i}"], log[f"obs_{i}"]
    return case_of(known, log)


def standing_still(seed: int) -> Case:
    """Return a log whose next observations repeat the observations."""
    known, log, _ = of_kind("tabular", seed)
    log["next_obs_0"] = log["obs_0"]
    return case_of(known, log)


def no_ends(seed: int) -> Case:
    """Return a log without a column that marks the ends of episodes."""
    known, log, _ = of_kind("recommender", seed)
    return case_of(known, without(log, "terminated", "truncated", "next_"))


def late_ends(seed: int) -> Case:
    """Return a log with the flag of the end shifted down by one row, into the first row of the next episode."""
    known, log, _ = of_kind("tabular", seed)
    log["terminated"] = np.roll(log["terminated"], 1)
    return case_of(known, log)


def limits_as_ends(seed: int) -> Case:
    """Return a log of episodes that are cut after 20 steps, but recorded as terminated."""
    known = drawn(walk_setting(20, 0.03), seed)
    log = dict(known.log)
    log["terminated"] = log["terminated"] | log["truncated"]
    return case_of(known, without(log, "truncated"))


def leaked_return(seed: int) -> Case:
    """Return a log with a column of the observation that was computed from later rows."""
    known, log, rng = of_kind("queue", seed)
    reward, last = log["reward"], np.append(first_rows(log)[1:] - 1, len(log["reward"]) - 1)
    returns, ends = np.zeros(len(reward)), set(last.tolist())
    for row in range(len(reward) - 1, -1, -1):
        returns[row] = reward[row] + (0.0 if row in ends else known.discount * returns[row + 1])
    leak = returns + 0.05 * returns.std() * rng.standard_normal(len(returns))
    log |= {"obs_1": leak, "next_obs_1": np.append(leak[1:], 0.0)}
    return case_of(known, log, features="standard")


def rewards_jump(seed: int) -> Case:
    """Return a log with rewards increased by half of their spread in the first half; the second half is correct."""
    known, log, _ = of_kind("tabular", seed)
    early = np.arange(len(log["reward"])) < len(log["reward"]) // 2
    log["reward"] = log["reward"] + 0.5 * log["reward"].std() * early
    return case_of(known, log)


def rewards_drift(seed: int) -> Case:
    """Return a log whose rewards decrease slowly to their present level."""
    known, log, _ = of_kind("recommender", seed)
    log["reward"] = log["reward"] + np.linspace(0.5, 0.0, len(log["reward"]))
    return case_of(known, log)


def transitions_jump(seed: int) -> Case:
    """Return a log whose first half is from another world with the same states."""
    setting = walk_setting()
    known, other = drawn(setting, seed), drawn(walk_setting(number=12), seed + 10_000)
    first = rows_of(other.log, other.log["episode"] < 100)
    second = rows_of(known.log, known.log["episode"] >= 100)
    return case_of(known, {name: np.concatenate([first[name], second[name]]) for name in first})


def season(seed: int) -> Case:
    """Return a log with higher rewards in two of its four quarters."""
    known, log, _ = of_kind("queue", seed)
    quarter = np.arange(len(log["reward"])) * 4 // len(log["reward"])
    log["reward"] = log["reward"] + 0.6 * np.isin(quarter, (0, 2))
    return case_of(known, log)


def heavy_tails(seed: int) -> Case:
    """Return a log with a Pareto component of index 1.1 in the rewards; most logs lack its largest values."""
    known, log, rng = of_kind("tabular", seed)
    part = rng.pareto(1.1, size=len(log["reward"]))
    log["reward"] = log["reward"] + part
    return case_of(known, log)._replace(truth=known.truth + 10.0 * expected_steps())


@cache
def expected_steps() -> float:
    """Return the discounted number of steps of an episode of the tabular type under the target policy."""
    setting = SETTINGS["tabular"]()
    world = setting.world
    assert isinstance(world, TableWorld)
    ones = TableWorld(world.P, np.where(world.ends[:, None], 0.0, np.ones_like(world.rewards)), world.ends, world.start)
    return ones.value(setting.policies["target"], setting.discount)


def copies(seed: int) -> Case:
    """Return a log with every episode six times."""
    known = drawn(walk_setting(), seed)
    known = known._replace(log=rows_of(known.log, known.log["episode"] < 40))
    count = int(known.log["episode"][-1]) + 1
    parts = [known.log | {"episode": known.log["episode"] + k * count} for k in range(6)]
    return case_of(known, {name: np.concatenate([part[name] for part in parts]) for name in known.log})


def copies_of_visits(seed: int) -> Case:
    """Return a log with every visit to the shop five times."""
    known = KINDS["recommender"](seed)
    known = known._replace(log=rows_of(known.log, known.log["episode"] < 60))
    count = int(known.log["episode"][-1]) + 1
    parts = [known.log | {"episode": known.log["episode"] + k * count} for k in range(5)]
    return case_of(known, {name: np.concatenate([part[name] for part in parts]) for name in known.log})


def shuffled(seed: int) -> Case:
    """Return a log with shuffled rows and without next observations."""
    known, log, rng = of_kind("tabular", seed)
    return case_of(known, rows_of(without(log, "next_", "episode"), rng.permutation(len(log["reward"]))))


def shuffled_with_next(seed: int) -> Case:
    """Return a log with shuffled rows and next observations; its episodes begin anywhere."""
    known, log, rng = of_kind("cart pole", seed)
    log = rows_of(log, log["episode"] < SOME)
    return case_of(known, rows_of(without(log, "episode"), rng.permutation(len(log["reward"]))))


def every_tenth_missing(seed: int) -> Case:
    """Return a log without every tenth row and without next observations."""
    known, log, _ = of_kind("cart pole", seed)
    log = rows_of(log, log["episode"] < SOME)
    return case_of(known, rows_of(without(log, "next_"), np.arange(len(log["reward"])) % 10 != 7))


def every_third_missing(seed: int) -> Case:
    """Return a tabular log without every third row and without next observations."""
    known, log, _ = of_kind("queue", seed)
    return case_of(known, rows_of(without(log, "next_"), np.arange(len(log["reward"])) % 3 != 1))


def late_rewards(seed: int) -> Case:
    """Return a log with every reward shifted down by one row."""
    known, log, _ = of_kind("tabular", seed)
    log["reward"] = np.roll(log["reward"], 1)
    return case_of(known, log)


def early_rewards(seed: int) -> Case:
    """Return a log with every reward shifted up by one row."""
    known, log, _ = of_kind("queue", seed)
    log["reward"] = np.roll(log["reward"], -1)
    return case_of(known, log)


def part_of_the_state(seed: int) -> Case:
    """Return a log whose observations contain only the position of CartPole's state."""
    known, log, _ = of_kind("cart pole", seed)
    log = rows_of(log, log["episode"] < SOME)
    target, seen = known.target, np.column_stack([log[f"obs_{i}"] for i in range(4)])
    chances = target(seen)
    log = without(log, "obs_", "next_obs_") | {"obs_0": log["obs_0"], "next_obs_0": log["next_obs_0"]}
    taken = chances[np.arange(len(chances)), log["action"]]
    return case_of(known, without(log, "action") | {"target_probability": taken}, target=None)


def no_coverage(seed: int) -> Case:
    """Return a log in which half of the states lack one action of the target."""
    return case_of(drawn(walk_setting(), seed), drawn(narrow_setting(), seed).log)


@cache
def narrow_setting() -> Setting:
    """Return the walk with a logging policy that takes only one action in half of the states."""
    setting = walk_setting()
    table = setting.policies["today"](np.arange(11.0)[:, None]).copy()
    table[:5] = [1.0, 0.0]
    return setting._replace(policies={**setting.policies, "today": by_state(table)})


def far_target(seed: int) -> Case:
    """Return a log with a target policy far from the logging policy."""
    return case_of(KINDS["far target"](seed))


def five_episodes(seed: int) -> Case:
    """Return a log with only five episodes."""
    known, log, _ = of_kind("tabular", seed)
    return case_of(known, rows_of(log, log["episode"] < 5))


def poor_features(seed: int) -> Case:
    """Return a log with features that cannot represent the values: the state number as a quantity."""
    known, log, _ = of_kind("tabular", seed)
    return case_of(known, log, features="standard")


CORRUPTED: dict[str, Kind] = {
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
    """Print the types."""
    parser_of(__doc__).parse_args(words)
    print_kinds(corrupted=CORRUPTED)


if __name__ == "__main__":
    main()
