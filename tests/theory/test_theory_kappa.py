"""What κ does at a given α: the exact statement step by step, what is left in α, and what a slow η does."""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

from gradient_dd import LEARNERS, Learner, tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.engine.schedules import constant
from gradient_dd.errors import BadRequestError
from gradient_dd.theory import diverging_mdps, flow_edge, interpolation, rate
from gradient_dd.theory.effective import averaged_flow
from trials.best_kappa_zeta import SmallSteps

ALPHA, ZETA = 0.3, 0.5


def steps_of(task, number, seed=0):
    """Yield x, reward, discount, x' and ρ along a trajectory."""
    rng, outcomes, (row, next_row, reward, discount, rho, _) = (
        np.random.default_rng(seed),
        task.outcomes,
        task.transitions,
    )
    likely = task.behaviour[outcomes.state, outcomes.action] * outcomes.probability
    X, state = task.row_features.toarray(), None
    for _ in range(number):
        if state is None:
            state = rng.choice(len(task.start), p=task.start)
        some = np.flatnonzero(outcomes.state == state)
        one = rng.choice(some, p=likely[some] / likely[some].sum())
        yield X[row[one]], reward[one], discount[one], X[next_row[one]], rho[one]
        state = outcomes.next_state[one] if discount[one] else None


def followed(task, kappa, number=400):
    """Return how far Gradient-DD is, at worst, from the statement of docs/explanation/theory.md, step by step.

    v = w + g x must move as `gtd2_to_td` with c = u does, but for u θ (a + g) along x', and see δ of w as written.
    """
    agent = Learner("gradient_dd", task.n_features, alpha=ALPHA, zeta=ZETA, kappa=kappa)
    before, gaps = np.zeros(task.n_features), []
    for x, reward, discount, x_next, rho in steps_of(task, number):
        w, eta = agent.w.copy(), agent.eta.copy()
        g = -ALPHA * kappa * x @ (w - before)
        v = w + g * x
        delta_w, delta_v = (reward + discount * x_next @ one - x @ one for one in (w, v))
        gaps.append(delta_w - delta_v - g * (x @ x - discount * x_next @ x))
        agent.update(x, reward, discount, x_next, rho)
        a, u = ALPHA * rho * x @ eta, ALPHA * kappa * x_next @ x_next
        overlap = x_next @ x / (x_next @ x_next) if discount else 0.0
        expected = v + a * x - ((1 - u) * discount * a + u * overlap * (a + g)) * x_next * bool(discount)
        g_next = -ALPHA * kappa * x_next @ (agent.w - w) * bool(discount)
        gaps.extend(agent.w + g_next * x_next - expected)
        before = w
    return np.abs(gaps).max() / max(1.0, np.abs(before).max())


@pytest.mark.parametrize("kappa", [0.5, 1 / ALPHA])
@pytest.mark.parametrize("features", ["tabular", "linear"])
def test_the_statement_is_exact_on_walks(features, kappa):
    assert followed(tasks.random_walk(9, features=features), kappa) < 1e-13


@pytest.mark.parametrize("seed", [0, 1])
def test_the_statement_is_exact_off_policy_with_any_features(seed):
    task = tasks.random_mdp(n_states=6, n_features=4, seed=seed)
    assert not np.allclose(task.target, task.behaviour)
    assert followed(task, 0.2, number=60) < 1e-12


def test_with_u_one_a_table_s_bootstrapped_half_is_taken_back_one_step_later():
    """The walk with κ = 1/α: what w gained along x' at one step it loses at the next."""
    task = tasks.random_walk(9)
    agent = Learner("gradient_dd", 9, alpha=ALPHA, kappa=1 / ALPHA)
    v, lent = np.zeros(9), 0.0
    for x, reward, discount, x_next, _ in steps_of(task, 300):
        a = ALPHA * x @ agent.eta
        agent.update(x, reward, discount, x_next)
        v, lent = v + a * x, discount * a
        assert np.allclose(agent.w, v - lent * x_next, rtol=0, atol=1e-13)


