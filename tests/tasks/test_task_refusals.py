"""Tasks that cannot be, or cannot be computed, are refused when they are made or when a number is asked for."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gradient_dd import tasks
from gradient_dd.errors import BadRequestError, show
from gradient_dd.tasks import Outcomes, Task, exact, from_tables
from gradient_dd.tasks.validation import TOLERANCE

CHAIN = np.array([[[0, 1, 0]], [[0, 0, 1.0]], [[0, 0, 1.0]]])  # 0 -> 1 -> 2, a terminal
GOOD = {"P": CHAIN, "R": np.zeros((3, 1, 3)), "discount": 0.9, "behaviour": np.ones((3, 1)), "start": 0}


def sentence_of(call):
    with pytest.raises(BadRequestError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"R": 10**400}, "'R' must be numbers."),
        ({"R": 1e308}, "'R' must be numbers from -1e+50 to 1e+50. Got 1e+308."),
        ({"R": -1e51}, "'R' must be numbers from -1e+50 to 1e+50. Got -1e+51."),
        ({"R": 1j}, "'R' must be numbers. Got 1j."),
        ({"P": np.ma.masked_array(CHAIN, CHAIN > 0)}, "'P' must be plain numbers. Got a masked array."),
        ({"P": [*CHAIN.tolist(), [[10**400]]]}, "'P' must be numbers."),
        ({"discount": "0.9"}, "'discount' must be numbers. Got '0.9'."),
        ({"features": np.ones((3, 2, 2))}, "the shape of 'features' must be (states, p). Got (3, 2, 2)."),
        ({"features": np.full((3, 2), 1e200)}, "'features' must be numbers from -1e+50 to 1e+50. Got 1e+200."),
        ({"features": np.ones((3, 2)) * 1j}, "'features' must be numbers."),
        ({"features": sp.csr_matrix(np.ones((3, 2)) * 1j)}, "'features' must be a matrix of numbers."),
        ({"features": sp.csr_matrix([[np.nan], [1], [1]])}, "'features' must be finite. Got nan."),
        ({"features": sp.csr_matrix((3, 2**50))}, "'features' must take at most "),
        ({"initial_weights": [1e51, 0]}, "'initial_weights' must be numbers from -1e+50 to 1e+50."),
        ({"ratios": np.full((3, 1), 1e99)}, "'ratios' must be numbers from -1e+50 to 1e+50."),
        ({"name": ["mine"]}, "The name of a task must be text. Got ['mine']."),
    ],
    ids=show,
)
def test_a_table_that_cannot_be_is_refused(change, sentence):
    assert sentence in sentence_of(lambda: from_tables(**(GOOD | change)))


def almost_terminal(leaving, to=2):
    """0 -> 1 -> …, where 1 stays where it is but for a small probability."""
    P = CHAIN.copy()
    P[1, 0, 1] = 1 - leaving
    P[1, 0, 2], P[1, 0, to] = 0.0, leaving
    return GOOD | {"P": P}


def test_a_state_that_is_left_is_no_terminal():
    for leaving in (1e-10, 1e-12, TOLERANCE):
        sentence = sentence_of(lambda leaving=leaving: from_tables(**almost_terminal(leaving)))
        assert f"state 1 must be left with a probability above 1e-09, or never. Got {show(leaving)}." in sentence
    task = from_tables(**almost_terminal(1e-6))
    assert task.terminal.tolist() == [False, False, True]
    assert task.expected_length == pytest.approx(1 + 1e6)


def test_a_terminal_may_miss_one_by_rounding():
    P = CHAIN.copy()
    P[2, 0, 2] = 1 - 1e-12
    assert from_tables(**(GOOD | {"P": P})).terminal.tolist() == [False, False, True]


def forward_or_back(n, forward):
    """States in a row: one on with a small probability, else back to the first. Episodes take forward^-n steps."""
    P = np.zeros((n + 1, 1, n + 1))
    P[np.arange(n), 0, np.arange(n) + 1] = forward
    P[:n, 0, 0] += 1 - forward
    P[n, 0, n] = 1
    R = np.zeros((n + 1, 1, n + 1))
    R[:n] = 1
    return from_tables(P, R, 1.0, np.ones((n + 1, 1)), start=0)


@pytest.mark.parametrize("what", ["true_values", "visits", "expected_length"])
def test_exact_values_are_right_or_refused(what):
    """With 1e16 steps to an end, rounding made them wrong by 9 % without a word; with 1e30, by twelve digits."""
    for n, forward in ((3, 1e-2), (5, 1e-2), (3, 1e-3)):
        length = sum(forward**-k for k in range(1, n + 1))
        task = forward_or_back(n, forward)
        assert task.expected_length == pytest.approx(length, rel=1e-4)
        assert task.true_values[0] == pytest.approx(length, rel=1e-4)
    for n, forward in ((8, 1e-2), (10, 1e-3), (40, 1e-3), (60, 1e-8)):
        task = forward_or_back(n, forward)
        assert "must take at most 1e+12 steps on average" in sentence_of(lambda task=task: getattr(task, what))


def test_a_state_that_is_hardly_ever_reached_is_refused():
    n, forward = 8, 1e-2
    P = np.zeros((n + 1, 1, n + 1))
    P[np.arange(n), 0, np.arange(n) + 1] = forward
    P[:n, 0, 0] += 1 - forward
    P[n, 0, 0] = 1
    task = from_tables(P, 1.0, 0.9, np.ones((n + 1, 1)))
    assert "the way to the last state must take at most 1e+12 steps" in sentence_of(lambda: task.visits)


def test_expected_steps_are_values_of_a_reward_of_one():
    task = tasks.random_walk(20)
    steps = exact.expected_steps(task.P)
    assert steps[10] == pytest.approx(110)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": 3}, "The name of a task must be text. Got 3."),
        ({"outcomes": (1, 2)}, "'outcomes' must be Outcomes."),
        ({"start": [1.0, 0]}, "'start' must be an array of floats. Got [1.0, 0]."),
        ({"start": np.array([1, 0])}, "'start' must be an array of floats."),
        ({"discount": 1.0}, "'discount' must be an array of floats. Got 1."),
        ({"feature_rows": np.eye(5)}, "'feature_rows' must be a SciPy csr matrix."),
        ({"behaviour": np.full(5, 0.5)}, "the shape of 'behaviour' must be (5, 0). Got (5,)."),
    ],
)
def test_a_task_made_without_from_tables_is_checked_as_well(change, sentence):
    assert sentence in sentence_of(lambda: replace(tasks.random_walk(3), **change))


def test_outcomes_are_columns_of_one_length_that_name_states():
    walk = tasks.random_walk(3)
    for name, column, sentence in (
        ("state", walk.outcomes.state + 100, "'state' of an outcome must be from 0 to 4."),
        ("state", walk.outcomes.state - 100, "'state' of an outcome must be from 0 to 4."),
        ("state", walk.outcomes.state.astype(float), "'state' must be an array of whole numbers."),
        ("reward", walk.outcomes.reward[:-1], "the columns of the outcomes must have the same length."),
        ("reward", walk.outcomes.reward * 1e60, "'reward' must be numbers from -1e+50 to 1e+50. Got 1e+60."),
        ("probability", walk.outcomes.probability * np.nan, "'probability' must be finite."),
    ):
        changed = Outcomes(**(walk.outcomes._asdict() | {name: column}))
        assert sentence in sentence_of(lambda changed=changed: replace(walk, outcomes=changed))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: tasks.baird(100_000), "The table of baird, 100000 states, must take at most 1 GB"),
        (lambda: tasks.random_walk(10**8), "Got 84 GB. Make it smaller."),
        (lambda: tasks.random_walk(10**5000), "a whole number of about 5000 digits states, must take at most"),
        (lambda: tasks.boyan_chain(10**8), "The table of boyan_chain, 399999996 states,"),
        (lambda: tasks.random_mdp(10**4), "The table of random_mdp, 10000 states,"),
        (lambda: tasks.random_mdp(8, 10**9), "The table of random_mdp, 8 states,"),
        (lambda: tasks.random_mdp(8, 2, 10**9), "The table of random_mdp, 8 states,"),
        (lambda: tasks.random_walk(30_000).moments, "A and C of random_walk(n_states=30000) must take at most 1 GB"),
        (lambda: tasks.random_walk(30_000).features, "Features of random_walk(n_states=30000), dense, must take"),
        (lambda: tasks.random_walk(30_000).P, "P of random_walk(n_states=30000), dense, must take at most 1 GB"),
        (lambda: tasks.random_mdp(episodic="no"), "'episodic' must be true or false. Got 'no'."),
        (lambda: tasks.random_mdp(episodic=1), "'episodic' must be true or false. Got 1."),
        (lambda: tasks.random_mdp(discount="0.9"), "'discount' must be in [0, 1]. Got '0.9'."),
        (lambda: tasks.build(["baird"]), "Unknown task ['baird']."),
        (lambda: tasks.baird(7.0), "'n_states' must be a whole number, 3 or more. Got 7.0."),
    ],
)
def test_what_cannot_fit_or_cannot_be_is_refused_before_it_is_made(build, sentence, monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_MEMORY", "1e9")
    assert sentence in sentence_of(build)


def test_parameters_are_plain_numbers():
    """They enter keys and files: 2 and np.int64(2) are one task."""
    for task in (
        tasks.random_walk(np.int64(5), start=np.int64(2)),
        tasks.random_mdp(np.int8(4), np.int64(2), np.int32(3), np.float64(0.5), np.True_, np.int64(1)),
        tasks.baird(np.int64(7)),
        tasks.boyan_chain(np.uint8(3)),
    ):
        assert all(type(value) in (int, float, str, bool) for value in task.parameters.values())


def test_a_task_is_a_task():
    assert isinstance(replace(tasks.random_walk(3)), Task)
