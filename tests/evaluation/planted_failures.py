"""Are failures in the data noticed? Logs that are spoilt on purpose, and healthy ones for false alarms.

python -m tests.evaluation.planted_failures [LOGS]
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation import Evaluation, Transitions, evaluate_log, evaluate_stream, transitions_of
from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.evaluation.transitions import joined
from gradient_dd.stream.features import Rows
from gradient_dd.tasks import Task, baird, boyan_chain, random_mdp, random_walk
from tests.evaluation.known_logs import cartpole, log_of, realisable, shop_visits
from tests.evaluation.planted_policies import POLICIES

ROWS = 4000
FIRST_SEED = 1000  # rules were made while looking at the logs of smaller seeds


def healthy(seed: int) -> tuple[Task, Transitions]:
    """Return one of four kinds of healthy logs, whose features carry the values: two on-policy, two off-policy."""
    kinds: tuple[Callable[[], Task], ...] = (
        lambda: random_walk(10),
        lambda: realisable(seed),
        lambda: boyan_chain(5),
        lambda: realisable(seed, n_states=4),
    )
    task = kinds[seed % 4]()
    return task, log_of(task, ROWS, seed)


def off_policy(seed: int) -> tuple[Task, Transitions]:
    """Return a healthy off-policy log with episodes."""
    task = realisable(seed)
    return task, log_of(task, ROWS, seed)


def wrong_propensities(seed: int) -> Transitions:
    """Propensities are those of another policy than the one that acted: drawn anew in each state."""
    task, log = off_policy(seed)
    rng = np.random.default_rng(seed)
    state, factor = log.x.values.argmax(axis=1), rng.uniform(0.4, 1.2, size=task.n_features)
    return replace(log, rho=log.rho * factor[state])


def swapped_propensities(seed: int) -> Transitions:
    """The columns of the two propensities are swapped: ratios are upside down."""
    _, log = off_policy(seed)
    return replace(log, rho=np.where(log.rho > 0, 1 / np.maximum(log.rho, 1e-12), 0.0))


def swapped_states(seed: int) -> Transitions:
    """The columns of the state and of the next state are swapped."""
    _, log = healthy(seed)
    return replace(log, x=Rows(None, np.where(log.ended[:, None], log.x.values, log.x_next.values)), x_next=log.x)


def missing_coverage(seed: int) -> Transitions:
    """The behaviour never takes an action that the target takes: its rows are not in the log, other ratios stay."""
    _, log = off_policy(seed)
    state = log.x.values.argmax(axis=1)
    never = (log.rho > 1) & (state < 4)
    kept = np.flatnonzero(~never)
    part = log.part(kept)
    cut = part.cut.copy()
    cut[:-1] |= np.diff(kept) > 1
    over = cut | part.ended
    return replace(part, cut=cut, episode=np.cumsum(over) - over)


def time_limits(seed: int) -> Transitions:
    """Episodes are cut after 30 steps, and that is recorded as an end."""
    task = random_mdp(seed=seed, n_actions=2, discount=0.97)
    log = log_of(task, ROWS, seed)
    rng = np.random.default_rng(seed)
    discount, steps = log.discount.copy(), 0
    for row in range(ROWS):
        steps += 1
        if steps == 30 or rng.random() < 0.02:
            discount[row], steps = 0.0, 0
    ended = discount == 0
    return replace(log, discount=discount, episode=np.cumsum(ended) - ended)


def leaked_return(seed: int) -> Transitions:
    """A feature holds the return of the rest of the episode, with a little noise."""
    _, log = healthy(4 * seed)
    returns = np.zeros(ROWS)
    for row in range(ROWS - 2, -1, -1):
        returns[row] = log.reward[row] + log.discount[row] * returns[row + 1]
    noisy = returns + 0.1 * returns.std() * np.random.default_rng(seed).standard_normal(ROWS)
    return with_feature(log, noisy)


def leaked_action(seed: int) -> Transitions:
    """A feature holds the action that is taken after the state was seen, as far as the ratio tells it."""
    _, log = off_policy(seed)
    return with_feature(log, (log.rho > 1).astype(float))


def with_feature(log: Transitions, column: np.ndarray) -> Transitions:
    """Return a log with one more feature, whose next value is that of the row after."""
    after = np.append(column[1:], 0.0)
    x = np.column_stack([log.x.values, column])
    return replace(log, x=Rows(None, x), x_next=Rows(None, np.column_stack([log.x_next.values, after])))


def td_diverging(seed: int) -> Transitions:
    """Baird's counterexample with a reward in every step."""
    return log_of(baird(7), ROWS, seed, reward=np.ones(ROWS))


