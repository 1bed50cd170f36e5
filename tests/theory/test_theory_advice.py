"""Advice: it finds known optima, keeps away from edges, never judges a setting on old runs, and keeps to its budget."""

from math import inf, log2
from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon, LaneResults
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.schedules import constant, tapered
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Parameter, Rule
from gradient_dd.learners.rule import ALPHA
from gradient_dd.studies.search import FULL, QUICK
from gradient_dd.theory import advice as module
from gradient_dd.theory.advice import (
    BUDGETS,
    SEED,
    SPECIAL_CASES,
    Pilot,
    advise,
    coarser,
    generalised,
    judged,
    part_of,
    searches_of,
    tuned,
)

WALK, OFF_POLICY, LENGTH = tasks.random_walk(4), tasks.random_mdp(seed=2), Horizon(steps=1000)
SMALL = BUDGETS[-1]


def searches(*names, task=WALK, budget=QUICK):
    return [one for name in names for one in searches_of(task, LEARNERS[name], LENGTH, budget)]


def spaces(*names, task=WALK):
    return [space for space, _ in searches(*names, task=task)]


# Settings


@pytest.mark.parametrize("learner", SPECIAL_CASES)
def test_a_special_case_makes_the_same_steps_to_the_bit(learner):
    rows, (row, next_row, reward, discount, rho, _) = OFF_POLICY.row_features.toarray(), OFF_POLICY.transitions
    for space in spaces(learner, task=OFF_POLICY):
        own = space.setting(space.coarse()[10])
        settings = own, generalised(own)
        assert [one.rule.name for one in settings] == [learner, SPECIAL_CASES[learner][0]]
        both = [Weights(setting, OFF_POLICY.initial_weights) for setting in settings]
        for o in OutcomeSampler(OFF_POLICY).take(300):
            for weights, setting in zip(both, settings, strict=True):
                weights.advance(setting, 0.5, rows[row[o]], reward[o], discount[o], rows[next_row[o]], rho[o])
        assert np.array_equal(both[0].w, both[1].w)
        assert np.abs(both[0].w - OFF_POLICY.initial_weights).max() > 0


def test_a_rule_of_the_same_name_is_not_run_as_a_special_case():
    mine = Rule("td", "mine", lambda alpha, delta: (2 * alpha * delta,), ("w_x",), (ALPHA,), "", __name__)
    assert generalised(mine.setting(alpha=0.1)).rule is mine


def test_spaces_follow_the_scale_of_the_features_the_length_and_the_ratios():
    mean_square = OFF_POLICY.visits @ (OFF_POLICY.features**2).sum(axis=1)
    plain, other = spaces("gtd2", task=OFF_POLICY)
    assert (plain.rho_mode, other.rho_mode) == ("R", "T")
    alphas = plain.axes[0].values
    assert alphas[-1] == pytest.approx(4 / mean_square)
    assert alphas[0] == pytest.approx(alphas[-1] / 2**14)  # 16 × 1000 steps; there w hardly moves
    assert [space.rho_mode for space in spaces("gtd2", "td")] == ["R", "R"]
    assert [space.rho_mode for space in spaces("td", task=OFF_POLICY)] == ["R"]
    longest = searches_of(WALK, LEARNERS["td"], Horizon(steps=10**12), FULL)[0][0].axes[0]
    assert longest.values[0] == pytest.approx(longest.values[-1] / 2**22)


def test_a_parameter_without_scale_keeps_its_default_and_one_without_values_gets_three():
    (space,) = spaces("gradient_dd")
    assert {axis.name: axis.values for axis in space.axes if axis.name != "alpha"} == {
        "zeta": (1 / 64, 1 / 8, 1.0, 8.0),
        "kappa": (1.0, 8.0),
        "lam": (0.0,),
    }
    parts = Parameter("c", "", 0.5), Parameter("d", "", 0.5, high=1.0)
    own = Rule("own", "", lambda alpha, c, d, delta: (alpha * c * d * delta,), ("w_x",), (ALPHA, *parts), "", "")
    ((space, _),) = searches_of(WALK, own, LENGTH, QUICK)
    assert {axis.name: axis.values for axis in space.axes[1:]} == {"c": (0.125, 0.5, 2.0), "d": (0.125, 0.5, 1.0)}


