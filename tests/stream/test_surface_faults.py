"""Time limits, signals without a trace, and files that were saved with something else."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import gradient_dd as gdd
from gradient_dd.engine import reference
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.learners.rule import ALPHA
from gradient_dd.stream import Learner
from gradient_dd.stream.auto import AutoLearner
from gradient_dd.stream.features import Polynomial
from gradient_dd.stream.question import Question
from gradient_dd.stream.questions import Questions
from gradient_dd.tasks import random_walk
from gradient_dd.testing import check_learner

TRACED = ("td", "gradient_dd", "etd", "tree_backup")


def one_hot(k):
    return np.eye(3)[k]


@pytest.mark.parametrize("name", TRACED)
def test_a_time_limit_empties_the_trace(name):
    """State 0, cut, then state 1 with a reward: state 0 is not credited, by `update` and by `update_many`."""
    setting = {"alpha": 0.5} | ({"lam": 0.9} if "lam" in LEARNERS[name].defaults else {})
    probabilities = {"pi": 1.0, "mu": 1.0}
    single, many = Learner(name, 3, **setting), Learner(name, 3, **setting)
    x, x_next, reward = np.eye(3)[[0, 1, 1]], np.eye(3)[[2, 2, 2]], [0.0, 1.0, 1.0]
    cut = [True, False, False]
    for row in range(3):
        single.update(x[row], reward[row], 0.9, x_next[row], truncated=cut[row], **probabilities)
    many.update_many(x, reward, 0.9, x_next, truncated=cut, **probabilities)
    assert single.w[0] == 0.0
    assert (single.w == many.w).all()
    assert (single.eta == many.eta).all()
    assert single.episodes == many.episodes == 1
    leaking = Learner(name, 3, **setting)
    leaking.update_many(x, reward, 0.9, x_next, **probabilities)
    assert (leaking.w != many.w).any() or (leaking.eta != many.eta).any()


def test_a_cut_bootstraps_and_an_end_does_not():
    for agent in (Learner("td", 3, alpha=0.5, initial_w=1.0), AutoLearner(3, initial_w=1.0)):
        assert agent.update(one_hot(0), 0.0, 0.9, one_hot(1), truncated=True) == pytest.approx(-0.1)
        assert agent.update(one_hot(2), 0.0, 0.9, one_hot(1), terminated=True) < -0.5
        assert agent.update_many([one_hot(0)], 0.0, 0.9, [one_hot(1)], truncated=[True]).shape == (1,)
    with pytest.raises(BadRequestError, match="'truncated' in row 1 must be True or False"):
        agent.update_many([one_hot(0)] * 2, 0.0, 0.9, [one_hot(1)] * 2, truncated=[0, 2])


def test_a_time_limit_empties_the_traces_of_questions():
    def asked(cut):
        horde = Questions([Question("a", "r", 0.9), Question("b", "r", 0.5)], 3, learner="td", alpha=0.5, lam=0.9)
        columns = {"r": [0.0, 1.0]}
        horde.update_many(np.eye(3)[[0, 1]], x_next=np.eye(3)[[2, 2]], truncated=[cut, False], columns=columns)
        return horde

    assert (asked(True).w[:, 0] == 0).all()
    assert (asked(False).w[:, 0] > 0).all()
    assert asked(True).summary()["returns"][0] == 0


def test_a_time_limit_empties_the_trace_on_a_network():
    networks = pytest.importorskip("gradient_dd.networks.learner")
    from gradient_dd.networks.network import Network

    def first_weight(**flags):
        agent = networks.NetworkLearner("td", Network(3, ()), alpha=0.5, lam=0.9)
        agent.update(one_hot(0), 0.0, 0.9, one_hot(2), **flags)
        agent.update(one_hot(1), 1.0, 0.9, one_hot(2))
        return agent.w[0]

    assert first_weight(truncated=True) == 0.0
    assert first_weight() > 0.0


def normalised(alpha, delta, x_x):
    return (alpha * delta / (1.0 + x_x),)


def by_next(alpha, delta, x_next, next_next):
    return (alpha * delta / (1.0 + next_next + x_next * x_next),)


@pytest.mark.parametrize("step", [normalised, by_next])
def test_products_of_features_need_no_trace(step):
    rule = Rule(step.__name__, "N", step, ("w_x",), (ALPHA,), "a test", __name__, affine=False, td_fixed_point=False)
    check_learner(rule)
    task = random_walk(n_states=5)
    agent, (row, next_row, reward, discount, rho, _) = Learner(rule, task.n_features, alpha=0.1), task.transitions
    found = reference.Weights(agent.setting, np.zeros(task.n_features))
    rows = task.row_features.toarray()
    for o in range(len(row)):
        agent.update(rows[row[o]], reward[o], discount[o], rows[next_row[o]], rho[o])
        found.advance(agent.setting, 1.0, rows[row[o]], reward[o], discount[o], rows[next_row[o]], rho[o])
    assert (agent.w == found.w).all()


def other(alpha, delta, x_x):
    return (alpha * delta / (2.0 + x_x),)


def test_a_learner_is_not_loaded_with_another_rule_of_the_same_name(tmp_path):
    rule = Rule("mine", "N", normalised, ("w_x",), (ALPHA,), "a test", __name__, affine=False)
    Learner(rule, 2, alpha=0.1).save(tmp_path / "a.npz")
    Learner.load(tmp_path / "a.npz", learner=rule)
    with pytest.raises(BadRequestError, match="saved with another rule 'mine': its step differs"):
        Learner.load(tmp_path / "a.npz", learner=replace(rule, step=other))


def test_questions_are_not_loaded_with_another_function(tmp_path):
    def asked(power):
        return [Question("a", lambda batch: batch[:, 0] ** power, 0.9), Question("b", lambda batch: batch[:, 0], 0.9)]

    horde = Questions(asked(1), 2, learner="td", alpha=0.1)
    horde.save(tmp_path / "a.npz")
    Questions.load(tmp_path / "a.npz", questions=asked(1))
    with pytest.raises(BadRequestError, match="saved with another cumulant of question 'a'"):
        Questions.load(tmp_path / "a.npz", questions=asked(2))
    with pytest.raises(BadRequestError, match="saved with another cumulant of question 'b'"):
        Questions.load(tmp_path / "a.npz", questions=[asked(1)[0], Question("b", lambda batch: -batch[:, 0], 0.9)])


def test_a_network_learner_is_not_loaded_with_another_optimiser(tmp_path):
    networks, optax = pytest.importorskip("gradient_dd.networks.learner"), pytest.importorskip("optax")
    from gradient_dd.networks.network import Network

    networks.NetworkLearner("td", Network(2, ()), optimiser=optax.adam(1e-3)).save(tmp_path / "a.npz")
    networks.NetworkLearner.load(tmp_path / "a.npz", optimiser=optax.adam(1e-3))
    with pytest.raises(BadRequestError, match="was saved with another optimiser"):
        networks.NetworkLearner.load(tmp_path / "a.npz", optimiser=optax.adam(1e-2))


def every_learner():
    """Yield a name, a learner, and one update of it."""
    yield "Learner", Learner("gradient_dd", 3, alpha=0.1), lambda one: one.update(one_hot(0), 1.0, 0.9, one_hot(1))
    yield "AutoLearner", AutoLearner(3), lambda one: one.update(one_hot(0), 1.0, 0.9, one_hot(1))
    horde = Questions([Question("a", 1.0, 0.9)], 3, learner="td", alpha=0.1)
    yield "Questions", horde, lambda one: one.update(one_hot(0), x_next=one_hot(1))
    if find_spec("jax"):
        network = gdd.Network(3, (4,))
        agent = gdd.NetworkLearner("tdrc", network, alpha=0.1)
        yield "NetworkLearner", agent, lambda one: one.update(one_hot(0), 1.0, 0.9, one_hot(1))
        control = gdd.NetworkControl("tdrc", network, 2, alpha=0.1, replay=4, batch=2)
        yield "NetworkControl", control, lambda one: one.update(one_hot(0), 1, 1.0, 0.9, one_hot(1))


@pytest.mark.parametrize(("name", "agent", "update"), [pytest.param(*one, id=one[0]) for one in every_learner()])
def test_every_learner_can_be_copied_and_forgets_all_that_it_learnt(name, agent, update, tmp_path):
    first = agent.predict(np.eye(3))
    for _ in range(3):
        update(agent)
    learnt, other = agent.predict(np.eye(3)), agent.copy()
    assert (learnt != first).any()
    assert np.array_equal(agent.predict(one_hot(0)), learnt[0])
    agent.save(tmp_path / "agent.npz")
    loaded = type(agent).load(tmp_path / "agent.npz")
    for one in (agent, loaded):
        one.forget()
        assert np.array_equal(one.predict(np.eye(3)), first)
        for _ in range(3):
            update(one)
        assert np.array_equal(one.predict(np.eye(3)), learnt)
    assert np.array_equal(other.predict(np.eye(3)), learnt)


def test_predictions_are_asked_for_by_features_or_by_observations(tmp_path):
    basis = Polynomial(0.0, 1.0, degree=2)
    asked = [Question("a", 1.0, 0.9)]
    for agent in (
        Learner("td", 3, alpha=0.1, initial_w=[1.0, 2.0, 3.0], features=basis),
        AutoLearner(3, initial_w=[1.0, 2.0, 3.0], features=basis),
        Questions(asked, features=basis, learner="td", alpha=0.1, initial_w=[1.0, 2.0, 3.0]),
    ):
        agent.save(tmp_path / "agent.npz")
        for one in (agent, type(agent).load(tmp_path / "agent.npz")):
            expected = one.predict(basis(0.5))
            assert np.array_equal(one.predict(observation=0.5), expected)
            assert np.array_equal(one.predict((np.arange(3), basis(0.5))), expected)
            assert np.array_equal(one.predict(observations=[0.5, 0.5]), one.predict(np.tile(basis(0.5), (2, 1))))
    with pytest.raises(BadRequestError, match="'x' must be given if there is no feature map"):
        AutoLearner(3).predict(observation=0.5)


@pytest.mark.parametrize("registry", [gdd.LEARNERS, gdd.TASKS])
def test_a_registry_is_read_and_not_written(registry):
    with pytest.raises(TypeError):
        registry["mine"] = next(iter(registry.values()))
