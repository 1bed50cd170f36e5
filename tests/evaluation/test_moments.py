"""Sums over groups, test features, solutions of least squares, and the interval that copies make."""

from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd.evaluation import transitions_of
from gradient_dd.evaluation.choice import Candidate, Spread, candidates_of, spread_of
from gradient_dd.evaluation.moments import SAMPLE, SKETCH, GroupSums, lane_values, sparse_rows
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.features import Rows
from gradient_dd.stream.least_squares import SparseRows, root_of_inverse, solution
from gradient_dd.tasks.exact import Moments

N = 90
GROUP = np.arange(N) // 3 % 7  # a group comes back after others
BEGINS = np.arange(N) % 5 == 0


def a_log(p=3, seed=0):
    """Return rows of p features, some of which end."""
    rng = np.random.default_rng(seed)
    x, x_next = rng.normal(size=(2, N, p))
    discount = np.where(np.arange(N) % 5 == 4, 0.0, rng.uniform(0.5, 0.9, N))
    return transitions_of(x, rng.normal(size=N), discount, x_next, rng.uniform(0, 2, N))


def as_sparse(rows):
    """Return dense rows in the form (indices, values)."""
    n, p = rows.values.shape
    return Rows(np.tile(np.arange(p), (n, 1)), rows.values)


def summed(log, p=3):
    """Return the sums of a log, added in two batches."""
    sums = GroupSums(p)
    for rows in (slice(0, 40), slice(40, N)):
        sums.add(log.part(rows), GROUP[rows], BEGINS[rows])
    return sums


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_are_those_of_their_groups(sparse):
    log = a_log()
    ahead = log.x.values - np.where(log.ended, 0.0, log.discount)[:, None] * log.x_next.values
    given = transitions_of(
        *((as_sparse(log.x), log.reward, log.discount, as_sparse(log.x_next), log.rho) if sparse else
          (log.x, log.reward, log.discount, log.x_next, log.rho)))  # fmt: skip
    sums = summed(given)
    for g in range(7):
        rows = g == GROUP
        x, rho = log.x.values[rows], log.rho[rows]
        assert np.allclose(sums.A[g], (x * rho[:, None]).T @ ahead[rows])
        assert np.allclose(sums.b[g], x.T @ (rho * log.reward[rows]))
        assert np.allclose(sums.C[g], x.T @ x)
        assert np.allclose(sums.ratio_z[g], x.T @ (rho - 1))
        assert np.allclose(sums.start[g], x[BEGINS[rows]].sum(axis=0))
        counts = sums.rows[g], sums.starts[g], sums.ratio[g], sums.ratio_square[g]
        assert np.allclose(counts, (rows.sum(), (rows & BEGINS).sum(), rho.sum(), (rho**2).sum()))
    assert not sums.rows[7:].any()
    assert np.allclose(sums.mean_start(), log.x.values[BEGINS].mean(axis=0))
    weights = np.zeros((200, 2))
    weights[[1, 2], 0] = 1.0, 2.0
    one, none = sums.mean_starts(weights)
    assert np.allclose(one, (sums.start[1] + 2 * sums.start[2]) / (sums.starts[1] + 2 * sums.starts[2]))
    assert not none.any()
    assert not GroupSums(2).mean_start().any()


def test_residuals_are_sums_of_td_errors():
    log, W = a_log(), np.random.default_rng(1).normal(size=(3, 2))
    found, rows = summed(log).residuals(W, (log, GROUP))
    delta = log.reward[:, None] + log.discount[:, None] * (log.x_next.values @ W) - log.x.values @ W
    for g in range(7):
        mine = g == GROUP
        assert np.allclose(found[g], log.x.values[mine].T @ (log.rho[mine, None] * delta[mine]))
        assert rows[g] == mine.sum()


@pytest.mark.parametrize("sparse", [False, True])
def test_many_features_are_hashed_with_signs(sparse):
    p = 300
    log, sums = a_log(p), GroupSums(p)
    assert (sums.small, sums.m) == (False, SKETCH)
    hash_matrix = np.zeros((p, SKETCH))
    hash_matrix[np.arange(p), sums.bucket] = sums.sign
    assert set(sums.sign) == {-1.0, 1.0}
    assert len(set(sums.bucket)) > 100
    rows = as_sparse(log.x) if sparse else log.x
    assert np.allclose(sums.test_features(rows), log.x.values @ hash_matrix)
    W = np.random.default_rng(1).normal(size=(p, 2))
    sums.add(log, GROUP, BEGINS)
    found, counted = sums.residuals(W, (log, GROUP))
    delta = log.reward[:, None] + log.discount[:, None] * (log.x_next.values @ W) - log.x.values @ W
    assert np.allclose(found.sum(axis=0), (log.x.values @ hash_matrix).T @ (log.rho[:, None] * delta))
    assert counted.sum() == N
    assert sums.A.size == 0
    assert np.allclose(sums.C.sum(axis=0), hash_matrix.T @ log.x.values.T @ log.x.values @ hash_matrix)


