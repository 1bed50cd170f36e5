"""η of rules that shrink it: no division in a step, and still the same bits whatever lanes stand beside."""

from dataclasses import replace

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernels.rules import has_steady_shrink
from gradient_dd.engine.kernels.state import MOST_LANES
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.schedules import tapered
from gradient_dd.learners import LEARNERS

TASK, EPISODES = tasks.random_walk(6), Horizon(episodes=60)
STRENGTHS = (1e-4, 0.5, 0.98, 0.999, 1.0, 1.5, 1.9)  # β reg: the scale is 1 minus it, looked at now and then or often


def lanes_of(strengths):
    return [LEARNERS["tdrc"].setting(alpha=0.05, reg=strength / 0.05) for strength in strengths]


def outcome(settings, schedule, pieces=None):
    run = LaneRun(TASK, settings, EPISODES, schedule)
    while not run.done:
        run.advance(pieces)
    return np.concatenate([*run.weights(), run.results().curve[0]], axis=1)


@pytest.mark.xdist_group("kernels of tdrc")
@pytest.mark.parametrize("schedule", [tapered(20), tapered(500, per="step")], ids=str)
def test_neighbours_and_pieces_do_not_change_the_bits(schedule):
    """A lane's own shrink decides when its scale is looked at, in steps of the run."""
    together = outcome(lanes_of(STRENGTHS), schedule)
    alone = np.concatenate([outcome(lanes_of([strength]), schedule) for strength in STRENGTHS])
    assert np.array_equal(together, alone)
    assert np.array_equal(together, outcome(lanes_of(STRENGTHS), schedule, pieces=37))


@pytest.mark.xdist_group("kernels of tdrc")
def test_inverses_of_scales_stay_inverses_and_scales_stay_in_range():
    run = LaneRun(TASK, lanes_of(STRENGTHS), Horizon(episodes=3000))
    run.advance()
    inverse, scale = run.blocks[0].lanes.fields.reshape(-1, MOST_LANES)[-2:, : len(STRENGTHS)]
    assert np.abs(scale * inverse - 1).max() < 1e-13
    assert (np.abs(scale) > 2.0**-700).all(), "without a look they would have vanished"


@pytest.mark.xdist_group("kernels of tdrc")
def test_a_strong_shrink_gives_what_the_reference_gives():
    settings = lanes_of(STRENGTHS)
    run = LaneRun(TASK, settings, EPISODES)
    run.advance()
    for setting, w, eta in zip(settings, *run.weights(), strict=True):
        trace = reference.run(TASK, setting.rule, episodes=60, **setting.values)
        assert np.allclose(w, trace.w, rtol=1e-9, atol=1e-12)
        assert np.allclose(eta, trace.eta, rtol=1e-9, atol=1e-12)


def by_delta(alpha, beta, reg, rho, discount, delta, x_eta):
    return alpha * delta, -alpha * x_eta, beta * (delta - x_eta), -beta * reg * delta


def by_branch(alpha, beta, reg, rho, discount, delta, x_eta):
    return alpha * delta, -alpha * x_eta, beta * (delta - x_eta), -beta if delta > 0 else -beta * reg


def by_clipping(alpha, beta, reg, rho, discount, delta, x_eta):
    return alpha * delta, -alpha * x_eta, beta * (delta - x_eta), max(-1.0, -beta * reg)


@pytest.mark.parametrize("step", [by_delta, by_branch, by_clipping])
def test_a_shrink_that_may_vary_within_a_segment_is_not_steady(step):
    assert not has_steady_shrink(replace(LEARNERS["tdrc"], name=step.__name__, step=step, expected=None))


def test_which_learners_shrink_steadily():
    assert {name for name, rule in LEARNERS.items() if has_steady_shrink(rule)} == {"gtd", "tdrc", "tdrc_dd"}


@pytest.mark.xdist_group("kernels of tdrc")
def test_a_rule_that_shrinks_by_the_signals_is_the_reference_too():
    rule = replace(LEARNERS["tdrc"], name="by_delta", step=by_delta, expected=None)
    run = LaneRun(TASK, [rule.setting(alpha=0.05, reg=0.3)], EPISODES)
    run.advance()
    trace = reference.run(TASK, rule, episodes=60, alpha=0.05, reg=0.3)
    assert np.allclose(run.weights()[1][0], trace.eta, rtol=1e-9, atol=1e-12)
