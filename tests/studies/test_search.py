"""The search: the same budget for every rule, open edges, exact given values, and refusals."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Parameter
from gradient_dd.learners.rule import ALPHA
from gradient_dd.studies.search import FULL, QUICK, Budget, SearchAxis, search, space_of
from gradient_dd.tasks import collision

CLIP = Parameter("clip", "bound of δ", default=1.0)
CLIPPED = replace(
    LEARNERS["td"].plain, name="clipped", parameters=(ALPHA, CLIP), step=lambda alpha, clip, delta: (alpha * delta,)
)


class Valley:
    """Errors with a minimum at given values, the same in every run but for small noise; counts what is evaluated."""

    def __init__(self, **best):
        self.best, self.evaluated, self.runs = best, 0, set()

    def __call__(self, settings, runs):
        self.evaluated += len(settings) * len(runs)
        self.runs |= set(runs)
        gaps = [sum(abs(np.log2(one.values[name] / best)) for name, best in self.best.items()) for one in settings]
        noise = np.random.default_rng(0).random((len(settings), len(runs)))
        return np.array(gaps)[:, None] + 1.0 + 1e-6 * noise


ONE_OF_EACH_SIZE = {len(rule.defaults): name for name, rule in LEARNERS.items()}.values()


@pytest.mark.parametrize("budget", [FULL, QUICK])
@pytest.mark.parametrize("name", ONE_OF_EACH_SIZE)
def test_every_learner_spends_exactly_the_budget(name, budget):
    errors = Valley(alpha=0.03)
    search(space_of(LEARNERS[name], task=collision(seed=0), budget=budget), errors, budget)
    assert errors.evaluated == budget.lane_runs
    assert errors.runs == set(range(budget.finals[-1][1]))


def test_the_minimum_between_the_values_to_try_is_found():
    found = search(space_of(LEARNERS["gradient_dd"]), Valley(alpha=0.02, zeta=0.03, kappa=2.4))
    for name, best in (("alpha", 0.02), ("zeta", 0.03), ("kappa", 2.4)):
        assert abs(np.log2(found.setting.values[name] / best)) < 0.3


def test_the_edges_are_open():
    found = search(space_of(LEARNERS["gtd2"]), Valley(alpha=2.0, zeta=32.0))
    assert found.setting.values["alpha"] > 1.0
    assert found.setting.values["zeta"] > 8.0


def test_the_same_search_finds_the_same():
    first, second = (search(space_of(LEARNERS["tdc"]), Valley(alpha=0.1, zeta=0.3)) for _ in range(2))
    assert [one.setting for one in first.trail] == [one.setting for one in second.trail]


def test_the_trail_has_every_setting_once_and_begins_with_the_selected_one():
    found = search(space_of(LEARNERS["tdc"]), Valley(alpha=0.1, zeta=0.3))
    assert found.trail[0].setting is found.setting
    assert len(found.trail) == FULL.coarse + FULL.refined
    assert len({str(one.setting) for one in found.trail}) == len(found.trail)
    means = [one.errors.mean() for one in found.trail if len(one.errors) == FULL.finals[-1][1]]
    assert len(means) == FULL.finals[-1][0]
    assert all(left <= right for left, right in pairwise(means))


def test_a_rule_that_diverges_everywhere_gets_a_setting():
    found = search(space_of(LEARNERS["td"]), lambda settings, runs: np.full((len(settings), len(runs)), np.inf))
    assert found.setting.rule.name == "td"


def test_a_parameter_without_values_to_try_is_refused():
    with pytest.raises(BadRequestError, match="The parameter 'clip' of clipped has no values to try"):
        space_of(CLIPPED)
    assert [axis.name for axis in space_of(CLIPPED, {"clip": (0.1, 1.0)}).axes] == ["alpha", "clip"]


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"clop": (1.0,)}, "Unknown parameter of clipped: 'clop'. Did you mean 'clip'"),
        ({"clip": (-1.0,)}, "'clip' of clipped must be"),
        ({"clip": tuple(range(1, 100))}, "must have at most 60 combinations besides alpha. Got 99"),
    ],
)
def test_a_wrong_grid_is_refused(grid, words):
    with pytest.raises(BadRequestError, match=words):
        space_of(CLIPPED, grid)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_registered_learner_declares_its_values_to_try(name):
    space = space_of(LEARNERS[name], task=collision(seed=0))
    assert {axis.name for axis in space.axes} == set(LEARNERS[name].defaults)
    assert len(space.coarse()) <= FULL.coarse


def test_given_values_stay_exact_and_bounds_are_reached():
    axis = SearchAxis(Parameter("lam", "λ", 0.0, high=1.0), (0.0, 0.3, 0.9))
    assert [axis.value(axis.coordinate(value)) for value in axis.values] == [0.0, 0.3, 0.9]
    place = axis.coordinate(0.9)
    for _ in range(9):
        place = axis.moved(place, 1.0)
    assert axis.value(place) == 1.0
    for _ in range(20):
        place = axis.moved(place, -1.0)
    assert axis.value(place) == 0.0


def test_an_axis_with_zero_can_return_to_zero():
    axis = SearchAxis(Parameter("kappa", "κ", 1.0), (0.0, 1.0, 4.0))
    assert axis.value(axis.moved(axis.coordinate(0.0), -1.0)) == 0.0
    assert axis.value(axis.moved(axis.coordinate(4.0), 1.0)) > 4.0


def test_a_budget_counts_its_pairs():
    assert Budget(coarse=10, refined=5, runs=2, finals=((4, 6), (2, 8))).lane_runs == 15 * 2 + 4 * 4 + 2 * 2
