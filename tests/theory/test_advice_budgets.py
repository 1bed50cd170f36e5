"""Budgets of advice, and what a stage of its search follows: quick tests, mostly without a run."""

from math import inf

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import constant, tapered
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Parameter, Rule
from gradient_dd.learners.rule import ALPHA
from gradient_dd.theory.advice import Advice, AdviceSearch, advise, advise_with, coarser, neighbours
from gradient_dd.theory.pilot import Point, PointErrors, TaskPilot, part_of, spaces_of
from tests.theory.test_theory_advice import KnownErrors, Priced, bowl, spaces


@pytest.mark.parametrize(
    ("stage", "budget", "runs"),
    [
        *(("scout", 0.1, 1), ("scout", 14.9, 2), ("scout", 15.0, 3), ("scout", 1000.0, 4)),
        *(("full", 0.1, 1), ("full", 14.9, 2), ("full", 15.0, 3), ("full", 1000.0, 4)),
        *(("refine", 0.1, 2), ("refine", 39.9, 9), ("refine", 40.0, 10), ("refine", 1000.0, 32)),
        *(("judge", 0.1, 4), ("judge", 39.9, 9), ("judge", 40.0, 10), ("judge", 1000.0, 64)),
    ],
)
def test_a_stage_makes_as_many_runs_as_its_share_of_the_budget_pays_for(stage, budget, runs):
    search = AdviceSearch(Priced(None), "mean_error", budget, lambda doing, share: None)
    assert search.affordable_runs(stage, 1, 1) == runs
    assert search.affordable_runs(stage, 2, 2) == runs


@pytest.mark.parametrize(("each", "words"), [(0.0015, ""), (0.0016, ", about 0.1 s of core time")])
def test_a_stage_is_announced_with_its_cost_unless_it_is_short(each, words):
    pilot, told = KnownErrors(lambda name, values: 1.0, names=("td",)), []
    pilot.core_seconds = lambda settings, runs=1, share=1.0: each * settings * runs
    search = AdviceSearch(pilot, "mean_error", 1000.0, lambda *given: told.append(given))
    search.run("judge", [Point(pilot.spaces[0], pilot.spaces[0].coarse()[0])])
    assert told == [(f"judge: 1 settings, 64 runs{words}", 0.0)]


def test_the_cost_of_a_pilot_counts_steps_rows_and_errors():
    """A step of one setting is 40 ns and 0.35 ns a row, where few rows are touched; an error 1 ns a non-zero."""
    walk = TaskPilot(tasks.random_walk(3), Horizon(steps=1000), constant, "iid", [])
    assert walk.core_seconds(10) == pytest.approx(1e-9 * (1000 * (40 + 0.35 * 2 * 10) + 10 * (3000 - 2000)))
    assert walk.core_seconds(10, runs=6, share=3) == pytest.approx(2 * walk.core_seconds(10))
    rarely = TaskPilot(tasks.random_walk(3), Horizon(steps=1000, every=100), constant, "iid", [])
    assert rarely.core_seconds(10) == pytest.approx(1e-9 * 1000 * (40 + 0.35 * 2 * 10))
    for p, once, each in ((8, 40, 0.35), (9, 1000, 0.9)):
        wide = TaskPilot(tasks.random_mdp(9, 2, p), Horizon(steps=1000, every=1000), constant, "iid", [])
        assert wide.core_seconds(10) == pytest.approx(1e-9 * 1000 * (once + each * p * 10))


@pytest.mark.parametrize(("longer", "points"), [(1.499, 1000), (1.51, round(1000 / 1.51)), (10.0, 100)])
def test_a_horizon_is_cut_where_150_settings_take_more_than_a_fifth_of_the_budget(longer, points):
    pilot = KnownErrors(lambda name, values: bowl(alpha=0.1)(values), names=("td",), seconds=longer / (160 * 1e5))
    advice = advise_with(pilot, "mean_error", 5.0, lambda doing, share: None, initial_error=2.0)
    assert advice.pilot_horizon.points == points
    assert advice.horizon.points == 1000
    assert advice.is_cut == (points < 1000)
    assert advice.best is advice.candidates[0]


def test_a_pilot_whose_shortest_run_is_too_long_is_refused():
    pilot = KnownErrors(None, names=("td",), seconds=5.1 / (160 * 100))
    with pytest.raises(
        BadRequestError, match=r"must take at most 5 s of core time for 150 settings and the shortest run"
    ):
        advise_with(pilot, "mean_error", 5.0, lambda doing, share: None, initial_error=2.0)
    with pytest.raises(BadRequestError, match="'measure' must be 'mean_error' or 'last100'"):
        advise_with(pilot, "mean", 5.0, lambda doing, share: None, initial_error=2.0)


