"""The search behind advice: it finds known optima, keeps away from edges, and never judges a point on old runs."""

from math import inf, log2

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon, LaneResults
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.schedules import tapered
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.learners import LEARNERS, Parameter, Rule
from gradient_dd.learners.rule import ALPHA
from gradient_dd.theory.advice import SHORT, AdviceSearch, advise_with, neighbours
from gradient_dd.theory.pilot import SEED, SPECIAL_CASES, Point, PointErrors, TaskPilot, generalised, spaces_of


def spaces(*names, steps=1000.0, off_policy=False):
    return spaces_of([LEARNERS[name] for name in names], 1.0, steps, off_policy)


# Spaces


@pytest.mark.parametrize("learner", SPECIAL_CASES)
def test_a_special_case_makes_the_same_steps_to_the_bit(learner):
    task = tasks.random_mdp(seed=2)
    rows, (row, next_row, reward, discount, rho, _) = task.row_features.toarray(), task.transitions
    for space in spaces(learner, off_policy=True):
        setting = Point(space, space.coarse()[-1]).moved(-7).setting
        settings = setting, generalised(setting)
        assert settings[0].rule.name == learner
        assert settings[1].rule.name == SPECIAL_CASES[learner][0]
        both = [Weights(setting, task.initial_weights) for setting in settings]
        for o in OutcomeSampler(task).take(300):
            for weights, setting in zip(both, settings, strict=True):
                weights.advance(setting, 0.5, rows[row[o]], reward[o], discount[o], rows[next_row[o]], rho[o])
        assert np.array_equal(both[0].w, both[1].w)
        assert np.abs(both[0].w - task.initial_weights).max() > 0


def test_a_rule_of_the_same_name_is_not_run_as_a_special_case():
    mine = Rule("td", "mine", lambda alpha, delta: (2 * alpha * delta,), ("w_x",), (ALPHA,), "", __name__)
    (space,) = spaces_of([mine], 1.0, 100.0, False)
    assert generalised(space.setting(space.coarse()[0])).rule is mine


def test_neighbours_are_half_an_octave_of_alpha_and_one_of_the_others_away():
    (space,) = spaces("gradient_dd")
    names = [axis.name for axis in space.axes]
    point = next(Point(space, places) for places in space.coarse() if space.setting(places).values["zeta"] == 1.0)
    moves = [np.subtract(one.places, point.places) for one in neighbours(point, 0.5)]
    order = [names.index(name) for name in ("alpha", "zeta", "kappa")]
    steps = {tuple(np.round(move[order], 6).tolist()) for move in moves}
    single = {(0.5, 0, 0), (-0.5, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)}
    double = {(a, *other) for a in (0.5, -0.5) for other in ((1, 0), (-1, 0), (0, 1), (0, -1))}
    assert steps == single | double | {(0, 0, 0)}
    assert point.moved(3).moved(-3) == point
    assert point.moved(7).line == point.line != neighbours(point, 0.5)[3].line


def test_spaces_follow_the_scale_of_the_features_the_length_and_the_ratios():
    (small,), (large,) = (spaces_of([LEARNERS["gtd2"]], scale, 100.0, False) for scale in (1.0, 25.0))
    assert small.axes[0].values == pytest.approx([25 * alpha for alpha in large.axes[0].values])
    alphas = small.axes[0].values
    assert min(alphas) < max(alphas) / 1000  # where w hardly moves in 100 steps
    assert [space.rho_mode for space in spaces("gtd2")] == ["R"]
    modes = [(space.rule.name, space.rho_mode) for space in spaces("gtd2", "td", off_policy=True)]
    assert modes == [("gtd2", "R"), ("gtd2", "T"), ("td", "R")]


def test_illegal_values_are_not_tried():
    share = Parameter("share", "at most 1", default=0.5, high=1.0)
    rule = Rule(
        "shared", "", lambda alpha, share, delta: (alpha * share * delta,), ("w_x",), (ALPHA, share), "", __name__
    )
    (space,) = spaces_of([rule], 1.0, 100.0, False)
    assert {space.setting(places).values["share"] for places in space.coarse()} == {0.125, 0.5, 1.0}
    edge = Point(space, space.coarse()[-1])
    assert all(one.setting.values["share"] <= 1.0 for one in neighbours(edge, 0.5))


# The search, on errors that are known


