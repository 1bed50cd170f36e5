"""Are failures in the data noticed? Logs that are corrupted on purpose, and valid ones for false alarms.

python -m tests.evaluation.planted_failures [LOGS]
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation import Evaluation, evaluate_log
from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.tasks import Task, baird, boyan_chain, random_mdp, random_walk
from tests.evaluation.known_logs import cartpole, log_of, realisable, shop_visits
from tests.evaluation.planted_policies import POLICIES

ROWS = 4000
FIRST_SEED = 1000  # rules were made while looking at the logs of smaller seeds
Log = dict[str, Any]


def valid(seed: int) -> Log:
    """Return one of four types of valid logs, whose features can represent the values: two of them off-policy."""
    types: tuple[Callable[[], Task], ...] = (
        lambda: random_walk(10),
        lambda: realisable(seed),
        lambda: boyan_chain(5),
        lambda: realisable(seed, n_states=4),
    )
    return log_of(types[seed % 4](), ROWS, seed)


def off_policy(seed: int) -> Log:
    """Return a valid off-policy log with episodes."""
    return log_of(realisable(seed), ROWS, seed)


def rows_of(log: Log, chosen: Any) -> Log:
    """Return some rows of a log."""
    return {name: column[chosen] for name, column in log.items()}


def wrong_propensities(seed: int) -> Log:
    """Propensities are those of another policy than the one that acted: drawn anew in each state."""
    log, rng = off_policy(seed), np.random.default_rng(seed)
    return log | {"rho": log["rho"] * rng.uniform(0.4, 1.2, size=log["x"].shape[1])[log["x"].argmax(axis=1)]}


def swapped_propensities(seed: int) -> Log:
    """The columns of the two propensities are swapped: ratios are upside down."""
    log = off_policy(seed)
    return log | {"rho": np.where(log["rho"] > 0, 1 / np.maximum(log["rho"], 1e-12), 0.0)}


def swapped_states(seed: int) -> Log:
    """The columns of the state and of the next state are swapped."""
    log = valid(seed)
    return log | {"x": np.where(log["discount"][:, None] == 0, log["x"], log["x_next"]), "x_next": log["x"]}


def missing_coverage(seed: int) -> Log:
    """The behaviour never takes an action that the target takes: its rows are not in the log, other ratios stay."""
    log = off_policy(seed)
    kept = np.flatnonzero(~((log["rho"] > 1) & (log["x"].argmax(axis=1) < 4)))
    return rows_of(log, kept) | {"truncated": np.append(np.diff(kept) > 1, False)}


def time_limits(seed: int, limit: int = 30) -> Log:
    """Episodes are cut after some steps, and that is recorded as an end."""
    log = log_of(random_mdp(seed=seed, n_actions=2, discount=0.97), ROWS, seed)
    rng = np.random.default_rng(seed)
    discount, steps = log["discount"].copy(), 0
    for row in range(ROWS):
        steps += 1
        if steps == limit or rng.random() < 0.02:
            discount[row], steps = 0.0, 0
    return log | {"discount": discount}


def short_limits(seed: int) -> Log:
    """The same with a limit of six steps."""
    return time_limits(seed, 6)


def leaked_return(seed: int) -> Log:
    """A column of the observation holds the return of the rest of the episode, with a little noise."""
    log, returns = valid(4 * seed), np.zeros(ROWS)
    for row in range(ROWS - 2, -1, -1):
        returns[row] = log["reward"][row] + log["discount"][row] * returns[row + 1]
    noisy = returns + 0.1 * returns.std() * np.random.default_rng(seed).standard_normal(ROWS)
    return with_feature(log, noisy)


def leaked_action(seed: int) -> Log:
    """A feature holds the action that is taken after the state was seen, as far as the ratio tells it."""
    log = off_policy(seed)
    return with_feature(log, (log["rho"] > 1).astype(float))


def with_feature(log: Log, column: Array) -> Log:
    """Return a log with one more feature, whose next value is that of the row after."""
    x, after = np.column_stack([log["x"], column]), np.append(column[1:], 0.0)
    return log | {"x": x, "x_next": np.column_stack([log["x_next"], after])}


def td_diverging(seed: int) -> Log:
    """Baird's counterexample with a reward in every step."""
    return log_of(baird(7), ROWS, seed, reward=np.ones(ROWS))


