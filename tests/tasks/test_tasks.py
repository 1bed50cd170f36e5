"""The tasks: what the paper says of them, what follows from their tables, and what is refused."""

from dataclasses import replace
from inspect import signature

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import tasks
from gradient_dd.errors import BadRequestError
from gradient_dd.tasks import TASKS, Outcomes, from_tables

SMALL = [
    tasks.random_walk(5),
    tasks.random_walk(9, features="linear"),
    tasks.boyan_chain(3),
    tasks.baird(4),
    tasks.baird(4, ratios="paper"),
    tasks.random_mdp(seed=3),
    tasks.random_mdp(seed=3, episodic=True),
]


@given(m=st.integers(1, 60))
def test_walk_values_are_linear(m):
    assert np.allclose(tasks.random_walk(m).true_values, np.arange(1, m + 1) / (m + 1), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("m", "length"), [(10, 30), (20, 110), (40, 420)])
def test_walk_lengths(m, length):
    assert tasks.random_walk(m).expected_length == pytest.approx(length, rel=1e-12)


def test_walk_may_start_in_the_lower_middle():
    assert tasks.random_walk(10, start=5).expected_length == pytest.approx(5 * 6)


@given(p=st.integers(2, 60))
def test_boyan_weights(p):
    printed = -4 * (p - np.arange(1, p + 1)) / 5
    task = tasks.boyan_chain(p)
    assert np.allclose(task.fixed_point, printed, rtol=0, atol=1e-11)
    assert task.n_states == 4 * p - 4
    assert task.rmsve(printed) < 1e-11


def test_boyan_length():
    assert tasks.boyan_chain(20).expected_length == pytest.approx(50.8889, abs=1e-4)


@given(n=st.integers(3, 30))
def test_baird_is_singular_with_rank_n_and_uniform_visits(n):
    task = tasks.baird(n)
    assert np.linalg.matrix_rank(task.moments.A) == n
    assert np.linalg.matrix_rank(task.moments.C) == n
    assert np.allclose(task.visits, 1 / n)
    assert not task.true_values.any()
    assert np.allclose(task.rho, [0, n])


@pytest.mark.parametrize(("p", "m"), [(None, 20), (5, 20), (6, 21), (2, 9)])
def test_linear_walk_represents_the_values(p, m):
    task = tasks.random_walk(m, features="linear", n_features=p)
    assert np.allclose(task.features.sum(axis=1), 1)
    assert task.rmsve(task.fixed_point) < 1e-12


def test_two_readings_of_baird_share_their_trajectories():
    assert tasks.baird(7).digest == tasks.baird(7, ratios="paper").digest
    assert tasks.baird(7).digest != tasks.baird(8).digest
    assert tasks.random_walk(20).digest == tasks.random_walk(20, features="linear").digest


def test_large_tasks_stay_sparse():
    for task in (tasks.boyan_chain(10_000), tasks.random_walk(50_000)):
        assert task.visits.sum() == pytest.approx(1)
        assert task.rmsve(task.initial_weights) > 0


@pytest.mark.parametrize("task", SMALL, ids=str)
def test_from_tables_gives_back_the_same_task(task):
    states, actions = task.behaviour.shape
    P, R = np.zeros((2, states, actions, states))
    outcome = task.outcomes
    P[outcome.state, outcome.action, outcome.next_state] = outcome.probability
    R[outcome.state, outcome.action, outcome.next_state] = outcome.reward
    for end in np.flatnonzero(task.terminal):
        P[end, :, end] = 1
    again = from_tables(
        P, R, task.discount, task.behaviour, task.target, task.start, task.feature_rows, ratios=task.ratios
    )
    assert again.digest == task.digest
    assert np.array_equal(again.true_values, task.true_values)
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(again.moments, task.moments, strict=True))


@pytest.mark.parametrize("task", SMALL, ids=str)
def test_tables_cannot_be_changed_afterwards(task):
    derived = (task.true_values, task.visits, task.features, task.fixed_point, task.P, task.r, *task.moments)
    given = (*task.outcomes, task.discount, task.start, task.behaviour, task.target, task.feature_rows.data)
    ratios = [] if task.ratios is None else [task.ratios]
    assert not any(array.flags.writeable for array in (*derived, *given, *ratios))


