"""Trajectories: the right frequencies, one column whatever the cutting, and no other dependence."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from gradient_dd import tasks
from gradient_dd.engine.trajectories import OutcomeSampler, alias_tables
from gradient_dd.errors import BadRequestError
from gradient_dd.tasks import TASKS

STEPS = 200_000
ALL = [builder() for builder in TASKS.values()] + [tasks.random_mdp(episodic=True, n_states=4)]


def surprise(task, column):
    """Return the p-value of the outcomes in a column, given how often each state was left (χ² test)."""
    outcome = task.outcomes
    likely = task.behaviour[outcome.state, outcome.action] * outcome.probability
    counts = np.bincount(column, minlength=len(likely))
    left = np.bincount(outcome.state, counts, minlength=len(task.start))
    expected = left[outcome.state] * likely
    use = expected > 5
    freedom = use.sum() - len(np.unique(outcome.state[use]))
    return chi2.sf(((counts - expected)[use] ** 2 / expected[use]).sum(), freedom)


@pytest.mark.parametrize("sampling", ["trajectory", "iid"])
@pytest.mark.parametrize("task", ALL, ids=str)
def test_sampled_frequencies_agree_with_the_table(task, sampling):
    column = OutcomeSampler(task, seed=7, sampling=sampling).take(STEPS)
    assert surprise(task, column) > 1e-4
    seen = task.transitions.row[column[task.active[column]]]  # of a question, steps from states of interest alone
    share = np.bincount(seen, minlength=task.n_states) / len(seen)
    # Visits along a trajectory are correlated; ten standard deviations of independent draws is ample for these.
    assert np.all(np.abs(share - task.visits) < 10 * np.sqrt(task.visits / STEPS) + 1e-3)


def test_a_wrong_table_is_noticed():
    """The same test refuses a walk that goes right with probability 0.51 instead of 0.5."""
    task = tasks.random_walk(20)
    crooked = replace(task, behaviour=np.tile([0.49, 0.51], (22, 1)), target=np.tile([0.49, 0.51], (22, 1)))
    assert surprise(task, OutcomeSampler(crooked, seed=7).take(STEPS)) < 1e-8


def test_a_wrong_start_is_noticed():
    """Episodes begin where the start distribution says."""
    task = tasks.random_mdp(episodic=True, n_states=3, seed=8)
    biased = replace(task, start=np.array([0.2, 0.5, 0.3, 0.0]))
    column = OutcomeSampler(biased, seed=0).take(STEPS)
    first = 1 + np.flatnonzero(biased.transitions.ends[column[:-1]])
    share = np.bincount(biased.transitions.row[column[first]], minlength=3) / len(first)
    spread = 5 / np.sqrt(len(first))
    assert np.all(np.abs(share - [0.2, 0.5, 0.3]) < spread)
    assert np.any(np.abs(share - 1 / 3) > spread)


@pytest.mark.parametrize("task", ALL, ids=str)
def test_a_trajectory_is_connected(task):
    """Each step leaves the state the one before entered, unless an episode ended."""
    row, next_row, *_, ends = (array[OutcomeSampler(task, seed=1).take(5000)] for array in task.transitions)
    assert np.array_equal(row[1:][~ends[:-1]], next_row[:-1][~ends[:-1]])
    assert np.array_equal(ends, next_row == task.n_states)


@given(cuts=st.lists(st.integers(0, 400), max_size=8), sampling=st.sampled_from(["trajectory", "iid"]))
def test_the_cutting_does_not_matter(cuts, sampling):
    task = tasks.random_mdp(episodic=True, seed=2)
    whole = OutcomeSampler(task, 3, 5, sampling).take(sum(cuts))
    stream = OutcomeSampler(task, 3, 5, sampling)
    pieces = [stream.take(cut) for cut in cuts]
    assert np.array_equal(np.concatenate([*pieces, np.empty(0, np.int32)]), whole)


def test_seed_run_and_dynamics_each_make_another_column():
    walk = tasks.random_walk(20)
    columns = {
        OutcomeSampler(task, seed, run).take(200).tobytes()
        for task in (walk, tasks.random_walk(20, start=3))
        for seed in (0, 1)
        for run in (0, 1)
    }
    assert len(columns) == 8
    linear = tasks.random_walk(20, features="linear")
    assert np.array_equal(OutcomeSampler(walk).take(200), OutcomeSampler(linear).take(200))


def test_an_outcome_the_behaviour_never_takes_is_never_drawn():
    """Action 1 has probability 0; its outcomes stay in the table, for the environment."""
    P = np.zeros((3, 2, 3))
    P[0, :, 1] = P[1, 0, 0] = P[1, 1, 2] = P[2, :, 2] = 1
    behaviour = np.array([[1, 0], [0.5, 0.5], [1, 0]])
    task = tasks.from_tables(P, 0.0, 1.0, behaviour, start=0)
    actions = task.outcomes.action[OutcomeSampler(task).take(1000)]
    states = task.outcomes.state[OutcomeSampler(task).take(1000)]
    assert not np.any((states == 0) & (actions == 1))


@pytest.mark.parametrize("probability", [1e-12, 2.0**-33, 0.3])
def test_an_outcome_that_is_possible_can_be_drawn(probability):
    """A probability below 2⁻³² is rounded up to it, never down to zero."""
    P = np.array([[[0.0, 1 - probability, probability]], [[0.5, 0.0, 0.5]], [[0.0, 0.0, 1.0]]])
    task = tasks.from_tables(P, 0.0, 1.0, behaviour=np.ones((3, 1)), start=0)
    tables = alias_tables(task, "trajectory")
    begin, size = (int(array[0]) for array in (tables.first, tables.size))
    share = np.zeros(len(task.outcomes.state))
    for entry in range(begin, begin + size):
        kept = int(tables.keep[entry]) / 2**32 / size
        share[tables.outcome[entry]] += kept, 1 / size - kept
    rare = np.flatnonzero((task.outcomes.state == 0) & (task.outcomes.next_state == 2))
    assert share[rare] >= max(probability, 2.0**-32) / 2  # the share of one word in 2³² of an entry
    assert share[rare] == pytest.approx(probability, abs=2.0**-32)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"seed": -1}, "'seed' must be a whole number, 0 or more. Got -1."),
        ({"run": 1.5}, "'run' must be a whole number, 0 or more. Got 1.5."),
        ({"sampling": "replay"}, "'sampling' must be 'trajectory' or 'iid'. Got 'replay'."),
    ],
)
def test_a_bad_request_gets_one_sentence(arguments, sentence):
    with pytest.raises(BadRequestError) as caught:
        OutcomeSampler(tasks.random_walk(3), **arguments)
    assert str(caught.value) == sentence


def test_an_iid_run_and_a_trajectory_share_no_random_numbers():
    """A task of one state and two outcomes: the same words would give the same column."""
    walk = tasks.random_walk(1)
    assert not np.array_equal(OutcomeSampler(walk).take(100), OutcomeSampler(walk, sampling="iid").take(100))
