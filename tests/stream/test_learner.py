"""`Learner`: the same numbers dense or sparse, saved or not; cost; and bad input that changes nothing."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import tasks
from gradient_dd.engine.schedules import Schedule, tapered
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import BadRequestError, DivergedError
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.learner import Learner

ALL = [
    name for name, rule in LEARNERS.items() if rule.is_plain or name in ("htd", "etd")
]  # the rest: test_traced_learners
names = pytest.mark.parametrize("name", ALL)
LINEAR = [name for name in ALL if not LEARNERS[name].natural]


def random_transitions(count, p=6, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x, x_next = rng.standard_normal((2, p)) * (rng.random((2, p)) < 0.5)
        pair = [(np.flatnonzero(v), v[np.flatnonzero(v)]) for v in (x, x_next)] if sparse else (x, x_next)
        yield pair[0], rng.standard_normal(), rng.choice([0.0, 0.9]), pair[1], rng.exponential()


@names
@given(seed=st.integers(0, 1000))
def test_sparse_equals_dense(name, seed):
    dense, sparse = (Learner(name, 6, alpha=0.02, initial_w=1.0) for _ in range(2))
    for left, right in zip(
        random_transitions(60, seed=seed), random_transitions(60, seed=seed, sparse=True), strict=True
    ):
        assert dense.update(*left) == pytest.approx(sparse.update(*right), rel=1e-9, abs=1e-12)
    assert np.allclose(dense.w, sparse.w, rtol=1e-12, atol=1e-13)
    assert np.allclose(dense.eta, sparse.eta, rtol=1e-12, atol=1e-13)


class OnlyByIndex(np.ndarray):
    """An array that refuses to be worked on as a whole: what touches it all costs O(p)."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        inputs = tuple(np.asarray(i) if isinstance(i, OnlyByIndex) else i for i in inputs)
        assert all(np.size(i) < 100 for i in inputs), f"{ufunc.__name__} over all features"
        if out := kwargs.get("out"):
            kwargs["out"] = tuple(np.asarray(o) for o in out)
        return getattr(ufunc, method)(*inputs, **kwargs)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
@pytest.mark.parametrize("name", LINEAR)
def test_a_sparse_update_touches_its_non_zeros_only(name, alpha):
    """Also with alpha = 1, where TDRC and GTD forget all of η at every step."""
    agent = Learner(name, 10_000, alpha=alpha)
    agent._memory.parts = agent._memory.parts.view(OnlyByIndex)
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, x_next = ((rng.choice(10_000, 8, replace=False), rng.random(8) / 8) for _ in range(2))
        agent.update(x, 1.0, 0.9, x_next)
    assert np.count_nonzero(np.asarray(agent.w)) > 10


def test_touching_everything_would_be_noticed():
    whole = np.zeros(10_000).view(OnlyByIndex)
    with pytest.raises(AssertionError, match="over all features"):
        whole *= 0.9


def test_a_buffer_may_be_used_again():
    """The caller's index array is read during the update only."""
    fresh, reused = (Learner("gradient_dd", 10, alpha=0.2) for _ in range(2))
    rng, buffer = np.random.default_rng(1), np.zeros(2, int)
    for _ in range(30):
        pairs = rng.choice(10, (2, 2), replace=False)
        fresh.update((pairs[0], [1.0, 0.5]), 1.0, 0.9, (pairs[1], [1.0, 0.5]))
        buffer[:] = pairs[0]
        reused.update((buffer, [1.0, 0.5]), 1.0, 0.9, (pairs[1], [1.0, 0.5]))
    assert np.array_equal(fresh.w, reused.w)


def test_an_untouched_eta_that_grows_is_divergence_too():
    agent = Learner("tdrc", 2, alpha=10.0)
    agent.update([1.0, 0], 1.0, 0.0, None)

    def idle():
        for _ in range(500):
            agent.update([0, 1.0], 0.0, 0.0, None)

    with pytest.raises(DivergedError, match="eta_eta moves by"):
        idle()
    assert np.isfinite(agent.eta).all()