# The search and the judge, on errors that are known


class KnownErrors:
    """A pilot whose errors are a function of a setting, times noise; it notes what was run, and how."""

    def __init__(self, error, noise=0.0, rare=lambda setting: False, seconds=1e-3):
        self.error, self.noise, self.rare, self.seconds, self.calls = error, noise, rare, seconds, []

    def run(self, settings, runs):
        self.calls.append((settings, runs))
        means = np.array([self.error(one.rule.name, one.values) for one in settings])
        factors = np.random.default_rng(runs.start).lognormal(0, self.noise, (len(runs), 1)) if self.noise else 1.0
        errors = np.broadcast_to(means, (len(runs), len(settings))) * factors
        if runs.start >= 10_000:
            errors[-1, [self.rare(one) for one in settings]] = inf
        return SimpleNamespace(mean_error=errors, last100=errors * 2, curve=np.repeat(errors[:, :, None], 5, axis=2))

    def core_seconds(self, lane_runs, runs):
        return self.seconds * (10 * runs + lane_runs)

    def advice(self, *names, budget=5.0):
        self.told = []
        best = tuned(self, searches(*names), "mean_error", self.told.append)
        return judged(self, best, "mean_error", budget, self.told.append)


def bowl(**best):
    """Return 1 and more, least at these parameters, doubled two octaves away from one of them."""
    return lambda values: 1 + sum((log2(values[name] / at) / 2) ** 2 for name, at in best.items())


@pytest.mark.parametrize("at", [(0.011, 0.3, 0.7), (0.3, 2.3, 11.0), (0.0027, 0.09, 4.0)])
def test_the_search_finds_a_known_optimum(at):
    alpha, zeta, kappa = at
    inside = bowl(alpha=alpha, zeta=zeta, kappa=kappa)
    pilot = KnownErrors(lambda name, v: inside(v) if name == "gradient_dd" else 1.8 * bowl(alpha=0.1)(v))
    first, second = pilot.advice("td", "gradient_dd")
    assert (first.setting.rule.name, second.setting.rule.name) == ("gradient_dd", "td")
    assert first.mean_error.mean < 1.15
    assert second.mean_error.mean < 1.02 * 1.8
    shares = [progress.share for progress in pilot.told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1], len(shares)) == (0, 0.9, len(pilot.calls))


def test_searches_share_their_runs_and_the_judge_has_runs_of_its_own():
    pilot = KnownErrors(lambda name, values: bowl(alpha=0.1)(values))
    pilot.advice("td", "gtd2", "gradient_dd")
    *searched, (beside, judge) = pilot.calls
    assert all({one.rule.name for one in settings} == {"td", "gtd2", "gradient_dd"} for settings, _ in searched)
    assert {run for _, runs in searched for run in runs} == set(range(20))
    assert judge == range(10_000, 10_064)
    assert len(beside) == 9


def test_no_two_rounds_share_a_run(monkeypatch):
    """Each range of runs has a seed of its own, far from those of studies."""
    asked = []

    def run_lanes(task, settings, horizon, **how):
        asked.append((settings, horizon, how))
        return LaneResults(*np.zeros((6, 1, 1)))

    monkeypatch.setattr("gradient_dd.engine.lanes.run_lanes", run_lanes)
    pilot = Pilot(WALK, Horizon(episodes=80), tapered(9), "iid")
    for runs in (range(7), range(7), range(7, 9)):
        pilot.run([LEARNERS["td"].setting(alpha=0.1)], runs)
    assert [how.pop("seed") for _, _, how in asked] == [SEED, SEED, SEED + 7]
    settings, horizon, how = asked[0]
    assert [setting.values["zeta"] for setting in settings] == [0]
    assert (horizon, how) == (Horizon(episodes=80), {"schedule": tapered(9), "sampling": "iid", "runs": 7})


