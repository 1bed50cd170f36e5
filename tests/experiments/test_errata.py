"""Errors of the paper that can be shown: each test demonstrates one, and the correction.

docs/evidence/errata.md describes them.
"""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.lanes import Horizon, run_lanes
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.schedules import tapered
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.experiments.paper.exact_statements import bootstrapped_boyan, check_statements
from gradient_dd.experiments.paper.figures import FIGURES
from gradient_dd.experiments.paper.studies import BAIRD_ZETAS, BOYAN_ALPHAS, STUDIES, WALK_ALPHAS, ZETAS
from gradient_dd.experiments.paper.texts import ERRATA
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.learner import Learner
from gradient_dd.tasks import exact
from gradient_dd.testing import expected_move
from gradient_dd.theory.trust_region import constrained_step, kappa_of_mu, penalised_step

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/evidence/errata.md"


def combined(x, x_next, discount, reward):
    """Return G_n, H_n and g_{n+1} of one transition, as the paper defines them above [update-2n]."""
    p, u = len(x), x - discount * x_next
    zero = np.zeros((p, p))
    G = np.block([[np.outer(x, x), np.outer(x, u)], [-np.outer(u, x), zero]])
    H = np.block([[zero, zero], [zero, np.outer(x, x)]])
    return G, H, np.concatenate([reward * x, np.zeros(p)])


def test_erratum_1_the_sign_in_update_2n():
    """ρ_{n+1} = ρ_n − κα H(ρ_n − ρ_{n−1}) + α (g − G ρ_n); the printed + G ρ_n is another algorithm."""
    rng = np.random.default_rng(0)
    alpha, kappa, p = 0.1, 1.5, 3
    setting = LEARNERS["gradient_dd"].setting(alpha=alpha, kappa=kappa)
    weights = Weights(setting, rng.standard_normal(p))
    weights.eta, weights.w_prev = rng.standard_normal((2, p))
    x, x_next, reward, discount = *rng.standard_normal((2, p)), 0.7, 0.9
    now = np.concatenate([weights.eta, weights.w])
    before = np.concatenate([weights.eta, weights.w_prev])  # H does not look at its η half
    G, H, g = combined(x, x_next, discount, reward)
    weights.advance(setting, 1.0, x, reward, discount, x_next, rho=1.0)
    made = np.concatenate([weights.eta, weights.w])
    common = now - kappa * alpha * H @ (now - before)
    assert np.allclose(made, common + alpha * (g - G @ now), rtol=0, atol=1e-14)
    assert np.abs(made - (common + alpha * (G @ now + g))).max() > 0.05


def test_erratum_1_the_fixed_point_solves_g_equals_G_rho():
    task = tasks.random_mdp(seed=0)
    A, b, C = task.moments
    G = np.block([[C, A], [-A.T, np.zeros_like(A)]])
    g = np.concatenate([b, np.zeros_like(b)])
    rest = np.concatenate([np.zeros_like(b), task.fixed_point])
    assert np.allclose(G @ rest, g, atol=1e-12)
    assert np.abs(G @ rest + g).max() > 0.01
    assert np.linalg.eigvals(G).real.min() > 0  # so ρ' = g − Gρ is stable, and the printed ρ' = Gρ + g is not


def test_erratum_2_the_bellman_operator_needs_the_target_policy():
    """With the behaviour's P and R the equation has another solution; without ρ so have the sampled updates."""
    task = tasks.random_mdp(seed=0)
    discount = task.discount[task.states]
    V = exact.true_values(task.P, task.r, discount)
    assert np.allclose(V, exact.bellman(V, task.P, task.r, discount))
    P, r = task.chain(task.behaviour)
    assert np.abs(V - exact.bellman(V, P, r, discount)).max() > 0.1
    no_ratio = exact.fixed_point(*exact.moments(task.features, task.visits, P, r, discount)[:2])
    assert np.abs(task.features @ (no_ratio - task.fixed_point)).max() > 0.1

    row, next_row, reward, into, rho, _ = task.transitions
    here, there = task.features[row], task.features[next_row]
    chance = task.visits[row] * task.behaviour[task.outcomes.state, task.outcomes.action] * task.outcomes.probability

    def mean_update(w, ratio):
        return (chance * ratio * (reward + into * (there @ w) - here @ w)) @ here

    assert np.allclose(mean_update(task.fixed_point, rho), 0, atol=1e-12)
    assert np.allclose(mean_update(no_ratio, 1.0), 0, atol=1e-12)
    assert np.abs(mean_update(task.fixed_point, 1.0)).max() > 0.01