def test_a_feature_too_large_is_divergence():
    agent = Learner("td", 2, alpha=1.0)
    with pytest.raises(DivergedError):
        agent.update([1e200, 0], 1e149, 0, None)
    assert not agent.w.any()


def test_a_cut_ends_an_episode():
    agent = Learner("td", 1)
    agent.update([1], 1.0, 0.9, [1])
    agent.update([1], 1.0, 0.9, [1], truncated=True)
    assert agent.episodes == 1


@pytest.mark.parametrize("name", ["tdrc", "gtd"])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 1.0, 1.5])
def test_the_common_scale_of_eta_is_exact_over_long_runs(name, alpha):
    """η shrinks by 1 − β reg each step, for thousands of steps, without under- or overflow; also for β reg = 1."""
    agent = Learner(name, 3, alpha=alpha)
    eta = w = np.zeros(3)
    x = np.array([0.3, 0.0, 0.2])
    for step in range(4000):
        reward = np.sin(step)
        delta, x_eta = reward - x @ w, x @ eta
        leak = alpha * eta if name == "gtd" else alpha * ((x_eta) * x + eta)
        w = w + alpha * (delta if name == "tdrc" else x_eta) * x
        eta = eta + alpha * delta * x - leak
        agent.update(x, reward, 0.0, None)
    assert np.allclose(agent.eta, eta, rtol=1e-9, atol=1e-12)
    assert np.allclose(agent.w, w, rtol=1e-9, atol=1e-12)


def test_it_learns_off_policy_where_td_diverges():
    """Baird's counterexample, fed by hand: the values go down under Gradient-DD and up under TD."""
    task = tasks.baird(7)
    row, next_row, reward, discount, rho, _ = task.transitions

    def error_after(name, **values):
        agent = Learner(name, task.n_features, initial_w=task.initial_weights, **values)
        for o in OutcomeSampler(task).take(20_000):
            agent.update(task.features[row[o]], reward[o], discount[o], task.features[next_row[o]], rho[o])
        return task.rmsve(agent.w)

    start = task.rmsve(task.initial_weights)
    assert error_after("td", alpha=0.01) > 10 * start
    assert error_after("gradient_dd", alpha=0.005) < start / 2


def test_predict_takes_vectors_matrices_and_sparse():
    agent = Learner("td", 3, initial_w=[1.0, 2.0, 3.0])
    X = np.array([[1, 0, 0], [0, 1, 1.0]])
    assert agent.predict(X).tolist() == [1, 5]
    assert agent.predict(sp.csr_matrix(X)).tolist() == [1, 5]
    assert agent.predict(X.tolist()).tolist() == [1, 5]
    assert agent.predict([0, 1, 1]) == 5
    assert agent.predict(([1, 2], [1, 1])) == 5


@pytest.mark.parametrize("x", [[[1, 2], [3]], "abc", np.zeros((2, 4)), [np.nan, 0, 0], np.zeros((1, 1, 3))])
def test_predict_refuses_what_is_no_feature(x):
    with pytest.raises(BadRequestError):
        Learner("td", 3).predict(x)


def test_reset_forgets():
    agent = Learner("gradient_dd", 6, alpha=0.1)
    first = [agent.update(*t) for t in random_transitions(20)]
    agent.forget()
    assert not agent.w.any()
    assert agent.updates == 0
    assert [agent.update(*t) for t in random_transitions(20)] == first


def test_w_is_read_only():
    agent = Learner("td", 2)
    with pytest.raises(ValueError, match="read-only"):
        agent.w[0] = 1


@pytest.mark.parametrize("per", ["episode", "step"])
def test_schedules_count_from_one(per):
    agent = Learner("td", 1, alpha=1.0, schedule=tapered(1, per=per))
    agent.update([1], 1.0, 0.0, None)
    assert agent.w == [1]
    agent.update([1], 2.0, 0.0, None)
    assert agent.w == pytest.approx([1 + 2 / 3])


