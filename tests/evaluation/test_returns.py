"""Returns beside values: right where the answer is known, careful with heavy ratios, cuts and holes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd.evaluation import evaluate_stream, transitions_of
from gradient_dd.evaluation.answer_findings import returns_beside_values
from gradient_dd.evaluation.choice import NOTHING, Candidate, Spread
from gradient_dd.evaluation.episodes import EpisodeSample, goes_on
from gradient_dd.evaluation.moments import GroupSums, sparse_rows
from gradient_dd.evaluation.returns import (
    REST,
    can_be_used,
    effective,
    overruled,
    return_checks,
    returns_of,
    value_losses,
)
from gradient_dd.tasks import random_walk
from tests.evaluation.known_logs import log_of, realisable

WALK, OFF_POLICY = random_walk(5), realisable(3, n_states=4)


def checks(log, w):
    """Return the checks of weights that are known exactly."""
    w = np.asarray(w, float)
    spread = Spread(w, np.tile(w, (8, 1)), np.zeros((8, len(w))), np.zeros(len(w)), 2.0, 0.95)
    return return_checks(log, log.episode % 200, w, spread)


SURE = Spread(np.ones(1), np.ones((2, 1)), np.zeros((2, 1)), np.zeros(1), 1.0, 0.95)  # of weights that are 1


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


def test_returns_are_those_of_the_target():
    """G = ρ (r + γ G'), and its mean in a state is the value of that state."""
    task = realisable(2)
    log = log_of(task, 20_000, seed=1)
    G, rests, products = returns_of(log, log.rho)
    known = rests < REST
    assert abs(products[known].mean() - 1) < 0.2
    row = np.flatnonzero(known)[5]
    after = 0.0 if log.ended[row] else G[row + 1]
    assert G[row] == pytest.approx(log.rho[row] * (log.reward[row] + log.discount[row] * after))
    state = log.x.values.argmax(axis=1)
    for s in range(8):
        here = G[known & (state == s)]
        assert abs(here.mean() - task.true_values[s]) < 4 * here.std() / np.sqrt(len(here))
    endless = replace(log, discount=np.full(len(log), 0.9), episode=np.zeros(len(log), int))
    assert (returns_of(endless, endless.rho)[1][-10:] > REST).all()
    assert not can_be_used(np.r_[np.zeros(500), 600.0])
    assert not can_be_used(np.full(500, 0.5))
    assert can_be_used(np.r_[np.zeros(500), np.full(500, 2.0)])


def test_returns_overrule_only_where_they_are_sure():
    task = realisable(2)
    log = log_of(task, 4000, seed=1)
    group = log.episode % 200
    weights = np.random.default_rng(0).poisson(1.0, size=(200, 8)).astype(float)

    def candidate(name, w):
        return Candidate(name, name, w, np.tile(w, (8, 1)), np.zeros(8))

    right, near, wrong = (candidate(name, w) for name, w in (
        ("right", task.true_values), ("near", task.true_values + 0.01), ("wrong", -3 * task.true_values)))  # fmt: skip
    both = [wrong, right]
    assert overruled(both, wrong, value_losses(both, log, group, weights)) is right
    for chosen in (right, near):
        several = [right, near, wrong]
        assert overruled(several, chosen, value_losses(several, log, group, weights)) is chosen


def three(ends):
    """Return three rows of one episode that goes on with a discount of a half, or ends."""
    return transitions_of(np.ones((3, 1)), [1.0, 2.0, 4.0], [0.5, 0.5, 0.0 if ends else 0.5], np.ones((3, 1)))


def test_returns_begin_at_the_last_row_of_an_episode():
    rho = np.array([2.0, 1.0, 0.5])
    returns, rests, products = returns_of(three(ends=True), rho)
    assert returns.tolist() == [2 * (1 + 0.5 * 3.0), 2 + 0.5 * 2.0, 0.5 * 4.0]
    assert rests.tolist() == [0.0, 0.0, 0.0]
    assert products.tolist() == [1.0, 0.5, 0.5]
    assert returns_of(three(ends=False), rho)[1].tolist() == [0.125, 0.25, 0.5]
    two = replace(three(ends=True), episode=np.array([0, 1, 1]))
    assert returns_of(two, rho)[0].tolist() == [2.0, 3.0, 2.0]
    stops = replace(three(ends=True), discount=np.array([0.0, 0.5, 0.0]))
    assert returns_of(stops, rho)[2].tolist() == [2.0, 0.5, 0.5]  # what follows an end does not count


def test_products_are_used_where_they_average_to_one_and_leave_enough():
    assert effective(np.array([1.0, 1.0, 2.0])) == pytest.approx(16 / 6)
    assert effective(np.zeros(3)) == 0.0
    assert can_be_used(np.ones(100))
    assert not can_be_used(np.ones(99))
    assert can_be_used(np.ones(99), fewest=99)
    assert can_be_used(np.full(200, 1.2) - 1e-12)
    assert not can_be_used(np.full(200, 1.21))
    assert not can_be_used(np.full(200, 0.79))


def losses(*rows):
    """Return candidates whose losses are these, each of 20 groups or so, and the losses."""
    names = ["chosen", "other", "third"]
    made = [Candidate(names[k], names[k], np.zeros(1), np.zeros((1, 1)), np.ones(1)) for k in range(len(rows))]
    return made, np.array(rows, float)


def test_returns_must_be_sure_to_overrule():
    """With gains of 1 ± s in 20 groups the sum is 20, and its standard error s √(20 · 20/19)."""
    wave = np.where(np.arange(20) % 2, 1.0, -1.0)
    for spread, name in ((1.08, "other"), (1.1, "chosen")):  # 4 standard errors are 4.588 s
        made, table = losses(np.zeros(20), -1.0 + spread * wave)
        assert overruled(made, made[0], table).name == name
    for spread, is_taken in ((4.3, True), (4.4, False)):  # not learning needs one standard error
        made, table = losses(np.zeros(20), -1.0 + spread * wave)
        made[1] = replace(made[1], name=NOTHING)
        assert (overruled(made, made[0], table) is made[1]) == is_taken
    made, table = losses(np.zeros(19), -np.ones(19))
    assert overruled(made, made[0], table) is made[0]  # too few groups
    made, table = losses(np.zeros(20), -np.ones(20), -2 * np.ones(20))
    assert overruled(made, made[0], table) is made[2]  # the largest gain
    made[2] = replace(made[2], diverged=3)
    assert overruled(made, made[0], table) is made[1]
    made, table = losses(np.zeros(20), np.full(20, -np.inf))
    assert overruled(made, made[0], table) is made[0]


def test_losses_are_those_of_copies_that_have_not_seen_the_group():
    n = 400
    log = transitions_of(np.ones((n, 1)), np.arange(n) % 2, 0.0, np.ones((n, 1)))
    group, weights = np.arange(n) % 4, np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    weights = np.vstack([weights, np.ones((196, 2))])
    one = Candidate("one", "one", np.ones(1), np.array([[2.0], [3.0]]), np.ones(2))
    found = value_losses([one], log, group, weights)
    by_copy = [{g: 100 * (v * v - 2 * v * (g % 2)) for g in range(4)} for v in (2.0, 3.0)]
    assert found.tolist() == [[by_copy[0][0], by_copy[1][1], (by_copy[0][2] + by_copy[1][2]) / 2]]
    assert value_losses([one], replace(log, rho=np.full(n, 0.5)), group, weights).shape == (1, 0)
    endless = replace(log, discount=np.ones(n), episode=np.zeros(n, int))
    assert value_losses([one], endless, group, weights).shape == (1, 0)


def steps(n_episodes, length=3, discount=0.5, rho=1.0, reward=1.0):
    """Return episodes of some steps that pay 1 each, with state t in step t as one feature of size t + 1."""
    at = np.tile(np.arange(length), n_episodes)
    last = at == length - 1
    x, x_next = at[:, None] + 1.0, at[:, None] + 2.0
    return transitions_of(x, reward, np.where(last, 0.0, discount), x_next, rho)


def test_a_check_is_the_mean_return_beside_the_mean_value():
    found = checks(steps(30), [1.0])
    assert [(one.kind, one.starts, one.steps) for one in found] == [("episodes", 30, 3), ("rows", 90, 3)]
    assert [one.returns for one in found] == pytest.approx([1.75, (1.75 + 1.5 + 1.0) / 3])
    assert [one.value for one in found] == pytest.approx([1.0, 2.0])
    assert [one.gap for one in found] == pytest.approx([0.75, 4.25 / 3 - 2])
    assert all((one.rest, one.effective) == (0.0, one.starts) for one in found)
    assert found[0].high - found[0].low == pytest.approx(0.0, abs=1e-12)  # all episodes pay the same
    assert [len(checks(steps(count), [1.0])) for count in (6, 7, 19, 20)] == [0, 1, 1, 2]


def test_the_doubt_is_that_of_groups_and_of_the_weights():
    n = 100
    paid = np.where(np.arange(n) % 2, 1.0, -1.0)
    log = transitions_of(np.ones((n, 1)), paid, 0.0, np.ones((n, 1)))  # 100 groups of one episode
    spread = Spread(np.zeros(1), np.array([[0.3], [-0.3]]), np.zeros((2, 1)), np.zeros(1), 1.0, 0.95)
    found, _ = return_checks(log, np.arange(n), np.zeros(1), spread)
    half = 1.984217 * np.sqrt(100 / 99 * 100 * 0.01**2)
    assert (found.low, found.high) == (pytest.approx(-half, rel=1e-6), pytest.approx(half, rel=1e-6))
    assert found.doubt == pytest.approx(np.hypot(half, 0.3), rel=1e-6)
    aside = spread._replace(anchor=np.array([0.1]))
    up, _ = return_checks(replace(log, reward=paid + 0.5), np.arange(n), np.zeros(1), aside)
    down, _ = return_checks(replace(log, reward=paid - 0.5), np.arange(n), np.zeros(1), aside)
    assert up.doubt == pytest.approx(np.hypot(half, 0.1 + np.sqrt((0.2**2 + 0.4**2) / 2)), rel=1e-6)
    assert down.doubt == pytest.approx(np.hypot(half, np.sqrt((0.2**2 + 0.4**2) / 2) - 0.1), rel=1e-6)


def test_a_walk_ends_where_discounts_or_ratios_say_so():
    one, _ = checks(steps(30, length=12, discount=0.5), [1.0])
    assert (one.steps, one.rest) == (6, pytest.approx(0.5**6))  # 2^-6 < 0.02
    assert one.returns == pytest.approx(2 - 0.5**5 + 0.5**6 * 7)
    rho = np.tile([1.0, 1.3, 1.0], 60)
    one, _ = checks(steps(60, rho=rho), [1.0])
    assert (one.steps, one.rest, one.returns) == (1, pytest.approx(0.5), pytest.approx(1 + 0.5 * 2))
    half = np.tile([2.0, 1.0, 1.0, 0.0, 1.0, 1.0], 50)  # every other episode is never taken: 50 of 100 are left
    one, _ = checks(steps(100, rho=half), [1.0])
    assert (one.steps, one.effective) == (3, 50.0)
    one, _ = checks(steps(98, rho=half[: 98 * 3]), [1.0])
    assert (one.steps, one.effective) == (3, 49.0)  # half of all is enough where they are few
    fifth = np.tile(np.r_[4.9, 1.0, 1.0, np.tile([0.025, 1.0, 1.0], 4)], 40)  # a fifth of 200 is left, nearly
    one, _ = checks(steps(200, rho=fifth), [1.0])
    assert (one.steps, one.effective, one.rest) == (0, 200.0, pytest.approx(1.0))


def test_the_smallest_error_that_a_check_detects():
    one, _ = checks(steps(30), [1.0])
    assert one._replace(doubt=1.0, rest=0.75).blind == 4.0
    assert one._replace(doubt=1.0, rest=1.0 - 1e-10).blind == np.inf


def test_the_doubt_of_a_gap_leaves_out_what_returns_and_values_share():
    """Starts differ in what they are worth, and are paid just that: the returns are unsure, the gap is not."""
    n = 100
    x = np.where(np.arange(n) % 2, 1.0, 3.0)[:, None]
    log = transitions_of(x, x[:, 0], 0.0, x)
    found, _ = return_checks(log, np.arange(n), np.ones(1), SURE)
    assert found.high - found.low > 0.3
    assert found.doubt == pytest.approx(0.0, abs=1e-12)


def test_weights_are_doubted_only_as_far_as_the_check_does_not_rest_on_them():
    """With a discount of 0.9 and a cut after one step, 10 % of a constant value is checked."""
    n = 100
    log = transitions_of(np.ones((n, 1)), 0.1, 0.9, np.ones((n, 1)), cut=np.ones(n, bool))
    unsure = SURE._replace(copies=np.array([[0.0], [2.0]]), factor=1.0)
    found, _ = return_checks(log, np.arange(n), np.ones(1), unsure)
    assert found.rest == pytest.approx(0.9)
    assert found.doubt == pytest.approx(0.1)
    assert found.blind == pytest.approx(1.0)
