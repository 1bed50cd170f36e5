"""What a network adds to a rule: ψ, copies at a distance, optimisers; and the sentences that refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import gradient_dd as gdd
from gradient_dd.errors import BadRequestError
from gradient_dd.learners.rule import ALPHA, Rule

SMALL = gdd.Network(2, hidden=(4,), precision="float64")
TANGENT = gdd.Network(2, hidden=(4,), second="tangent", precision="float64")


def batch(n=12, seed=5):
    """Return a batch of transitions: s, reward, discount, s_next, rho."""
    rng = np.random.default_rng(seed)
    s, s_next = rng.standard_normal((2, n, 2))
    return s, rng.standard_normal(n), np.full(n, 0.9), s_next, rng.uniform(0.2, 2.0, n)


def mspbe(w, data):
    """Return E[ρδ∇V]ᵀ (E[∇V ∇Vᵀ])⁻¹ E[ρδ∇V] over a batch, and η that attains it."""
    s, reward, discount, s_next, rho = data
    v, v_next = (TANGENT.values(w, states)[:, 0] for states in (s, s_next))
    x = jax.jacrev(lambda w: TANGENT.values(w, s)[:, 0])(w)
    error = (rho * (reward + discount * v_next - v)) @ x / len(v)
    eta = jnp.linalg.solve(x.T @ x / len(v), error)
    return error @ eta, eta


@pytest.mark.parametrize("rule", ["gtd2", "tdc"])
def test_with_psi_the_update_is_the_gradient_of_the_projected_bellman_error(rule):
    """At the best η, −½∇MSPBE by finite differences; without ψ it is another direction."""
    data, w = batch(60), TANGENT.first_w(seed=1)
    if rule == "tdc":  # its equation uses E[ρ|s] = 1, which a batch has only if all ratios are 1
        data = (*data[:4], np.ones(60))
    with TANGENT.working():
        error = jax.jit(lambda w: mspbe(w, data))
        eta = np.array(error(w)[1])
        steps = 1e-5 * np.eye(len(w))
        gradient = np.array([float(error(w + step)[0] - error(w - step)[0]) / 2e-5 for step in steps])
    ways = {}
    for correction in (True, False):
        how = {"initial_w": w, "initial_eta": eta, "correction": correction}
        agent = gdd.NetworkLearner(rule, TANGENT, alpha=1.0, zeta=0.0, **how)
        agent.update(*data)
        ways[correction] = np.abs(agent.w - w + 0.5 * gradient).max() / np.abs(gradient).max()
    assert ways[True] < 1e-6
    assert ways[False] > 0.02


def test_the_copy_of_the_dd_term_is_one_update_old_when_it_is_made():
    """With period T it is w before update T, 2T, …; the term is κ times the distance of the values."""
    data, period, kappa, alpha = batch(), 3, 2.0, 0.1
    plain = {"alpha": alpha, "zeta": 1.0}
    agent = gdd.NetworkLearner("gradient_dd", SMALL, kappa=kappa, period=period, seed=3, **plain)
    past = [agent.w]
    for update in range(8):
        copy = past[update // period * period - 1] if update >= period else past[0]
        states = {"initial_w": agent.w, "initial_eta": agent.eta}
        without = gdd.NetworkLearner("gtd2", SMALL, **states, **plain)
        without.update(*data)
        # The term alone: TD towards the values of the copy, from rewards that are those values.
        towards = gdd.NetworkLearner("td", SMALL, alpha=alpha * kappa, initial_w=agent.w)
        goal = gdd.NetworkLearner("td", SMALL, alpha=alpha, initial_w=copy).predict(data[0])
        towards.update(data[0], goal, 0.0, None)
        expected = without.w + towards.w - agent.w
        agent.update(*data)
        assert agent.w == pytest.approx(expected, abs=1e-14)
        past.append(agent.w)


def test_a_target_copy_bootstraps_and_pulls():
    data = batch()
    agent = gdd.NetworkLearner("td", SMALL, alpha=0.1, target_period=2, pull=0.5, seed=3)
    target = agent.w
    for update in range(5):
        boot = gdd.NetworkLearner("td", SMALL, alpha=0.1, initial_w=target).predict(data[3])
        by_rewards = gdd.NetworkLearner("td", SMALL, alpha=0.1, initial_w=agent.w)
        by_rewards.update(data[0], data[1] + 0.9 * boot, 0.0, None, data[4])
        expected = by_rewards.w - 0.1 * 0.5 * (agent.w - target)
        agent.update(*data)
        assert agent.w == pytest.approx(expected, abs=1e-14)
        target = agent.w if (update + 1) % 2 == 0 else target


def test_an_optimiser_has_the_step_size_and_a_decay_does_not_go_through_it():
    data, eta = batch(), np.linspace(-1.0, 1.0, SMALL.n_second_weights)
    own = gdd.NetworkLearner("tdc", SMALL, optimiser=optax.sgd(0.1), seed=3, initial_eta=eta)
    plain = gdd.NetworkLearner("tdc", SMALL, alpha=0.1, seed=3, initial_eta=eta)
    for agent in (own, plain):
        for _ in range(3):
            agent.update(*data)
    assert own.w == pytest.approx(plain.w, abs=1e-14)
    assert own.eta == pytest.approx(plain.eta, abs=1e-14)
    adam = {"optimiser": "adam", "alpha": 0.01, "zeta": 2.0, "seed": 3, "initial_eta": eta}
    without, decayed = gdd.NetworkLearner("tdc", SMALL, **adam), gdd.NetworkLearner("tdrc", SMALL, reg=3.0, **adam)
    before = without.w
    for agent in (without, decayed):
        agent.update(*data)
    assert decayed.eta - without.eta == pytest.approx(-0.02 * 3.0 * eta, abs=1e-14)
    assert np.abs(without.w - before) == pytest.approx(np.full(len(before), 0.01), rel=1e-4)
    assert np.abs(without.eta - eta).max() == pytest.approx(0.02, rel=1e-4)
    steady = gdd.NetworkLearner("td", SMALL, alpha=0.01, optimiser="adam_without_momentum", seed=3)
    steady.update(*data)
    held = steady.w
    steady.update(data[0], steady.predict(data[0]), 0.0, None)
    assert steady.w == pytest.approx(held, abs=1e-15)  # without an error nothing moves on


def asks_if(alpha, delta):
    return (alpha * delta if delta > 0 else 0.0,)


def clips(alpha, delta):
    return (alpha * min(max(delta, -1.0), 1.0),)


def rule_of(step):
    """Return a rule of one's own."""
    return Rule("mine", "Mine", step, ("w_x",), (ALPHA,), reference="none", module=__name__, affine=False)


