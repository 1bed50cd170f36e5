"""A step of `Learner` that forgets all of η, and one that is not a number."""

import numpy as np
import pytest

from gradient_dd import DivergedError, Learner
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.schedules import Schedule
from gradient_dd.learners import LEARNERS
from gradient_dd.learners.rule import ALPHA, ZETA, Rule

P = 200
HALF = {"alpha": 0.5, "zeta": 1.0, "reg": 2.0}  # beta × reg = 1: an update with factor 1 forgets all of η


def forgets_after(count):
    """Return a schedule whose factor is 1/2 for `count` updates, and 1 at the next: that one forgets η."""
    return Schedule(lambda n: 0.5 if n <= count else 1.0, per="step")


def transition(n):
    """Return the n-th transition; each has features that no other one has."""
    x, x_next = np.zeros(P), np.zeros(P)
    x[n], x_next[n + 1] = 1.0, 1.0
    return x, 1.0, 0.9, x_next, 1.0


def sparse(x):
    where = np.flatnonzero(x)
    return where, x[where]


def follow_both(agent, schedule, first, last, weights):
    """Feed the same transitions to a sparse learner and to the reference engine."""
    for n in range(first, last):
        x, reward, discount, x_next, rho = transition(n)
        agent.update(sparse(x), reward, discount, sparse(x_next), rho)
        weights.advance(agent.setting, schedule.factor(n + 1), x, reward, discount, x_next, rho)


@pytest.mark.parametrize("count", [3, 130])
def test_eta_is_forgotten_wherever_it_moved(count):
    schedule = forgets_after(count)
    agent = Learner("tdrc", P, schedule=schedule, **HALF)
    weights = Weights(agent.setting, np.zeros(P))
    follow_both(agent, schedule, 0, count + 1, weights)
    assert np.count_nonzero(weights.eta) == 1  # the reference has forgotten all but the last update
    assert np.array_equal(agent.eta, weights.eta)


@pytest.mark.parametrize("saved_after", [1, 130])
def test_a_loaded_learner_forgets_what_was_learnt_before_it_was_saved(saved_after, tmp_path):
    schedule = forgets_after(saved_after)
    agent = Learner("tdrc", P, schedule=schedule, **HALF)
    weights = Weights(agent.setting, np.zeros(P))
    follow_both(agent, schedule, 0, saved_after, weights)
    agent.save(tmp_path / "agent.npz")
    loaded = Learner.load(tmp_path / "agent.npz", schedule=schedule)
    follow_both(loaded, schedule, saved_after, saved_after + 1, weights)
    assert np.array_equal(loaded.eta, weights.eta)


@pytest.mark.parametrize("move", ["w_x", "w_next", "eta_x"])
def test_a_step_that_is_not_a_number_is_refused(move):
    moves = ("w_x", "w_next", "eta_x")

    def step(alpha, delta):
        return tuple(alpha * (delta - delta if name != move else float("nan")) for name in moves)

    rule = Rule("broken", "broken", step, moves, (ALPHA, ZETA), "None.", __name__)
    agent = Learner(rule, 2)
    with pytest.raises(DivergedError, match=f"{move} moves by nan"):
        agent.update([1.0, 0.0], 1.0, 0.9, [0.0, 1.0])
    assert (agent.w == 0).all()
    assert (agent.eta == 0).all()
    assert agent.updates == 0


def test_tdrc_is_the_learner_these_tests_think_it_is():
    shrink = LEARNERS["tdrc"].coefficients({**HALF, "beta": 0.5, "rho": 1, "discount": 1, "delta": 0, "x_eta": 0})
    assert 1 + shrink["eta_eta"] == 0