@pytest.mark.parametrize(
    ("above", "below", "back"),
    [(2.1, 1.1, True), (2.1, 1.2, False), (2.0, 1.0, False), (3.9, 1.15, True), (inf, 1.0, True)],
)
def test_a_step_back_is_made_from_an_edge_where_it_costs_little(above, below, back):
    pilot = KnownErrors(lambda name, v: above if v["alpha"] > 0.11 else below if v["alpha"] < 0.09 else 1.0)
    (one,) = judged(pilot, [LEARNERS["td"].setting(alpha=0.1)], "mean_error", 5.0, print)
    assert one.setting.values["alpha"] == pytest.approx(0.1 / 2**0.5 if back else 0.1)


def test_where_rare_runs_go_wrong_smaller_step_sizes_are_judged():
    for most, least in ((0.02, 0.01), (0.09, 0.06)):  # two octaves below the best, and half an octave
        rare = lambda one, most=most: one.values["alpha"] > most  # noqa: E731
        (one,) = KnownErrors(lambda name, v: bowl(alpha=0.1)(v), rare=rare).advice("td")
        assert least < one.setting.values["alpha"] <= most
        assert np.isfinite(one.mean_error.mean)
    assert KnownErrors(lambda name, v: bowl(alpha=0.1)(v), rare=lambda one: True).advice("td") == []
    assert KnownErrors(lambda name, values: inf).advice("td", "gradient_dd") == []


@pytest.mark.parametrize(("budget", "runs"), [(0.001, 4), (0.4, 7), (1000.0, 64)])
def test_the_judge_makes_as_many_runs_as_its_share_of_the_budget_pays_for(budget, runs):
    pilot = KnownErrors(lambda name, values: 1.0, noise=0.3)
    (one,) = judged(pilot, [LEARNERS["td"].setting(alpha=0.1)], "mean_error", budget, print)
    assert one.mean_error.runs == one.last100.runs == len(one.curve) == runs
    assert one.last100 == pytest.approx((2 * one.mean_error.mean, 2 * one.mean_error.doubt, runs))
    assert one.mean_error.doubt == pytest.approx(one.curve[:, 0].std(ddof=1) / runs**0.5)


# Advice


@pytest.fixture
def known(monkeypatch):
    """Return a function that makes the pilots of `advise` return known errors, and a list of these pilots."""
    made = []

    def use(error, seconds=1e-9):
        class Known(Pilot):
            def __init__(self, *given):
                super().__init__(*given)
                made.append(self)

            def core_seconds(self, lane_runs, runs):
                return seconds * self.horizon.points * (10 * runs + lane_runs)

            def run(self, settings, runs):
                return KnownErrors(error).run(settings, runs)

        monkeypatch.setattr(module, "Pilot", Known)
        return made

    return use


@pytest.mark.parametrize(("edge", "winner"), [(1.019, "td"), (1.021, "gradient_dd")])
def test_of_learners_that_are_alike_within_two_per_cent_the_simplest_wins(edge, winner, known):
    known(lambda name, v: bowl(alpha=0.125)(v) * (edge if name == "td" else 1.0))
    found = advise(WALK, LENGTH, learners=["gradient_dd", "td"])
    assert found.best.setting.rule.name == winner
    assert found.candidates[0].setting.rule.name == "gradient_dd"


def test_advice_names_what_diverged_and_what_was_not_tried(known):
    known(lambda name, values: inf if name == "td" else bowl(alpha=0.1)(values))
    found = advise(WALK, LENGTH, learners=["td", "gradient_dd", "td"])
    assert found.left_out["td"] == "diverged with every setting that was tried"
    assert found.left_out["gtd"] == "not among the learners to try"
    assert set(found.left_out) | {"gradient_dd"} == set(LEARNERS)
    assert found.candidates == [found.best]
    known(lambda name, values: inf)
    none = advise(WALK, LENGTH)
    assert (none.best, none.candidates, none.beats_standing_still) == (None, [], False)


def test_advice_beats_standing_still_only_where_the_error_asked_for_is_smaller(known):
    initial = WALK.rmsve(WALK.initial_weights)
    for share, beats in ((1.1, False), (0.6, True), (0.4, True)):
        known(lambda name, values, share=share: share * initial)
        assert advise(WALK, LENGTH).beats_standing_still == beats
        assert advise(WALK, LENGTH, measure="last100").beats_standing_still == (2 * share < 1)


