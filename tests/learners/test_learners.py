"""Every rule: the contracts, the objective it descends, and the exact identities between rules."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.learners import LEARNERS, Parameter, Rule
from gradient_dd.tasks import exact
from gradient_dd.testing import CONTRACTS, expected_move, modes, stated_move
from tests.learners.planting import UNCOMPILED
from tests.rules import FEW, KINDS, compiled_rules, with_kernels

ALPHA, ZETA, KAPPA, REG = 0.3, 0.7, 1.9, 0.6

# What w descends once η has come to rest, as functions of w, w_prev and the task's A, b and C.
OBJECTIVES = {
    "gtd": lambda w, w_prev, A, b, C: exact.neu(w, A, b),
    "gtd2": lambda w, w_prev, A, b, C: exact.mspbe(w, A, b, C),
    "tdc": lambda w, w_prev, A, b, C: exact.mspbe(w, A, b, C),
    "gradient_dd": lambda w, w_prev, A, b, C: exact.j_gdd(w, w_prev, KAPPA, A, b, C),
    "natural_gtd2": lambda w, w_prev, A, b, C: exact.mspbe(w, A, b, C),
    "natural_tdc": lambda w, w_prev, A, b, C: exact.mspbe(w, A, b, C),
}


def values_of(name):
    """Return parameter values away from the defaults."""
    wanted = {"alpha": ALPHA, "zeta": ZETA, "kappa": KAPPA, "reg": REG}
    return {p: v for p, v in wanted.items() if p in LEARNERS[name].defaults}


def place(seed, episodic):
    """Return a small off-policy task, and w, η and w_prev somewhere."""
    task = tasks.random_mdp(n_states=6, n_actions=2, n_features=3, seed=seed, episodic=episodic)
    return task, *np.random.default_rng(seed).standard_normal((3, 3))


def gradient(objective, w):
    """Return the gradient of a quadratic function, which central differences give exactly."""
    return np.array([(objective(w + unit) - objective(w - unit)) / 2 for unit in np.eye(len(w))])


def assert_equal_moves(got, wanted):
    assert np.abs(np.subtract(got, wanted)).max() <= 1e-9 * max(1, np.abs(wanted).max())


def rules_of(contract):
    """Return all learners for a contract without kernels; test_lanes.py compares the engines for the plain ones."""
    if contract in UNCOMPILED:
        return with_kernels(LEARNERS)
    plain = {name for name, rule in LEARNERS.items() if rule.is_plain}
    return with_kernels(compiled_rules(), FEW if contract.__name__ == "treats_sparse_as_dense" else {*KINDS} - plain)


@pytest.mark.parametrize(
    ("contract", "name"),
    [
        pytest.param(contract, *one.values, marks=one.marks, id=f"{one.values[0]}-{contract.__name__}")
        for contract in CONTRACTS
        for one in rules_of(contract)
    ],
)
def test_contract(contract, name):
    rule = LEARNERS[name]
    note = contract(rule)
    if note is not None:
        assert rule.expected is None
        assert "states no `expected`" in note or (not rule.affine and "is not affine" in note)


@pytest.mark.parametrize("name", OBJECTIVES)
@given(seed=st.integers(0, 10**6), episodic=st.booleans())
def test_with_eta_at_rest_w_descends_its_objective(name, seed, episodic):
    """The mean of w then moves by −½ α times the gradient, or C⁻¹ times that; η does not move."""
    rule, (task, w, _, w_prev) = LEARNERS[name], place(seed, episodic)
    A, b, C = task.moments
    eta = b - A @ w if name == "gtd" else np.linalg.solve(C, b - A @ w)
    wanted = -0.5 * ALPHA * gradient(lambda at: OBJECTIVES[name](at, w_prev, A, b, C), w)
    if rule.natural:
        wanted = np.linalg.solve(C, wanted)
    for mode in modes(rule):
        assert_equal_moves(expected_move(rule, task, w, eta, w_prev, mode, **values_of(name)), (wanted, 0 * eta))


@given(seed=st.integers(0, 10**6), episodic=st.booleans())
def test_td_moves_towards_the_projected_bellman_update(seed, episodic):
    """On average by α XᵀD(r + PΓV − V)."""
    task, w, eta, w_prev = place(seed, episodic)
    V = task.features @ w
    error = exact.bellman(V, task.P, task.r, task.discount[task.states]) - V
    wanted = ALPHA * task.features.T @ (task.visits * error)
    assert_equal_moves(expected_move(LEARNERS["td"], task, w, eta, w_prev, alpha=ALPHA), (wanted, 0 * eta))


@given(seed=st.integers(0, 10**6), episodic=st.booleans())
def test_tdrc_is_tdc_whose_eta_shrinks(seed, episodic):
    task, *weights = place(seed, episodic)
    tdc, tdrc = (expected_move(LEARNERS[name], task, *weights, **values_of(name)) for name in ("tdc", "tdrc"))
    assert_equal_moves(tdrc, (tdc[0], tdc[1] - ALPHA * ZETA * REG * weights[1]))


@pytest.mark.parametrize("name", ["td", "gtd2", "gradient_dd"])
def test_ratios_given_outright_enter_A(name):
    """A of the printed Baird ratios is E[ρ x (x − γx')ᵀ]; no policy has those ratios."""
    task, rule = tasks.baird(7, ratios="paper"), LEARNERS[name]
    w, eta, w_prev = np.random.default_rng(3).standard_normal((3, 8))
    wanted = stated_move(rule.setting(**values_of(name)), task.moments._asdict(), w, eta, w_prev)
    assert_equal_moves(expected_move(rule, task, w, eta, w_prev, **values_of(name)), wanted)


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


@pytest.mark.parametrize(
    "change",
    [
        {"name": "another"},
        {"moves": ("w_next", "w_x", "eta_x")},
        {"natural": True},
        {"parameters": (*LEARNERS["gtd2"].plain.parameters, Parameter("clip", "a number", 1.0))},
        {"step": lambda alpha, beta, rho, rho_x, discount, delta, x_eta: (alpha, beta, rho)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_key_depends_on_all_that_results_depend_on(change):
    """A changed rule finds no results of the old one; two of the same definition share theirs."""
    gtd2 = LEARNERS["gtd2"].plain
    assert replace(gtd2, **change).key != gtd2.key
    assert replace(gtd2, **change) != gtd2


@pytest.mark.parametrize(
    "change",
    [{"label": "another"}, {"reference": "Elsewhere."}, {"expected": None}, {"stable_off_policy": False}],
    ids=lambda change: next(iter(change)),
)
def test_the_key_does_not_depend_on_what_is_said_about_a_rule(change):
    assert replace(LEARNERS["gtd2"], **change).key == LEARNERS["gtd2"].key


ALPHA_RULE = LEARNERS["td"].parameters[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"step": lambda alpha, gamma: (1.0,)}, "Unknown argument of the rule 'td': 'gamma'"),
        ({"moves": ("w_y",)}, "Unknown move of the rule 'td': 'w_y'. Did you mean 'w_"),
        ({"moves": ("w_x", "w_next")}, "must return a tuple with one number for each of w_x, w_next"),
        (
            {"parameters": (Parameter("zeta", "", 1.0),)},
            "Unknown argument of the rule 'td': 'alpha'|include 'alpha'",
        ),
        ({"step": lambda alpha, beta: (1.0,)}, "The rule 'td' must declare ZETA, because it uses 'beta'"),
        ({"moves": ("eta_x",)}, r"The parameters of the rule 'td' must include 'zeta', because η moves."),
        ({"step": lambda alpha, x_eta: (alpha,)}, "must include 'eta_x', because the rule uses η"),
        ({"parameters": (ALPHA_RULE, Parameter("rho", "", 1.0))}, "must not have the name of a signal"),
        ({"parameters": (Parameter("alpha", "", -1.0),)}, "'alpha' of the rule 'td', by default, must be"),
        ({"moves": ("w_x", "w_x"), "step": lambda alpha: (1.0, 1.0)}, "The moves of the rule 'td' must be unique"),
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
    assert rule.reference.endswith(".")
    assert len(rule.file.read_text().splitlines()) <= 60


def test_parameters_have_the_defaults_and_ranges_of_the_documentation():
    """A parameter has one default and one range, whichever rules share it; results without a setting rely on them."""
    found = {(one.name, one.default, one.legal, one.shared) for rule in LEARNERS.values() for one in rule.parameters}
    anything, unit = "a number that is zero or more", "in [0, 1]"
    assert found == {
        ("alpha", 0.1, "a positive number", False), ("zeta", 1.0, anything, False), ("lam", 0.0, unit, False),
        ("kappa", 1.0, anything, False), ("reg", 1.0, anything, False), ("ridge", 1.0, "a positive number", True),
        ("c", 0.5, unit, False), ("decay", 0.5, unit, False), ("bootstrap", 0.0, unit, False),
        ("psi_zero", 1.0, anything, False), ("psi_max", 2.0, anything, False), ("momentum", 0.5, unit, False),
    }  # fmt: skip
