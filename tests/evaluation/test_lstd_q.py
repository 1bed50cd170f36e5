"""Action values by LSTD-Q: exact on a table, the same by fitted Q evaluation, for actions and policies of any form."""

import numpy as np
import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.evaluation.action_log import ActionLog
from gradient_dd.evaluation.lstd_q import LogSums, fitted_q, td_errors
from gradient_dd.stream.features import OneHot

STATES, NAMES = 4, ("left", "right", "stay")


def every_outcome(discount: float) -> tuple[dict, np.ndarray, float]:
    """Return a log in which every transition of a random table happens as often as it should, a policy, its value."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=(STATES, 3, STATES + 1)) + (np.arange(STATES + 1) == STATES)
    rewards, pi = rng.standard_normal((STATES, 3)), rng.dirichlet(np.ones(3), size=STATES)
    columns = {name: [] for name in ("state", "next_state", "action", "reward", "terminated", "episode")}
    for s, a, t in np.argwhere(counts):
        for _ in range(counts[s, a, t]):
            ended = t == STATES
            values = (s, s if ended else t, a, rewards[s, a], ended, len(columns["state"]))
            for name, value in zip(columns, values, strict=True):
                columns[name].append(value)
    P = counts / counts.sum(axis=2, keepdims=True)
    M = np.eye(STATES) - discount * np.einsum("sa,sat->st", pi, P)[:, :STATES]
    V = np.linalg.solve(M, (pi * rewards).sum(axis=1))
    log = {name: np.array(column) for name, column in columns.items()}
    return log, pi, float(V[log["state"]].mean())


def solved(log: ActionLog, name: str = "target") -> tuple[LogSums, object, np.ndarray, float]:
    """Return the sums, the weights and the value where episodes begin."""
    sums = LogSums(log.rows, log.actions, log.p, log.group, 200)
    policy = sums.of_policy(log.policies[name].choices(log.rows))
    one = np.ones((200, 1))
    w = policy.solutions(one)[0]
    return sums, policy, w, float(policy.mean_start(one)[0] @ w[:, 0])


def policies(pi: np.ndarray) -> dict:
    """Return one policy in three forms."""
    return {
        "table": pi,
        "function": lambda seen: pi[seen[:, 0].astype(int)],
        "two arguments": lambda seen, action: pi[seen[:, 0].astype(int), action],
    }


def test_the_value_is_that_of_the_table_for_every_form_of_a_policy():
    data, pi, truth = every_outcome(0.9)
    for given in policies(pi).values():
        log = ActionLog(data, {"target": given}, discount=0.9, features=OneHot(STATES))
        assert solved(log)[3] == pytest.approx(truth, abs=1e-3)


def test_actions_may_have_names_and_a_policy_may_be_columns_of_the_log():
    data, pi, _ = every_outcome(0.9)
    numbered = solved(ActionLog(data, {"target": pi}, discount=0.9, features=OneHot(STATES)))[3]
    named = {**data, "action": np.array(NAMES)[data["action"]]}
    for k, name in enumerate(NAMES):
        named[f"pi_mine_{name}"] = pi[data["state"], k]
        named[f"next_pi_mine_{name}"] = np.where(data["terminated"], 0.0, pi[data["next_state"], k])
    log = ActionLog(named, {"target": "pi_mine_"}, discount=0.9, features=OneHot(STATES))
    assert log.actions.names == NAMES
    assert solved(log)[3] == pytest.approx(numbered, abs=1e-12)


def test_fitted_q_evaluation_ends_in_the_same_weights():
    data, pi, _ = every_outcome(0.9)
    _, policy, w, _ = solved(ActionLog(data, {"target": pi}, discount=0.9, features=OneHot(STATES)))
    assert np.abs(fitted_q(policy) - w).max() < 1e-8


def test_the_mean_td_error_vanishes_for_every_feature():
    data, pi, _ = every_outcome(0.9)
    log = ActionLog(data, {"target": pi}, discount=0.9, features=OneHot(STATES))
    sums, policy, w, _ = solved(log)
    errors = td_errors(sums, policy.choices, w, slice(None))
    totals = sums.products(lambda part: errors[part]).sum(axis=0)
    assert np.abs(totals).max() < 1e-3 * np.abs(log.rows.reward).sum()


def test_weights_of_groups_are_copies_of_their_rows():
    """A group that counts twice gives what a log gives in which its episodes stand twice."""
    data, pi, _ = every_outcome(0.9)
    log = ActionLog(data, {"target": pi}, discount=0.9, features=OneHot(STATES))
    _, policy, _, _ = solved(log)
    weights = np.random.default_rng(1).poisson(1.0, size=(200, 1)).astype(float)
    times = weights[log.group, 0].astype(int)
    twice = {name: np.repeat(column, times) for name, column in data.items()}
    twice["episode"] = np.arange(times.sum())
    again = solved(ActionLog(twice, {"target": pi}, discount=0.9, features=OneHot(STATES)))
    value = policy.mean_start(weights)[0] @ policy.solutions(weights)[0][:, 0]
    assert value == pytest.approx(again[3], abs=1e-4)


def test_an_action_that_is_measured_is_a_feature():
    """The reward is −(a − s)², so that the policy a = s is worth 0 and a = s + 1 is worth −1 where every step ends."""
    rng = np.random.default_rng(0)
    s, a = rng.uniform(-1, 1, 500), rng.uniform(-2, 2, 500)
    data = {"obs": s, "action": a, "reward": -((a - s) ** 2), "terminated": np.ones(500), "episode": np.arange(500)}
    targets = {"same": lambda seen: seen[:, 0], "beside": lambda seen: seen[:, :1] + 1.0}
    log = ActionLog(data, targets, discount=0.9)
    assert not log.actions.named
    assert solved(log, "same")[3] == pytest.approx(0.0, abs=1e-3)
    assert solved(log, "beside")[3] == pytest.approx(-1.0, abs=1e-3)


def test_what_is_missing_is_said():
    data, pi, _ = every_outcome(0.9)
    with pytest.raises(BadRequestError, match="Columns whose names begin with 'pi_x_' must be in the log"):
        ActionLog(data, {"target": "pi_x_"}, discount=0.9)
    del data["action"]
    with pytest.raises(BadRequestError, match="role 'action'"):
        ActionLog(data, {"target": pi}, discount=0.9)