@pytest.mark.parametrize("n", [1, 2, 5])
def test_erratum_3_the_combined_vectors_have_2p_components(n):
    """Whatever the number n of steps made, (η, w) and g have twice as many components as there are features."""
    p, rng = 3, np.random.default_rng(n)
    agent = Learner("gradient_dd", n_features=p)
    for _ in range(n):
        x, x_next = rng.standard_normal((2, p))
        agent.update(x, 1.0, 0.9, x_next)
    G, H, g = combined(x, x_next, 0.9, 1.0)
    rho = np.concatenate([agent.eta, agent.w])
    assert rho.shape == g.shape == (G @ rho).shape == (H @ rho).shape == (2 * p,) != (2 * n,)


def mu_of_kappa(task, v, kappa):
    """Return μ(κ) = ‖w(κ) − v‖²_C: the squared radius of the trust region that a penalty κ amounts to at v."""
    step = penalised_step(task, v, kappa) - v
    return step @ task.moments.C @ step


def test_erratum_4_the_multiplier_is_kappa_and_changes_with_every_step():
    """With μ in the place of κ the first condition fails; and one κ is another μ at each w_n."""
    task = tasks.random_mdp(seed=0)
    v = np.random.default_rng(0).standard_normal(task.n_features)
    mu = 0.5 * mu_of_kappa(task, v, 0.0)
    w, kappa = constrained_step(task, v, mu), kappa_of_mu(task, v, mu)
    A, b, C = task.moments
    assert kappa > 0
    assert (w - v) @ C @ (w - v) == pytest.approx(mu, abs=1e-12)
    assert np.linalg.norm(exact.j_gdd_gradient(w, v, kappa, A, b, C)) < 1e-12  # the first condition
    assert np.linalg.norm(exact.j_gdd_gradient(w, v, mu, A, b, C)) > 0.01
    path = [task.initial_weights]
    for _ in range(5):
        path.append(penalised_step(task, path[-1], 1.0))
    radii = [mu_of_kappa(task, one, 1.0) for one in path]
    assert all(later < 0.9 * earlier for earlier, later in pairwise(radii))
    # Nor does the algorithm solve the problem: its mean step from w_n = v, η at rest, is a plain gradient step.
    made, _ = expected_move(LEARNERS["gradient_dd"], task, v, np.linalg.solve(C, b - A @ v), v, alpha=0.1)
    step = constrained_step(task, v, made @ C @ made) - v
    assert np.linalg.norm(step - made) > 0.1 * np.linalg.norm(made)


def test_erratum_5_the_norm_of_h_is_the_square_of_the_norm_of_x():
    """‖x‖ ≤ 1/κ gives ‖H_n‖ ≤ 1/κ for κ ≥ 1 only; ‖x‖² ≤ 1/κ always does. Scaling x is no way out: it scales α."""
    direction = np.array([0.6, 0.8, 0.0])

    def norm_of_h(length):
        return np.linalg.norm(combined(length * direction, np.zeros(3), 0.0, 0.0)[1], 2)

    assert norm_of_h(1 / 0.5) == pytest.approx(4)  # κ = ½: twice the bound of 2
    for kappa in (0.25, 0.5, 1.0, 4.0):
        assert (norm_of_h(1 / kappa) <= (1 / kappa) * (1 + 1e-12)) == (kappa >= 1)
        assert norm_of_h(kappa**-0.5) == pytest.approx(1 / kappa)

    def values(scale, alpha):
        agent, rng = Learner("gradient_dd", n_features=3, alpha=alpha, kappa=0.5), np.random.default_rng(0)
        for x, x_next in rng.standard_normal((20, 2, 3)):
            agent.update(scale * x, 1.0, 0.9, scale * x_next)
        return scale * agent.w

    assert np.allclose(values(0.5, 0.04), values(1.0, 0.01))  # α/c² makes up for c x
    assert not np.allclose(values(0.5, 0.01), values(1.0, 0.01), rtol=0.1)


