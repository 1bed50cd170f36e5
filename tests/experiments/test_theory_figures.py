"""Drawings: every one of them draws, the same bytes each time, from numbers that `theory` gives."""

import numpy as np
import pytest

from gradient_dd import LEARNERS, tasks
from gradient_dd.experiments.drawing import draw_drawing
from gradient_dd.experiments.paper.drawings import baird, rates
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.theory import expected_run, largest_stable_alpha, rate
from gradient_dd.theory.dynamics import MeanOperator
from gradient_dd.theory.effective import averaged_flow, diverging_mdps, flow_edge, flow_rate
from gradient_dd.theory.stability import RatePlane
from trials.theory_tables import steady_state_bias

GRADIENT_DD = LEARNERS["gradient_dd"]


def stability_maps_of(task):
    return [rates.Plane("walk, m = 3", task, "kappa", (0.1, 10), (0.01, 4), 8, squares=True)]


SMALLER = {  # what makes drawings take seconds
    "stability-maps": {"ROWS": 7, "SQUARES": 4, "planes": lambda: stability_maps_of(tasks.random_walk(3))},
    "rates": {"SIZES": {5: np.array([0.1, 0.5, 0.9, 1.5])}},
    "gtd2-to-td": {"EXACT": np.linspace(0, 1, 5), "FLOW": np.array([0, 0.5])},
    "safety": {"COUNT": 2, "SHARES": np.geomspace(1e-3, 3, 6)},
    "expected-runs": {"RUNS": 4, "STEPS": 400},
    "baird-frozen-mode": {"N_STATES": 4, "STEPS": 2000, "RUNS": 1, "ALPHAS": np.geomspace(1e-3, 1e-2, 4)},
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_drawing_draws_the_same_bytes_each_time(name, tmp_path, monkeypatch):
    for constant, value in SMALLER.get(name, {}).items():
        monkeypatch.setattr(f"{DRAWINGS[name].drawn_by.partition(':')[0]}.{constant}", value)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        draw_drawing(DRAWINGS[name], folder)
    drawn = (first / f"{name}.svg").read_bytes()
    assert drawn == (second / f"{name}.svg").read_bytes()
    assert b"</svg>" in drawn
    assert len(drawn) < 200_000, "it goes into the report as it is"
    assert (first / f"{name}.png").read_bytes()[1:4] == b"PNG"
    assert DRAWINGS[name].title.encode() in drawn


def test_drawings_and_figures_have_names_of_their_own():
    assert not set(DRAWINGS) & set(FIGURES)
    assert all(drawing.explanation.endswith(".") for drawing in DRAWINGS.values())


@pytest.mark.parametrize("sampling", ["iid", "trajectory"])
@pytest.mark.parametrize("parameter", ["kappa", "zeta"])
@pytest.mark.parametrize("task", [tasks.random_walk(4), tasks.baird(4)], ids=str)
def test_a_plane_has_the_rates_of_single_calls(task, parameter, sampling):
    plane = RatePlane(task, parameter, sampling)
    alphas, values = np.array([0.01, 0.3]), np.array([[0.2], [5.0]])
    found = plane.rates(alphas, values)
    for (row, column), one in np.ndenumerate(found):
        chosen = GRADIENT_DD.setting(alpha=alphas[column], **{parameter: values[row, 0]})
        assert one == pytest.approx(rate(task, chosen, sampling), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("sampling", ["iid", "trajectory"])
def test_the_edges_of_a_plane_are_the_limits_of_stability(sampling):
    task, alphas = tasks.random_walk(4), np.geomspace(0.01, 10, 20)
    for kappa in (0.5, 4.0):
        plane = RatePlane(task, "kappa", sampling)
        edge = plane.edge(alphas, plane.rates(alphas, kappa), kappa)
        assert edge == pytest.approx(largest_stable_alpha(task, "gradient_dd", sampling, kappa=kappa), rel=2e-3)


def test_an_edge_may_lie_outside_the_step_sizes():
    plane, alphas = RatePlane(tasks.random_walk(3), "kappa"), np.array([1.0, 2.0])
    assert plane.edge(alphas, np.array([-1.0, -1.0]), 1.0) == 0
    assert plane.edge(alphas, np.array([1.0, 1.0]), 1.0) == np.inf


def test_the_edge_of_the_flow_is_where_its_rate_changes_sign():
    (task,) = diverging_mdps(1)
    edge = flow_edge(task)
    below, above = (flow_rate(task, averaged_flow(task)(share * edge)) for share in (0.99, 1.01))
    assert below > 0 > above
    walk = tasks.random_walk(3)
    assert flow_edge(walk) == 1.0, "stable as far as it is looked at"


def test_colours_reach_the_edge_and_hide_nothing():
    found = np.array([[3.0, 2, -1, -1, -1, 4], [-1, -1, -1, -1, -1, -1], [1, 1, 1, 1, 1, -1], [5, 5, 5, 5, 5, 5]])
    shown = rates.up_to_the_edge(found).filled(0)
    assert shown.tolist() == [[3, 2, 2, 2, 0, 4], [0] * 6, [1] * 6, [5] * 6]


def test_sampled_means_lie_about_the_exact_ones(monkeypatch):
    monkeypatch.setattr(rates, "RUNS", 400)
    task, settings = tasks.random_walk(5), [LEARNERS[name].setting(alpha=0.2) for name in rates.LINES]
    of_mean, of_runs, noise = rates.sampled(task, settings, "trajectory")
    for place, chosen in enumerate(settings):
        exact = expected_run(task, chosen, rates.STEPS, points=[rates.EVERY]).errors[0]
        assert of_mean[0, place] == pytest.approx(exact, abs=4 * noise[place])
    assert (of_runs >= of_mean).all(), "by convexity"


@pytest.mark.parametrize(("learner", "known"), [("td", 0.0618), ("tdc", 0.0618), ("gtd2", 0), ("gradient_dd", 0)])
def test_with_a_constant_step_td_rests_beside_the_solution_and_gtd2_on_it(learner, known):
    task, chosen = tasks.random_walk(10), LEARNERS[learner].setting(alpha=0.3)
    assert steady_state_bias(task, chosen) == pytest.approx(known, abs=1e-4)
    assert steady_state_bias(task, chosen, "iid") < 1e-10


def test_the_mean_comes_to_rest_where_it_is_said_to():
    task, chosen = tasks.random_walk(5), LEARNERS["td"].setting(alpha=0.3)
    run = expected_run(task, chosen, 6000, points=[5999, 6000])  # the walk is nearly periodic: two successive steps
    assert task.rmsve(run.weights.mean(axis=0)) == pytest.approx(steady_state_bias(task, chosen), rel=1e-6)


@pytest.mark.parametrize("start", [None, 3])
def test_the_frozen_mode_predicts_what_runs_end_with(start, monkeypatch):
    """After many steps only the slow mode is left: the mean and sampled runs end where its left eigenvector says."""
    monkeypatch.setattr(baird, "STEPS", 100_000)
    task = tasks.baird(8, start_seed=start)
    chosen = baird.settings_of("Gradient-DD, κ = 4", np.array([0.001, 0.004]))
    predicted = baird.predicted(tasks.baird(8), chosen, task.initial_weights[None, :])[0]
    for setting, share in zip(chosen, predicted, strict=True):
        operator = MeanOperator(task, setting)
        last = np.linalg.matrix_power(operator.matrix().toarray(), 100_000) @ operator.start()[0]
        w = last.reshape(operator.shape)[:, operator.maps.part("w")].sum(axis=0)
        assert task.rmsve(w) / task.rmsve(task.initial_weights) == pytest.approx(share, rel=1e-3)
    assert predicted == pytest.approx(baird.sampled(task, chosen), rel=0.15)
