"""Learners with traces: the identities between them, the mean of a trace, and lanes that agree with the reference."""

from dataclasses import replace

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun, run_lanes
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.learners.rule import ALPHA, LAM, ZETA
from gradient_dd.learners.trace import Trace
from gradient_dd.stream.trace_state import SMALLEST
from gradient_dd.tasks import exact
from gradient_dd.testing import assert_alike
from gradient_dd.testing.mean_contracts import HARSH_TASKS, harsh_task, mean_traces, outcome_weights, samples

COLLISION, ROOM = tasks.collision(2), tasks.rooms(0)
TRACED = [name for name, rule in LEARNERS.items() if rule.traced.traces]


def settings(*pairs):
    return [LEARNERS[name].setting(**values) for name, values in pairs]


def lanes(task, chosen, steps=800):
    """Return w and η of settings on one run, (settings, p) each, by the lane engine."""
    run = LaneRun(task, chosen, Horizon(steps=steps))
    run.advance()
    return run.weights()


def by_hand(task, setting, steps=400):
    """Return the reference engine's weights."""
    weights, X = Weights(setting, task.initial_weights), task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    pi, mu = task.action_probabilities
    for o in OutcomeSampler(task).take(steps):
        if task.active[o]:
            weights.advance(setting, 1.0, X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o], pi[o], mu[o])
    return weights


# Identities ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [pytest.param(COLLISION, marks=pytest.mark.slow), ROOM, tasks.random_walk(6)], ids=str)
def test_at_lambda_zero_these_are_td_bit_for_bit(task):
    """Tree Backup, V-trace, ABTD(0), true-online TD; in both engines and in `Learner`."""
    same = ("td", "tree_backup", "vtrace", "abtd", "true_online_td")
    chosen = settings(*((name, {"alpha": 0.1}) for name in same))
    w, _ = lanes(task, chosen)
    assert w[0].any()
    assert all(np.array_equal(one, w[0]) for one in w[1:4])
    assert np.allclose(w[4], w[0], rtol=1e-12, atol=1e-15)  # α δ + 0 and −0 along x, so only nearly the same bits
    first, *others = (by_hand(task, setting).w for setting in chosen)
    assert all(np.array_equal(one, first) for one in others[:3])


@pytest.mark.parametrize("lam", [0.0, 0.7, 1.0])
def test_on_policy_htd_is_td_whatever_eta_does(lam):
    walk = tasks.nineteen_state_walk()
    w, eta = lanes(walk, settings(("td", {"alpha": 0.1, "lam": lam}), ("htd", {"alpha": 0.1, "lam": lam, "zeta": 0.5})))
    assert eta[1].any()
    assert np.allclose(w[0], w[1], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("general", "fixed", "special"),
    [
        ("gradient_dd", {"kappa": 0.0}, "gtd2"),
        ("tdc_dd", {"kappa": 0.0}, "tdc"),
        ("tdrc_dd", {"kappa": 0.0}, "tdrc"),
        ("htd_dd", {"kappa": 0.0}, "htd"),
        ("pgtd2_dd", {"kappa": 0.0}, "pgtd2"),
        ("tdrc", {"reg": 0.0}, "tdc"),
        ("tdc_to_td", {"c": 0.0}, "tdc"),
        ("gtd2_to_td", {"c": 0.0}, "gtd2"),
        ("gtd2_momentum", {"momentum": 0.0}, "gtd2"),
        ("tdc_momentum", {"momentum": 0.0}, "tdc"),
    ],
)
@pytest.mark.parametrize("lam", [0.0, 0.8])
def test_the_general_learner_holds_the_special_one(general, fixed, special, lam):
    values = {"alpha": 0.05, "zeta": 0.5}
    with_lam = {"lam": lam} if "lam" in LEARNERS[general].defaults else {}
    ours, theirs = settings((general, values | fixed | with_lam), (special, values | with_lam))
    one, other = by_hand(COLLISION, ours), by_hand(COLLISION, theirs)
    assert other.w.any()
    assert np.allclose(one.w, other.w, rtol=1e-12, atol=1e-15)
    assert np.allclose(one.eta, other.eta, rtol=1e-12, atol=1e-15)


def test_the_family_of_emphatic_learners_has_td_and_etd_at_its_ends():
    """With decay = 0 it is TD(λ) and decay = γ is ETD(λ), on a task with one γ."""
    for lam in (0.0, 0.6):
        common = {"alpha": 0.05, "lam": lam}
        chosen = settings(("td", common), ("etd_beta", common | {"decay": 0.0}))
        chosen += settings(("etd", common), ("etd_beta", common | {"decay": 0.9}))
        td, low, etd, high = (by_hand(COLLISION, setting).w for setting in chosen)
        assert np.allclose(low, td, rtol=1e-12)
        assert np.allclose(high, etd, rtol=1e-12)
        assert not np.allclose(td, etd, rtol=1e-3)