def test_erratum_6_the_bound_on_the_noise_lacks_a_term_and_a_moment():
    """M = (G_n − G)ρ + (g_{n+1} − g) − κ(H_n − H)u. The printed bound has no g; two second moments do not bound G_n.

    With g the printed factor 2 is enough, where three terms ask for 3 in general: g − g_{n+1} lies in the half of η,
    (H_n − H)u in that of w.
    """
    task, kappa, rng = tasks.random_mdp(seed=0), 1.0, np.random.default_rng(0)
    row, next_row, reward, discount, *_ = task.transitions
    X = task.features
    pieces = [combined(X[row[o]], X[next_row[o]], discount[o], reward[o]) for o in range(len(row))]
    chance = task.visits[row] * task.behaviour[task.outcomes.state, task.outcomes.action] * task.outcomes.probability
    G, H, g = (np.tensordot(chance, np.array(part), axes=1) for part in zip(*pieces, strict=True))
    nothing = np.zeros_like(g)
    assert max(np.linalg.norm(g_n - g) for _, _, g_n in pieces) > 1  # the noise at ρ = u = 0, where the bound is 0
    for rho, u in [(nothing, nothing), *rng.standard_normal((5, 2, len(g)))]:
        for G_n, H_n, g_n in pieces:
            by_rho, by_g, by_u = (G_n - G) @ rho, g_n - g, -kappa * (H_n - H) @ u
            assert by_g @ by_u == 0
            squares = sum(np.linalg.norm(part) ** 2 for part in (by_rho, by_g, by_u))
            assert np.linalg.norm(by_rho + by_g + by_u) ** 2 <= 2 * squares + 1e-12

    def moments(largest):  # of x and of G_n, for x = 2^j with probability in proportion to 8^−j
        x = 2.0 ** np.arange(largest)
        weight = x**-3 / (x**-3).sum()
        norms = [np.linalg.norm(combined(np.array([size]), np.zeros(1), 0.0, 0.0)[0], 2) for size in x]
        return weight @ x**2, weight @ np.square(norms)

    (second, of_g), (second_more, of_g_more) = moments(10), moments(20)
    assert second_more == pytest.approx(second, rel=0.01)
    assert of_g_more > 1000 * of_g


def test_erratum_7_the_mean_step_is_not_a_function_of_rho():
    """At one (η, w) two w_{n−1} give two mean steps, apart by ακ C times what they differ: f depends on u_n."""
    task, rng = tasks.random_mdp(seed=0), np.random.default_rng(0)
    w, eta, one, other = rng.standard_normal((4, task.n_features))
    setting = {"alpha": 0.1, "kappa": 2.0}
    moves = [expected_move(LEARNERS["gradient_dd"], task, w, eta, w_prev, **setting)[0] for w_prev in (one, other)]
    assert np.allclose(moves[0] - moves[1], 0.1 * 2.0 * task.moments.C @ (one - other), atol=1e-12)
    assert np.abs(moves[0] - moves[1]).max() > 0.01


def test_erratum_8_the_sums_vanish_as_n_grows_and_products_run_downwards():
    """ε_n = α_n(1 + ε_{n−1}) → 0 as n → ∞, not n → 0; and the product in the expansion of u_n is H_n … H_1."""
    alphas = 0.9 * tapered(10).factors(np.arange(1, 20_001))
    epsilon = [alphas[0]]
    for alpha in alphas[1:]:
        epsilon.append(alpha * (1 + epsilon[-1]))
    assert epsilon[0] == 0.9
    assert epsilon[10] > 0.9
    assert epsilon[-1] < 1e-3

    rng, kappa, steps = np.random.default_rng(0), 0.5, 3
    H, y, u = rng.standard_normal((steps, 2, 2)), rng.standard_normal((steps, 2)), np.zeros(2)
    alpha = alphas[:steps]
    for n in range(steps):
        u = -kappa * alpha[n] * H[n] @ u + alpha[n] * y[n]
    late = alpha[2] * y[2] - kappa * alpha[2] * alpha[1] * H[2] @ y[1]
    weight = alpha.prod() * kappa**2
    assert np.allclose(u, late + weight * H[2] @ H[1] @ y[0])
    assert not np.allclose(u, late + weight * H[1] @ H[2] @ y[0])  # not the product as printed, k upwards


def test_erratum_9_the_eigenvalues_are_complex():
    """Those of −G have negative real parts; on the walk most are no real numbers, so they are not "negative"."""
    A, _, C = tasks.random_walk(10).moments
    values = np.linalg.eigvals(np.block([[C, A], [-A.T, np.zeros_like(A)]]))
    assert values.real.min() > 0
    assert (np.abs(values.imag) > 1e-3).mean() > 0.5


def test_erratum_10_the_grids_leave_the_interval_of_a0():
    """(A0) asks α_n < 1 at every n; both tapers begin at factor 1."""
    assert max(WALK_ALPHAS) * STUDIES["walk"].schedule.factor(1) == 1
    assert [alpha for alpha in BOYAN_ALPHAS if alpha >= 1] == pytest.approx([1, 10 ** (1 / 8), 10 ** (1 / 4)])
    assert STUDIES["boyan"].schedule.factor(1) == 1


