"""The tasks of the off-policy benchmarks: what was published of them, and questions that share a stream."""

from dataclasses import replace

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun, run_lanes
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import TASKS
from gradient_dd.tasks.rooms import CELLS, HALLWAYS
from gradient_dd.testing import assert_alike
from gradient_dd.theory import SampleMaps

DRAWS = [tasks.collision(seed) for seed in range(100)]


def test_collision_is_as_published():
    task = tasks.collision()
    assert task.true_values == pytest.approx(0.9 ** (7 - np.arange(8)))
    assert task.visits * 35 == pytest.approx([2, 4, 6, 8, 8, 4, 2, 1])
    assert task.expected_length == pytest.approx(4.375)
    assert task.rmsve(task.initial_weights) == pytest.approx(0.689, abs=5e-4)
    assert set(np.unique(task.rho[task.states])) == {0, 1, 2}
    assert (task.features.sum(axis=1) == 3).all()
    assert set(np.unique(task.features)) == {0, 1}


def test_collision_features_are_drawn_from_the_seed():
    first, again, other = tasks.collision(3), tasks.collision(3), tasks.collision(4)
    assert first.key == again.key != other.key
    assert first.digest == other.digest, "two draws of the features share their trajectories"
    counts = sum(task.features for task in DRAWS) / len(DRAWS)
    assert np.abs(counts - 0.5).max() < 5 * 0.5 / np.sqrt(len(DRAWS)), "every feature is 1 in half of the draws"
    low = np.mean([np.linalg.matrix_rank(task.features) < 6 for task in DRAWS])
    assert 0.2 < low < 0.45, "a third of the draws have a rank below 6"


def test_the_fixed_point_on_collision_has_the_error_of_another_run():
    """.306 on average over the draws of the features, in an independent run of ours."""
    errors = [task.rmsve(task.fixed_point) for task in DRAWS]
    assert np.mean(errors) == pytest.approx(0.306, abs=2 * np.std(errors) / np.sqrt(len(DRAWS)))


@pytest.mark.parametrize("features", ["tabular", "inverted", "dependent"])
def test_five_state_walk_has_unit_features_and_one_set_of_values(features):
    task = tasks.five_state_walk(features)
    assert np.linalg.norm(task.features, axis=1) == pytest.approx(np.ones(5))
    assert task.true_values == pytest.approx(tasks.five_state_walk().true_values)
    V = np.concatenate([[0], task.true_values, [0]])
    reward = np.array([-0.4, 0, 0, 0, 0.6])
    assert V[1:-1] == pytest.approx(reward + 0.4 * V[:-2] + 0.6 * V[2:])
    assert task.n_features == {"dependent": 3}.get(features, 5)


def test_nineteen_state_walk_has_tenths():
    assert tasks.nineteen_state_walk().true_values == pytest.approx(np.arange(-9, 10) / 10)


def test_dann_mdp_has_a_constant_feature_and_pays_up_to_one():
    task = tasks.dann_mdp(n_states=12, n_features=5, seed=1)
    assert (task.features[:, -1] == 1).all()
    assert 0 < task.true_values.min() < task.true_values.max() < 1 / 0.05
    assert len(task.outcomes.state) == 12 * 10 * 12


# Rooms: questions about one stream -------------------------------------------------------------------------------

ROOM_SIZES = (25, 25, 25, 25, 30, 30, 20, 20)  # of the room that each question is asked in


@pytest.mark.parametrize("question", range(8))
def test_a_question_is_asked_in_its_room_and_in_the_hallway_it_is_not_about(question):
    task = tasks.rooms(question)
    assert task.interest.sum() == ROOM_SIZES[question] + 1
    assert task.visits.sum() == pytest.approx(1)
    assert ((task.visits > 0) == (task.interest > 0)).all()
    assert task.rewards.sum() == 1, "the goal has one door to the room"


def test_values_are_discounted_steps_to_the_goal():
    task, cells = tasks.rooms(0), np.array(CELLS)
    away = np.abs(cells - HALLWAYS[0]).sum(axis=1)  # from every cell of the first room the way is straight or one turn
    asked = task.interest > 0
    assert task.true_values[asked] == pytest.approx(0.9 ** (away[asked] - 1))


def test_questions_share_the_stream_and_high_variance_is_another():
    first, second, high = tasks.rooms(0), tasks.rooms(5), tasks.rooms(0, "high")
    assert first.key != second.key
    assert np.array_equal(OutcomeSampler(first).take(500), OutcomeSampler(second).take(500))
    assert first.digest != high.digest
    assert high.rho.max() == pytest.approx(100)


def test_high_variance_is_a_question_of_its_own_name():
    assert str(tasks.rooms(2, variance="high")) == "rooms(question=2, variance=high)"


@pytest.mark.parametrize("name", ["td", "gradient_dd"])
def test_steps_without_interest_are_skipped_by_both_engines(name):
    """Also where the run is cut into pieces."""
    task, setting = tasks.rooms(3), LEARNERS[name].setting(alpha=0.05)
    assert_alike(task, setting, Horizon(steps=1500))
    whole, pieces = (LaneRun(task, [setting], Horizon(steps=1500), seed=0) for _ in range(2))
    whole.advance()
    for _ in range(200):
        pieces.advance(7)
    pieces.advance()
    assert np.array_equal(pieces.weights(), whole.weights())
    assert np.array_equal(pieces.results().curve, whole.results().curve)


def test_a_skipped_step_changes_nothing():
    task = tasks.rooms(4)  # asked in the room farthest from the start
    column = OutcomeSampler(task).take(2000)
    first = int(np.argmax(task.active[column]))
    assert first > 10
    before = reference.run(task, "gradient_dd", steps=first, alpha=0.1)
    assert not before.w.any()
    after = reference.run(task, "td", steps=2000, every=2000, alpha=0.1)
    assert after.w.any()


def test_learning_a_question_comes_near_to_its_fixed_point():
    task = tasks.rooms(6)
    results = run_lanes(task, [LEARNERS["td"].setting(alpha=0.01)], Horizon(steps=60_000, every=100), workers=1)
    assert results.last100[0, 0] < 1.3 * task.rmsve(task.fixed_point)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"interest": np.full(104, 0.5)}, "'interest' must be 0 or 1. Got 0.5."),
        ({"interest": np.zeros(104)}, "'interest' must be 1 in a state that is not terminal. Got 0 in all."),
        ({"discount": np.full(104, 0.9)}, "the discount into a state without interest must be 0. Got 0.9."),
        ({"interest": np.ones(3)}, r"the shape of 'interest' must be \(104,\). Got \(3,\)."),
        ({"cumulant": np.ones(3)}, r"the shape of 'cumulant' must be \(416,\). Got \(3,\)."),
    ],
)
def test_a_bad_question_gets_one_sentence(change, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        replace(tasks.rooms(), **change)


def test_what_cannot_skip_steps_refuses_a_question():
    with pytest.raises(BadRequestError, match="The task of the theory must ask its question in every state"):
        SampleMaps(tasks.rooms(), LEARNERS["td"].setting())


def test_the_keys_of_tasks_without_a_question_do_not_depend_on_questions():
    """A cumulant or an interest makes another task; None of both is the task that there was before."""
    walk = tasks.random_walk(5)
    assert replace(walk, cumulant=np.array(walk.outcomes.reward)).key != walk.key
    assert replace(walk, interest=np.ones(7)).key != walk.key
    assert [TASKS[name]().key for name in ("random_walk", "boyan_chain", "baird")] == [
        "d55d6b1d69357e45eb159f2c",
        "81e259134958e49fae07d554",
        "14cfb54194cf2cfb567639df",
    ]
