"""The evaluator: right on tasks whose values are known, in pieces as in one, and honest about what it cannot know."""

import numpy as np
import pytest

from gradient_dd import BadRequestError, tasks
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.evaluation import Evaluator, evaluate_stream, transitions_of
from gradient_dd.evaluation.episodes import Blocks
from gradient_dd.evaluation.portfolio import Portfolio, TdShadows
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.auto import AutoLearner


def log_of(task, n, seed=0, **changes):
    """Return n transitions of a task."""
    row, next_row, reward, discount, rho, _ = task.transitions
    o = OutcomeSampler(task, seed=seed).take(n)
    X = task.row_features.toarray()
    columns = {"x": X[row[o]], "reward": reward[o], "discount": discount[o], "x_next": X[next_row[o]], "rho": rho[o]}
    return transitions_of(**columns | changes)


WALK, MDP, BAIRD = tasks.random_walk(5), tasks.random_mdp(seed=1, episodic=True), tasks.baird(7)


@pytest.fixture(scope="module")
def walk():
    """Return the evaluation of a short log of a walk."""
    return evaluate_stream([log_of(WALK, 3000)], 5)


def test_values_are_near_the_truth_and_inside_their_interval(walk):
    assert WALK.rmsve(walk.w) < 0.1 * WALK.rmsve(np.zeros(5))
    low, high = walk.predict_interval(np.eye(5))
    assert ((low < WALK.true_values) & (WALK.true_values < high)).all()
    assert walk.start_interval.low < WALK.true_values[2] < walk.start_interval.high
    assert (walk.interval.low < walk.values).all()
    assert np.array_equal(walk.predict(walk.points.values), walk.values)
    assert walk.verdict.word == "trust"


def test_batches_make_no_difference(walk):
    whole = log_of(WALK, 3000)
    pieces = [whole.part(slice(begin, begin + 700)) for begin in range(0, 3000, 700)]
    again = evaluate_stream(pieces, 5)
    assert again.chosen == walk.chosen
    assert np.allclose(again.w, walk.w, rtol=1e-9)


def test_off_policy_it_is_near_the_fixed_point():
    found = evaluate_stream([log_of(MDP, 30_000)], MDP.n_features)
    values, fixed = MDP.features @ found.w, MDP.features @ np.linalg.solve(MDP.moments.A, MDP.moments.b)
    assert np.sqrt(MDP.visits @ (values - fixed) ** 2) < 0.3 * np.sqrt(MDP.visits @ fixed**2)
    assert found.stability.verdict == "stable"


def test_td_that_diverges_is_not_taken_and_not_trusted():
    data = log_of(BAIRD, 4000, reward=np.ones(4000))
    found = evaluate_stream([data], 8)
    assert found.stability.verdict == "unstable"
    assert not found.chosen.startswith("td(")
    td = evaluate_stream([data], 8, learner="td")
    assert td.verdict.word == "not"
    assert any("TD diverges" in reason for reason in td.verdict.reasons)


def test_nothing_to_learn_is_said():
    rng = np.random.default_rng(0)
    x, x_next = rng.normal(size=(2, 500, 3))
    found = evaluate_stream([transitions_of(x, rng.normal(size=500), 0.0, x_next)], 3)
    assert found.verdict.word != "trust"


def test_a_long_stream_switches_to_what_is_ahead(monkeypatch):
    """It looks whenever its rows have doubled, and the last one noted is the answer."""
    monkeypatch.setattr("gradient_dd.evaluation.stream.KEPT", 500)
    monkeypatch.setattr("gradient_dd.evaluation.stream.NEAR_BEST", 0.0)  # LSTD is a candidate like any other
    log = log_of(WALK, 9000, seed=1)
    found = evaluate_stream([log.part(slice(begin, begin + 250)) for begin in range(0, 9000, 250)], 5)
    rows, words = zip(*found.switches, strict=True)
    assert set(rows) <= {1000, 2000, 4000, 8000, 9000}
    assert len(set(words)) > 1
    assert words[-1] == found.chosen
    half = evaluate_stream([log.part(slice(0, 4000))], 5)
    assert half.chosen == next(one for at, one in reversed(found.switches) if at <= 4000)
    assert any(one.about == "switches" for one in found.verdict.findings)


def test_lstd_is_taken_where_it_is_nearly_as_good(monkeypatch):
    log = log_of(WALK, 1000, seed=1)
    for near, exact in ((1.25, True), (0.0, False)):
        monkeypatch.setattr("gradient_dd.evaluation.stream.NEAR_BEST", near)
        found = evaluate_stream([log], 5, passes=1)
        best = found.candidates[0]
        lstd = next(one for one in found.candidates if one.ridge == 0)
        assert lstd.error <= 1.25 * best.error
        assert found.chosen == (lstd.words if exact else best.words)


def many_features():
    """Return feature rows of five states with two of 5,000 features each, and transitions between them."""
    rng = np.random.default_rng(0)
    state = rng.integers(5, size=6001)
    spread = np.column_stack([state * 1000, state * 1000 + 7])
    rows = (spread, np.ones(spread.shape))
    reward = state[1:] * 1.0
    return rows, transitions_of((rows[0][:-1], rows[1][:-1]), reward, 0.5, (rows[0][1:], rows[1][1:]))


