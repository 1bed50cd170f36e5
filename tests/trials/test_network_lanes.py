"""Lanes of networks: the same as NetworkLearner, with bits that do not depend on the company."""

import numpy as np
import pytest

import gradient_dd as gdd
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import find
from trials.networks.control_lanes import ControlPlan, run_control
from trials.networks.environments import CART_POLE
from trials.networks.lanes import WIDTH, Lane, LaneMeasure, Streams, run_lanes

INPUTS, STEPS, STREAMS = 2, 40, 3
RULES = [find(name) for name in ("td", "tdrc", "gradient_dd")]
RNG = np.random.default_rng(0)
DATA = Streams(
    s=RNG.standard_normal((STREAMS, STEPS, INPUTS)),
    reward=RNG.standard_normal((STREAMS, STEPS)),
    discount=np.where(RNG.random((STREAMS, STEPS)) < 0.2, 0.0, 0.9),
    s_next=RNG.standard_normal((STREAMS, STEPS, INPUTS)),
    rho=RNG.uniform(0.0, 2.0, (STREAMS, STEPS)),
)
MEASURE = LaneMeasure(RNG.standard_normal((5, INPUTS)), RNG.standard_normal(5), np.full(5, 0.2))
BATCHES = RNG.integers(STEPS, size=(STEPS, STREAMS, 4))
SMALL = gdd.Network(INPUTS, hidden=(5,))


def lanes(n):
    """Return n lanes of three rules, with step sizes, seeds and streams of their own."""
    return [Lane(RULES[i % 3].setting(alpha=0.01 * (1 + i % 4)), seed=i, stream=i % STREAMS) for i in range(n)]


def test_the_bits_of_a_lane_depend_neither_on_the_number_of_lanes_nor_on_its_place():
    how = {"batches": BATCHES, "every": 10, "rules": RULES}
    many = run_lanes(SMALL, lanes(WIDTH + 4), DATA, MEASURE, **how)
    alone = run_lanes(SMALL, lanes(8)[7:], DATA, MEASURE, **how)
    turned = run_lanes(SMALL, lanes(WIDTH + 4)[::-1], DATA, MEASURE, **how)
    assert many.errors.shape == (WIDTH + 4, STEPS // 10)
    assert (many.w[7] == alone.w[0]).all()
    assert (many.w == turned.w[::-1]).all()
    assert (many.errors == turned.errors[::-1]).all()


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_lane_is_the_learner(optimiser):
    """Rules side by side in one program follow their own equations; with a period and batches."""
    network = gdd.Network(INPUTS, hidden=(5,), precision="float64")
    some = lanes(6)
    some[2] = some[2]._replace(period=7)
    found = run_lanes(network, some, DATA, MEASURE, batches=BATCHES, every=STEPS, optimiser=optimiser)
    for place, lane in enumerate(some):
        agent = gdd.NetworkLearner(
            lane.setting.rule, network, optimiser=optimiser, seed=lane.seed, period=lane.period, **lane.setting.values
        )
        for rows in BATCHES[:, lane.stream]:
            agent.update(*(column[lane.stream, rows] for column in DATA))
        assert found.w[place] == pytest.approx(agent.w, abs=1e-11)
        missed = agent.predict(MEASURE.states) - MEASURE.values
        assert found.errors[place, 0] == pytest.approx(np.sqrt(MEASURE.weights @ missed**2))


def test_a_stream_is_learnt_row_by_row_and_a_trace_follows_it():
    network = gdd.Network(INPUTS, hidden=(5,), precision="float64")
    lane = Lane(find("tdc").setting(alpha=0.02, lam=0.5), seed=3, stream=2)
    agent = gdd.NetworkLearner("tdc", network, alpha=0.02, lam=0.5, seed=3)
    agent.update_many(*(column[2] for column in DATA))
    assert run_lanes(network, [lane], DATA, MEASURE, every=STEPS).w[0] == pytest.approx(agent.w, abs=1e-11)
    with pytest.raises(BadRequestError, match="have one row each, for it keeps a trace"):
        run_lanes(network, [lane], DATA, MEASURE, batches=BATCHES)
    with pytest.raises(BadRequestError, match="be one, or several without traces"):
        run_lanes(network, [lane, *lanes(1)], DATA, MEASURE)


def test_a_lane_that_diverges_is_inf_and_its_neighbours_do_not_notice():
    good = lanes(3)
    bad = Lane(find("td").setting(alpha=1e9), seed=1)
    how = {"batches": BATCHES, "every": 10, "rules": RULES}
    with_it, without = (run_lanes(SMALL, some, DATA, MEASURE, **how) for some in ([*good, bad], good))
    assert np.isinf(with_it.errors[3, -1])
    assert np.isfinite(with_it.w).all()
    assert (with_it.errors[:3] == without.errors).all()


def test_agents_learn_in_lanes_and_their_bits_are_their_own():
    plan = ControlPlan(steps=200, every=50, batch=4)
    some = [Lane(find("td").setting(alpha=0.01 * (1 + i)), seed=i, stream=i) for i in range(3)]
    together, alone = (run_control(SMALL_FOR_POLE, group, CART_POLE, plan) for group in (some, some[2:]))
    assert (together.ended[2] == alone.ended[0]).all()
    assert together.ended.shape == (3, 4)
    assert (np.diff(together.ended, axis=1) >= 0).all()
    assert together.ended[:, -1].min() >= 3
    assert together.alive.all()


SMALL_FOR_POLE = gdd.Network(CART_POLE.inputs, hidden=(4,))