def test_true_online_td_is_the_online_lambda_return_algorithm():
    """At every step of an episode, against the forward view made anew from its start (van Seijen et al. 2016)."""
    walk, alpha, lam = tasks.random_walk(5, features="linear"), 0.3, 0.7
    X = walk.row_features.toarray()
    row, next_row, reward, discount, *_ = walk.transitions
    column = OutcomeSampler(walk, seed=3).take(60)
    end = 1 + int(np.argmax(walk.transitions.ends[column]))
    assert end > 4
    setting = LEARNERS["true_online_td"].setting(alpha=alpha, lam=lam)
    online = Weights(setting, walk.initial_weights)
    history = [walk.initial_weights]  # the weights that the returns bootstrap from
    for h in range(1, end + 1):
        o = column[h - 1]
        online.advance(setting, 1.0, X[row[o]], reward[o], discount[o], X[next_row[o]], 1.0)
        w = walk.initial_weights.copy()
        for k in range(h):
            w = (
                w
                + alpha
                * (forward_return(walk, column, k, h, lam, history, X) - X[row[column[k]]] @ w)
                * X[row[column[k]]]
            )
        assert np.allclose(online.w, w, rtol=1e-12), f"at step {h}"
        history.append(w)


def forward_return(task, column, k, h, lam, history, X):
    """Return the λ-return of step k cut at horizon h."""
    _, next_row, reward, discount, *_ = task.transitions
    total, weight, gain, rewards = 0.0, 1.0, 1.0, 0.0
    for i in range(k, h):
        o = column[i]
        rewards += gain * reward[o]
        gain *= discount[o]
        n_step = rewards + gain * (X[next_row[o]] @ history[i])
        share = 1.0 if i == h - 1 else 1.0 - lam
        total += weight * share * n_step
        weight *= lam
    return total


def test_lambda_one_reaches_the_best_values():
    """On-policy, TD(1) rests at the projection of the true values; TD(0) does not."""
    task = replace(COLLISION, behaviour=np.array(COLLISION.target))
    X, V, d, P, discount = task.features, task.true_values, task.visits, task.P, task.discount[task.states]
    A, b = exact.trace_moments(X, d, P, task.r, discount, 1.0)
    assert X @ np.linalg.pinv(A) @ b == pytest.approx(exact.projection(X, d) @ V)


# The mean of a trace -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", HARSH_TASKS)
def test_emphatic_means_are_the_closed_form(which):
    """A of ETD(λ) from its own trace is Xᵀ diag(λ d + (1 − λ) f) (I − λPΓ)⁻¹(I − PΓ) X."""
    task, lam = harsh_task(*which), 0.4
    setting = LEARNERS["etd"].setting(lam=lam)
    A = sum(weight * np.outer(s.z, s.x - s.discount * s.x_next) for weight, s in samples(task, setting))
    b = sum(weight * s.reward * s.z for weight, s in samples(task, setting))
    discount = task.discount[task.states]
    emphasis = exact.emphatic_weights(task.visits, task.P, discount, lam)
    A_stated, b_stated = exact.trace_moments(task.features, task.visits, task.P, task.r, discount, lam, emphasis)
    assert np.allclose(A, A_stated, rtol=1e-9)
    assert np.allclose(b, b_stated, rtol=1e-9)


@pytest.mark.parametrize("name", ["td", "tree_backup", "abtd", "etd"])
def test_the_mean_trace_is_what_a_long_run_sees(name):
    task = COLLISION
    setting = LEARNERS[name].setting(**{"bootstrap": 0.8} if name == "abtd" else {"lam": 0.8})
    means, weights = mean_traces(task, setting)["z"], outcome_weights(task)
    state, X = Weights(setting, task.initial_weights), task.row_features.toarray()
    row, next_row, _, discount, rho, _ = task.transitions
    pi, mu = task.action_probabilities
    sums, counts = np.zeros_like(means), np.zeros(len(weights))
    for o in OutcomeSampler(task, seed=5).take(20_000):
        state.advance(setting, 0.0, X[row[o]], 0.0, discount[o], X[next_row[o]], rho[o], pi[o], mu[o])
        sums[o] += state.traces["z"]
        counts[o] += 1
    seen = counts > 300
    assert np.abs(sums[seen] / counts[seen, None] - means[seen]).max() < 0.2
    assert np.abs(means[seen]).max() > 1


def test_the_mean_of_a_trace_that_depends_on_itself_is_refused():
    with pytest.raises(BadRequestError, match="The trace of true_online_td must not depend on itself"):
        mean_traces(COLLISION, LEARNERS["true_online_td"].setting(lam=0.5))


