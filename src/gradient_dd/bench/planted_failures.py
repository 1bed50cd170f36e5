"""Are failures in the data noticed? Logs that are spoilt on purpose, and healthy ones for false alarms.

python -m gradient_dd.bench.planted_failures [LOGS]
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gradient_dd.bench.known_logs import log_of, realisable
from gradient_dd.evaluation import Evaluation, Transitions, evaluate_stream
from gradient_dd.online.features import Rows
from gradient_dd.tasks import Task, baird, random_mdp, random_walk

ROWS = 4000


def healthy(seed: int) -> tuple[Task, Transitions]:
    """Return one of four kinds of healthy logs: a walk, one feature a state, fewer features, and those with an end."""
    kinds: tuple[Callable[[], Task], ...] = (
        lambda: random_walk(10),
        lambda: realisable(seed),
        lambda: random_mdp(seed=seed, n_actions=2, episodic=True),
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


PLANTED: dict[str, tuple[Callable[[int], Transitions], tuple[str, ...]]] = {
    "propensities of another policy": (wrong_propensities, ("mean ratio",)),
    "propensities swapped": (swapped_propensities, ("mean ratio",)),
    "states swapped": (swapped_states, ("columns",)),
    "missing coverage": (missing_coverage, ("mean ratio",)),
    "time limits recorded as ends": (time_limits, ("time limit",)),
    "leaked return": (leaked_return, ("leaked future",)),
    "leaked action": (leaked_action, ("mean ratio",)),
    "TD diverging": (td_diverging, ("TD",)),
}


def alarms(found: Evaluation) -> list[str]:
    """Return what speaks against trust, by name."""
    return [one.about for one in found.verdict.findings if one.level != "fine"]


def main() -> None:
    """Print how many planted failures were noticed, and how many healthy logs raised an alarm."""
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name, (spoil, wanted) in PLANTED.items():
        caught, other = 0, 0
        for seed in range(logs):
            log = spoil(seed)
            learner = "td" if name == "TD diverging" else "auto"
            found = alarms(evaluate_stream([log], log.x.values.shape[1], seed=seed, learner=learner))
            caught += any(about in wanted for about in found)
            other += bool(found) and not any(about in wanted for about in found)
        print(f"{name:32}caught in {caught} of {logs}, another alarm in {other}", flush=True)
    reasons: Counter[str] = Counter()
    alarmed = refused = 0
    for seed in range(5 * logs):
        task, log = healthy(seed)
        evaluation = evaluate_stream([log], task.n_features, seed=seed)
        found = alarms(evaluation)
        alarmed, refused = alarmed + bool(found), refused + (evaluation.verdict.word == "not")
        reasons.update(found)
    print(f"healthy logs: {alarmed} of {5 * logs} with an alarm, {refused} of them 'not': {dict(reasons)}")


if __name__ == "__main__":
    main()