def test_a_rule_may_clip_with_min_and_max():
    agent = gdd.NetworkLearner(rule_of(clips), gdd.Network(1, hidden=(), precision="float64"), alpha=0.5)
    agent.update([2.0], 100.0, 0.0, None)
    assert agent.w == pytest.approx([1.0, 0.5])


REFUSALS = [
    (
        lambda: gdd.NetworkLearner("natural_tdc", SMALL, alpha=0.1),
        "does not support the rule 'natural_tdc': it is natural",
    ),
    (lambda: gdd.NetworkLearner(rule_of(asks_if), SMALL, alpha=0.1), "'mine': it has an `if` on a number. Use min"),
    (lambda: gdd.NetworkLearner("pgtd2", SMALL, alpha=0.1), "only with second='tangent'"),
    (
        lambda: gdd.NetworkLearner("tdc", gdd.Network(2, second="network"), alpha=0.1, lam=0.5),
        "'z_eta' needs an h that is linear",
    ),
    (lambda: gdd.NetworkLearner("tdc", SMALL, alpha=0.1, correction=True), "must be 'tangent'. Got 'head'"),
    (lambda: gdd.NetworkLearner("td", TANGENT, alpha=0.1, correction=True), "must be one of gtd2, tdc"),
    (lambda: gdd.NetworkLearner("td", SMALL), "'alpha' must be given"),
    (lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1, optimiser=optax.sgd(0.1)), "optimiser includes the step size"),
    (lambda: gdd.NetworkLearner("tdrc", SMALL, optimiser=optax.sgd(0.1)), "'second_alpha' must be given"),
    (
        lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1, optimiser="adm"),
        "Unknown optimiser 'adm'. Did you mean 'adam'",
    ),
    (
        lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1, period=2),
        "'period' for td must be 1, because the rule has no DD term",
    ),
    (lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1, pull=1.0), "'target_period' must be given with 'pull'"),
    (lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1, second_alpha=1.0), "'second_alpha' must be omitted"),
    (lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1, initial_w=[1.0]), r"shape of 'initial_w' must be \(17,\)"),
    (lambda: gdd.NetworkLearner("td", 5, alpha=0.1), "'network' must be a Network. Got 5"),
    (lambda: gdd.Network(2, activation="sigmoid"), "'activation' of a network must be 'tanh' or 'relu'"),
    (lambda: gdd.Network(2, hidden=(4, 0)), "'hidden' of a network must be a whole number, 1 or more. Got 0"),
    (lambda: gdd.Network(2, second="both"), "must be 'head' or 'tangent' or 'network'. Got 'both'"),
    (lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1).update([1.0], 0.0, 0.0, None), r"be \(2,\) or \(n, 2\)"),
    (
        lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1).update([1, 2], 0.0, 0.5, None),
        "'discount' in row 0 must be 0",
    ),
    (
        lambda: gdd.NetworkLearner("td", SMALL, alpha=0.1, lam=0.5).update(*batch()),
        "'observation' for td must be a single observation, because its trace follows one stream",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSALS, ids=[sentence[:40] for _, sentence in REFUSALS])
def test_what_cannot_be_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        call()