# The lane engine -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "task", [COLLISION, ROOM, tasks.rooms(1, "high"), tasks.nineteen_state_walk(), tasks.dann_mdp(8, 3, 4)], ids=str
)
def test_lanes_agree_with_the_reference_on_every_kind_of_task(task):
    horizon = Horizon(episodes=100) if task.episodic else Horizon(steps=500)
    alpha = 0.002 if task.name != "nineteen_state_walk" else 0.1
    for name in ("tdc_dd", "tree_backup"):
        assert_alike(task, LEARNERS[name].setting(alpha=alpha, lam=0.8), horizon)


def test_a_lane_has_the_same_bits_beside_any_others():
    """Whatever lanes stand beside it, and however the run is cut."""
    chosen = [
        LEARNERS[name].setting(alpha=a, lam=lam) for name in ("tdc", "etd") for lam in (0.5, 0.9) for a in (0.1, 0.03)
    ]
    horizon = Horizon(steps=900, every=10)
    together, in_pieces = (LaneRun(COLLISION, chosen, horizon) for _ in range(2))
    together.advance()
    for _ in range(9):
        in_pieces.advance(97)
    in_pieces.advance()
    assert np.array_equal(in_pieces.weights(), together.weights())
    assert np.array_equal(in_pieces.results().curve, together.results().curve)
    for place, setting in enumerate(chosen):
        alone = LaneRun(COLLISION, [setting], horizon)
        alone.advance()
        assert np.array_equal(alone.weights()[0][0], together.weights()[0][place])
    one, two = (run_lanes(COLLISION, chosen, horizon, runs=2, workers=workers) for workers in (1, 2))
    assert np.array_equal(one.curve, two.curve)


def test_small_entries_of_a_trace_are_dropped_and_do_not_count():
    """On a long walk a trace of λ = 0.5 has some 53 entries that count, of hundreds that were visited."""
    walk, setting = tasks.random_walk(400), LEARNERS["td"].setting(alpha=0.5, lam=0.5)
    run = LaneRun(walk, [setting], Horizon(steps=3000))
    run.advance()
    (block,) = run.blocks
    assert block.lanes.counts[0] < 120
    listed = block.lanes.vectors[block.lanes.places[: block.lanes.counts[0]].astype(int)]
    assert np.abs(listed).min() >= SMALLEST / 4 * np.abs(listed).max()
    assert np.allclose(run.weights()[0][0], by_hand(walk, setting, 3000).w, rtol=1e-14)


def test_a_diverging_lane_does_not_disturb_its_neighbours():
    calm, wild = settings(("tdc", {"alpha": 0.01, "lam": 0.9}), ("tdc", {"alpha": 1e6, "lam": 0.9}))
    w, _ = lanes(COLLISION, [calm, wild], 3000)
    assert np.array_equal(w[0], lanes(COLLISION, [calm], 3000)[0][0])
    results = run_lanes(COLLISION, [calm, wild], Horizon(steps=3000), workers=1)
    assert results.diverged_step[0, 0] == 0 < results.diverged_step[0, 1]


@pytest.mark.parametrize(("name", "values"), [("tdc", {"lam": 0.9}), ("gtd2_momentum", {"momentum": 0.8})])
def test_lanes_go_on_as_they_were_when_others_are_left_behind(name, values):
    """Those that diverge are left behind in pieces; traces and momentum of the others stay theirs."""
    chosen = [LEARNERS[name].setting(alpha=alpha, **values) for alpha in (0.01, *(1e3,) * 12, 0.02)]
    horizon = Horizon(steps=9000, every=1000)
    together = LaneRun(COLLISION, chosen, horizon)
    together.advance()
    assert (together.results().diverged_step[0] > 0).sum() == 12
    for place in (0, -1):
        alone = LaneRun(COLLISION, [chosen[place]], horizon)
        alone.advance()
        assert np.array_equal(alone.weights()[0][0], together.weights()[0][place])
        assert np.array_equal(alone.results().curve[0, 0], together.results().curve[0, place])


def growing(lam, rho, discount_before, rho_before, F):
    F = 0.5 * discount_before * rho_before * F + 1.0
    return rho * discount_before * lam, rho * F, F


def leaning(lam, discount_before, x_trace, G):
    G = 0.3 * discount_before * G + 1.0
    return discount_before * lam, G - 0.1 * x_trace, G


def along_both(alpha, beta, delta, x_eta, b_eta):
    return alpha * delta, alpha * b_eta, beta * (delta - x_eta)


def test_two_traces_have_numbers_of_their_own_and_each_sees_itself():
    traces = Trace("z", growing, ("F",)), Trace("b", leaning, ("G",))
    rule = Rule("two", "two", along_both, ("w_z", "w_x", "eta_x"), (ALPHA, ZETA, LAM), "none", traces=traces)
    assert_alike(tasks.random_walk(5), rule.setting(alpha=0.01, lam=0.6), Horizon(episodes=120))
