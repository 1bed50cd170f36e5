"""Every rule: the contracts, the closed forms of its expected update, and the exact identities between rules."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import learners, tasks
from gradient_dd.cli import cli
from gradient_dd.engine import reference
from gradient_dd.engine.schedules import tapered
from gradient_dd.learners import LEARNERS, Parameter, Rule
from gradient_dd.online.learner import Learner
from gradient_dd.testing import (
    CONTRACTS,
    check_learner,
    drives_the_mean_to_the_fixed_point,
    expected_move,
    modes,
    rests_at_the_fixed_point,
)

ALPHA, ZETA, KAPPA, REG, SHARE = 0.3, 0.7, 1.9, 0.6, 0.35

# The mean update from A, b, C alone; residual = b − A w, change = w − w_prev, Ft = E[ρ γ x' xᵀ].
CLOSED_FORMS = {
    "td": lambda m: (m.residual, 0),
    "gtd": lambda m: (m.A.T @ m.eta, m.residual - m.eta),
    "gtd2": lambda m: (m.A.T @ m.eta, m.residual - m.C @ m.eta),
    "tdc": lambda m: (m.residual - m.Ft @ m.eta, m.residual - m.C @ m.eta),
    "tdrc": lambda m: (m.residual - m.Ft @ m.eta, m.residual - m.C @ m.eta - REG * m.eta),
    "gradient_dd": lambda m: (m.A.T @ m.eta - KAPPA * m.C @ m.change, m.residual - m.C @ m.eta),
    "gtd2_to_td": lambda m: ((1 - SHARE) * m.A.T @ m.eta + SHARE * m.C @ m.eta, m.residual - m.C @ m.eta),
    "tdc_to_td": lambda m: (m.residual - (1 - SHARE) * m.Ft @ m.eta, m.residual - m.C @ m.eta),
    "natural_gtd2": lambda m: (np.linalg.solve(m.C, m.A.T @ m.eta), m.residual - m.C @ m.eta),
    "natural_tdc": lambda m: (np.linalg.solve(m.C, m.residual - m.Ft @ m.eta), m.residual - m.C @ m.eta),
}


class Mean:
    """A random place in weight space of a task, and the task's matrices."""

    def __init__(self, task, seed):
        rng = np.random.default_rng(seed)
        self.w, self.eta, self.w_prev = rng.standard_normal((3, task.n_features))
        self.A, self.b, self.C = task.moments
        self.residual = self.b - self.A @ self.w
        self.change = self.w - self.w_prev
        self.Ft = self.C - self.A.T


def values_of(name):
    """Return parameter values away from the defaults."""
    wanted = {"alpha": ALPHA, "zeta": ZETA, "kappa": KAPPA, "reg": REG, "c": SHARE}
    return {p: v for p, v in wanted.items() if p in LEARNERS[name].defaults}


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
@pytest.mark.parametrize("rule", LEARNERS.values(), ids=lambda rule: rule.name)
def test_contract(rule, contract):
    contract(rule)


@pytest.mark.parametrize("name", CLOSED_FORMS)
@given(seed=st.integers(0, 10**6), episodic=st.booleans())
def test_mean_of_the_sampled_updates_is_the_closed_form(name, seed, episodic):
    task = tasks.random_mdp(n_states=6, n_actions=2, n_features=3, seed=seed, episodic=episodic)
    mean = Mean(task, seed)
    w_move, eta_move = CLOSED_FORMS[name](mean)
    for rho_mode in modes(LEARNERS[name]):
        got = expected_move(LEARNERS[name], task, mean.w, mean.eta, mean.w_prev, rho_mode, **values_of(name))
        wanted = ALPHA * w_move, ALPHA * ZETA * eta_move + np.zeros(3)
        assert np.linalg.norm(np.subtract(got, wanted)) <= 1e-12 * max(1, np.linalg.norm(wanted))