def test_outcomes_stand_in_order():
    walk = tasks.random_walk(3)
    with pytest.raises(BadRequestError, match="outcomes must be sorted by state, action, next state"):
        replace(walk, outcomes=Outcomes(*(column[::-1] for column in walk.outcomes)))
    with pytest.raises(BadRequestError, match="'next_state' of an outcome must be from 0 to 4"):
        replace(walk, outcomes=walk.outcomes._replace(next_state=walk.outcomes.next_state + 2))


def test_rewards_may_be_given_by_state_and_action():
    by_action = from_tables(**(GOOD | {"R": [[1.0], [2.0], [0.0]]}))
    assert by_action.true_values == pytest.approx([1 + 0.9 * 2, 2])


def test_every_task_has_defaults_and_a_name():
    for name, builder in TASKS.items():
        assert builder().name == name


# Bad input ----------------------------------------------------------------------------------------------------

CHAIN = np.array([[[0, 1, 0]], [[0, 0, 1.0]], [[0, 0, 1.0]]])  # 0 -> 1 -> 2, a terminal
GOOD = {"P": CHAIN, "R": np.zeros((3, 1, 3)), "discount": 0.9, "behaviour": np.ones((3, 1)), "start": 0}
TWO = {
    "P": np.repeat(CHAIN, 2, axis=1),
    "R": 0.0,
    "discount": 1.0,
    "behaviour": np.tile([1.0, 0.0], (3, 1)),
    "target": np.tile([0.5, 0.5], (3, 1)),
    "start": 0,
}
RETURNS_BY_A_NEVER_TAKEN_ACTION = {
    "P": np.array([[[0.5, 0.5], [0, 1]], [[0, 1], [1, 0]]]),
    "R": 1.0,
    "behaviour": np.array([[0.5, 0.5], [1, 0]]),
}
LOOP = np.array([[[0.5, 0.5, 0]], [[0.5, 0.5, 0]], [[0, 0, 1.0]]])


