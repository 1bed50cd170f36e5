"""`features="network"`: right and trusted where there are data for it, not trusted where there are not."""

import numpy as np
import pytest

import gradient_dd as gdd
from gradient_dd.errors import BadRequestError
from gradient_dd.networks import learnt
from gradient_dd.stream.features import Layers, from_data

DISCOUNT, DIMENSIONS, ENDS = 0.9, 12, 0.05
GOES_ON = DISCOUNT * (1 - ENDS)
KEEPS = 0.7  # of each number, from one step to the next


def made_log(episodes, seed):
    """Return a log of twelve numbers that forget slowly. Paid is ½ and the product of the first two."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        s = rng.standard_normal(DIMENSIONS)
        for _ in range(rng.geometric(ENDS)):
            rows.append([episode, 0.5 + s[0] * s[1], 0.0, *s])
            s = KEEPS * s + np.sqrt(1 - KEEPS**2) * rng.standard_normal(DIMENSIONS)
        rows[-1][2] = 1.0
    names = ["episode", "reward", "terminated", *(f"s{i}" for i in range(DIMENSIONS))]
    return dict(zip(names, np.array(rows).T, strict=True))


def true_values(s):
    """Return the values: each factor of the product keeps 0.7 of itself on average."""
    return 0.5 / (1 - GOES_ON) + s[:, 0] * s[:, 1] / (1 - KEEPS**2 * GOES_ON)


def evaluated(log, features, seed=0):
    """Return the evaluation of a log with these features."""
    columns = {"observation": [f"s{i}" for i in range(DIMENSIONS)]}
    return gdd.evaluate_log(log, discount=DISCOUNT, features=features, columns=columns, seed=seed)


@pytest.mark.slow
def test_it_is_right_and_trusted_where_there_are_data():
    log = made_log(500, seed=1)
    found, linear = evaluated(log, "network"), evaluated(log, "standard")
    s = np.random.default_rng(9).standard_normal((300, DIMENSIONS))
    truth = true_values(s)
    missed, by_linear = (np.sqrt(((one.predict(s) - truth) ** 2).mean()) for one in (found, linear))
    low, high = found.start_interval
    assert missed < 0.5 * by_linear
    assert low <= 0.5 / (1 - GOES_ON) <= high
    assert found.verdict.word == "trust"


@pytest.fixture
def quick(monkeypatch):
    """Train little."""
    for name, value in (("LOOKS", 1), ("BETWEEN", 30), ("MEMBERS", 2), ("SIZES", ((4,), (3,)))):
        monkeypatch.setattr(learnt, name, value)


def test_it_is_not_trusted_where_there_are_few_data(quick):
    found = evaluated(made_log(6, seed=2), "network")
    assert found.verdict.word != "trust"
    assert isinstance(found.features, Layers)
    assert "were best on held-out episodes" in " ".join(found.stated)


def test_the_map_is_the_last_layer_of_every_network_and_can_be_saved():
    rng = np.random.default_rng(0)
    networks = [gdd.Network(2, hidden=(5, 3), precision="float64"), gdd.Network(2, hidden=(4,), precision="float64")]
    w = [rng.standard_normal(network.n_weights) for network in networks]
    members = [network.layers(one)[:-1] for network, one in zip(networks, w, strict=True)]
    made = Layers([1.0, 2.0], [2.0, 4.0], members)
    again = from_data(made.as_data())
    s = rng.standard_normal((6, 2))
    scaled = (s - [1.0, 2.0]) / [2.0, 4.0]
    rows = made.rows(s).values
    assert rows.shape == (6, made.n_features) == (6, 8)
    assert (again.rows(s).values == rows).all()
    with networks[0].working():
        lasts = [network.last_hidden(one, scaled) for network, one in zip(networks, w, strict=True)]
    assert rows == pytest.approx(np.concatenate([np.ones((6, 1)), *lasts], axis=1), abs=1e-14)
    assert made.n_features == 8
    with pytest.raises(BadRequestError, match="The layers of a member must have matching shapes"):
        Layers([1.0], [1.0], members)


def test_text_is_refused():
    log = {"episode": [0, 0, 1, 1], "reward": [1.0, 0.0, 1.0, 0.0], "observation": ["a", "b", "a", "b"]}
    with pytest.raises(BadRequestError, match="needs numeric observations, but the log contains text"):
        gdd.evaluate_log(log, discount=0.9, features="network")


def test_returns_go_back_along_episodes_and_bootstrap_where_rows_end():
    """Without hidden layers V(s) = w·(s, 1); here 2 s, and errors by hand."""
    agent = gdd.NetworkLearner("td", gdd.Network(1, hidden=(), precision="float64"), alpha=0.1, initial_w=[2.0, 0.0])
    data = learnt.Learnable(
        s=np.array([[1.0], [2.0], [3.0]]),
        reward=np.array([1.0, 1.0, 5.0]),
        discount=np.array([0.5, 0.0, 0.5]),
        s_next=np.array([[2.0], [0.0], [4.0]]),
        rho=np.array([1.0, 2.0, 1.0]),
        episode=np.array([0, 0, 1]),
    )
    returns = np.array([1.0 + 0.5 * 2.0, 2.0, 5.0 + 0.5 * 8.0])
    assert learnt.held_out_error(agent, data) == pytest.approx(((returns - [2.0, 4.0, 6.0]) ** 2).mean())