# Saving -------------------------------------------------------------------------------------------------------


@names
def test_a_saved_learner_goes_on_bit_for_bit(name, tmp_path):
    schedule = tapered(50, per="step")
    agent = Learner(name, 6, alpha=0.05, initial_w=0.3, schedule=schedule)
    stream = list(random_transitions(80))
    for transition in stream[:40]:
        agent.update(*transition)
    agent.save(tmp_path / "agent.npz")
    again = Learner.load(tmp_path / "agent.npz")
    assert repr(again) == repr(agent)
    for transition in stream[40:]:
        assert agent.update(*transition) == again.update(*transition)
    assert np.array_equal(agent.w, again.w)
    assert np.array_equal(agent.eta, again.eta)
    again.forget()
    assert again.w.tolist() == [0.3] * 6
    assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"]


def test_a_rule_and_a_schedule_of_your_own_are_given_again(tmp_path):
    schedule = Schedule(lambda n: 1 / n)
    mine = replace(LEARNERS["td"], name="mine")
    Learner(mine, 2, schedule=schedule).save(tmp_path / "a")
    with pytest.raises(BadRequestError, match="was saved with a schedule of your own"):
        Learner.load(tmp_path / "a", learner=mine)
    with pytest.raises(BadRequestError, match=r"was saved with a rule of your own, 'mine'\. Pass it again"):
        Learner.load(tmp_path / "a", schedule=schedule)
    with pytest.raises(BadRequestError, match=r"must be 'mine', the saved rule. Got 'tdc'"):
        Learner.load(tmp_path / "a", learner=LEARNERS["tdc"], schedule=schedule)
    again = Learner.load(tmp_path / "a", learner=mine, schedule=schedule)
    assert again.rule is mine.plain
    assert again.schedule is schedule


def test_a_place_that_cannot_be_written_gets_one_sentence(tmp_path):
    with pytest.raises(BadRequestError, match=r"Cannot write .*: No such file or directory\."):
        Learner("td", 2).save(tmp_path / "nowhere" / "a.npz")


def test_a_file_that_cannot_be_read_gets_one_sentence(tmp_path):
    bad = tmp_path / "bad.npz"
    with pytest.raises(BadRequestError, match=r"Cannot read .*: No such file or directory\."):
        Learner.load(bad)
    Learner("td", 2).save(bad)
    whole = bad.read_bytes()
    for content in (b"", b"hello", whole[: len(whole) // 2]):
        bad.write_bytes(content)
        with pytest.raises(BadRequestError, match="must be a learner saved by gradient-dd"):
            Learner.load(bad)


# Bad input ----------------------------------------------------------------------------------------------------

X = np.array([1.0, 0.0, 2.0])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": [1.0, 2.0]}, "The shape of 'x' must be (3,). Got (2,)."),
        ({"x": [1.0, np.nan, 0]}, "'x' must be finite. Got nan."),
        ({"x": "abc"}, "'x' must be numbers. Got 'abc'."),
        ({"x_next": [np.inf, 0, 0]}, "'x_next' must be finite. Got inf."),
        (
            {"x_next": None},
            "'x_next' must be a vector, or a pair (indices, values). Got None. It may be None only with discount=0.",
        ),
        ({"x": sp.csr_matrix(np.ones((1, 3)))}, "'x' must be a vector, or a pair (indices, values). Got a SciPy"),
        ({"x": (np.zeros((2, 1), int), np.ones((2, 1)))}, "Sparse 'x' must have as many whole indices as values."),
        ({"x": ([0, 3], [1.0, 1.0])}, "The indices of 'x' must be from 0 to 2. Got array([0, 3])."),
        ({"x": ([0, 0], [1e308, 1e308])}, "The sums of equal indices of 'x' must be finite. Got inf."),
        ({"x": ([0, 1], [1.0])}, "Sparse 'x' must have as many whole indices as values."),
        ({"x": ([0.5], [1.0])}, "Sparse 'x' must have as many whole indices as values."),
        ({"x": ([0], [1.0], [2.0])}, "Sparse 'x' must be a pair (indices, values)."),
        ({"reward": np.nan}, "'reward' must be a finite number. Got nan."),
        ({"reward": "1"}, "'reward' must be a finite number. Got '1'."),
        ({"reward": 10**400}, "'reward' must be a finite number. Got 1000"),
        ({"reward": 1j}, "'reward' must be a finite number. Got 1j."),
        ({"discount": 1.5}, "'discount' must be in [0, 1]. Got 1.5."),
        ({"discount": -0.1}, "'discount' must be in [0, 1]. Got -0.1."),
        ({"rho": -1.0}, "'rho' must be a number that is zero or more. Got -1."),
        ({"rho": np.inf}, "'rho' must be a number that is zero or more. Got inf."),
    ],
)
def test_bad_input_gets_one_sentence_and_changes_nothing(change, sentence):
    agent = Learner("gradient_dd", 3)
    agent.update(X, 1.0, 0.9, X[::-1])
    before = agent.w.tobytes(), agent.eta.tobytes(), agent.updates
    with pytest.raises(BadRequestError) as caught:
        agent.update(**({"x": X, "reward": 1.0, "discount": 0.9, "x_next": X} | change))
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
    assert (agent.w.tobytes(), agent.eta.tobytes(), agent.updates) == before