def changed(array, place, value):
    array = np.array(array, dtype=float)
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"P": CHAIN[0]}, "Task 'mine': the shape of 'P' must be (states, actions, states). Got (1, 3)."),
        (
            {"P": changed(CHAIN, (0, 0, 2), 0.5)},
            "Task 'mine': transition probabilities from state 0 must sum to 1. Got 1.5.",
        ),
        (
            {"P": changed(CHAIN, (0, 0, slice(3)), [-1, 2, 0])},
            "transition probabilities must be zero or more. Got -1.",
        ),
        ({"P": changed(CHAIN, (0, 0, 1), np.nan)}, "Task 'mine': 'P' must be finite. Got nan."),
        ({"R": np.zeros((2, 2))}, "the shape of 'R' must be (3, 1, 3), or (3, 1), or one number. Got (2, 2)."),
        ({"R": changed(np.zeros((3, 1, 3)), (0, 0, 1), np.inf)}, "Task 'mine': 'R' must be finite. Got inf."),
        ({"R": "much"}, "Task 'mine': 'R' must be numbers. Got 'much'."),
        ({"discount": 1.1}, "Task 'mine': 'discount' must be in [0, 1]. Got 1.1."),
        ({"discount": -0.1}, "Task 'mine': 'discount' must be in [0, 1]. Got -0.1."),
        ({"behaviour": np.ones((2, 1))}, "Task 'mine': the shape of 'behaviour' must be (3, 1). Got (2, 1)."),
        ({"behaviour": np.full((3, 1), 0.5)}, "behaviour probabilities in state 0 must sum to 1. Got 0.5."),
        ({"target": np.full((3, 1), 2)}, "target probabilities in state 0 must sum to 1. Got 2."),
        ({"start": [0.5, 0, 0]}, "start probabilities must sum to 1. Got 0.5."),
        ({"start": [1.5, -0.5, 0]}, "start probabilities must be zero or more. Got -0.5."),
        ({"start": [1.0, 0]}, "the shape of 'start' must be (3,). Got (2,)."),
        ({"behaviour": np.full((3, 2), 0.5)}, "the shape of 'behaviour' must be (3, 1). Got (3, 2)."),
        ({"behaviour": np.ones(3)}, "the shape of 'behaviour' must be (3, 1). Got (3,)."),
        ({"R": -1.0}, "Got state 2, which is never left but has a reward. Rewards in a terminal must be 0."),
        (RETURNS_BY_A_NEVER_TAKEN_ACTION, "every state must be reachable from every other under the behaviour"),
        ({"start": 2}, "an episode must start in a state that is not terminal. Got 2."),
        ({"start": 7}, "'start' must be a state from 0 to 2. Got 7."),
        ({"start": 1}, "every state must be reachable from the start under the behaviour policy. Got [0]."),
        ({"features": np.ones((5, 2))}, "'features' must have one row for each of 3 (states) or 2 (non-terminal"),
        ({"features": np.full((3, 2), np.nan)}, "'features' must be finite. Got nan."),
        ({"features": np.ones((3, 0))}, "'features' must have at least one column. Got 0."),
        ({"initial_weights": [1, 2, 3]}, "the shape of 'initial_weights' must be (2,). Got (3,)."),
        ({"ratios": np.full((3, 1), -1.0)}, "'ratios' must be zero or more. Got -1."),
        ({"ratios": np.full((3, 1), np.inf)}, "'ratios' must be finite. Got inf."),
        (TWO, "must take every action that the target policy takes. Got probability 0 for action 1 in state 0"),
        ({"P": LOOP}, "Task 'mine': episodes must end under the behaviour policy. Got no end from state 0."),
        ({"P": LOOP[:2, :, :2], "R": 0, "behaviour": np.ones((2, 1)), "discount": 1}, "end or be discounted"),
        ({"P": np.eye(3)[:, None, :]}, "must have a state that is not terminal"),
        ({"P": np.eye(3)[[1, 1, 1]][:, None], "R": 1.0}, "reachable from every other|reachable from the start"),
    ],
)
def test_a_bad_table_gets_one_sentence(change, sentence):
    with pytest.raises(BadRequestError) as caught:
        from_tables(**(GOOD | change))
    text = str(caught.value)
    assert any(part in text for part in sentence.split("|")), text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: tasks.random_walk(0), "'n_states' must be a whole number, 1 or more. Got 0."),
        (lambda: tasks.random_walk(2.5), "'n_states' must be a whole number, 1 or more. Got 2.5."),
        (
            lambda: tasks.random_walk(20, features="fourier"),
            "'features' must be 'tabular' or 'linear'. Got 'fourier'.",
        ),
        (lambda: tasks.random_walk(20, features="linear", n_features=7), "from 2 to 6. Got 7."),
        (lambda: tasks.random_walk(20, n_features=6), "'n_features' of tabular features must be 20. Got 6."),
        (lambda: tasks.random_walk(20, start=21), "'start' must be a whole number from 1 to 20. Got 21."),
        (lambda: tasks.boyan_chain(1), "'n_features' must be a whole number, 2 or more. Got 1."),
        (lambda: tasks.baird(2), "'n_states' must be a whole number, 3 or more. Got 2."),
        (lambda: tasks.baird(7, ratios="mine"), "'ratios' must be 'standard' or 'paper'. Got 'mine'."),
        (lambda: tasks.build("randomwalk"), "Unknown task 'randomwalk'. Did you mean 'random_walk'?"),
        (lambda: tasks.build("baird", name=7), "Unknown parameter of baird: 'name'."),
        (lambda: tasks.build("baird", states=7), "Unknown parameter of baird: 'states'. Did you mean 'n_states'?"),
    ],
)
def test_a_bad_request_for_a_task_gets_one_sentence(build, sentence):
    with pytest.raises(BadRequestError) as caught:
        build()
    assert sentence in str(caught.value)


def test_a_table_may_be_sparse_in_its_features():
    task = from_tables(**GOOD, features=sp.csr_matrix(np.eye(3)))
    assert task.features.shape == (2, 3)


def cliff_with_an_end():
    """Return P, R of the cliff walk of Gymnasium, whose done flags lead to one state more."""
    table = gymnasium.make("CliffWalking-v1").unwrapped.P
    P, R = np.zeros((2, 49, 4, 49))
    P[48, :, 48] = 1.0
    for s, actions in table.items():
        for a, outcomes in actions.items():
            for probability, there, reward, done in outcomes:
                P[s, a, 48 if done else there] += probability
                R[s, a, 48 if done else there] = reward
    return P, R