def test_what_is_left_is_of_the_order_of_alpha():
    """Rates of Gradient-DD with κ = 1/α and of gtd2_to_td with c = 1 differ by a share that falls like α."""
    task, gaps = tasks.random_walk(10), []
    for alpha in (0.04, 0.02, 0.01):
        ours = rate(task, LEARNERS["gradient_dd"].setting(alpha=alpha, kappa=1 / alpha))
        gaps.append(ours / rate(task, LEARNERS["gtd2_to_td"].setting(alpha=alpha, c=1.0)) - 1)
    assert abs(gaps[0]) < 0.1
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.1)
    assert gaps[1] / gaps[2] == pytest.approx(2, rel=0.1)


def test_overlap_takes_back_most_of_the_gain_on_the_boyan_chain():
    """The share of the bootstrapped half that is gone is about u (γ − θ) / (γ (1 + u θ)), θ = x·x' / ‖x'‖²."""
    task = tasks.boyan_chain(10)
    found = interpolation(task, [0.0, 0.9])
    gone = [rate(task, LEARNERS["gtd2_to_td"].setting(alpha=1e-5, c=c)) * 1e5 for c in (0.1, 0.9)]
    assert found.gtd2 < found.effective[1] < gone[0] * 1.5 < gone[1]
    bare = averaged_flow(tasks.random_walk(10))(0.9)
    walk = tasks.random_walk(10).moments
    assert np.allclose(bare.T, walk.A.T + 0.9 * (walk.C - walk.A.T), rtol=0, atol=1e-12)


def test_u_is_not_safe_off_policy():
    """Where TD's flow is unstable Gradient-DD's is at u = 0.5 on all of the first six random tasks, at 0.1 on three."""
    edges = np.array([flow_edge(task) * (task.features**2).sum(axis=1).max() for task in diverging_mdps(6)])
    assert (edges < 0.5).sum() == 6
    assert (edges < 0.1).sum() == 3


def mode(a, zeta, d=0.1, decay=0.01):
    """Return the flow of one mode: η' = ζ (ξ − λ w − d η), w' = a η."""
    return np.array([[-zeta * d, -zeta * decay], [a, 0.0]])


def test_a_slow_eta_keeps_the_noise_of_a_mode_and_halves_the_time_to_forget_at_most():
    """The variance is α a N / (2 d λ) for every ζ; the rate a λ / d for a quick η, twice that at ζ = 4 a λ / d²."""
    a, d, decay = 0.1, 0.1, 0.01
    critical = 4 * a * decay / d**2
    spreads, rates = [], []
    for zeta in (100.0, critical, critical / 8):
        flow = mode(a, zeta)
        spreads.append(solve_continuous_lyapunov(flow, -np.diag([zeta**2, 0.0]))[1, 1])
        rates.append(-np.linalg.eigvals(flow).real.max())
    assert spreads == pytest.approx([a / (2 * d * decay)] * 3, rel=1e-9)
    assert rates[0] == pytest.approx(a * decay / d, rel=0.01)
    assert rates[1] == pytest.approx(2 * a * decay / d, rel=1e-3)
    assert rates[2] == pytest.approx(critical / 8 * d / 2, rel=1e-9)


@pytest.mark.parametrize(
    ("learner", "values"),
    [("td", {}), ("gtd2_to_td", {"zeta": 0.25, "c": 1.0}), ("gradient_dd", {"zeta": 0.5, "kappa": 10.0})],
)
def test_predicted_errors_are_those_of_runs_with_small_steps(learner, values):
    task, setting = tasks.random_walk(6), LEARNERS[learner].setting(alpha=0.02, **values)
    found = SmallSteps(task, constant, 3000).errors(setting)
    runs = run_lanes(task, [setting], Horizon(3000), runs=30, workers=1)
    assert found.end == pytest.approx(np.sqrt((runs.last100**2).mean()), rel=0.15)
    assert found.mean_error == pytest.approx(runs.mean_error.mean(), rel=0.15)


def test_predictions_are_for_some_learners_alone():
    theory = SmallSteps(tasks.random_walk(4), constant, 100)
    with pytest.raises(BadRequestError, match="The learner must be one of td, gtd2, gtd2_to_td, gradient_dd"):
        theory.errors(LEARNERS["tdc"].setting(alpha=0.1))
    assert theory.errors(LEARNERS["gradient_dd"].setting(alpha=0.1, kappa=1000.0)).end == np.inf