def test_erratum_11_the_walk_and_the_chain_are_not_discounted():
    """γ < 1 is in the set-up; the values printed for the walk and the weights for the chain are those of γ = 1."""
    walk, chain = tasks.random_walk(10), tasks.boyan_chain(5)
    wanted = np.arange(1, 11) / 11, chain.features @ (-4 * (5 - np.arange(1, 6)) / 5)
    for task, printed in zip((walk, chain), wanted, strict=True):
        assert (task.discount[task.states] == 1).all()
        assert np.allclose(task.true_values, printed)
        discounted = exact.true_values(task.P, task.r, np.full(task.n_states, 0.99))
        assert np.abs(discounted - printed).max() > 0.01


@pytest.mark.parametrize("n", [7, 20])
def test_erratum_12_the_dashed_ratio_is_a_probability(n):
    """(N−1)/N is μ(dashed). As a ratio it gives E[ρ|s] = 1 + ((N−1)/N)²; the ratio of the policies is 0."""
    standard, printed = tasks.baird(n), tasks.baird(n, ratios="paper")
    assert np.allclose((standard.behaviour * standard.rho).sum(axis=1), 1)
    assert np.allclose((printed.behaviour * printed.rho).sum(axis=1), 1 + ((n - 1) / n) ** 2)


def test_erratum_12_with_the_printed_ratios_td_converges_at_seven_states():
    """The counterexample is gone: TD reaches zero error. With the policies' own ratios it diverges."""
    common = {"steps": 30_000, "every": 1000, "alpha": 0.02}
    printed = reference.run(tasks.baird(7, ratios="paper"), "td", **common)
    assert printed.errors[-1] < 1e-6
    standard = reference.run(tasks.baird(7), "td", **common)
    assert standard.errors[-1] > 1e6


@pytest.mark.parametrize(("n", "slowest"), [(7, 2.4e-5), (20, 4.8e-6)])
def test_erratum_13_the_plateau_of_baird_is_slow_modes_not_projection_error(n, slowest):
    task = tasks.baird(n)
    assert np.allclose(exact.projection(task.features, task.visits) @ task.true_values, task.true_values)
    assert task.rmsve(task.fixed_point) == 0  # V is representable: no residual error
    A, _, C = task.moments
    values = np.linalg.eigvalsh(A.T @ exact.inverse(C) @ A)
    assert values[values > 1e-12].min() == pytest.approx(slowest, rel=0.03)


@pytest.mark.parametrize("n", [7, 20])
def test_erratum_14_baird_breaks_the_theorem_s_assumption_a2(n):
    """There are p = N + 1 > N weights: A and C have rank N, and p ≤ |S| of Section 2 fails too."""
    task = tasks.baird(n)
    assert task.n_features == task.n_states + 1
    assert np.linalg.matrix_rank(task.moments.A) == np.linalg.matrix_rank(task.moments.C) == n
    hidden = np.linalg.svd(task.features)[2][-1]
    trace = reference.run(task, "gradient_dd", steps=500, alpha=0.01)
    assert hidden @ (trace.w - task.initial_weights) == pytest.approx(0, abs=1e-12)  # never learnt


def test_erratum_15_a_bootstrapped_terminal_makes_boyan_singular():
    """Features sum to 1 and γ = 1, so A 1 = 0; with discount 0 into the terminal A is regular."""
    A = bootstrapped_boyan(5)
    assert np.abs(A @ np.ones(5)).max() < 1e-15
    assert np.linalg.svd(A, compute_uv=False)[-1] < 1e-15
    assert np.linalg.svd(tasks.boyan_chain(5).moments.A, compute_uv=False)[-1] == pytest.approx(0.027, abs=1e-3)


def test_erratum_16_the_updates_follow_half_the_gradient():
    """Δw = −α∇J is said; the mean step of [SQ-GTD2] with η at rest is −½α∇J."""
    task = tasks.random_mdp(seed=0)
    A, b, C = task.moments
    w = np.random.default_rng(0).standard_normal(task.n_features)
    move, _ = expected_move(LEARNERS["gtd2"], task, w, np.linalg.solve(C, b - A @ w), w, alpha=0.1)
    gradient = exact.mspbe_gradient(w, A, b, C)
    assert np.allclose(move, -0.5 * 0.1 * gradient, atol=1e-12)
    assert np.linalg.norm(gradient) > 0.1


def test_erratum_17_five_anchors_do_not_reach_the_last_state():
    five = tasks.random_walk(20, features="linear", n_features=5)
    six = tasks.random_walk(20, features="linear")
    assert six.n_features == 6
    assert 1 + np.flatnonzero(five.features[:, -1] == 1)[0] == 17  # S_{4p−3}, not S_{4p+1} = S_21
    assert five.features.min() < 0 <= six.features.min()  # five must extrapolate, six interpolate