def poor_features(seed: int) -> Log:
    """Features that cannot represent the values: fewer than states, drawn at random."""
    return log_of(random_mdp(seed=seed, n_actions=2, episodic=True), ROWS, seed)


def part_of_the_state(seed: int) -> dict[str, Array]:
    """A log of CartPole of which the position alone is read."""
    return {name: column for name, column in cartpole(seed).items() if name not in ("v", "th", "om")}


def swapped_reward(seed: int) -> dict[str, Array]:
    """The column of rewards and that of ends are swapped."""
    log = shop_visits(seed)
    names = {"visit": "episode", "interest": "observation", "left": "reward", "bought": "terminated"}
    return {names[name]: column for name, column in log.items()}


def no_column_of_ends(seed: int) -> dict[str, Array]:
    """No column says where episodes end; the goal pays in the last row."""
    log = shop_visits(seed)
    return {"episode": log["visit"], "observation": log["interest"], "reward": log["left"]}


def heavy_ratios(seed: int) -> Log:
    """Ratios that average to 1, of which a few have nearly all weight: the target is far from the behaviour."""
    return off_policy(seed) | {"rho": np.where(np.random.default_rng(seed).random(ROWS) < 0.02, 50.0, 0.0)}


def one_heavy_row(seed: int) -> Log:
    """One row with a ratio of 500."""
    log = off_policy(seed)
    rho = log["rho"].copy()
    rho[17 + seed % 100] = 500.0
    return log | {"rho": rho}


def few_episodes(seed: int) -> Log:
    """Five episodes alone."""
    log = valid(4 * seed)
    return rows_of(log, slice(int(np.flatnonzero(log["discount"] == 0)[4]) + 1))


def one_step_size(seed: int) -> Log:
    """A valid log, for a learner with a step size that does not suit it."""
    return valid(4 * seed)


def noise(seed: int) -> Log:
    """Sixty rows of rewards that are noise, in episodes of three rows."""
    ones, over = np.ones((60, 2)), np.arange(60) % 3 == 2
    reward = np.random.default_rng(seed).standard_normal(60)
    return {"x": ones, "reward": reward, "discount": np.where(over, 0.0, 0.9), "x_next": ones}


def unnamed_columns(seed: int) -> dict[str, Array]:
    """A log of visits with a column that is not read, though it may belong to the state."""
    log = shop_visits(seed)
    names = {"visit": "episode", "interest": "observation", "bought": "reward", "left": "terminated"}
    return {names[name]: column for name, column in log.items()} | {"basket": log["interest"] ** 2}


