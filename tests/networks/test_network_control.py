"""NetworkControl is Q-learning where it should be."""

import numpy as np
import pytest

import gradient_dd as gdd
from gradient_dd.errors import BadRequestError


@pytest.mark.parametrize(("target", "epsilon"), [("greedy", 0.0), ("epsilon", 0.3)])
def test_without_hidden_layers_td_is_q_learning_or_expected_sarsa(target, epsilon):
    """One weight vector for each action; only that of the action taken moves."""
    rng = np.random.default_rng(2)
    network = gdd.Network(2, hidden=(), precision="float64")
    agent = gdd.NetworkControl("td", network, actions=3, alpha=0.1, epsilon=0.3, target=target)
    W = np.zeros((3, 3))  # (s and 1, actions), as the flat weights of one layer are
    for _ in range(30):
        s, s_next, action, reward = rng.standard_normal(2), rng.standard_normal(2), int(rng.integers(3)), rng.random()
        x, q_next = np.append(s, 1.0), np.append(s_next, 1.0) @ W
        best = (q_next == q_next.max()) / (q_next == q_next.max()).sum()
        pi = (1 - epsilon) * best + epsilon / 3
        W[:, action] += 0.1 * (reward + 0.9 * pi @ q_next - x @ W[:, action]) * x
        agent.update(s, action, reward, 0.9, s_next)
    assert agent.learner.w == pytest.approx(W.ravel(), abs=1e-12)
    assert agent.predict(s) == pytest.approx(np.append(s, 1.0) @ W)


def test_it_acts_greedily_but_for_epsilon_and_remembers_what_it_may():
    network = gdd.Network(1, hidden=(), precision="float64")
    agent = gdd.NetworkControl("tdrc", network, 2, alpha=0.1, epsilon=0.2, replay=5, batch=3, seed=1)
    for t in range(8):
        agent.update([1.0], 1, float(t), 0.0, None)
    assert sorted(agent.remembered.reward) == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert agent.learner.updates == 8
    assert np.diff(agent.predict([1.0])) > 0
    chosen = [agent.act([1.0]) for _ in range(400)]
    assert np.mean(chosen) == pytest.approx(0.9, abs=0.05)
    for call, sentence in (
        (lambda: agent.update([1.0], 2, 0.0, 0.0, None), "'action' must be a whole number from 0 to 1. Got 2"),
        (lambda: agent.act([[1.0], [2.0]]), "'observation' must be one observation"),
        (lambda: gdd.NetworkControl("td", network, 2, alpha=0.1, lam=0.5), "does not support td with a trace"),
        (lambda: gdd.NetworkControl("td", network, 1, alpha=0.1), "'actions' must be a whole number, 2 or more"),
        (lambda: agent.learner.update([1.0], 0.0, 0.0, None), "of the network of a NetworkLearner must be 1. Got 2"),
    ):
        with pytest.raises(BadRequestError, match=sentence):
            call()


def test_a_loaded_agent_and_a_copy_continue_with_the_same_bits(tmp_path):
    rng = np.random.default_rng(4)
    s, action, s_next = rng.standard_normal((30, 2)), rng.integers(3, size=30), rng.standard_normal((30, 2))
    agent = gdd.NetworkControl("tdrc", gdd.Network(2, (4,)), 3, alpha=0.1, replay=8, batch=4, optimiser="adam")
    one_by_one = agent.copy()
    agent.update_many(s[:20], action[:20], 1.0, 0.9, s_next[:20], terminated=[*[False] * 19, True], truncated=True)
    for t in range(20):
        one_by_one.update(s[t], action[t], 1.0, 0.9, s_next[t], terminated=t == 19, truncated=True)
    agent.save(tmp_path / "agent.npz")
    agents = agent, one_by_one, gdd.NetworkControl.load(tmp_path / "agent.npz"), agent.copy()
    for each in agents:
        each.update_many(s[20:], action[20:], 1.0, 0.9, s_next[20:])
    assert all((each.learner.w == agent.learner.w).all() for each in agents)
    assert len({each.act(s[0]) for each in agents}) == 1
    assert {repr(each) for each in agents} == {repr(agent)}
    assert repr(agent).startswith("<NetworkControl 3 actions, epsilon=0.1, <NetworkLearner tdrc(alpha=0.1")
    assert "<th>remembers</th>" in agent._repr_html_()
