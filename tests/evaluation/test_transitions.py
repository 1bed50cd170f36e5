"""Batches of transitions: what is refused, and what is derived."""

import numpy as np
import pytest

from gradient_dd import BadRequestError
from gradient_dd.evaluation import Evaluator, transitions_of
from gradient_dd.evaluation.transitions import joined

P, N = 3, 40


def arrays(seed=0):
    """Return x, reward, discount, x_next, rho."""
    rng = np.random.default_rng(seed)
    x, x_next = rng.normal(size=(2, N, P))
    return x, rng.normal(size=N), np.where(rng.random(N) < 0.2, 0.0, 0.9), x_next, rng.exponential(size=N)


def test_episodes_begin_after_ends_and_cuts():
    x, reward, _, x_next, _ = arrays()
    discount, cut = np.full(N, 0.9), np.zeros(N, bool)
    discount[4], cut[9] = 0.0, True
    batch = transitions_of(x, reward, discount, x_next, cut=cut)
    assert batch.episode.tolist() == [0] * 5 + [1] * 5 + [2] * (N - 10)
    assert np.flatnonzero(batch.ended).tolist() == [4]


def test_parts_joined_are_the_whole():
    whole = transitions_of(*arrays())
    again = joined([whole.part(slice(0, 11)), whole.part(np.arange(N) >= 11)])
    for name in ("reward", "discount", "rho", "episode", "cut"):
        assert np.array_equal(getattr(again, name), getattr(whole, name))
    assert np.array_equal(again.x_next.values, whole.x_next.values)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"discount": np.r_[np.ones(7), 1.5, np.ones(N - 8)]}, "'discount' in row 7 must be in [0, 1]. Got 1.5."),
        ({"rho": np.r_[1, -2, np.ones(N - 2)]}, "'rho' in row 1 must be a number that is zero or more. Got -2."),
        ({"x_next": np.ones((N, 2))}, "'x_next' must have the form of 'x', (40, 3). Got (40, 2)."),
        ({"reward": np.ones(3)}, "The shape of 'reward' must be (40,): one number for each transition. Got (3,)."),
        (
            {"episode": np.r_[0, 1, 0, np.ones(N - 3)]},
            "'episode' in row 2 must be 1 or more, as in the row before. Got 0.",
        ),
        ({"cut": [True]}, "The shape of 'cut' must be (40,): one for each transition. Got (1,)."),
        (
            {"x": (np.ones((N, 2)), np.ones((N, 2)))},
            "Sparse 'x' must be whole indices and values of the same shape (n, k). Got (40, 2) of float64 and (40, 2).",
        ),
    ],
)
def test_bad_transitions_get_one_sentence(change, sentence):
    names = ("x", "reward", "discount", "x_next", "rho")
    with pytest.raises(BadRequestError) as caught:
        transitions_of(**dict(zip(names, arrays(), strict=True)) | change)
    assert str(caught.value) == sentence


def test_rows_of_more_features_than_there_are_are_refused():
    indices, values = np.array([[0, 2], [1, 5]]), np.ones((2, 2))
    good = np.array([[0, 2], [1, 2]]), values
    for name, x, x_next in (("x", (indices, values), good), ("x_next", good, (indices, values))):
        batch = transitions_of(x, 1.0, 0.9, x_next)
        with pytest.raises(BadRequestError) as caught:
            Evaluator(P).observe(batch)
        assert str(caught.value) == f"The indices in row 1 of {name!r} must be from 0 to 2. Got array([1, 5])."


def test_indices_are_sorted_and_equal_ones_added_up():
    batch = transitions_of(
        (np.array([[2, 0], [1, 1]]), np.array([[3.0, 4.0], [5.0, 6.0]])),
        1.0,
        0.0,
        (np.array([[0, 1]] * 2), np.ones((2, 2))),
    )
    assert batch.x.indices.tolist() == [[0, 2], [1, 1]]
    assert batch.x.values.tolist() == [[4.0, 3.0], [11.0, 0.0]]
