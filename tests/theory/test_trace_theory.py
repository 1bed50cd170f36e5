"""Where learners with traces rest: the errors on Collision, least squares, and what is refused."""

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import exact
from gradient_dd.testing.mean_contracts import HARSH_TASKS, harsh_task
from gradient_dd.theory.traces import mean_drift, rest_weights, small_step_rate

DRAWS = [tasks.collision(seed) for seed in range(60)]
KNOWN = [  # mean RMSVE of the fixed points over draws of the features, from an independent run of ours
    ("td", 0.5, 0.143),
    ("td", 0.9, 0.074),
    ("td", 1.0, 0.071),
    ("etd", 0.0, 0.111),
    ("etd", 0.5, 0.093),
    ("etd", 0.9, 0.075),
    ("etd", 1.0, 0.071),
]


def closed_form(task, lam, emphatic=False):
    """Return the fixed point from the table alone."""
    discount = task.discount[task.states]
    emphasis = exact.emphatic_weights(task.visits, task.P, discount, lam) if emphatic else None
    A, b = exact.trace_moments(task.features, task.visits, task.P, task.r, discount, lam, emphasis)
    return exact.fixed_point(A, b)


@pytest.mark.parametrize(("name", "lam", "known"), KNOWN)
def test_the_errors_of_the_fixed_points_on_collision_are_those_of_another_run(name, lam, known):
    errors = [task.rmsve(closed_form(task, lam, name == "etd")) for task in DRAWS]
    assert np.mean(errors) == pytest.approx(known, abs=2 * np.std(errors) / np.sqrt(len(DRAWS)) + 5e-4)


@pytest.mark.parametrize(("name", "lam"), [("td", 0.6), ("tdc", 0.6), ("gtd2", 0.6), ("htd", 0.6), ("etd", 0.3)])
@pytest.mark.parametrize("which", HARSH_TASKS[1:])
def test_learners_rest_at_the_closed_form(name, lam, which):
    task = harsh_task(*which)
    w = rest_weights(task, LEARNERS[name].setting(alpha=0.1, lam=lam))
    assert w == pytest.approx(closed_form(task, lam, name == "etd"), rel=1e-8)


def test_emphasis_makes_the_mean_stable_where_td_s_is_not():
    for which in HARSH_TASKS:
        task = harsh_task(*which)
        assert small_step_rate(task, LEARNERS["td"].setting(alpha=1e-3)) < 0
        assert small_step_rate(task, LEARNERS["etd"].setting(alpha=1e-3)) > 0
        assert small_step_rate(task, LEARNERS["td"].setting(alpha=1e-3, lam=1.0)) > 0


@pytest.mark.parametrize(("name", "lam"), [("td", 0.8), ("etd", 0.5)])
def test_the_mean_of_many_runs_follows_the_drift(name, lam):
    task, setting, steps, runs = (
        tasks.five_state_walk("dependent"),
        LEARNERS[name].setting(alpha=0.01, lam=lam),
        400,
        60,
    )
    G, c = mean_drift(task, setting)
    rest = exact.inverse(G) @ c
    predicted = (rest - np.linalg.matrix_power(np.eye(len(c)) - G, steps) @ rest)[: task.n_features]
    ends = []
    for run in range(runs):
        lanes = LaneRun(task, [setting], Horizon(steps=steps), run=run)
        lanes.advance()
        ends.append(lanes.weights()[0][0])
    doubt = np.std(ends, axis=0) / np.sqrt(runs)
    assert np.abs(np.mean(ends, axis=0) - predicted).max() < (4 * doubt).max() + 0.02 * np.abs(predicted).max()
    assert np.abs(predicted).max() > 20 * doubt.max()


@pytest.mark.parametrize("name", ["pgtd2", "true_online_td", "natural_tdc"])
def test_means_that_are_not_exact_are_refused(name):
    with pytest.raises(BadRequestError, match=f"The mean update of {name} must be linear in the sample"):
        mean_drift(tasks.collision(), LEARNERS[name].setting())