def test_errors_of_many_features_are_those_of_the_first_rows():
    p, n = 201, SAMPLE + 1
    place = np.zeros((n, 1), int)
    log = transitions_of((place, np.ones((n, 1))), 1.0, 0.0, (place, np.ones((n, 1))))
    _, rows = GroupSums(p).residuals(np.zeros((p, 1)), (log, np.zeros(n, int)))
    assert rows.sum() == SAMPLE


def test_sizes_at_which_the_form_of_the_sums_changes():
    assert GroupSums(200).small
    assert not GroupSums(201).small
    assert GroupSums(2000).start.shape == (200, 2000)
    large = GroupSums(2001)
    assert large.start.shape == (1, 2001)
    rows = Rows(np.array([[3], [3]]), np.array([[1.0], [2.0]]))
    large.add(transitions_of(rows, 1.0, 0.9, rows), np.array([5, 6]), np.array([True, True]))
    assert large.mean_start()[3] == 1.5
    assert np.array_equal(large.mean_starts(np.ones((200, 4))), np.tile(large.mean_start(), (4, 1)))


def test_values_of_rows():
    W = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    rows = Rows(np.array([[0, 2], [1, 1]]), np.array([[1.0, 2.0], [1.0, 1.0]]))
    assert lane_values(rows, W).tolist() == [[7.0, 70.0], [4.0, 40.0]]
    assert lane_values(Rows(None, rows.dense(3)), W).tolist() == [[7.0, 70.0], [4.0, 40.0]]


def moments(p=3, seed=0):
    """Return moments of a log."""
    sums = summed(a_log(p, seed), p)
    return Moments(*(one.sum(axis=0) / N for one in (sums.A, sums.b, sums.C)))


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_a_solution_minimises_what_it_says(ridge):
    A, b, C = moments()
    initial = np.array([1.0, -1.0, 0.5])
    w = solution(Moments(A, b, C), ridge, initial)
    gradient = A.T @ np.linalg.solve(C, b - A @ w) - ridge * C @ (w - initial)
    assert np.allclose(gradient, 0.0)
    if not ridge:
        assert np.allclose(A @ w, b)


def test_directions_without_features_keep_the_initial_weights():
    A, b, C = (np.pad(one, (0, 1)) for one in moments())
    initial = np.array([1.0, -1.0, 0.5, 0.3])
    w = solution(Moments(A, b, C), 0.0, initial)
    assert w[3] == 0.3
    assert np.allclose(A @ w, b)
    root = root_of_inverse(C)
    assert np.allclose(root @ root.T, np.linalg.pinv(C))
    faint = np.diag([1.0, 1.0, 1.9e-9, 0.5e-9])  # below and above 1e-9 of the mean, 0.5
    assert np.count_nonzero(root_of_inverse(faint).any(axis=0)) == 3


def test_solutions_of_groups_weigh_them():
    sums = summed(a_log())
    weights = np.zeros((200, 2))
    weights[:7] = np.array([[1.0, 0.0], [1.0, 3.0], [1.0, 2.0], [1.0, 1.0], [1.0, 0.0], [1.0, 2.0], [1.0, 1.0]])
    found = sums.solutions(weights, 0.0, np.zeros(3))
    assert np.allclose(sums.A.sum(axis=0) @ found[:, 0], sums.b.sum(axis=0))
    A, b = (np.tensordot(weights[:, 1], one, axes=1) for one in (sums.A, sums.b))
    assert np.allclose(A @ found[:, 1], b)
    assert np.allclose(sums.solutions(3 * weights, 0.1, np.ones(3)), sums.solutions(weights, 0.1, np.ones(3)))
    root = sums.metric()
    assert np.allclose(root @ root.T, np.linalg.inv(sums.C.sum(axis=0) / N))


def test_sparse_rows_have_a_ridge_in_units_of_the_features():
    log = a_log()
    rows = sparse_rows(log, GROUP, 3)
    A, b, C = moments()
    initial, weights = np.array([1.0, -1.0, 0.5]), np.ones((7, 1))
    w = rows.solutions(weights, 0.1, initial)[:, 0]
    assert np.allclose((A + 0.1 * np.diag(np.diag(C))) @ (w - initial), b - A @ initial)
    tiny = rows.solutions(weights, 0.0, initial)[:, 0]
    assert np.allclose((A + 1e-7 * np.diag(np.diag(C))) @ (tiny - initial), b - A @ initial, rtol=1e-12, atol=1e-12)
    nothing = rows.solutions(np.zeros((7, 1)), 0.1, initial)[:, 0]
    assert np.allclose(nothing, initial)


def test_rows_that_cannot_be_solved_get_the_least_squares():
    log = transitions_of(np.ones((2, 1)), 1.0, 0.5, np.ones((2, 1)), 1.0)
    rows = sparse_rows(log, np.zeros(2, int), 1)
    singular = SparseRows(rows.x, 1.5 * rows.x, log.reward, log.rho, rows.group)  # A = −0.5, and the ridge is 0.5
    assert singular.solutions(np.ones((1, 1)), 0.5, np.full(1, 0.3)) == [[0.3]]