def test_about_two_thousand_errors_are_taken_in_a_run():
    assert coarser(Horizon(episodes=9000)) == Horizon(episodes=9000)
    assert coarser(Horizon(steps=2000)) == Horizon(steps=2000)
    assert coarser(Horizon(steps=4000)) == Horizon(steps=4000, every=2)
    assert coarser(Horizon(steps=10_003)) == Horizon(steps=10_000, every=5)


def test_advice_for_a_task_searches_the_scale_of_its_features_for_its_length(monkeypatch):
    asked = []
    monkeypatch.setattr("gradient_dd.theory.advice.advise_with", lambda *given: asked.append(given))
    task, told = tasks.baird(3), print
    advise(task, Horizon(steps=4000), tapered(9), sampling="iid", learners=["gtd2", "gtd2"], on_progress=told)
    pilot, measure, budget, on_progress, initial_error = asked[0]
    assert (measure, budget, on_progress) == ("mean_error", 6.5, told)
    assert (pilot.task, pilot.horizon) == (task, Horizon(steps=4000, every=2))
    assert (pilot.schedule, pilot.sampling) == (tapered(9), "iid")
    assert initial_error == task.rmsve(task.initial_weights)
    mean_square = task.visits @ (task.features**2).sum(axis=1)
    assert [(space.rule.name, space.rho_mode) for space in pilot.spaces] == [("gtd2", "R"), ("gtd2", "T")]
    alphas = pilot.spaces[0].axes[0].values
    assert max(alphas) == pytest.approx(4 / mean_square)
    assert len(alphas) == 16  # octaves of 16 × 4000
    advise(tasks.random_walk(3), Horizon(episodes=50))
    names = ["td", "tdc", "tdrc", "gtd2", "gradient_dd"]
    assert [(space.rule.name, space.rho_mode) for space in asked[1][0].spaces] == [(name, "R") for name in names]
    nearly = tasks.random_mdp(2, 2, 2, seed=10)  # ratios that differ by half
    advise(nearly, Horizon(steps=50), learners=["gtd2"])
    assert [space.rho_mode for space in asked[2][0].spaces] == ["R", "T"]


def test_advice_beats_standing_still_only_where_the_error_asked_for_is_smaller():
    pilot = KnownErrors(lambda name, values: bowl(alpha=0.125)(values), names=("td",))
    for measure, error in (("mean_error", 1.0), ("last100", 2.0)):
        for initial, beats in ((error, False), (error + 1e-9, True)):
            advice = advise_with(pilot, measure, 5.0, lambda doing, share: None, initial)
            assert advice.error_of(advice.best).mean == error
            assert advice.beats_standing_still == beats
    assert isinstance(advice, Advice)


def test_advice_refuses_what_it_cannot_run():
    walk = tasks.random_walk(3)
    for words, sentence in (
        ({"task": tasks.baird(3), "horizon": Horizon(episodes=5)}, "must be given in 'steps'"),
        ({"schedule": 3}, "schedule"),
        ({"sampling": "some"}, "'sampling' must be 'trajectory' or 'iid'. Got 'some'."),
        ({"learners": ["tdd"]}, "Unknown learner 'tdd'"),
        ({"learners": 3}, "Unknown learner 3"),
        ({"budget": -1.0}, "'budget' must be a positive number of seconds. Got -1."),
    ):
        with pytest.raises(BadRequestError, match=sentence):
            advise(**({"task": walk, "horizon": Horizon(episodes=5)} | words))


# What a stage follows, refines and recommends


SEARCH = AdviceSearch(None, "mean_error", 1.0, lambda doing, share: None)


def stage_of(means):
    """Return a stage with these mean errors by point, each the same on two runs."""
    return {point: PointErrors(point, *[np.full(2, mean)] * 3) for point, mean in means.items()}