def poor_features(seed: int) -> Transitions:
    """Features that cannot carry the values: fewer than states, drawn at random."""
    return log_of(poor_task(seed), ROWS, seed)


def poor_task(seed: int) -> Task:
    """Return the task of it."""
    return random_mdp(seed=seed, n_actions=2, episodic=True)


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


def too_short(seed: int) -> Transitions:
    """More features than LSTD takes, and too few steps to learn them: a ring of 2,500 states, -1 for each step."""
    states, n = 2500, 15_000
    rng = np.random.default_rng(seed)
    state = (rng.integers(states) + np.cumsum(rng.integers(1, 3, size=n + 1))) % states
    here, there = ((part[:, None], np.ones((n, 1))) for part in (state[:-1], state[1:]))
    return transitions_of(here, -1.0, 0.98, there)


def heavy_ratios(seed: int) -> Transitions:
    """Ratios that average to 1, of which a few carry nearly all: the target is far from the behaviour."""
    _, log = off_policy(seed)
    rng = np.random.default_rng(seed)
    return replace(log, rho=np.where(rng.random(ROWS) < 0.02, 50.0, 0.0))


def one_heavy_row(seed: int) -> Transitions:
    """One row with a ratio of 500."""
    _, log = off_policy(seed)
    rho = log.rho.copy()
    rho[17 + seed % 100] = 500.0
    return replace(log, rho=rho)


def few_episodes(seed: int) -> Transitions:
    """Five episodes alone."""
    _, log = healthy(4 * seed)
    return log.part(log.episode < 5)


def one_step_size(seed: int) -> Transitions:
    """A healthy log, for a learner with a step size that does not suit it."""
    return healthy(4 * seed)[1]


def noise(seed: int) -> Transitions:
    """Sixty rows of rewards that are noise, in episodes of three rows."""
    rng = np.random.default_rng(seed)
    over = np.arange(60) % 3 == 2
    return transitions_of(np.ones((60, 1)), rng.standard_normal(60), np.where(over, 0.0, 0.9), np.ones((60, 1)))


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


def long_log(seed: int) -> Transitions:
    """Return a healthy on-policy log of a walk."""
    return log_of(random_walk(10), ROWS, seed)


