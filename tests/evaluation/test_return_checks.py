"""Returns beside values: right where the answer is known, careful with heavy ratios, cuts and holes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd.evaluation import evaluate_stream, transitions_of
from gradient_dd.evaluation.answer_findings import returns_beside_values
from gradient_dd.evaluation.episodes import EpisodeSample, goes_on
from gradient_dd.evaluation.moments import GroupSums, sparse_rows
from gradient_dd.evaluation.returns import return_checks
from gradient_dd.evaluation.spread import Spread
from gradient_dd.tasks import random_walk
from tests.evaluation.known_logs import log_of, realisable

WALK, OFF_POLICY = random_walk(5), realisable(3, n_states=4)


def checks(log, w):
    """Return the checks of weights that are known exactly."""
    w = np.asarray(w, float)
    spread = Spread(w, np.tile(w, (8, 1)), np.zeros((8, len(w))), np.zeros(len(w)), 2.0, 0.95)
    return return_checks(log, log.episode % 200, w, spread)


def against_returns(checks, scale):
    """Return (level, sentence) of what checks say against values of this size."""
    evaluation = SimpleNamespace(checks=checks, scale=scale)
    return list(returns_beside_values(SimpleNamespace(evaluation=evaluation)))


def test_on_policy_they_are_plain_means_and_owe_nothing_to_the_values():
    log = log_of(WALK, 3000, seed=1)
    whole = log.part(log.episode < log.episode[-1])
    paid = [whole.reward[whole.episode == one].sum() for one in np.unique(whole.episode)]
    for w in (WALK.true_values, np.full(5, 7.0)):
        found, _ = checks(whole, w)
        assert found.returns == pytest.approx(np.mean(paid))
        assert found.rest == 0
        assert found.effective == found.starts == len(paid)
        assert found.gap == pytest.approx(found.returns - w[2])


def test_off_policy_they_agree_with_the_truth_and_with_nothing_else():
    log, truth = log_of(OFF_POLICY, 20_000, seed=2), OFF_POLICY.true_values
    right, wrong = checks(log, truth), checks(log, truth + 1.0)
    assert {one.kind for one in right} == {"episodes", "rows"}
    for one in right:
        assert abs(one.gap) < 2 * one.doubt  # 7 of 100 logs are beyond one doubt
        assert one.low < one.returns < one.high
    for one in wrong:
        assert one.gap < -2 * one.doubt
        assert one.gap == pytest.approx(-(1 - one.rest), abs=2 * one.doubt)
    agreed = tuple(one._replace(gap=0.0) for one in right)
    assert [level for level, _ in against_returns(agreed, 2.0)] == ["fine"]
    faint = tuple(one._replace(value=0.0) for one in agreed)
    assert [level for level, _ in against_returns(faint, min(one.doubt for one in right))] == ["with care"]
    ((level, sentence),) = against_returns(wrong, 2.0)
    assert level == "not"
    assert f"{wrong[0].value:.4g}" in sentence or f"{wrong[1].value:.4g}" in sentence


def test_heavy_ratios_end_the_walk_before_they_decide_it():
    rng = np.random.default_rng(0)
    n = 4000
    log = transitions_of(np.ones((n, 1)), 1.0, np.where(np.arange(n) % 10 == 9, 0.0, 0.9), np.ones((n, 1)),
                         rng.choice([0.25, 4.0], p=[0.8, 0.2], size=n))  # fmt: skip
    found, _ = checks(log, [3.0])
    assert 1 <= found.steps < 10
    assert found.effective >= 50
    assert 0.2 < found.rest < 1
    none, _ = checks(replace(log, rho=np.where(np.arange(n) == 0, 400.0, 0.0)), [3.0])
    assert none.steps == 0
    assert none.blind == np.inf
    ((level, sentence),) = against_returns((none,), 3.0)
    assert level == "with care"
    assert "wrong by any amount would agree as well" in sentence


def test_values_stand_for_what_follows_a_cut_or_a_hole():
    """State s pays s − 0.9 (s + 1) and leads to s + 1, so it is worth s, whether or not the next row goes on."""
    n = 3000
    state = np.arange(n + 1.0)[:, None]
    paid = state[:-1, 0] - 0.9 * state[1:, 0]
    log = transitions_of(state[:-1], paid, 0.9, state[1:], cut=np.arange(n) % 7 == 6)
    assert np.array_equal(goes_on(log), (np.arange(n) % 7 != 6) & (np.arange(n) != n - 1))
    holes = log.part(np.arange(n) % 5 != 2)
    assert not goes_on(holes)[holes.x.values[:, 0] % 5 == 1].any()
    for whole in (log, holes):
        for one in checks(whole, [1.0]):
            assert one.returns == pytest.approx(one.value)
            assert one.steps <= 7
            assert 0 < one.rest < 1


def test_a_sample_has_whole_episodes_of_the_whole_stream():
    sample = EpisodeSample(most_numbers=500)
    length = np.random.default_rng(0).integers(1, 9, 2000)
    episode = np.repeat(np.arange(2000), length)
    n = len(episode)
    log = transitions_of(np.ones((n, 1)), 0.0, 0.9, np.ones((n, 1)), episode=episode)
    for begin in range(0, n, 300):
        sample.add(log.part(slice(begin, begin + 300)), episode[begin : begin + 300] % 200)
    kept, group = sample.joined()
    numbers, counts = np.unique(kept.episode, return_counts=True)
    assert not sample.whole
    assert 100 < len(kept) <= 500
    assert np.array_equal(counts, length[numbers])
    assert numbers.max() > 1800
    assert np.array_equal(group, kept.episode % 200)
    endless = EpisodeSample(most_numbers=500)
    endless.add(replace(log, episode=np.zeros(n, int)), np.zeros(n, int))
    assert endless.closed
    assert len(endless.joined()[0]) == 500


@pytest.mark.parametrize("sparse", [False, True])
def test_lstd_from_rows_is_lstd_from_sums(sparse):
    log = log_of(OFF_POLICY, 2000, seed=1)
    group, p = log.episode % 200, OFF_POLICY.n_features
    sums = GroupSums(p)
    sums.add(log, group, np.zeros(len(log), bool))
    weights = np.random.default_rng(0).poisson(1.0, size=(200, 3)).astype(float)
    wanted = sums.solutions(weights, 0.0, np.zeros(p))
    if sparse:
        x, x_next = (
            (rows.values.argmax(axis=1)[:, None], rows.values.max(axis=1, keepdims=True))
            for rows in (log.x, log.x_next)
        )
        log = transitions_of(x, log.reward, log.discount, x_next, log.rho, log.episode)
    found = sparse_rows(log, group, p + sparse).solutions(weights, 0.0, np.full(p + sparse, 0.3))
    assert np.allclose(found[:p], wanted, atol=1e-4)
    if sparse:
        assert np.array_equal(found[p], [0.3, 0.3, 0.3])  # a feature that was never seen


def test_lstd_is_a_candidate_for_hundreds_of_features():
    """From 0, no lane has learnt 300 states in 6,000 steps; LSTD has, and its interval says how well."""
    states, n = 300, 6000
    rng = np.random.default_rng(0)
    state = np.cumsum(rng.integers(1, 3, size=n + 1)) % states
    here, there = ((part[:, None], np.ones((n, 1))) for part in (state[:-1], state[1:]))
    found = evaluate_stream([transitions_of(here, -1.0, 0.95, there)], states)
    assert found.chosen.startswith("lstd")
    assert np.allclose(found.predict((np.arange(states)[:, None], np.ones((states, 1)))), -20.0)