SPREAD = Spread(np.array([1.0]), np.array([[0.0], [1.5], [4.0]]), np.zeros((3, 1)), np.array([0.25]), 0.0, 0.5)


def test_an_interval_has_the_quantile_of_the_copies_or_a_factor():
    """Deviations from the anchor are 1, 0.5 and 3; their median is 1, their root mean square √(41/12)."""
    low, high = SPREAD.of_mean(np.array([2.0]), np.array([1.0]))
    assert (low, high) == (2.0 - 2.5, 2.0 + 2.5)
    half = 2 * np.sqrt((1 + 0.25 + 9) / 3) + 0.25
    low, high = SPREAD._replace(factor=2.0).of_mean(np.array([1.0]), np.array([1.0]))
    assert (low, high) == (pytest.approx(1 - half), pytest.approx(1 + half))


def test_an_interval_holds_the_value():
    for value in (-9.0, 9.0):
        low, high = SPREAD.of_mean(np.array([1.0]), np.array([value]))
        assert (low, high) == (min(value, -0.25), max(value, 2.25))


def a_portfolio(**changes):
    """Return what stands for a portfolio of one setting with two copies."""
    weights = np.zeros((200, 2))
    weights[:4, 0], weights[3:, 1] = 1.0, 1.0
    averages = np.array([[[0.5, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    given = {"settings": [LEARNERS["td"].setting(alpha=0.1)], "copies": 2, "weights": weights, "seed": 3}
    given |= {"initial_w": np.zeros(3), "averages": lambda: averages, "diverged": lambda: [0]}
    return SimpleNamespace(autos=(), **given | changes)


def test_candidates_have_errors_on_the_groups_that_a_copy_has_not_seen():
    log = a_log()
    sums, portfolio = summed(log), a_portfolio()
    td, *lstd, still = candidates_of(portfolio, sums, (log, GROUP), sums)
    assert [one.name for one in (td, still)] == ["td", "initial weights"]
    assert [(one.name, one.words, one.ridge) for one in lstd] == [
        ("lstd", "lstd(ridge=0)", 0.0), ("lstd", "lstd(ridge=0.0001)", 1e-4),
        ("lstd", "lstd(ridge=0.01)", 1e-2), ("lstd", "lstd(ridge=0.1)", 0.1)]  # fmt: skip
    C = sums.C.sum(axis=0) / N
    for r, unseen in enumerate((slice(4, 7), slice(0, 3))):
        for one in (td, still, *lstd):
            A, b, rows = (part[unseen].sum(axis=0) for part in (sums.A, sums.b, sums.rows))
            rest = (b - A @ one.copies[r]) / rows
            assert one.errors[r] == pytest.approx(np.sqrt(rest @ np.linalg.solve(C, rest)))
    assert td.error == pytest.approx(np.sqrt((td.errors**2).mean()))
    assert np.allclose(lstd[0].copies, sums.solutions(portfolio.weights, 0.0, np.zeros(3)).T)
    assert np.allclose(sums.A.sum(axis=0) @ lstd[0].w, sums.b.sum(axis=0))
    assert [one.name for one in candidates_of(portfolio, sums, (log, GROUP), None)] == ["td", "initial weights"]


def test_what_is_huge_or_has_diverged_has_an_infinite_error():
    log = a_log()
    huge = np.array([[[0.5, 0, 0], [1e100, 0, 0], [0.0, 1.0, 0.0]]])
    td, still = candidates_of(a_portfolio(averages=lambda: huge), summed(log), (log, GROUP), None)
    assert td.errors[0] == np.inf
    assert np.isfinite(td.errors[1])
    assert np.isfinite(still.errors).all()
    assert Candidate("td", "td", np.zeros(1), np.zeros((2, 1)), np.ones(2), diverged=3).error == np.inf


def test_the_interval_comes_from_lstd_where_there_is_one():
    log = a_log()
    sums, portfolio = summed(log), a_portfolio()
    td, lstd, *_ = candidates_of(portfolio, sums, (log, GROUP), sums)
    moved = np.zeros(3), np.ones(3)
    full = spread_of(td, lstd, portfolio, moved, sums, 0.9)
    assert (full.factor, full.confidence, full.copies.shape) == (0.0, 0.9, (200, 3))
    assert full.anchor is lstd.w
    assert not full.drift.any()
    weights = np.random.default_rng([3, 1]).poisson(1.0, size=(200, 200)).astype(float)
    assert np.array_equal(full.copies, sums.solutions(weights, 0.0, np.zeros(3)).T)
    assert np.array_equal(full.starts, sums.mean_starts(weights))
    alone = spread_of(td, None, portfolio, moved, sums, 0.9)
    assert alone.factor == pytest.approx(2.919986)  # Student's t with two degrees of freedom
    assert np.array_equal(alone.drift, np.ones(3))
    assert alone.anchor is td.w
    assert not spread_of(td, None, portfolio, None, sums, 0.9).drift.any()
    sums.small = False
    few = spread_of(td, lstd, portfolio, moved, sums, 0.9)
    assert few.anchor is lstd.w
    assert few.copies is lstd.copies
    assert few.factor == alone.factor
    assert not few.drift.any()