def test_many_features_have_an_auto_learner_and_copies_of_it():
    """A copy sees each row as often as its group counts for it; what is taken is that learner on the whole stream."""
    rows, data = many_features()
    portfolio = Portfolio([LEARNERS["td"].setting(alpha=0.1)], np.zeros(5000), 0.5, 0, with_auto=True)
    group = np.arange(len(data)) % 200
    for part in (slice(0, 2500), slice(2500, 6000)):
        portfolio.learn(data.part(part), group[part])
    for place, agent in enumerate(portfolio.autos[0].agents):
        times = np.ones(200) if place == 0 else portfolio.weights[:, place - 1]
        seen = data.part(np.repeat(np.arange(len(data)), times[group].astype(int)))
        alone = AutoLearner(5000)
        alone.update_many(tuple(seen.x), seen.reward, seen.discount, tuple(seen.x_next), seen.rho)
        assert np.array_equal(agent.w, alone.w)
    found = evaluate_stream([data], 5000, passes=1)
    assert found.chosen == "AutoLearner"
    assert np.array_equal(found.w, portfolio.autos[0].agents[0].w)
    assert np.allclose(found.predict(rows)[:5], 4.0, rtol=0.1)
    replayed = evaluate_stream([data], 5000)
    assert replayed.chosen == "AutoLearner"
    assert replayed.start_interval.low < 4.0 < replayed.start_interval.high


def test_many_features_go_without_a_matrix():
    rows, data = many_features()
    found = evaluate_stream([data], 5000, learner="td")
    assert not any(one.name == "lstd" for one in found.candidates)
    truth = 2.0 / (1 - 0.5)  # states are independent draws: every state is worth the mean reward for ever
    assert np.allclose(found.predict(rows)[:5], truth, rtol=0.1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"learner": "tdd"}, "Unknown learner 'tdd'. Did you mean"),
        ({"alpha": 0.1}, "'learner' must be a learner where 'alpha' is given. Got 'auto'."),
        ({"learner": "natural_tdc"}, "'learner' must be one whose step takes linear time. Got 'natural_tdc'."),
        ({"learner": "td", "alpha": -1}, "'alpha' of td must be a positive number. Got -1."),
        ({"order": "random"}, "'order' must be 'log' or 'shuffled'. Got 'random'."),
        ({"confidence": 95}, "'confidence' must be above 0 and below 1. Got 95."),
        ({"initial_w": [1, 2]}, "The shape of 'initial_w' must be () or (5,). Got (2,)."),
    ],
)
def test_bad_options_get_one_sentence(options, sentence):
    with pytest.raises(BadRequestError) as caught:
        Evaluator(5, **options)
    assert str(caught.value).startswith(sentence)


def test_streams_that_cannot_be_evaluated():
    with pytest.raises(BadRequestError, match="A stream must have at least one transition"):
        Evaluator(5).result()
    silent = Evaluator(2)
    silent.observe(transitions_of(np.zeros((3, 2)), 1.0, 0.0, np.zeros((3, 2))))
    with pytest.raises(BadRequestError, match="The features must not all be zero"):
        silent.result()
    with pytest.raises(BadRequestError, match=r"The shape of 'x' must be \(n, 5\)"):
        Evaluator(5).observe(transitions_of(np.ones((1, 2)), 1.0, 0.0, np.ones((1, 2))))


def test_blocks_hold_whole_episodes_however_the_stream_is_cut():
    episode = np.repeat(np.arange(300), np.random.default_rng(0).integers(1, 9, 300))
    whole = Blocks().number(episode)
    cut = Blocks()
    pieces = [cut.number(episode[begin : begin + 37]) for begin in range(0, len(episode), 37)]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert all(len(np.unique(whole[episode == one])) == 1 for one in range(300))
    endless = Blocks().number(np.zeros(5000, np.int64))
    assert 20 < endless.max() < 200


def test_shadows_are_td_without_rewards():
    rng = np.random.default_rng(0)
    x, x_next = rng.normal(size=(2, 1500, 2))
    log = transitions_of(x, 7.0, 0.5, x_next, rng.uniform(0.5, 1.5, 1500))
    shadows = TdShadows(2, 0.1, seed=3)
    w = np.tile(np.random.default_rng(3).standard_normal((2, 2)), 4)
    alpha, sizes = 0.1 * np.repeat([0.4, 0.2, 0.1, 0.04], 2), []
    for row in range(1500):
        if row % 1000 == 0:
            sizes.append(np.sqrt(((x[row : row + 1000] @ w) ** 2).mean(axis=0)))
        delta = 0.5 * x_next[row] @ w - x[row] @ w
        w = w + alpha * log.rho[row] * delta * x[row][:, None]
    shadows.learn(log)
    assert np.allclose(shadows.sizes, sizes)
    assert np.allclose(shadows.lanes.w, w)


def test_averages_begin_anew_when_the_stream_has_doubled():
    log = log_of(WALK, 2000)
    made = Portfolio([LEARNERS["td"].setting(alpha=0.1)], np.zeros(5), 1.0, 0)
    made.learn(log.part(slice(0, 999)), np.zeros(999, int))
    assert (made.every, made.older, made.steps) == (4, [], 999)  # at least four updates between two that are averaged
    made.learn(log.part(slice(999, 1000)), np.zeros(1, int))
    ((_, count),) = made.older
    assert count == 250
    made.learn(log.part(slice(1000, 1999)), np.zeros(999, int))
    assert [again for _, again in made.older] == [count]
    made.learn(log.part(slice(1999, 2000)), np.zeros(1, int))
    assert made.turn == 4000
    assert made.diverged() == [0]
    weights = made.averages()
    assert weights.shape == (1, 9, 5)
    assert np.allclose(weights[0, 0], WALK.true_values, atol=0.2)
