"""NetworkLearner is `Learner` without hidden layers, and hand-written back-propagation with them."""

from itertools import pairwise

import numpy as np
import pytest

import gradient_dd as gdd
from gradient_dd.errors import BadRequestError, DivergedError
from gradient_dd.learners import LEARNERS, find

jax = pytest.importorskip("jax")

INPUTS, STEPS = 3, 40
REFUSED = ("natural_gtd2", "natural_tdc")


def transitions(n=STEPS, seed=3):
    """Return s, reward, discount, s_next, rho, pi, mu of a stream with episodes, s_next being s of the next row."""
    rng = np.random.default_rng(seed)
    s = rng.standard_normal((n + 1, INPUTS))
    mu, pi = rng.uniform(0.3, 1.0, n), rng.uniform(0.2, 1.0, n)
    discount = np.where(rng.random(n) < 0.15, 0.0, 0.9)
    return s[:-1], rng.standard_normal(n), discount, s[1:], pi / mu, pi, mu


def with_one(s):
    """Return the features of a network without hidden layers: s and a 1."""
    return np.append(s, 1.0)


def forms():
    """Return (name, parameters) of every rule that a network can follow, without a trace and with λ = 0.8."""
    found = []
    for name in (name for name in LEARNERS if name not in REFUSED):
        traced = {"bootstrap": 0.8} if name == "abtd" else {"lam": 0.8}
        has_lam = set(traced) <= set(find(name).defaults)
        found += [(name, {})] if not has_lam or find(name).along_trace else []
        found += [(name, traced)] if has_lam else []
    return found


@pytest.mark.parametrize(("name", "parameters"), forms(), ids=str)
def test_without_hidden_layers_it_is_the_linear_learner(name, parameters):
    """Every rule but the natural ones, with and without a trace, in double precision."""
    network = gdd.Network(INPUTS, hidden=(), precision="float64")
    first = np.linspace(-1.0, 1.0, INPUTS + 1)
    linear = gdd.Learner(name, INPUTS + 1, alpha=0.05, initial_w=first, **parameters)
    agent = gdd.NetworkLearner(name, network, alpha=0.05, initial_w=first, **parameters)
    for s, reward, discount, s_next, rho, pi, mu in zip(*transitions(), strict=True):
        expected = linear.update(with_one(s), reward, discount, with_one(s_next), rho, pi, mu)
        assert agent.update(s, reward, discount, s_next, rho, pi, mu) == pytest.approx(expected, abs=1e-12)
    assert agent.w == pytest.approx(linear.w, rel=1e-13, abs=1e-13)
    assert agent.eta == pytest.approx(linear.eta, rel=1e-13, abs=1e-13)
    assert np.abs(agent.w - first).max() > 1e-3
    assert agent.predict(s) == pytest.approx(linear.predict(with_one(s)))


class ByHand:
    """Gradient-DD on a network of two hidden layers, with back-propagation written out in NumPy."""

    def __init__(self, network, w, activation):
        self.network, self.w, self.w_prev = network, w.copy(), w.copy()
        self.eta = np.zeros(network.n_second_weights)
        self.f, self.slope = {
            "tanh": (np.tanh, lambda u: 1 - np.tanh(u) ** 2),
            "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0).astype(float)),
        }[activation]

    def layers(self, w):
        sizes, at, found = self.network.widths, 0, []
        for a, b in pairwise(sizes):
            found.append((w[at : at + a * b].reshape(a, b), w[at + a * b : at + a * b + b]))
            at += a * b + b
        return found

    def value(self, w, s):
        """Return V(s), its gradient by w, and the last hidden layer."""
        (W1, b1), (W2, b2), (W3, b3) = self.layers(w)
        u1 = s @ W1 + b1
        u2 = self.f(u1) @ W2 + b2
        back2 = W3[:, 0] * self.slope(u2)
        back1 = (W2 @ back2) * self.slope(u1)
        parts = np.outer(s, back1), back1, np.outer(self.f(u1), back2), back2, self.f(u2), np.ones(1)
        return float(self.f(u2) @ W3[:, 0] + b3[0]), np.concatenate([part.ravel() for part in parts]), self.f(u2)

    def update(self, batch, alpha, kappa):
        along_w, along_eta = np.zeros_like(self.w), np.zeros_like(self.eta)
        for s, reward, discount, s_next, rho in batch:
            v, gradient, last = self.value(self.w, s)
            v_next, gradient_next, _ = self.value(self.w, s_next)
            x = gradient if self.network.second == "tangent" else np.append(last, 1.0)
            h, delta = x @ self.eta, reward + discount * v_next - v
            change = v - self.value(self.w_prev, s)[0]
            along_w += alpha * (rho * h * (gradient - discount * gradient_next) - kappa * change * gradient)
            along_eta += alpha * (rho * delta - h) * x
        self.w_prev, n = self.w, len(batch)
        self.w, self.eta = self.w + along_w / n, self.eta + along_eta / n