@pytest.mark.parametrize(
    ("arguments", "values", "sentence"),
    [
        (("gtd2", 3), {"alpha": -0.1}, "'alpha' of gtd2 must be a positive number. Got -0.1."),
        (("gtd2", 3), {"alpha": 0}, "'alpha' of gtd2 must be a positive number. Got 0."),
        (("gtd2", 3), {"alpha": True}, "'alpha' of gtd2 must be a positive number. Got True."),
        (("gtd2", 3), {"zeta": np.nan}, "'zeta' of gtd2 must be a number that is zero or more. Got nan."),
        (("gradient-dd", 3), {}, "Unknown learner 'gradient-dd'. Did you mean 'gradient_dd'?"),
        (("gradient_dd", 3), {"kapa": 1}, "gradient_dd has no parameter 'kapa'. It has alpha, zeta, kappa, lam."),
        (("gtd2", 3), {"beta": 1}, "gtd2 has no parameter 'beta'. It has alpha, zeta, lam. beta is zeta × alpha, so"),
        (("td", 3), {"rho_mode": "T"}, "td has no 'rho_mode': its update is the same in both modes. Omit it."),
        (("gtd2", 3), {"rho_mode": "X"}, "'rho_mode' of gtd2 must be 'R' or 'T'. Got 'X'."),
        (("gtd2", 0), {}, "'n_features' must be a whole number, 1 or more. Got 0."),
        (("gtd2", 3), {"initial_w": [1, 2]}, "The shape of 'initial_w' must be () or (3,). Got (2,)."),
        (
            ("gtd2", 3),
            {"schedule": "tapered"},
            "'schedule' must be 'constant', 'tapered(1000)' or 'tapered(1000) per step'. Got 'tapered'.",
        ),
        (("natural_tdc", 3), {"ridge": 0}, "'ridge' of natural_tdc must be a positive number. Got 0."),
    ],
)
def test_a_learner_that_cannot_be_is_refused(arguments, values, sentence):
    with pytest.raises(BadRequestError) as caught:
        Learner(*arguments, **values)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("name", [name for name in ALL if LEARNERS[name].affine])  # others may never diverge
def test_divergence_is_said_and_the_last_finite_weights_are_kept(name):
    agent = Learner(name, 2, alpha=50.0)

    def feed():
        for _ in range(5000):
            agent.update([2.0, 1.0], 1.0, 0.99, [1.0, 2.0], rho=3.0)

    with pytest.raises(DivergedError, match=rf"^{name}\(alpha=50.*diverged at update \d+"):
        feed()
    assert np.isfinite(agent.w).all()
    assert np.isfinite(agent.eta).all()