def test_hopeless_lines_are_left_and_two_lines_of_a_learner_are_kept():
    td, gtd2 = spaces("td", "gtd2")
    td, lines = Point(td, td.coarse()[0]), [Point(gtd2, places) for places in gtd2.coarse()[:3]]
    assert len({one.line for one in lines}) == 3
    stage = stage_of({td: 1.0, lines[0]: 2.9, lines[1]: 3.0, lines[2]: 3.0, lines[0].moved(1): 2.8})
    assert SEARCH.best_of_lines(stage) == [td, lines[0].moved(1), lines[1]]
    assert SEARCH.best_of_lines(stage, several=True) == [td, lines[0].moved(1), lines[1], lines[2]]
    far = stage_of({td: 1.0, lines[0]: 3.1, lines[1]: 3.2, lines[2]: 3.3})
    assert SEARCH.best_of_lines(far) == [td]
    assert SEARCH.best_of_lines(far, several=True) == [td, lines[0], lines[1]]


@pytest.mark.parametrize(
    ("above", "below", "back"),
    [(2.1, 1.1, True), (2.1, 1.2, False), (2.0, 1.0, False), (3.9, 1.15, True), (inf, 1.0, True)],
)
def test_a_step_back_is_made_from_an_edge_where_it_costs_little(above, below, back):
    (space,) = spaces("td")
    point = Point(space, space.coarse()[0])
    stage = stage_of({point: 3.0, point.moved(0.5): 3 * above, point.moved(-0.5): 3 * below})
    assert SEARCH.stepped_back(stage, point) == (point.moved(-0.5) if back else point)


@pytest.mark.parametrize(("edge", "judged"), [(1.49, {"td", "gradient_dd"}), (1.51, {"gradient_dd"})])
def test_learners_within_half_of_the_best_error_are_judged(edge, judged):
    pilot = KnownErrors(lambda name, v: bowl(alpha=0.125)(v) * (edge if name == "td" else 1.0))
    search, _ = pilot.search()
    assert {name for name, row in search.rows.items() if row.stage == "judge"} == judged
    assert {point.learner for point in pilot.calls[-1][0]} == judged


def test_a_refinement_runs_neighbours_at_half_the_distance_then_a_quarter():
    pilot = KnownErrors(lambda name, v: bowl(alpha=0.125, zeta=1.0)(v), names=("gtd2",))
    pilot.search()
    best = next(point for point in pilot.calls[1][0] if point.setting.values["alpha"] == 0.125)
    for (points, _, _), distance in zip(pilot.calls[1:3], (0.5, 0.25), strict=True):
        assert {*neighbours(best, distance)} <= set(points)
    assert {best, best.moved(0.5), best.moved(-0.5)} <= set(pilot.calls[3][0])


@pytest.mark.parametrize(("edge", "winner"), [(1.019, "td"), (1.021, "gradient_dd")])
def test_errors_within_two_per_cent_are_alike(edge, winner):
    error = lambda name, v: bowl(alpha=0.125)(v) * (edge if name == "td" else 1.0)  # noqa: E731
    assert KnownErrors(error).search()[1].point.learner == winner


def test_the_grids_of_the_scout():
    """Alpha falls by octaves from 4 to where w hardly moves; zeta and kappa go by factors of 4."""
    for steps, octaves in ((1000.0, 14), (1024.0, 14), (1025.0, 15), (1e9, 22)):
        (space,) = spaces_of([LEARNERS["td"]], 0.5, steps, False)
        assert sorted(point_alphas(space), reverse=True) == [8 / 2**k for k in range(octaves)]

    def tried(rule, name):
        (space,) = spaces_of([rule], 1.0, 100.0, False)
        return sorted({space.setting(places).values[name] for places in space.coarse()})

    assert tried(LEARNERS["gtd2"], "zeta") == [4.0**k for k in range(-3, 4)]
    assert tried(LEARNERS["gradient_dd"], "zeta") == tried(LEARNERS["tdrc"], "zeta") == [4.0**k for k in range(-2, 2)]
    assert tried(LEARNERS["gradient_dd"], "kappa") == [4.0**k for k in range(-1, 3)]
    assert tried(LEARNERS["tdrc"], "reg") == [1.0]
    own = Rule(
        "own", "", lambda alpha, c, delta: (alpha * c * delta,), ("w_x",), (ALPHA, Parameter("c", "", 0.5)), "", ""
    )
    assert tried(own, "c") == [0.125, 0.5, 2.0]


def point_alphas(space):
    """Return the step sizes that a space tries first."""
    return [space.setting(places).values["alpha"] for places in space.coarse()]


def test_a_part_of_a_horizon_is_its_beginning():
    assert part_of(Horizon(episodes=1000), 4) == Horizon(episodes=250)
    assert part_of(Horizon(steps=1000, every=10), 4) == Horizon(steps=250, every=10)
    assert part_of(Horizon(episodes=3), 100) == Horizon(episodes=1)