@pytest.mark.parametrize("name", ["td", "gtd2", "gradient_dd"])
def test_ratios_given_outright_enter_A(name):
    """A of the printed Baird ratios is E[ρ x (x − γx')ᵀ]; no policy has those ratios."""
    task = tasks.baird(7, ratios="paper")
    mean = Mean(task, 3)
    got = expected_move(LEARNERS[name], task, mean.w, mean.eta, mean.w_prev, **values_of(name))
    wanted = ALPHA * CLOSED_FORMS[name](mean)[0]
    assert np.allclose(got[0], wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def altered(name, step):
    """Return a registered rule with another step."""
    rule = LEARNERS[name]
    return Rule("wrong", "wrong", step, rule.moves, rule.parameters, "", "")


def test_a_forgotten_ratio_is_noticed():
    """The fixed-point contract fails for TD without ρ: its fixed point is that of the behaviour policy."""
    with pytest.raises(AssertionError, match="moves by"):
        rests_at_the_fixed_point(altered("td", lambda alpha, delta: (alpha * delta,)))


@pytest.mark.parametrize("sign", [(-1, 1), (1, -1)])
def test_a_wrong_sign_is_noticed(sign):
    """GTD2 with the sign of its step, or of the leak of η, turned round leads the mean away."""

    def step(alpha, beta, rho, rho_x, discount, delta, x_eta):
        w_x = sign[0] * alpha * rho_x * x_eta
        w_next = -sign[0] * alpha * rho * discount * x_eta
        return w_x, w_next, beta * (rho * delta - sign[1] * x_eta)

    with pytest.raises(AssertionError, match="away from the fixed point"):
        drives_the_mean_to_the_fixed_point(altered("gtd2", step))


@pytest.mark.parametrize("rho_mode", ["R", "T"])
@pytest.mark.parametrize("task", [tasks.random_walk(7), tasks.baird(7), tasks.random_mdp(seed=5)], ids=str)
def test_kappa_zero_is_gtd2_bit_for_bit(task, rho_mode):
    common = {"steps": 2000, "every": 10, "alpha": 0.01, "zeta": 0.5, "rho_mode": rho_mode}
    ours, theirs = reference.run(task, "gradient_dd", kappa=0, **common), reference.run(task, "gtd2", **common)
    assert np.array_equal(ours.w, theirs.w)
    assert np.array_equal(ours.eta, theirs.eta)
    assert np.array_equal(ours.errors, theirs.errors)


@pytest.mark.parametrize("task", [tasks.random_walk(7), tasks.baird(7), tasks.random_mdp(seed=5)], ids=str)
def test_reg_zero_is_tdc_bit_for_bit(task):
    common = {"steps": 2000, "every": 10, "alpha": 0.01, "zeta": 0.5}
    ours, theirs = reference.run(task, "tdrc", reg=0, **common), reference.run(task, "tdc", **common)
    assert np.array_equal(ours.w, theirs.w)
    assert np.array_equal(ours.eta, theirs.eta)


def test_the_two_placements_of_rho_have_one_mean_and_two_variances():
    """The mean is equal by the closed form; a single transition with ρ ≠ 1 moves w differently."""
    gtd2, signals = LEARNERS["gtd2"], {"discount": 0.9, "delta": 1.0, "x_eta": 0.5}
    whole, bootstrap = (gtd2.setting(rho_mode=mode).signals(1.0, rho=3.0) | signals for mode in "RT")
    assert gtd2.coefficients(whole)["w_x"] == pytest.approx(3 * gtd2.coefficients(bootstrap)["w_x"])
    assert gtd2.coefficients(whole)["w_next"] == gtd2.coefficients(bootstrap)["w_next"]


def test_a_large_reg_is_td():
    """TDRC's other end: with β reg = 1 and reg large η stays near zero, so w follows TD; TDC's does not."""
    walk, common = tasks.random_walk(7), {"episodes": 50, "alpha": 0.1}
    td, tdc = (reference.run(walk, name, **common).w for name in ("td", "tdc"))
    tdrc = reference.run(walk, "tdrc", reg=1e4, zeta=1e-3, **common).w
    assert np.abs(tdrc - td).max() < 1e-3 < np.abs(tdc - td).max()


EXAMPLE = Path(__file__).parent.parent / "examples" / "my_rule.py"


def test_adding_a_learner_touches_its_file_and_the_registry(tmp_path, monkeypatch):
    """One file and one entry: the contracts, the agent, the reference engine and the command line have it."""
    file = tmp_path / "tdc_dd.py"
    file.write_text(EXAMPLE.read_text())
    spec = importlib.util.spec_from_file_location("tdc_dd", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tdc_dd", module)
    spec.loader.exec_module(module)
    monkeypatch.setitem(LEARNERS, "tdc_dd", module.TDC_DD)

    check_learner(learners.find("tdc_dd"))
    assert Learner("tdc_dd", n_features=3, kappa=2.0).setting.values["kappa"] == 2.0
    walk = tasks.random_walk(5)
    trace = reference.run(walk, "tdc_dd", episodes=300, alpha=0.1, schedule=tapered(100))
    assert trace.errors[-50:].mean() < 0.5 * walk.rmsve(walk.initial_weights)
    listed = CliRunner().invoke(cli, ["list", "learners"]).output
    assert "TDC-DD: TDC that also holds on" in listed
    shown = CliRunner().invoke(cli, ["show", "tdc_dd"]).output
    assert "− κ (x·(w − w_prev)) x)" in shown


ALPHA_RULE = LEARNERS["td"].parameters[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"step": lambda alpha, gamma: (1.0,)}, "Unknown argument of the rule 'td': 'gamma'"),
        ({"moves": ("w_y",)}, "Unknown move of the rule 'td': 'w_y'. Did you mean 'w_x'?"),
        ({"moves": ("w_x", "w_next")}, "must return a tuple with one number for each of w_x, w_next"),
        (
            {"parameters": (Parameter("zeta", "", 1.0),)},
            "Unknown argument of the rule 'td': 'alpha'|include 'alpha'",
        ),
        ({"step": lambda alpha, beta: (1.0,)}, "Unknown argument of the rule 'td': 'beta'"),
        ({"moves": ("eta_x",)}, r"The parameters of the rule 'td' must include 'zeta', for it moves η."),
        ({"step": lambda alpha, x_eta: (alpha,)}, "must include 'eta_x', for it uses η"),
        ({"parameters": (ALPHA_RULE, Parameter("rho", "", 1.0))}, "must not have the name of a signal"),
        ({"parameters": (Parameter("alpha", "", -1.0),)}, "'alpha' of the rule 'td', by default, must be"),
        ({"moves": ("w_x", "w_x"), "step": lambda alpha: (1.0, 1.0)}, "The moves of the rule 'td' must differ"),
    ],
)
def test_a_broken_rule_is_refused_when_it_is_made(change, sentence):
    td = LEARNERS["td"]
    fields = {"step": td.step, "moves": td.moves, "parameters": td.parameters} | change
    with pytest.raises(ValueError, match=sentence):
        Rule(name="td", label="TD", reference="", module="", **fields)


@pytest.mark.parametrize("rule", LEARNERS.values(), ids=lambda rule: rule.name)
def test_a_rule_says_what_it_is(rule):
    assert rule.file.stem == rule.name
    assert "δ = r + γ x'·w − x·w" in rule.equation
    assert rule.summary.endswith((".", "]"))
    assert "(" in rule.reference
    assert len(rule.file.read_text().splitlines()) <= 45
