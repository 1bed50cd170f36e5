"""What `Learner` refuses leaves it as it was: weights, η, the metric and the counts."""

import numpy as np
import pytest
import scipy.sparse as sp

from gradient_dd.engine.single import CHANGE
from gradient_dd.errors import BadRequestError, DivergedError, GradientDDError, show
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.learner import Learner
from gradient_dd.stream.trace_state import traces_of

GOOD = {"x": np.array([1.0, 0.0, 2.0]), "reward": 1.0, "discount": 0.9, "x_next": np.array([0.5, 1.0, 0.0])}


def everything(agent):
    """Return all that an update may change, as bytes and counts."""
    metric = None if agent._metric is None else (agent._metric.inverse.tobytes(), agent._metric.count)
    arrays = agent.w.tobytes(), agent.eta.tobytes(), agent._memory.parts[:, CHANGE].tobytes()
    traces = [array.tobytes() for array in traces_of(agent._memory).arrays(agent.n_features).values()]
    return *arrays, agent._memory.scale[0], metric, traces, agent.updates, agent.episodes


@pytest.mark.parametrize("name", [name for name, rule in LEARNERS.items() if rule.is_plain or name == "htd_dd"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"truncated": np.array([True, False])}, "'truncated' must be true or false. Got array([ True, False])."),
        ({"terminated": "no"}, "'terminated' must be true or false. Got 'no'."),
        ({"truncated": 1}, "'truncated' must be true or false. Got 1."),
        ({"x": np.ma.masked_array([1.0, 2, 3], [0, 1, 0])}, "'x' must be plain numbers. Got a masked array."),
        ({"x": [1 + 2j, 0, 0]}, "'x' must be numbers."),
        ({"x": [10**400, 0, 0]}, "'x' must be numbers."),
        ({"x": ["1", "2", "3"]}, "'x' must be numbers."),
        ({"x": np.ones((1, 1, 3))}, "The shape of 'x' must be (3,). Got (1, 1, 3)."),
        ({"x": ([[0], [1, 2]], [1.0, 1.0])}, "Sparse 'x' must have as many whole indices as values."),
        ({"x": ([10**400], [1.0])}, "Sparse 'x' must have as many whole indices as values."),
        ({"x": (np.ma.masked_array([0], [1]), [1.0])}, "Sparse 'x' must have as many whole indices as values."),
        ({"reward": np.ma.masked}, "'reward' must be a finite number. Got masked."),
        ({"reward": 10**5000}, "'reward' must be a finite number. Got a whole number of about 5000 digits."),
        ({"x": [1e200, 0, 0]}, "{name}"),
        ({"reward": 1e300, "rho": 1e300}, "{name}"),
    ],
)
def test_a_refused_update_moves_nothing(name, change, sentence):
    agent = Learner(name, 3, alpha=0.1)
    for _ in range(3):
        agent.update(**GOOD)
    before = everything(agent)
    with pytest.raises(GradientDDError) as caught:
        agent.update(**(GOOD | change))
    assert str(caught.value).startswith(sentence.format(name=name))
    assert "\n" not in str(caught.value)
    assert everything(agent) == before


def test_a_rule_that_fails_moves_nothing():
    """Also the metric, which has seen the features by then."""
    agent = Learner("natural_tdc", 3)
    agent.update(**GOOD)
    before = everything(agent)
    agent.rule.__dict__["coefficients"] = lambda signals: 1 / 0
    try:
        with pytest.raises(ZeroDivisionError):
            agent.update(**GOOD)
    finally:
        del agent.rule.__dict__["coefficients"]
    assert everything(agent) == before


def test_the_metric_does_not_overflow_in_silence():
    """xᵀM⁻¹x beyond the largest float would leave the metric as if x had not been seen."""
    agent = Learner("natural_gtd2", 2)
    with pytest.raises(DivergedError, match="the metric moves by inf"):
        agent.update([1e160, 0.0], 0.0, 0.0, None)