def test_only_reachable_states_are_kept_and_the_others_said():
    P, R = cliff_with_an_end()
    given = {"P": P, "R": R, "discount": 0.9, "behaviour": np.full((49, 4), 0.25), "start": 36}
    with pytest.raises(BadRequestError, match=r"reachable from the start .* Got \[37, 38, .*keep='reachable' omits"):
        tasks.from_tables(**given)
    task = tasks.from_tables(**given, keep="reachable")
    assert task.notes == ("11 of 49 states are never reached and are omitted: 37, 38, 39, 40, 41, 42, 43, 44, ….",)
    other = tasks.from_gymnasium(gymnasium.make("CliffWalking-v1"), discount=0.9)
    assert np.array_equal(task.states, other.states)
    assert np.allclose(task.true_values, other.true_values)
    features = np.random.default_rng(0).normal(size=(49, 3))
    own = tasks.from_tables(**given, keep="reachable", features=features)
    assert np.array_equal(own.features, features[own.states])
    assert tasks.from_tables(**given | {"start": None}).notes == ()
    with pytest.raises(BadRequestError, match="'keep' must be 'all' or 'reachable'"):
        tasks.from_tables(**given, keep="some")


def test_errors_may_be_measured_against_a_goal():
    """Distances to the TD fixed point, say; the trajectories stay, the results are others."""
    task = tasks.random_mdp(seed=3)
    aimed = replace(task, goal=task.features @ task.fixed_point)
    assert aimed.rmsve(task.fixed_point) < 1e-15 < task.rmsve(task.fixed_point)
    assert aimed.digest == task.digest
    assert aimed.key != task.key
    with pytest.raises(BadRequestError, match=r"the shape of 'goal' must be \(8,\)\. Got \(3,\)\."):
        replace(task, goal=np.zeros(3))


def test_tasks_without_arguments_are_these():
    """Their names stand in stores and in the documentation."""
    assert [str(make()) for make in TASKS.values()] == [
        "random_walk(n_states=20)",
        "boyan_chain(n_features=20)",
        "baird(n_states=7)",
        "random_mdp(n_states=8, n_actions=3, n_features=4, discount=0.9, seed=0)",
        "collision(seed=0)",
        "rooms(question=0)",
        "five_state_walk(features=tabular)",
        "nineteen_state_walk()",
        "dann_mdp(n_states=30, n_actions=10, n_features=15, seed=0)",
    ]


def numbers_of_tasks():
    """Yield (task, argument, the largest illegal number below the legal ones) for the whole numbers that tasks take."""
    smallest = {"n_states": 0, "n_actions": 0, "n_features": 0, "seed": -1, "start_seed": -1, "question": -1}
    own = {("boyan_chain", "n_features"): 1, ("baird", "n_states"): 2, ("dann_mdp", "n_states"): 1}
    for name in ("random_walk", "boyan_chain", "baird", "random_mdp", "collision", "rooms", "dann_mdp"):
        for argument in set(signature(TASKS[name]).parameters) & set(smallest):
            yield name, argument, own.get((name, argument), smallest[argument])


@pytest.mark.parametrize(("name", "argument", "most"), sorted(numbers_of_tasks()))
def test_the_smallest_number_that_a_task_takes(name, argument, most):
    with pytest.raises(BadRequestError, match=f"'{argument}'"):
        TASKS[name](**{argument: most})
    if (name, argument) != ("random_walk", "n_features"):  # which tabular features do not have
        assert TASKS[name](**{argument: most + 1}).n_states > 0


def test_a_random_task_has_a_discount_from_0_to_1():
    for discount in (-0.01, 1.01):
        with pytest.raises(BadRequestError, match=r"'discount' must be in \[0, 1\]"):
            tasks.random_mdp(discount=discount)
    assert tasks.random_mdp(discount=1.0, episodic=True).discount.max() == 1.0
    assert not tasks.random_mdp(discount=0.0).discount.any()


def test_the_dependent_features_of_the_five_state_walk_share_out_one_unit():
    """States in a row share features: the first has one, the middle all three, the last another one."""
    features = tasks.five_state_walk("dependent").features[:5]
    assert [tuple(np.flatnonzero(row)) for row in features] == [(0,), (0, 1), (0, 1, 2), (1, 2), (2,)]
    assert np.allclose(features, (features > 0) / np.sqrt((features > 0).sum(1, keepdims=True)))