def visited(seed: int) -> dict[str, Array]:
    """A log of visits of states 0 to 4, of which state 9 is asked for."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 5, size=ROWS).astype(float)
    return {"observation": state, "reward": state, "terminated": np.arange(ROWS) % 5 == 4}


def long_log(seed: int) -> Log:
    """Return a valid on-policy log of a walk."""
    return log_of(random_walk(10), ROWS, seed)


def rewards_that_jump(seed: int) -> Log:
    """In the first half of the log every row pays more."""
    log = long_log(seed)
    return log | {"reward": log["reward"] + 0.05 * (np.arange(ROWS) < ROWS // 2)}


def large_rewards(seed: int) -> Log:
    """Rewards of which a few are a thousand times as large as the others."""
    log = long_log(seed)
    return log | {"reward": log["reward"] + np.random.default_rng(seed).pareto(1.05, size=ROWS)}


def copied(seed: int) -> Log:
    """A third of the episodes stands in the log twice."""
    log = long_log(seed)
    ends = np.flatnonzero(log["discount"] == 0)
    again = rows_of(log, slice(ends[len(ends) // 3] + 1))
    log = rows_of(log, slice(ends[-1] + 1))
    return {name: np.concatenate([log[name], again[name]]) for name in log}


def shuffled(seed: int) -> Log:
    """The rows were shuffled, and the next state was taken from the next row."""
    log = long_log(seed)
    x = log["x"][np.random.default_rng(seed).permutation(ROWS)]
    return log | {"x": x, "x_next": np.vstack([x[1:], x[:1]])}


def every_tenth_missing(seed: int) -> Log:
    """Every tenth row is missing, and the next state was taken from the next row."""
    log = rows_of(long_log(seed), np.arange(ROWS) % 10 != 4)
    return log | {"x_next": np.vstack([log["x"][1:], log["x"][:1]])}


def late_rewards(seed: int) -> Log:
    """Every reward stands one row too low."""
    log = off_policy(seed)
    return log | {"reward": np.roll(log["reward"], 1)}


class Failure(NamedTuple):
    """A planted failure: the log of a seed, the findings that must notice it, and the options of the evaluation."""

    log: Callable[[int], Log]
    wanted: tuple[str, ...]  # keys of FINDINGS; one of them must give an alarm
    options: Mapping[str, Any] = MappingProxyType({})


PLANTED = {
    "propensities of another policy": Failure(wrong_propensities, ("mean_ratio",)),
    "propensities swapped": Failure(swapped_propensities, ("mean_ratio",)),
    "states swapped": Failure(swapped_states, ("order_of_columns",)),
    "rewards and ends swapped": Failure(swapped_reward, ("ends_inside", "left_out"), {"discount": 0.9}),
    "no column of ends": Failure(no_column_of_ends, ("no_ends", "left_out"), {"discount": 0.9}),
    "missing coverage": Failure(missing_coverage, ("mean_ratio",)),
    "time limits recorded as ends": Failure(time_limits, ("time_limit",)),
    "limits of six steps recorded as ends": Failure(short_limits, ("time_limit",)),
    "leaked return": Failure(leaked_return, ("leaked_future",)),
    "leaked action": Failure(leaked_action, ("mean_ratio",)),
    "features that cannot represent the values": Failure(poor_features, ("doubly_robust", "interval")),
    "a part of the state": Failure(part_of_the_state, ("doubly_robust",), {"discount": 0.99, "features": "standard"}),
    "ratios of which few carry all": Failure(heavy_ratios, ("effective_rows",)),
    "one heavy row": Failure(one_heavy_row, ("largest_ratio",)),
    "five episodes": Failure(few_episodes, ("episodes",)),
    "a step size that is too large": Failure(td_diverging, ("divergence",), {"learner": "td", "alpha": 1.0}),
    "a step size that is too small": Failure(one_step_size, ("far_from_solution",), {"learner": "td", "alpha": 1e-6}),
    "rewards that are noise": Failure(noise, ("interval",)),
    "a state without data": Failure(
        visited, ("unseen_states",), {"discount": 0.9, "features": "table", "at": [[1.0], [9.0]]}
    ),
    "rewards that jump": Failure(rewards_that_jump, ("drift",)),
    "large rewards": Failure(large_rewards, ("heavy_tails",)),
    "copied episodes": Failure(copied, ("copied_episodes",)),
    "shuffled rows": Failure(shuffled, ("order",)),
    "every tenth row missing": Failure(every_tenth_missing, ("missing_rows",)),
    "rewards one row too low": Failure(late_rewards, ("shifted_rewards",)),
    "a column that nothing uses": Failure(unnamed_columns, ("unused_columns",), {"discount": 0.9}),
    **{name: Failure(log, (wanted,), options) for name, (log, wanted, options) in POLICIES.items()},
}
NOT_PLANTED = {  # findings without a planted failure, and why
    key: "it is never an alarm: it explains the others" for key, check in FINDINGS.items() if check.gravest == "fine"
}


def alarms(found: Evaluation) -> list[str]:
    """Return what speaks against trust: what it is about."""
    return [one.about for one in found.verdict.findings if one.level != "fine"]


def is_noticed(failure: Failure, found: Evaluation) -> bool:
    """Return whether one of the wanted findings gave an alarm."""
    return bool({FINDINGS[key].about for key in failure.wanted} & set(alarms(found)))


def main() -> None:
    """Print how many planted failures were noticed, and how many valid logs raised an alarm."""
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name, failure in PLANTED.items():
        caught, other = 0, 0
        for seed in range(FIRST_SEED, FIRST_SEED + logs):
            found = evaluate_log(failure.log(seed), seed=seed, **failure.options)
            noticed = is_noticed(failure, found)
            caught, other = caught + noticed, other + (bool(alarms(found)) and not noticed)
        print(f"{name:40}caught in {caught} of {logs}, another alarm in {other}", flush=True)
    reasons: Counter[str] = Counter()
    alarmed = refused = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 5 * logs):
        evaluation = evaluate_log(valid(seed), seed=seed)
        found = alarms(evaluation)
        alarmed, refused = alarmed + bool(found), refused + (evaluation.verdict.word == "not")
        reasons.update(found)
    print(f"valid logs: {alarmed} of {5 * logs} with an alarm, {refused} of them 'not': {dict(reasons)}")


if __name__ == "__main__":
    main()