def test_booleans_of_numpy_end_an_episode():
    agent = Learner("td", 3)
    agent.update(**GOOD, truncated=np.bool_(True))
    assert agent.episodes == 1
    assert type(agent.episodes) is int


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (sp.csr_matrix([[np.nan, 0, 0]]), "'X' must be finite. Got nan."),
        (sp.csr_matrix([[1j, 0, 0]]), "'X' must be a matrix of numbers. Got 2 dimensions of complex128."),
        (np.ma.masked_array(np.ones((2, 3)), np.eye(2, 3)), "'X' must be plain numbers. Got a masked array."),
        (np.full((2, 3), 1 + 1j), "'X' must be numbers."),
        (np.full((2, 3), 1e200), "The predictions for 'X' must be finite. Got inf."),
        (sp.csr_matrix(np.full((2, 3), 1e200)), "The predictions for 'X' must be finite. Got inf."),
        (([0], [1e200]), "The predictions for 'X' must be finite. Got inf."),
        (sp.csr_matrix(np.ones((2, 4))), "The shape of 'X' must be (3,) or (n, 3). Got (2, 4)."),
    ],
)
def test_predictions_are_finite_or_refused(X, sentence):
    agent = Learner("td", 3, initial_w=1e150)
    with pytest.raises(BadRequestError) as caught:
        agent.predict(X)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("arguments", "values", "sentence"),
    [
        ((["td"], 3), {}, "Unknown learner ['td']. Known: td"),
        ((None, 3), {}, "Unknown learner None. Known: td"),
        (("gtd2", 3), {"rho_mode": ["R"]}, "'rho_mode' of gtd2 must be 'R' or 'T'. Got ['R']."),
        (("td", 3), {"initial_w": [10**400, 0, 0]}, "'initial_w' must be numbers."),
        (("td", 10**20), {}, "A td learner of 100000000000000000000 features must take at most "),
        (("td", 10**5000), {}, "A td learner of a whole number of about 5000 digits features must take at most "),
        (("natural_tdc", 10**7), {}, "A natural_tdc learner of 10000000 features must take at most "),
    ],
    ids=show,
)
def test_a_learner_that_cannot_be_is_refused_before_it_is_made(arguments, values, sentence):
    with pytest.raises(BadRequestError) as caught:
        Learner(*arguments, **values)
    assert str(caught.value).startswith(sentence)


def test_a_matrix_with_equal_indices_stays_the_user_s_own():
    """Adding up equal indices happens in a copy."""
    rows = sp.csr_matrix((np.ones(4), [0, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    before = rows.data.tolist(), rows.indices.tolist(), rows.indptr.tolist()
    agent = Learner("td", 3, alpha=0.5)
    agent.update_many(rows, 1.0, 0.0, None)
    assert agent.w.tolist() == [1.0, 0.5, 0.5]
    assert (rows.data.tolist(), rows.indices.tolist(), rows.indptr.tolist()) == before


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (([[0], [1, 2]], [[1.0], [1.0]]), "Sparse 'x' must be whole indices and values of the same shape (n, k)."),
        ((np.ma.masked_array([[0]], [[1]]), [[1.0]]), "Sparse 'x' must be whole indices and values of the same shape"),
        (([[0, 0]], [[1.5e308, 1.5e308]]), "The largest value of 'x' times the length of a row must be finite."),
        ((np.ones((1, 1)), [[1.0]]), "Sparse 'x' must be whole indices and values of the same shape"),
        (np.ma.masked_array(np.ones((2, 3)), np.eye(2, 3)), "'x' must be plain numbers. Got a masked array."),
        (sp.csr_matrix([[np.nan, 0, 0]]), "'x' must be finite. Got nan."),
    ],
)
def test_many_refused_transitions_move_nothing(x, sentence):
    agent = Learner("gradient_dd", 3, alpha=0.1)
    agent.update(**GOOD)
    before = everything(agent)
    with pytest.raises(BadRequestError) as caught:
        agent.update_many(x, 1.0, 0.0, None)
    assert str(caught.value).startswith(sentence)
    assert everything(agent) == before