class KnownErrors:
    """A pilot whose errors are a function of the parameters, times noise; it notes what was run, and how."""

    def __init__(self, error, names=("td", "gradient_dd"), steps=1e5, noise=0.0, seconds=1e-9):
        self.spaces, self.horizon = spaces(*names), Horizon(steps=int(steps), every=100)
        self.error, self.noise, self.seconds, self.calls = error, noise, seconds, []

    def run(self, points, runs, share=1.0):
        self.calls.append((points, runs, share))
        means = np.array([self.error(point.learner, point.setting.values) for point in points])
        factors = np.random.default_rng(len(self.calls)).lognormal(0, self.noise, (runs, 1)) if self.noise else 1.0
        errors = (np.broadcast_to(means, (runs, len(points))) * factors).T
        return [
            PointErrors(point, one, 2 * one, np.repeat(one[:, None], 5, axis=1))
            for point, one in zip(points, errors, strict=True)
        ]

    def core_seconds(self, settings, runs=1, share=1.0):
        return runs * (10 + settings) * self.horizon.steps / share * self.seconds

    def search(self, budget=5.0):
        self.progress = []
        search = AdviceSearch(self, "mean_error", budget, lambda doing, share: self.progress.append(share))
        return search, search.best()


def bowl(**best):
    """Return 1 and more, least at these parameters, doubled two octaves away from one of them."""
    return lambda values: 1 + sum((log2(values[name] / at) / 2) ** 2 for name, at in best.items())


@pytest.mark.parametrize("seconds", [1e-10, 1e-7], ids=["whole horizon", "short scout first"])
@pytest.mark.parametrize("at", [(0.011, 0.3, 0.7), (0.3, 2.3, 11.0), (0.0007, 0.09, 4.0)])
def test_the_search_finds_a_known_optimum(at, seconds):
    alpha, zeta, kappa = at
    inside = bowl(alpha=alpha, zeta=zeta, kappa=kappa)
    pilot = KnownErrors(
        lambda name, v: inside(v) if name == "gradient_dd" else 1.8 * bowl(alpha=0.1)(v), seconds=seconds
    )
    search, best = pilot.search()
    assert best.point.learner == "gradient_dd"
    assert search.error(best) < 1.06
    assert search.rows["td"].stage == "refine"
    assert search.error(search.rows["td"]) < 1.02 * 1.8
    assert pilot.progress == pytest.approx(np.arange(0, 1, 1 / len(pilot.calls)))
    shares = [share for _, _, share in pilot.calls]
    assert shares[0] == (SHORT if seconds > 1e-8 else 1)
    assert set(shares[1:]) == {1}


def test_no_two_calls_share_a_run(monkeypatch):
    """Each call draws from a seed of its own, far from those of studies, and runs what was asked for."""
    asked = []

    def run_lanes(task, settings, horizon, **how):
        asked.append((settings, horizon, how))
        return LaneResults(*np.zeros((6, 1, 2)))

    monkeypatch.setattr("gradient_dd.engine.lanes.run_lanes", run_lanes)
    (space,) = spaces("td")
    pilot = TaskPilot(tasks.random_walk(3), Horizon(episodes=80), tapered(9), "iid", [space])
    for _ in range(3):
        pilot.run([Point(space, places) for places in space.coarse()[:2]], 7, share=8)
    seeds = [how.pop("seed") for _, _, how in asked]
    assert len(set(seeds)) == 3
    assert min(seeds) > SEED
    settings, horizon, how = asked[0]
    assert [setting.values["zeta"] for setting in settings] == [0, 0]
    assert horizon == Horizon(episodes=10)
    assert how == {"schedule": tapered(9), "sampling": "iid", "runs": 7}


def test_a_short_scout_follows_what_only_a_long_run_shows():
    """The best alpha of the whole is a sixteenth of the best of a short run."""

    class Shrinking(KnownErrors):
        def run(self, points, runs, share=1.0):
            self.error = lambda name, values: bowl(alpha=0.01 * share)(values)
            return super().run(points, runs, share)

    pilot = Shrinking(None, names=("td",), seconds=1e-6)
    search, best = pilot.search()
    assert pilot.calls[0][2] == SHORT
    assert search.error(best) < 1.02


def test_points_that_diverge_are_avoided_and_the_edge_is_kept_at_a_distance():
    """Errors fall up to alpha = 0.1 and are infinite beyond; just below it costs nothing."""

    def error(name, values):
        return inf if values["alpha"] > 0.1 else 1 + 0.01 * abs(log2(values["alpha"] / 0.1))

    pilot = KnownErrors(error, names=("td",))
    _, best = pilot.search()
    chosen = best.point.setting.values["alpha"]
    assert 0.04 < chosen <= 0.1 / 2**0.5

    def steep(name, values):  # here stepping back costs more than it may
        return inf if values["alpha"] > 0.1 else (0.1 / values["alpha"]) ** 2

    _, best = KnownErrors(steep, names=("td",)).search()
    assert best.point.setting.values["alpha"] > 0.08