def test_erratum_18_captions_and_grids_as_we_read_them():
    """walk-area is tuned over all episodes, as its caption says; Baird's ζ leave out 4; boyan-constant is ours."""
    assert FIGURES["walk-area"].measure == "mean_error"
    assert FIGURES["walk"].measure == "last100"
    assert 4.0 in ZETAS
    assert 4.0 not in BAIRD_ZETAS
    assert np.diff(np.log(BAIRD_ZETAS) / np.log(4)) == pytest.approx([1, 1, 2, 1])
    assert str(STUDIES[FIGURES["boyan-constant"].study].schedule) == "constant"


@pytest.mark.parametrize("task", [tasks.random_walk(10), tasks.boyan_chain(5), tasks.baird(7)], ids=str)
def test_erratum_19_policies_are_distributions_over_actions(task):
    """π: S → A names one action; no behaviour policy does, and the target of Baird alone."""
    behaviour, target = (policy[task.states].max(axis=1) for policy in (task.behaviour, task.target))
    assert (behaviour < 1).all()
    assert (target == 1).all() == (task.name == "baird")


def test_erratum_20_the_gain_is_in_the_trajectories_that_a1_excludes():
    """On a trajectory x' is the next x; drawn independently, as (A1) asks, the gain over GTD2 is gone."""
    task = tasks.random_walk(20)
    row, next_row, *_, ends = task.transitions
    follows, best = {}, {}
    for sampling in ("trajectory", "iid"):
        outcomes = OutcomeSampler(task, sampling=sampling).take(5000)
        inside = ~ends[outcomes[:-1]]
        follows[sampling] = np.mean(next_row[outcomes[:-1]][inside] == row[outcomes[1:]][inside])
        for name in ("gtd2", "gradient_dd"):
            lanes = [LEARNERS[name].setting(alpha=10 ** (-i / 4)) for i in range(8)]
            horizon, common = Horizon(episodes=300), {"schedule": tapered(1000), "runs": 4, "sampling": sampling}
            best[sampling, name] = run_lanes(task, lanes, horizon, **common).mean_error.mean(axis=0).min()
    assert follows["trajectory"] == 1
    assert follows["iid"] < 0.2
    assert best["trajectory", "gradient_dd"] < 0.6 * best["trajectory", "gtd2"]
    assert best["iid", "gradient_dd"] > 0.9 * best["iid", "gtd2"]


def test_the_statements_say_what_they_measured():
    verdicts = {statement.where: statement.verdict for statement in check_statements()}
    assert verdicts["5.1 walk, m = 40"] == "holds"
    assert verdicts["5.3 Baird, N = 7, printed ratios"] == "does not hold"
    assert verdicts["5.3 Baird, N = 7, standard ratios"] == "holds"


def sections():
    """Return what docs/evidence/errata.md says of each erratum, by number."""
    parts = re.split(r"^## (\d+)\. ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {int(number): text for number, text in zip(parts[::2], parts[1::2], strict=True)}


def test_the_page_tells_all_twenty_with_their_four_parts():
    told = sections()
    assert list(told) == list(range(1, 21))
    for number, text in told.items():
        for part in ("Where.", "Printed.", "Right.", "Why."):
            assert text.count(f"**{part}**") == 1, f"erratum {number}: {part}"


def test_every_test_named_on_the_page_exists_and_every_erratum_test_is_named_at_its_number():
    for file, test in re.findall(r"`(test_\w+\.py)::(\w+)`", PAGE.read_text()):
        assert f"def {test}(" in next((ROOT / "tests").rglob(file)).read_text(), f"errata.md names {file}::{test}"
    ours = re.findall(r"^def (test_erratum_(\d+)_\w+)\(", Path(__file__).read_text(), flags=re.MULTILINE)
    assert {int(number) for _, number in ours} == set(range(1, 21))
    for test, number in ours:
        assert f"`test_errata.py::{test}`" in sections()[int(number)], f"errata.md does not name {test} at {number}"


def test_the_report_lists_the_errata_of_the_page_in_its_order():
    """Nearly every sentence shares more words with its own section of the page than with any other."""

    def words(text):
        return {word[:6] for word in re.findall(r"\w{4,}|[γκρG]", text)}

    told = sections()
    assert len(told) == len(ERRATA)
    shared = [[len(words(text) & words(section)) for section in told.values()] for text in ERRATA]
    assert sum(counts[place] == max(counts) for place, counts in enumerate(shared)) >= 17
