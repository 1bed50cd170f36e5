"""Points without data nearby have no value, and an interval as wide as the rewards allow."""

import numpy as np
import pytest

import gradient_dd as gdd
from gradient_dd.evaluation.support import Support, reachable_values, support_of
from gradient_dd.stream.features import Rows
from gradient_dd.studies.intervals import Bounds

X = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])


@pytest.fixture
def support():
    """Return the support of X; values are from -2 to 8."""
    return support_of((X**2).sum(axis=0), X.T @ X, Bounds(-2.0, 8.0))


def test_the_leverage_is_that_of_the_hat_matrix(support):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    hat = X @ np.linalg.inv(X.T @ X) @ X.T
    found = support_of((X**2).sum(axis=0), X.T @ X, Bounds(0.0, 1.0)).leverage(Rows(None, X))
    assert found == pytest.approx(np.diag(hat))
    assert support.leverage(Rows(None, X[:0, :3])).shape == (0,)


def test_a_part_that_was_never_seen_has_no_value(support):
    rows = Rows(None, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    assert support.leverage(rows).tolist() == pytest.approx([0.5, 1.0, np.inf, np.inf])
    assert support.known(rows).tolist() == [True, True, False, False]
    low, high = support.widened(rows, Bounds(np.array([1.0, 1.0, 1.0, 0.0]), np.array([2.0, 9.0, 2.0, 0.0])))
    assert low.tolist() == [1.0, -2.0, -2.0, -2.0]
    assert high.tolist() == [2.0, 9.0, 8.0, 8.0]


def test_many_features_count_one_by_one():
    support = Support(np.array([4.0, 0.0, 1.0]), np.empty((3, 0)), np.empty(0), -1.0, 1.0)
    sparse = Rows(np.array([[0, 2], [0, 1]]), np.ones((2, 2)))
    assert support.leverage(sparse).tolist() == [(1 / 4 + 1) / 2, np.inf]
    assert support.leverage(Rows(None, np.array([[1.0, 0.0, 1.0]]))).tolist() == [(1 / 4 + 1) / 2]


@pytest.mark.parametrize(
    ("rewards", "discount", "longest", "values"),
    [
        ((0, 1), 0.9, 5, (0, 10)),
        ((-1, -0.5), 0.9, 5, (-10, -0.5)),
        ((-1, 2), 1.0, 30, (-30, 60)),
        ((1, 3), 0.0, 1, (1, 3)),
    ],
)
def test_reachable_values(rewards, discount, longest, values):
    assert reachable_values(Bounds(*rewards), discount, longest) == pytest.approx(values)


def test_a_state_without_data_never_has_an_interval_of_nothing():
    state = np.arange(300) % 3
    log = {"obs": state, "reward": (state == 2) * 1.0, "done": state == 2}
    found = gdd.evaluate_log(log, discount=0.9, features="table", learner="lstd", passes=1, at=[[0], [7]])
    assert np.isnan(found.values).tolist() == [False, True]
    low, high = found.interval
    assert (low[1], high[1]) == pytest.approx((0.0, 10.0))
    assert found.asked()[1] == {"observation": [7], "value": None, "low": 0.0, "high": pytest.approx(10.0)}
    assert [one.about for one in found.verdict.findings if one.level == "with care"].count("states asked for") == 1
