"""`update_many` is `update` for each transition, to the bit; what it refuses changes nothing."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from gradient_dd import LEARNERS, BadRequestError, DivergedError, Learner, features, tasks
from gradient_dd.engine.schedules import Schedule, tapered
from gradient_dd.engine.single import NO_INDICES, PIECE, FeatureRows, W
from gradient_dd.engine.trajectories import OutcomeSampler
from tests.rules import FEW, compiled_rules, with_kernels

P, N = 7, 400
RNG = np.random.default_rng(3)


def transitions(n=N, p=P, seed=0):
    """Return n transitions with dense features, some of them ends of episodes."""
    rng = np.random.default_rng(seed)
    x, x_next = rng.normal(size=(2, n, p)) * (rng.random((2, n, p)) < 0.6)
    discount = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.5, 1.0, n))
    return x, rng.normal(size=n), discount, x_next, rng.exponential(size=n)


def as_pairs(x):
    """Return (indices, values) of (n, k), shuffled within each row."""
    order = np.argsort(np.random.default_rng(1).random(x.shape), axis=1)
    return order, np.take_along_axis(x, order, axis=1)


def one_by_one(agent, x, reward, discount, x_next, rho):
    """Return the TD errors of single updates; x and x_next are lists of what `update` takes."""
    rows = zip(x, reward, discount, x_next, rho, strict=True)
    return np.array([agent.update(*row) for row in rows])


PLAIN = [name for name in compiled_rules() if LEARNERS[name].is_plain]
FORMS = {
    "dense": (lambda x: x, list),
    "pairs": (as_pairs, lambda x: list(zip(*as_pairs(x), strict=True))),
    "SciPy rows": (sp.csr_matrix, lambda x: [(row.indices, row.data) for row in sp.csr_matrix(x)]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("learner", with_kernels(PLAIN, FEW))
def test_the_same_bits_as_one_by_one(learner, form):
    batch, single = FORMS[form]
    x, reward, discount, x_next, rho = transitions(n=60 if LEARNERS[learner].natural else N)
    for mode in ("R", "T") if LEARNERS[learner].has_rho_mode else ("R",):
        for schedule in (tapered(5), tapered(50, per="step")):
            left, right = (
                Learner(learner, P, alpha=0.02, rho_mode=mode, schedule=schedule, initial_w=0.3) for _ in range(2)
            )
            wanted = one_by_one(left, single(x), reward, discount, single(x_next), rho)
            got = right.update_many(batch(x), reward, discount, batch(x_next), rho)
            assert np.array_equal(got, wanted)
            assert np.array_equal(right.w, left.w)
            assert np.array_equal(right.eta, left.eta)
            assert (right.updates, right.episodes) == (left.updates, left.episodes)


def test_batches_and_single_updates_can_be_mixed():
    x, reward, discount, x_next, rho = transitions()
    whole, mixed = (Learner("gradient_dd", P, alpha=0.05) for _ in range(2))
    whole.update_many(x, reward, discount, x_next, rho)
    for begin in range(0, N, 40):
        part = slice(begin, begin + 39)
        mixed.update_many(as_pairs(x[part]), reward[part], discount[part], as_pairs(x_next[part]), rho[part])
        last = begin + 39
        mixed.update(x[last], reward[last], discount[last], x_next[last], rho[last])
    assert np.allclose(mixed.w, whole.w, rtol=1e-12)


def test_it_follows_a_task_as_the_reference_engine_does():
    task = tasks.baird(7)
    row, next_row, reward, discount, rho, _ = task.transitions
    o = OutcomeSampler(task, seed=1).take(2000)
    agent = Learner("gradient_dd", task.n_features, alpha=0.01, initial_w=task.initial_weights)
    X = task.row_features
    agent.update_many(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    from gradient_dd.engine import reference

    trace = reference.run(task, "gradient_dd", steps=2000, seed=1, alpha=0.01)
    assert np.allclose(agent.w, trace.w, rtol=1e-11)


def test_a_saved_learner_takes_batches_on(tmp_path):
    x, reward, discount, x_next, rho = transitions()
    whole, first = (Learner("gradient_dd", P, alpha=0.05) for _ in range(2))
    whole.update_many(x, reward, discount, x_next, rho)
    first.update_many(x[:200], reward[:200], discount[:200], x_next[:200], rho[:200])
    first.save(tmp_path / "agent.npz")
    second = Learner.load(tmp_path / "agent.npz")
    second.update_many(x[200:], reward[200:], discount[200:], x_next[200:], rho[200:])
    assert np.array_equal(second.w, whole.w)


def test_what_stands_after_an_end_is_not_looked_at():
    x, reward, discount, x_next, rho = transitions()
    other = np.where(discount[:, None] == 0, 1e9, x_next)
    left, right = (Learner("gtd2", P, alpha=0.05) for _ in range(2))
    left.update_many(x, reward, discount, x_next, rho)
    right.update_many(x, reward, discount, other, rho)
    assert np.array_equal(left.w, right.w)
    ends = Learner("td", P)
    assert len(ends.update_many(x, reward, 0.0, None)) == N


def test_forgetting_eta_in_the_middle_of_a_batch():
    """A step that shrinks η by all of it is made the plain way, and the batch goes on after it."""
    factor = Schedule(lambda n: 1.0 if n % 50 == 0 else 0.5, per="step")
    x, reward, discount, x_next, rho = transitions()
    values = {"alpha": 0.01, "zeta": 100.0, "reg": 1.0, "schedule": factor}
    left, right = (Learner("tdrc", P, **values) for _ in range(2))
    small = 0.1 * x
    wanted = one_by_one(left, small, reward, discount, 0.1 * x_next, rho)
    assert np.array_equal(right.update_many(small, reward, discount, 0.1 * x_next, rho), wanted)
    assert np.array_equal(right.eta, left.eta)


def test_divergence_keeps_what_was_learnt_before_it():
    x, reward, discount, x_next, rho = transitions()
    x[300] = 1e200
    left, right = (Learner("td", P, alpha=0.05) for _ in range(2))
    left.update_many(x[:300], reward[:300], discount[:300], x_next[:300], rho[:300])
    with pytest.raises(DivergedError, match="diverged at update 301"):
        right.update_many(x, reward, discount, x_next, rho)
    assert np.array_equal(left.w, right.w)
    assert right.updates == 300


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": np.ones((3, 2))}, "The shape of 'x' must be (n, 7). Got (3, 2)."),
        ({"x": np.full((4, P), np.nan)}, "'x' must be finite. Got nan."),
        ({"reward": np.ones(3)}, "The shape of 'reward' must be (4,): one number for each transition. Got (3,)."),
        ({"reward": [1, 2, np.inf, 4]}, "'reward' must be finite. Got inf."),
        ({"discount": [1, 1, 1.5, 1]}, "'discount' in row 2 must be in [0, 1]. Got 1.5."),
        ({"rho": [1, -1, 1, 1]}, "'rho' in row 1 must be a number that is zero or more. Got -1."),
        ({"pi": [0.5, 2, 1, 1]}, "'pi' in row 1 must be a probability. Got 2."),
        ({"mu": [0.5, 1, 0, 1]}, "'mu' in row 2 must be a probability above 0. Got 0."),
        ({"pi": 0.5, "mu": [0.5, 0.5, 0.5, 0.25]}, "'rho' in row 3 must be pi / mu, which is 2. Got 1."),
        ({"x_next": None}, "'discount' in row 0 must be 0 where 'x_next' is None. Got 1."),
        ({"x_next": np.ones((3, P))}, "'x_next' must have the form of 'x', with 4 rows. Got 3 rows."),
        ({"x_next": np.full((3, P), np.nan)}, "'x_next' must be finite. Got nan."),
        ({"x": (np.full((4, 1), 9), np.ones((4, 1)))}, "The indices in row 0 of 'x' must be from 0 to 6. Got"),
        ({"x": (np.zeros((4, 1)), np.ones((4, 1)))}, "Sparse 'x' must be whole indices and values of the same shape"),
        ({"x": sp.csr_matrix((4, 3))}, "The shape of 'x' must be (n, 7). Got (4, 3)."),
    ],
)
def test_a_bad_batch_gets_one_sentence_and_changes_nothing(change, sentence):
    agent = Learner("gradient_dd", P)
    good = {"x": np.ones((4, P)), "reward": 1.0, "discount": 1.0, "x_next": np.ones((4, P)), "rho": 1.0}
    with pytest.raises(BadRequestError) as caught:
        agent.update_many(**good | change)
    assert str(caught.value).startswith(sentence)
    assert agent.updates == 0
    assert not agent.w.any()


@pytest.mark.parametrize("plain_updates", [0, 10**9])
def test_equal_indices_of_a_row_are_added_up(plain_updates, monkeypatch):
    monkeypatch.setattr("gradient_dd.stream.learner.PLAIN_UPDATES", plain_updates)
    indices, values = np.array([5, 2, 2]), np.array([4.0, 1.0, 2.0])
    many, once, single = (Learner("gtd2", P) for _ in range(3))
    many.update_many((indices[None], values[None]), 1.0, 0.0, None)
    once.update((np.array([2, 5]), np.array([3.0, 4.0])), 1.0, 0.0, None)
    single.update((indices, values), 1.0, 0.0, None)
    assert once.eta[2] == 3 / 4 * once.eta[5] != 0
    for agent in (many, single):
        assert np.array_equal(agent.eta, once.eta)
        agent._memory.parts[:, W] = np.arange(P)
        assert agent.predict((indices, values)) == 3.0 * 2 + 4.0 * 5


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 13, 16, 33])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_are_sorted_as_numpy_sorts_them(width, kind):
    """Rows of any length, in blocks that are full or not, with many equal indices or none."""
    rng = np.random.default_rng(width)
    for n, p in ((1, 4), (31, 2 * width), (70, 2**31 if kind is np.int32 else 2**40)):
        indices, values = rng.integers(p, size=(n, width)).astype(kind), rng.normal(size=(n, width))
        indices[:5] = np.sort(indices[:5], axis=1)
        rows = FeatureRows(NO_INDICES, width, indices.ravel(), values.ravel(), np.inf).in_order()
        order = np.argsort(indices, axis=1, kind="stable")
        assert np.array_equal(rows.indices.reshape(n, width), np.take_along_axis(indices, order, axis=1))
        for t in range(n):
            wanted = dict.fromkeys(sorted(indices[t].tolist()), 0.0)
            for i, value in zip(indices[t].tolist(), values[t].tolist(), strict=True):
                wanted[i] += value
            where, sums = rows.row(t)
            assert dict(zip(where.tolist(), sums.tolist(), strict=True)) == wanted


def test_a_large_batch_in_no_order_has_the_bits_of_a_sorted_one():
    """More rows than are sorted at a time, so that w − w_prev goes from one piece to the next."""
    n, k, p = 2 * PIECE + 100, 4, 50
    rng = np.random.default_rng(5)
    indices, next_indices = (np.argsort(rng.random((n, p)), axis=1)[:, :k] for _ in range(2))
    values, next_values = rng.normal(size=(2, n, k))
    order, next_order = np.argsort(indices, axis=1), np.argsort(next_indices, axis=1)
    in_order = [
        tuple(np.take_along_axis(one, by, axis=1) for one in pair)
        for pair, by in (((indices, values), order), ((next_indices, next_values), next_order))
    ]
    left, right = (Learner("gradient_dd", p, alpha=0.01) for _ in range(2))
    deltas = left.update_many(in_order[0], 1.0, 0.9, in_order[1])
    assert np.array_equal(right.update_many((indices, values), 1.0, 0.9, (next_indices, next_values)), deltas)
    assert np.array_equal(left.w, right.w)


def test_an_empty_batch_changes_nothing():
    agent = Learner("gradient_dd", P)
    assert agent.update_many(np.empty((0, P)), [], [], np.empty((0, P))).shape == (0,)
    assert agent.updates == 0


@pytest.mark.parametrize("form", ["dense", "pairs"])
@pytest.mark.parametrize("learner", with_kernels([name for name in PLAIN if not LEARNERS[name].natural], FEW))
def test_a_compiled_single_update_has_the_bits_of_a_plain_one(learner, form, monkeypatch):
    single = FORMS[form][1]
    x, reward, discount, x_next, rho = transitions(n=150)
    rows = single(x), reward, discount, single(x_next), rho
    agents = {}
    for count in (0, 10**9):
        monkeypatch.setattr("gradient_dd.stream.learner.PLAIN_UPDATES", count)
        agents[count] = agent = Learner(learner, P, alpha=0.02, schedule=tapered(5))
        agent.deltas = one_by_one(agent, *rows)
    quick, plain = agents.values()
    assert not plain._memory.kernels
    assert quick._memory.kernels
    assert np.array_equal(quick.deltas, plain.deltas)
    assert np.array_equal(quick.w, plain.w)
    assert np.array_equal(quick.eta, plain.eta)


def test_what_a_compiled_update_does_not_take_goes_the_plain_way(monkeypatch):
    """Lists, single precision and a mixture of dense and sparse; and what is refused is refused in the same words."""
    monkeypatch.setattr("gradient_dd.stream.learner.PLAIN_UPDATES", 0)
    agent = Learner("gradient_dd", 3, alpha=0.5)
    first = agent.update([1, 0, 0], 1, 0.5, (np.array([2]), np.array([1.0])))
    again = Learner("gradient_dd", 3, alpha=0.5)
    assert again.update(np.eye(3)[0], 1.0, 0.5, np.eye(3)[2]) == first
    assert np.array_equal(agent.eta, again.eta)
    for bad, sentence in (
        (np.array([1.0, np.nan, 0.0]), "'x' must be finite"),
        ((np.array([0, 0]), np.full(2, 1e308)), "The sums of equal indices of 'x' must be finite"),
        ((np.array([3]), np.ones(1)), "The indices of 'x' must be from 0 to 2"),
        (np.ones(2), "The shape of 'x' must be"),
    ):
        with pytest.raises(BadRequestError, match=sentence):
            agent.update(bad, 1.0, 0.0, None)
    assert agent.updates == 1


def test_what_stands_after_an_end_may_be_anything():
    x, reward, discount, x_next, rho = transitions()
    indices, values = as_pairs(x_next)
    ended = discount[:, None] == 0
    wild = np.where(ended, 10**9, indices), np.where(ended, np.nan, values)
    left, right, dense = (Learner("gradient_dd", P, alpha=0.05) for _ in range(3))
    left.update_many(as_pairs(x), reward, discount, (indices, values), rho)
    right.update_many(as_pairs(x), reward, discount, wild, rho)
    assert np.array_equal(left.w, right.w)
    dense.update_many(x, reward, discount, np.where(ended, np.nan, x_next), rho)
    assert np.allclose(dense.w, left.w)


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.uint64])
def test_indices_of_any_whole_kind(kind):
    x, reward, discount, x_next, rho = transitions(n=50)
    left, right = (Learner("td", P, alpha=0.05) for _ in range(2))
    (i, v), (j, u) = as_pairs(x), as_pairs(x_next)
    left.update_many((i, v), reward, discount, (j, u), rho)
    right.update_many((i.astype(kind), v), reward, discount, (j.astype(kind), u), rho)
    assert np.array_equal(left.w, right.w)


def test_rows_of_one_feature_and_rows_of_other_lengths_mix():
    x, reward, discount, _, rho = transitions(n=50)
    single = np.arange(50)[:, None] % P, np.ones((50, 1))
    left, right = (Learner("gradient_dd", P, alpha=0.05) for _ in range(2))
    wanted = one_by_one(left, zip(*single, strict=True), reward, discount, zip(*as_pairs(x), strict=True), rho)
    assert np.array_equal(right.update_many(single, reward, discount, as_pairs(x), rho), wanted)
    assert np.array_equal(left.w, right.w)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_a_copy_of_a_learner_goes_on_alone(how):
    x, reward, discount, x_next, rho = transitions(n=200)
    agent = Learner("gradient_dd", P, alpha=0.05)
    one_by_one(agent, x, reward, discount, x_next, rho)
    before, again = agent.w.copy(), how(agent)
    again.update_many(x, reward, discount, x_next, rho)
    assert np.array_equal(agent.w, before)
    assert not np.array_equal(again.w, before)
    one_by_one(agent, x, reward, discount, x_next, rho)
    assert np.array_equal(agent.w, again.w)


def test_what_a_feature_map_gives_is_taken_as_it_is():
    low, high = [0.0, 0.0], [1.0, 1.0]
    seen = np.random.default_rng(0).random((50, 2))
    for coder in (features.TileCoder(low, high, tiles=3, tilings=2, size=9), features.Fourier(low, high, order=1)):
        agent = Learner("td", coder.n_features, alpha=0.1)
        rows = coder.rows(seen)
        agent.update_many(rows, 1.0, 0.9, coder.rows(seen[::-1]))
        assert np.allclose(agent.predict(rows), rows.dense(coder.n_features) @ agent.w)
        assert agent.predict(rows)[7] == pytest.approx(agent.predict(coder(seen[7])))