@pytest.mark.parametrize(
    ("seconds", "coarse", "points"), [(1e-9, 60, 1000), (4e-6, 40, 1000), (1e-5, 24, 1000), (4e-5, 24, 386)]
)
def test_the_largest_budget_that_fits_is_spent_and_a_horizon_is_cut_for_the_smallest(seconds, coarse, points, known):
    pilots = known(lambda name, values: bowl(alpha=0.1)(values), seconds=seconds)
    told = []
    found = advise(WALK, LENGTH, learners=["td"], on_progress=told.append)
    assert told[0].doing.startswith(f"search: {coarse} settings")
    assert found.pilot_horizon.points == pilots[0].horizon.points == pytest.approx(points, rel=0.01)
    assert found.horizon.points == 1000
    assert found.is_cut == (points < 1000)


def test_a_pilot_whose_shortest_run_is_too_long_is_refused(known):
    known(None, seconds=0.1)
    with pytest.raises(BadRequestError, match=r"must take at most 6\.5 s of a core for the shortest run. Got 'about"):
        advise(WALK, Horizon(episodes=3))


def test_the_cost_of_a_pilot_counts_steps_rows_and_errors():
    """A step of one setting is 40 ns and 0.35 ns a row, where few rows are touched; an error 1 ns a non-zero."""
    walk = Pilot(tasks.random_walk(3), Horizon(steps=1000), constant, "iid")
    assert walk.core_seconds(10, 1) == pytest.approx(1e-9 * (1000 * (40 + 0.35 * 2 * 10) + 10 * (3000 - 2000)))
    assert walk.core_seconds(20, 2) == pytest.approx(2 * walk.core_seconds(10, 1))
    rounds = [2 * coarse * 3 + 12 * 7 + 4 * 10 for coarse in (24, 48, 96)]
    assert walk.cost(searches("td", "gtd2", "gradient_dd")) == pytest.approx(walk.core_seconds(sum(rounds), 4 * 3 + 20))
    rarely = Pilot(tasks.random_walk(3), Horizon(steps=1000, every=100), constant, "iid")
    assert rarely.core_seconds(10, 1) == pytest.approx(1e-9 * 1000 * (40 + 0.35 * 2 * 10))
    for p, once, each in ((8, 40, 0.35), (9, 1000, 0.9)):
        wide = Pilot(tasks.random_mdp(9, 2, p), Horizon(steps=1000, every=1000), constant, "iid")
        assert wide.core_seconds(10, 1) == pytest.approx(1e-9 * 1000 * (once + each * p * 10))


def test_horizons_are_coarsened_and_cut():
    assert coarser(Horizon(episodes=9000)) == Horizon(episodes=9000)
    assert coarser(Horizon(steps=2000)) == Horizon(steps=2000)
    assert coarser(Horizon(steps=4000)) == Horizon(steps=4000, every=2)
    assert coarser(Horizon(steps=10_003)) == Horizon(steps=10_000, every=5)
    assert part_of(Horizon(episodes=1000), 4) == Horizon(episodes=250)
    assert part_of(Horizon(steps=1000, every=10), 4) == Horizon(steps=250, every=10)
    assert part_of(Horizon(episodes=3), 100) == Horizon(episodes=1)


def test_advice_refuses_what_it_cannot_run():
    for words, sentence in (
        ({"task": tasks.baird(3), "horizon": Horizon(episodes=5)}, "must be given in 'steps'"),
        ({"schedule": 3}, "schedule"),
        ({"sampling": "some"}, "'sampling' must be 'trajectory' or 'iid'. Got 'some'."),
        ({"learners": ["tdd"]}, "Unknown learner 'tdd'"),
        ({"learners": 3}, "Unknown learner 3"),
        ({"measure": "mean"}, "'measure' must be 'mean_error' or 'last100'"),
        ({"budget": -1.0}, "'budget' must be a positive number of seconds. Got -1."),
    ):
        with pytest.raises(BadRequestError, match=sentence):
            advise(**({"task": WALK, "horizon": Horizon(episodes=5)} | words))