def rewards_that_jump(seed: int) -> Transitions:
    """In the first half of the log every row pays more."""
    log = long_log(seed)
    return replace(log, reward=log.reward + 0.05 * (np.arange(ROWS) < ROWS // 2))


def large_rewards(seed: int) -> Transitions:
    """Rewards of which a few are a thousand times as large as the others."""
    log = long_log(seed)
    return replace(log, reward=log.reward + np.random.default_rng(seed).pareto(1.05, size=ROWS))


def copied(seed: int) -> Transitions:
    """A third of the episodes stands in the log twice."""
    log = long_log(seed)
    again = log.part(log.episode < log.episode[-1] // 3)
    joint = joined([log, again])
    over = joint.ended | joint.cut
    return replace(joint, episode=np.cumsum(over) - over)


def shuffled(seed: int) -> Transitions:
    """The rows were shuffled, and the next state was taken from the next row."""
    log = long_log(seed)
    x = log.x.values[np.random.default_rng(seed).permutation(ROWS)]
    return replace(log, x=Rows(None, x), x_next=Rows(None, np.vstack([x[1:], x[:1]])))


def every_tenth_missing(seed: int) -> Transitions:
    """Every tenth row is missing, and the next state was taken from the next row."""
    log = long_log(seed)
    part = log.part(np.arange(ROWS) % 10 != 4)
    x = part.x.values
    return replace(part, x_next=Rows(None, np.vstack([x[1:], x[:1]])))


def late_rewards(seed: int) -> Transitions:
    """Every reward stands one row too low."""
    log = off_policy(seed)[1]
    return replace(log, reward=np.roll(log.reward, 1))


class Failure(NamedTuple):
    """A planted failure: the log of a seed, the findings that must notice it, and the options of the evaluation."""

    log: Callable[[int], Transitions | dict[str, Array]]
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
    "leaked return": Failure(leaked_return, ("leaked_future",)),
    "leaked action": Failure(leaked_action, ("mean_ratio",)),
    "TD diverging": Failure(td_diverging, ("td_stability",), {"learner": "td"}),
    "features that do not carry the values": Failure(
        poor_features, ("returns_beside_values", "overruled_by_returns", "held_out_error", "interval")
    ),
    "a part of the state": Failure(part_of_the_state, ("returns_beside_values",), {"discount": 0.95}),
    "too short to learn": Failure(too_short, ("returns_beside_values", "still_moving"), {"learner": "auto"}),
    "ratios of which few carry all": Failure(heavy_ratios, ("effective_rows",)),
    "one heavy row": Failure(one_heavy_row, ("largest_ratio",)),
    "five episodes": Failure(few_episodes, ("episodes",)),
    "a step size that is too large": Failure(td_diverging, ("divergence",), {"learner": "td", "alpha": 1.0}),
    "a step size that is too small": Failure(one_step_size, ("far_from_lstd",), {"learner": "td", "alpha": 1e-6}),
    "rewards that are noise": Failure(noise, ("interval", "held_out_error")),
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


def evaluated(log: Transitions | dict[str, Array], seed: int, **options: Any) -> Evaluation:
    """Return the evaluation of a log, of features or of columns."""
    if isinstance(log, dict):
        return evaluate_log(log, seed=seed, **options)
    p = log.x.values.shape[1] if log.x.indices is None else int(log.x.indices.max()) + 1
    return evaluate_stream([log], p, seed=seed, **options)


def alarms(found: Evaluation) -> list[str]:
    """Return what speaks against trust: what it is about."""
    return [one.about for one in found.verdict.findings if one.level != "fine"]


def is_noticed(failure: Failure, found: Evaluation) -> bool:
    """Return whether one of the wanted findings gave an alarm."""
    return bool({FINDINGS[key].about for key in failure.wanted} & set(alarms(found)))


def print_poor_features(logs: int) -> None:
    """Print how often the interval misses the truth where features do not carry the values, and how often unnoticed."""
    missed = trusted = 0
    for seed in range(FIRST_SEED, FIRST_SEED + logs):
        task = poor_task(seed)
        found = evaluated(poor_features(seed), seed)
        low, high = found.start_interval
        if not low <= float(task.start[~task.terminal] @ task.true_values) <= high:
            missed, trusted = missed + 1, trusted + (found.verdict.word == "trust")
    print(f"features that do not carry the values: the interval misses the truth in {missed} of {logs}, ", end="")
    print(f"trusted all the same in {trusted}", flush=True)


def main() -> None:
    """Print how many planted failures were noticed, and how many healthy logs raised an alarm."""
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name, failure in PLANTED.items():
        caught, other = 0, 0
        for seed in range(FIRST_SEED, FIRST_SEED + logs):
            found = evaluated(failure.log(seed), seed, **failure.options)
            noticed = is_noticed(failure, found)
            caught, other = caught + noticed, other + (bool(alarms(found)) and not noticed)
        print(f"{name:40}caught in {caught} of {logs}, another alarm in {other}", flush=True)
    print_poor_features(5 * logs)
    reasons: Counter[str] = Counter()
    alarmed = refused = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 5 * logs):
        task, log = healthy(seed)
        evaluation = evaluate_stream([log], task.n_features, seed=seed)
        found = alarms(evaluation)
        alarmed, refused = alarmed + bool(found), refused + (evaluation.verdict.word == "not")
        reasons.update(found)
    print(f"healthy logs: {alarmed} of {5 * logs} with an alarm, {refused} of them 'not': {dict(reasons)}")


if __name__ == "__main__":
    main()
