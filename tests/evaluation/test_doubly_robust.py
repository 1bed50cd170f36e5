"""The limited doubly robust estimate: identities, its limit on the steps, and estimated propensities."""

import numpy as np
import pytest

from gradient_dd.evaluation.action_log import ActionLog
from gradient_dd.evaluation.behaviour import BehaviourModel, calibration
from gradient_dd.evaluation.doubly_robust import FEWEST, follow, robust_values, weighted_returns
from gradient_dd.evaluation.policy_values import Valuer
from gradient_dd.stream.features import OneHot
from tests.evaluation.test_compare import LOG, OPTIONS, STATES, to_the_right, truth


def read(target, log=LOG, **options) -> ActionLog:
    """Return the log of a walk, read for one policy."""
    return ActionLog(log, {"target": target}, **OPTIONS | options)


def returns_of(log: ActionLog) -> np.ndarray:
    """Return what each episode paid, (episodes,); nothing is discounted."""
    return np.bincount(log.rows.episode, log.rows.reward)


def test_on_policy_it_is_the_mean_return_whatever_q_is():
    """All ratios are 1 and every episode ends: Q cancels, also with features that carry nothing."""
    for features in (OneHot(STATES), lambda place: [1.0]):
        log = read(None, features=features)
        found = Valuer(log, log.rows, refit=True).value(log.policies["target"])
        assert found.robust.value == pytest.approx(returns_of(log).mean(), abs=1e-9)
        assert found.followed.rest == 0


def test_without_ratios_to_follow_it_is_the_value_of_the_other_folds():
    log = read(to_the_right(0.7))
    valuer = Valuer(log, log.rows, refit=True)
    sums = valuer.sums.of_policy(log.policies["target"].choices(log.rows))
    nothing = follow(log.rows, np.zeros(len(log.rows)), valuer.group, len(valuer.weights))
    assert nothing.steps == 0
    one = np.ones((len(valuer.weights), 1))
    exact = float(sums.mean_start(one)[0] @ sums.solutions(one)[0][:, 0])
    assert robust_values(sums, nothing, one)[0] == pytest.approx(exact, abs=0.05)


def test_steps_are_followed_while_enough_episodes_are_effective():
    """An episode that has ended keeps its product: after each step the effective number is that of all products."""
    log = read(None)
    ratios = np.random.default_rng(0).lognormal(sigma=0.8, size=len(log.rows))
    groups = int(log.group.max()) + 1
    near, all_of_it = (follow(log.rows, ratios, log.group, groups, limited=limited) for limited in (True, False))
    assert 0 < near.steps < all_of_it.steps
    assert near.effective >= max(FEWEST, 0.1 * near.starts) > all_of_it.effective
    by_hand = np.ones(near.starts)
    first = np.flatnonzero(np.diff(log.rows.episode, prepend=-1))
    for episode, begin in enumerate(first):
        rows = slice(begin, begin + min(near.steps, int((log.rows.episode == episode).sum())))
        by_hand[episode] = ratios[rows].prod()
    assert near.effective == pytest.approx(by_hand.sum() ** 2 / (by_hand**2).sum())


def test_returns_that_are_weighted_come_near_the_truth():
    log = read(to_the_right(0.6))
    valuer = Valuer(log, log.rows)
    followed = follow(
        log.rows, np.where(log.rows.action[:, 0] == 1, 1.2, 0.8), valuer.group, len(valuer.weights), False
    )
    paid = weighted_returns(Valuer(log, log.rows, refit=True).sums, followed, np.ones((len(valuer.weights), 1)))
    assert paid[0] == pytest.approx(truth(0.6), abs=0.08)


def test_counts_and_regression_find_the_behaviour():
    rng = np.random.default_rng(0)
    n, x = 4000, rng.standard_normal(4000)
    chance = 1 / (1 + np.exp(-(0.5 + x)))
    action = (rng.random(n) < chance).astype(int)
    log = {"obs": x, "action": action, "reward": x, "terminated": np.ones(n), "episode": np.arange(n)}
    rows = ActionLog(log, {"target": None}, discount=0.9, features="standard").rows
    model = BehaviourModel(rows, 2, 2)
    found = model.estimate()
    assert np.abs(found.taken - np.where(action == 1, chance, 1 - chance)).mean() < 0.02
    assert found.gap < 0.03
    groups = np.arange(n) % 50
    (again,) = model.of_samples(groups, np.ones((50, 1)))  # the sample is the log itself
    assert np.abs(again - found.taken).max() < 1e-3
    counted = BehaviourModel(read(None).rows, 2, STATES)
    assert counted.counts
    for state in range(STATES):
        here = LOG["state"] == state
        share = LOG["action"][here].mean()
        assert counted.fit()[here][0] == pytest.approx([1 - share, share])


def test_calibration_is_the_gap_between_predicted_and_actual_shares():
    action = np.tile([0, 1], 500)
    assert calibration(np.full((1000, 2), 0.5), action) == pytest.approx((0.0, 0.0), abs=1e-12)
    sure = np.eye(2)[action]
    assert calibration(sure, action) == (0.0, 0.0)
    assert calibration(1 - sure, action) == (1.0, 1.0)