@pytest.mark.parametrize(
    ("second", "activation", "size"), [("head", "tanh", 1), ("tangent", "tanh", 4), ("head", "relu", 4)]
)
def test_with_hidden_layers_it_is_back_propagation_by_hand(second, activation, size):
    network = gdd.Network(INPUTS, hidden=(5, 4), activation=activation, second=second, precision="float64")
    agent = gdd.NetworkLearner("gradient_dd", network, alpha=0.1, kappa=2.0, seed=7)
    by_hand, first = ByHand(network, agent.w, activation), agent.w
    rows = list(zip(*transitions()[:5], strict=True))
    for begin in range(0, STEPS, size):
        batch = rows[begin : begin + size]
        by_hand.update(batch, alpha=0.1, kappa=2.0)
        agent.update(*(np.array(column) for column in zip(*batch, strict=True)))
    assert agent.w == pytest.approx(by_hand.w, rel=1e-12, abs=1e-12)
    assert agent.eta == pytest.approx(by_hand.eta, rel=1e-12, abs=1e-12)
    assert np.abs(agent.w - first).max() > 0.01
    assert np.abs(agent.eta).max() > 0.01


def test_a_batch_is_the_mean_and_many_are_one_after_the_other():
    network = gdd.Network(INPUTS, hidden=(4,), precision="float64", second="network")
    rows = transitions(70)
    one, many, batch = (gdd.NetworkLearner("tdrc", network, alpha=0.05, seed=2) for _ in range(3))
    errors = [one.update(*row) for row in zip(*rows, strict=True)]
    assert many.update_many(*rows) == pytest.approx(errors, abs=1e-12)
    assert many.w == pytest.approx(one.w, abs=1e-13)
    assert many.updates == one.updates == 70
    moved = np.zeros_like(one.w)
    for row in zip(*rows, strict=True):
        single = gdd.NetworkLearner("tdrc", network, alpha=0.05, seed=2, initial_eta=one.eta)
        before = single.w
        single.update(*row)
        moved += (single.w - before) / 70
    batch = gdd.NetworkLearner("tdrc", network, alpha=0.05, seed=2, initial_eta=one.eta)
    before = batch.w
    batch.update(*rows)
    assert batch.w - before == pytest.approx(moved, abs=1e-14)


def test_a_replay_draws_from_the_buffer_and_goes_on_after_loading(tmp_path):
    network = gdd.Network(INPUTS, hidden=(4,), precision="float64")
    buffer = transitions(50)[:5]
    whole = gdd.NetworkLearner("tdc", network, alpha=0.05, optimiser="adam", target_period=7, pull=0.1, seed=4)
    assert whole.replay(buffer, updates=20, batch=8).shape == (20, 8)
    whole.save(tmp_path / "agent.npz")
    again = gdd.NetworkLearner.load(tmp_path / "agent.npz")
    for agent in (whole, again):
        agent.replay(buffer, updates=5, batch=8)
    assert (again.w == whole.w).all()
    assert (again.eta == whole.eta).all()
    drawn = np.random.default_rng([4, 20]).integers(50, size=(5, 8))
    by_batches = gdd.NetworkLearner.load(tmp_path / "agent.npz")
    for rows in drawn:
        by_batches.update(*(column[rows] for column in buffer))
    assert by_batches.w == pytest.approx(whole.w, abs=1e-13)
    (tmp_path / "agent.npz").write_bytes((tmp_path / "agent.npz").read_bytes()[:-9])
    with pytest.raises(BadRequestError, match="network learner saved by gradient-dd"):
        gdd.NetworkLearner.load(tmp_path / "agent.npz")


def test_the_precision_is_its_own_and_changes_nothing_for_others():
    assert jax.numpy.zeros(1).dtype == np.float32
    for precision, tolerance in (("float32", 1e-4), ("float64", 1e-12)):
        agent = gdd.NetworkLearner("td", gdd.Network(INPUTS, hidden=(), precision=precision), alpha=0.1)
        linear = gdd.Learner("td", INPUTS + 1, alpha=0.1)
        for row in zip(*transitions()[:5], strict=True):
            agent.update(*row)
            linear.update(with_one(row[0]), row[1], row[2], with_one(row[3]), row[4])
        assert agent.w == pytest.approx(linear.w, abs=tolerance)
        assert (np.abs(agent.w - linear.w).max() > 1e-9) == (precision == "float32")
    assert jax.numpy.zeros(1).dtype == np.float32


def test_a_step_that_diverges_is_refused_and_changes_nothing():
    agent = gdd.NetworkLearner("td", gdd.Network(1, hidden=()), alpha=3.0)
    with pytest.raises(DivergedError, match=r"td\(alpha=3\) diverged on a network at update \d+"):
        agent.update_many(np.ones((200, 1)), 1.0, 0.0, None)
    assert np.isfinite(agent.w).all()
    updates, w = agent.updates, agent.w
    assert 10 < updates < 200
    with pytest.raises(DivergedError):
        agent.update([1.0], 1.0, 0.0, None)
    assert agent.updates == updates
    assert (agent.w == w).all()