def test_where_rare_runs_go_wrong_smaller_step_sizes_are_judged():
    class Rare(KnownErrors):
        def __init__(self, *given, most, **how):
            super().__init__(*given, **how)
            self.most = most

        def run(self, points, runs, share=1.0):
            rows = super().run(points, runs, share)
            for row in rows if len(self.calls) > 3 else ():  # after a scout and two refinements
                if row.point.setting.values["alpha"] > self.most:
                    row.mean_error[-1] = inf
            return rows

    for most, least in ((0.02, 0.01), (0.09, 0.06)):  # two octaves below the best, and half an octave
        pilot = Rare(lambda name, values: bowl(alpha=0.1)(values), names=("td",), noise=1e-12, most=most)
        search, best = pilot.search()
        assert least < best.point.setting.values["alpha"] <= most
        assert np.isfinite(search.error(best))


def test_everything_diverging_is_no_advice():
    search, best = KnownErrors(lambda name, values: inf).search()
    assert best is None
    assert not search.rows


def test_of_learners_that_are_alike_the_simplest_wins():
    for edge, winner in ((1.01, "td"), (1.05, "gradient_dd")):
        error = lambda name, v, edge=edge: bowl(alpha=0.125)(v) * (edge if name == "td" else 1.0)  # noqa: E731
        assert KnownErrors(error).search()[1].point.learner == winner


@pytest.mark.parametrize(("seconds", "stage"), [(1e-10, "scout"), (1e-7, "full")])
def test_a_hopeless_learner_is_answered_for_the_whole_horizon_but_not_refined(seconds, stage):
    pilot = KnownErrors(lambda name, v: bowl(alpha=0.1)(v) * (5.0 if name == "td" else 1.0), seconds=seconds)
    search, _ = pilot.search()
    assert search.rows["td"].stage == stage
    assert search.error(search.rows["td"]) < 6
    assert not any(point.learner == "td" for points, _, _ in pilot.calls[-3:] for point in points)


def test_the_winner_is_the_best_on_the_runs_of_both_last_stages():
    """On the fresh runs alone TD is better; with the 32 runs before them it is not."""

    class Changing(KnownErrors):
        def run(self, points, runs, share=1.0):
            td, other = (1.2, 1.3) if len(self.calls) >= 3 else (1.4, 1.0)
            self.error = lambda name, values: bowl(alpha=0.1)(values) * (td if name == "td" else other)
            return super().run(points, runs, share)

    pilot = Changing(None, seconds=1e-12)
    assert pilot.search()[1].point.learner == "gradient_dd"
    assert [runs for _, runs, _ in pilot.calls[-2:]] == [32, 64]


def test_of_equal_errors_the_smallest_alpha_is_taken():
    pilot = KnownErrors(lambda name, values: 0.0, names=("td",))
    assert pilot.search()[1].point.setting.values["alpha"] < min(pilot.spaces[0].axes[0].values)


def test_the_search_keeps_to_its_budget_and_to_itself():
    """The same call gives the same advice, and a larger budget more runs."""
    found = []
    for budget in (0.5, 0.5, 50.0):
        pilot = KnownErrors(lambda name, v: bowl(alpha=0.1)(v), noise=0.3, seconds=3e-9)
        _, best = pilot.search(budget)
        seconds = sum(pilot.core_seconds(len(points), runs, share) for points, runs, share in pilot.calls)
        found.append((best.point, [runs for _, runs, _ in pilot.calls], seconds))
    assert found[0] == found[1]
    assert found[0][2] < 1.2 * 0.5
    assert sum(found[2][1]) > 2 * sum(found[0][1])


def test_advice_names_what_diverged_and_what_was_not_tried_and_gives_standard_errors():
    pilot = KnownErrors(lambda name, values: inf if name == "td" else bowl(alpha=0.1)(values), noise=0.5)
    advice = advise_with(pilot, "mean_error", 5.0, lambda doing, share: None, initial_error=2.0)
    assert advice.left_out["td"] == "diverged with every setting that was tried"
    assert advice.left_out["gtd"] == "not tried"
    assert set(advice.left_out) | {"gradient_dd"} == set(LEARNERS)
    (row,) = advice.candidates
    assert row == advice.best
    assert row.last100 == pytest.approx(
        (2 * row.mean_error.mean, 2 * row.mean_error.standard_error, row.mean_error.runs)
    )
    runs = row.curve[:, 0]
    assert row.mean_error.standard_error == pytest.approx(runs.std(ddof=1) / len(runs) ** 0.5)
    assert row.mean_error.runs == len(runs) == 64
    none = advise_with(
        KnownErrors(lambda name, values: inf), "mean_error", 5.0, lambda doing, share: None, initial_error=2.0
    )
    assert none.best is None
    assert not none.beats_standing_still


# Budgets


class Priced(KnownErrors):
    """A pilot on which one run of one setting takes a second."""

    def core_seconds(self, settings, runs=1, share=1.0):
        return runs * settings / share
