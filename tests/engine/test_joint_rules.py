"""Settings of several rules in one block: nobody can tell from the results."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernels import rules as kernel_rules
from gradient_dd.engine.kernels.rules import FEW, JointRule, can_join, joint_rule, joint_source
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.schedules import tapered
from gradient_dd.learners import LEARNERS

FIVE = ("td", "gtd2", "tdc", "tdrc", "gradient_dd")
WALK, STAR = tasks.random_walk(6), tasks.baird(7)
pytestmark = pytest.mark.xdist_group("kernels of joint rules")


def some_settings(names=FIVE, modes=("R",)):
    """A few settings of each learner; the largest step sizes diverge."""
    alphas = (0.01, 0.1, 0.5, 40.0)
    return [
        LEARNERS[name].setting(alpha=alpha, rho_mode=mode)
        for mode in modes
        for name in names
        for alpha in alphas
        if mode == "R" or LEARNERS[name].has_rho_mode
    ]


def finished(task, settings, horizon, pieces=None):
    run = LaneRun(task, settings, horizon, tapered(20))
    while not run.done:
        run.advance(pieces)
    return run


def everything(run):
    """All results, and the weights of the lanes that have not diverged."""
    results = run.results()
    kept = results.diverged_step[0] == 0
    return [getattr(results, name) for name in results.__dataclass_fields__] + [one[kept] for one in run.weights()]


@pytest.mark.parametrize(
    ("task", "horizon", "names", "modes"),
    [
        pytest.param(WALK, Horizon(episodes=60), FIVE, ("R",), id="walk"),
        pytest.param(STAR, Horizon(steps=2000, every=10), ("gtd2", "tdrc", "gradient_dd"), ("R", "T"), id="star"),
    ],
)
def test_a_lane_has_the_results_of_a_block_of_its_own_rule(task, horizon, names, modes):
    settings = some_settings(names, modes)
    together = finished(task, settings, horizon, pieces=700)
    assert len(together.blocks) == len(modes)
    assert len({block.kernel for block in together.blocks}) == 1
    with patch.object(kernel_rules, "FEW", 0):
        alone = finished(task, settings, horizon)
    assert len(alone.blocks) == 5
    for left, right in zip(everything(together), everything(alone), strict=True):
        assert np.array_equal(left, right)
    diverged = together.results().diverged_step
    assert diverged.any()
    assert not diverged.all()


def test_only_rules_with_few_lanes_join():
    many = [LEARNERS["td"].setting(alpha=0.01 * (i + 1)) for i in range(FEW + 1)]
    few = some_settings(("gtd2", "tdc"))
    rules = [block.settings[0].rule for block in LaneRun(WALK, many + few, Horizon(episodes=1)).blocks]
    assert [rule.name for rule in rules] == ["td", "gtd2 + tdc"]
    (block,) = LaneRun(WALK, some_settings(("gtd2",)), Horizon(episodes=1)).blocks
    assert not isinstance(block.settings[0].rule, JointRule)


def test_the_order_of_the_settings_makes_no_other_kernel():
    kernels = [
        LaneRun(WALK, some_settings(names), Horizon(episodes=1)).blocks[0].kernel
        for names in (("gtd2", "tdc"), ("tdc", "gtd2"))
    ]
    assert kernels[0] is kernels[1]


def test_times_of_learners_that_share_a_kernel_are_not_told_apart():
    many = [LEARNERS["td"].setting(alpha=0.01 * (i + 1)) for i in range(FEW + 1)]
    run = finished(WALK, many + some_settings(("gtd2", "tdc")), Horizon(episodes=2))
    assert set(run.costs()) == {"td"}


def by_delta(alpha, beta, reg, rho, discount, delta, x_eta):
    return alpha * delta, -alpha * x_eta, beta * (delta - x_eta), -beta * reg * delta


def test_natural_rules_rules_with_a_trace_and_unsteady_shrinks_stay_alone():
    unsteady = replace(LEARNERS["tdrc"].plain, name="by_delta", step=by_delta, expected=None)
    traced = LEARNERS["td"].setting(lam=0.5).rule
    assert not any(map(can_join, (LEARNERS["natural_gtd2"], unsteady, traced)))
    assert all(can_join(LEARNERS[name].plain) for name in (*FIVE, "gtd"))


def test_the_source_of_a_joint_step_chooses_among_the_moves_of_its_parts():
    parts = tuple(LEARNERS[name].plain for name in ("td", "gtd2"))
    rule = joint_rule(parts)
    assert rule.moves == ("w_x", "w_next", "eta_x")
    assert rule.arguments == ("alpha", "beta", "rho", "rho_x", "discount", "delta", "x_eta", "member")
    assert joint_source(parts).splitlines() == [
        "def step(alpha, beta, rho, rho_x, discount, delta, x_eta, member):",
        "    w_x_0, = step_0(alpha, rho, delta)",
        "    w_x_1, w_next_1, eta_x_1, = step_1(alpha, beta, rho, rho_x, discount, delta, x_eta)",
        "    w_x = w_x_0 if member == 0.0 else w_x_1",
        "    w_next = 0.0 if member == 0.0 else w_next_1",
        "    eta_x = 0.0 if member == 0.0 else eta_x_1",
        "    return (w_x, w_next, eta_x,)",
    ]
