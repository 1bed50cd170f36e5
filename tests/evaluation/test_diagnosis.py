"""The diagnosis: counts over a stream, and what its first rows show, at both sides of every bound."""

import numpy as np
import pytest

from gradient_dd.evaluation import transitions_of
from gradient_dd.evaluation.diagnosis import Diagnosis, leaks_of, twins_of, unexplained
from gradient_dd.evaluation.episodes import key_of
from gradient_dd.stream.features import Rows


def test_counts_go_on_from_batch_to_batch():
    first = transitions_of(np.ones((4, 2)), 1.0, [0.9, 0.0, 0.9, 0.9], np.ones((4, 2)), cut=[0, 0, 0, 1])
    second = transitions_of(np.ones((3, 2)), 1.0, 0.9, np.ones((3, 2)), [0.5, 2.0, 2.0])
    seen = Diagnosis(2)
    seen.add(first, np.array([True, False, True, False]))
    assert (seen.rows, seen.episodes, seen.ended, seen.cut) == (4, 2, 1, 1)
    assert (seen.with_ratios, seen.largest_ratio, seen.largest_at) == (False, 1.0, 0)
    seen.add(second, np.array([True, False, False]))
    assert (seen.rows, seen.episodes, seen.ended, seen.cut) == (7, 3, 1, 1)
    assert (seen.with_ratios, seen.largest_ratio, seen.largest_at) == (True, 2.0, 5)
    seen.add(first, np.zeros(4, bool))
    assert (seen.with_ratios, seen.largest_ratio, seen.largest_at) == (True, 2.0, 5)


def test_the_first_rows_are_examined():
    state = np.arange(8.0)[:, None] ** 2
    x, x_next = np.column_stack([state[:-1], np.ones(7)]), np.column_stack([state[1:], np.ones(7)])
    log = transitions_of(x, 1.0, [0.9, 0.9, 0.0, 0.9, 0.0, 0.9, 0.9], x_next)  # episodes of 3, 2 and, not ended, 2 rows
    seen = Diagnosis(2)
    seen.examine(log)
    assert (seen.pairs, seen.next_is_next, seen.next_is_last) == (4, 4, 0)
    assert seen.lengths.tolist() == [3.0, 2.0]
    assert seen.constant == [1]
    assert seen.twins == seen.leaks == []
    swapped = transitions_of(x_next, 1.0, [0.9, 0.9, 0.0, 0.9, 0.0, 0.9, 0.9], x)
    seen.examine(swapped)
    assert (seen.pairs, seen.next_is_next, seen.next_is_last) == (4, 0, 4)
    many = Diagnosis(201)  # more features than are examined
    many.examine(transitions_of(np.ones((3, 201)), 1.0, 0.9, np.ones((3, 201))))
    assert many.constant == []


@pytest.mark.parametrize(
    ("lengths", "limit"),
    [
        ([10] * 6 + [3] * 14, (10, 0.3)),
        ([10] * 6 + [3] * 13, None),  # too few episodes
        ([10] * 5 + [3] * 15, None),  # five times what is expected
        ([9] * 6 + [3] * 14, None),  # too short
        ([10] * 7 + [8] + [3] * 12, None),  # one of two lengths nearby: one and a half expected
        ([10] * 8 + [8] + [3] * 11, (10, 0.4)),
        ([10] * 6 + [7] * 14, (10, 0.3)),  # not nearby
        ([100] * 6 + [99] + [3] * 13, (100, 0.3)),
        ([100] * 10 + [99, 98] * 20, None),
    ],
)
def test_a_time_limit_makes_a_heap(lengths, limit):
    seen = Diagnosis(1)
    seen.lengths = np.array(lengths, float)
    assert seen.time_limit == limit


def waves(n, count):
    """Return columns (n, count) of mean 0 and variance 1 that are orthogonal."""
    return np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(1, count + 1)) / n)


def test_the_share_that_features_leave():
    u = waves(50, 3)
    y = 7.0 + u @ np.sqrt([0.6, 0.3, 0.1])
    assert unexplained(u[:, :2], y) == pytest.approx(0.1)
    assert unexplained(u[:, :0], y) == pytest.approx(1.0)
    assert unexplained(u[:, :1], np.ones(50)) == 0.0


@pytest.mark.parametrize(
    ("leak", "other", "rest", "share"),
    [
        (0.81, 0.0, 0.19, 0.81),
        (0.79, 0.0, 0.21, None),  # it leaves too much
        (0.09, 0.89, 0.02, 0.09 / 0.11),
        (0.09, 0.91, 0.0, None),  # the other feature tells nearly as much
    ],
)
def test_a_leak_tells_the_return_and_the_others_do_not(leak, other, rest, share):
    u = waves(70, 3)
    returns = 5.0 + u @ np.sqrt([leak, other, rest])
    x = 3.0 + u[:, :2] * [1.0, -2.0]
    found = leaks_of(x, returns, np.ones(70, bool))
    assert [j for j, _ in found if j == 0] == ([] if share is None else [0])
    if share is not None:
        assert found[0][1] == pytest.approx(share)


def test_a_leak_needs_many_known_returns_that_differ_and_a_number():
    u = waves(70, 1)
    everything = np.ones(70, bool)
    returns, x = u[:, 0] ** 3, u + 1.0
    assert len(leaks_of(x, returns, np.arange(70) < 60)) == 1
    assert leaks_of(x, returns, np.arange(70) < 59) == []  # 10 for each feature and 50
    assert len(leaks_of(np.hstack([x, x * 0.0]), returns, everything)) == 1
    assert leaks_of(np.hstack([x, x * 0.0]), returns, np.arange(70) < 69) == []
    assert leaks_of(x, np.ones(70), everything) == []
    for values, count in ((10, 1), (9, 0)):
        kind = np.arange(70)[:, None] % values * 1.0
        assert len(leaks_of(kind, kind[:, 0], everything)) == count


def test_twins_are_equal_up_to_a_factor():
    x = np.array([[1.0, 2.0, 0.0, 1.0, 0.0], [3.0, 6.0, 0.0, -3.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
    assert twins_of(x) == [(0, 1)]
    assert twins_of(np.column_stack([x[:, 0], x[:, 0] + [1e-5, 0, 0]])) == []


def test_equal_rows_have_equal_keys():
    dense = key_of(Rows(None, np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])))
    sparse = key_of(Rows(np.array([[0, 1], [1, 0], [0, 1], [0, 2]]), np.array([[1.0, 2.0]] * 4)))
    for keys in (dense, sparse):
        assert keys[0] == keys[2] != keys[1]
    assert len(set(sparse)) == 3
