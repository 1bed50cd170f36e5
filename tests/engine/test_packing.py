"""Lanes that have diverged are left behind, and nobody can tell from the results."""

from unittest.mock import patch

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import lanes
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernels.state import MOST_LANES, new_lanes
from gradient_dd.engine.lanes import PER_LANE, LaneRun
from gradient_dd.engine.schedules import tapered
from gradient_dd.learners import LEARNERS

TAPER = tapered(50)
WALK, STAR = tasks.random_walk(5), tasks.baird(7)


def wild_and_calm(name, count=40):
    """Settings of which most diverge, at different times, in no order."""
    alphas = np.random.default_rng(1).permutation(np.geomspace(1e-3, 300.0, count))
    return [LEARNERS[name].setting(alpha=float(alpha)) for alpha in alphas]


def results_of(task, settings, horizon, pieces=400, schedule=TAPER):
    run, sizes = LaneRun(task, settings, horizon, schedule), set()
    while not run.done:
        run.advance(pieces)
        sizes |= {len(block.small[1].now) if len(block.places) else 0 for block in run.blocks}
    return run.results(), sizes


def assert_same(left, right):
    for name in left.__dataclass_fields__:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


@pytest.mark.parametrize(
    ("name", "task", "horizon"),
    [
        pytest.param(name, task, horizon, marks=pytest.mark.xdist_group(f"kernels of {name}"), id=f"{name}-{task.name}")
        for name, task, horizon in (
            *((name, WALK, Horizon(episodes=400)) for name in ("tdrc", "gradient_dd")),
            ("gradient_dd", STAR, Horizon(steps=5000, every=100)),
            ("natural_tdc", STAR, Horizon(steps=3000, every=6)),
        )
    ],
)
def test_leaving_diverged_lanes_behind_changes_no_result(name, task, horizon):
    settings = wild_and_calm(name)
    left_behind, sizes = results_of(task, settings, horizon)
    with patch.object(lanes, "saves_a_strip", lambda diverged, width: False):
        whole, one_size = results_of(task, settings, horizon)
    assert_same(left_behind, whole)
    assert one_size == {40}
    assert min(sizes) < 40, "lanes were left behind"
    assert whole.diverged_step.any()
    assert not whole.diverged_step.all()


@pytest.mark.xdist_group("kernels of tdrc")
@pytest.mark.parametrize("count", [MOST_LANES - 8, MOST_LANES])
def test_a_block_with_as_many_lanes_as_the_fields_have_places_is_no_exception(count):
    settings, horizon = wild_and_calm("tdrc", count), Horizon(episodes=200)
    left_behind, sizes = results_of(WALK, settings, horizon)
    assert min(sizes) < count, "lanes were left behind"
    with patch.object(lanes, "saves_a_strip", lambda diverged, width: False):
        assert_same(left_behind, results_of(WALK, settings, horizon)[0])


@pytest.mark.xdist_group("kernels of td")
def test_a_block_in_which_all_have_diverged_computes_nothing_more():
    settings = [LEARNERS["td"].setting(alpha=alpha) for alpha in (50.0, 60.0, 70.0)]
    horizon = Horizon(episodes=2000)
    fast, sizes = results_of(WALK, settings, horizon)
    assert 0 in sizes
    with patch.object(lanes, "saves_a_strip", lambda diverged, width: False):
        assert_same(fast, results_of(WALK, settings, horizon)[0])


def test_every_array_with_a_column_for_each_lane_is_packed():
    """An array that is left as wide as the whole block is read and written beyond the ends of the others."""
    for rule in (form for one in LEARNERS.values() for form in (one.plain, one.traced)):
        for few, many in zip(lanes_of(rule, 8), lanes_of(rule, 16), strict=True):
            grow = {name for name in few._fields if getattr(few, name).size != getattr(many, name).size}
            assert grow <= set(PER_LANE), rule.name


def lanes_of(rule, width):
    """Return fresh lanes of a rule for the traced kernel and for the fused one."""
    settings, task = [rule.setting(alpha=0.1)], (STAR.initial_weights, STAR.action_probabilities)
    return [new_lanes(settings, width, 3, *task, fused) for fused in (False, True)]
