"""The contracts see: every planted error is caught, by the contract named here, and what is right is let through."""

import ast
import runpy
from dataclasses import replace
from inspect import getsource
from pathlib import Path

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, MOVES, SIGNALS, TERMS, Parameter, Rule
from gradient_dd.learners.rule import ALPHA, ZETA
from gradient_dd.online import Learner
from gradient_dd.testing import CONTRACTS, check_learner, expected_move, modes
from gradient_dd.testing.mean_contracts import mean_radius
from gradient_dd.testing.mean_update import HARSH_TASKS, harsh_task
from gradient_dd.theory import SampleMaps

EXAMPLE = Path(__file__).parent.parent / "examples" / "my_rule.py"
RULES = LEARNERS | {"my_tdc_dd": runpy.run_path(str(EXAMPLE), run_name="my_rule")["TDC_DD"]}
UNCOMPILED = CONTRACTS[:-1]  # the last one compiles kernels
PLANTED_IN = ("td", "gtd", "gtd2", "tdc", "tdrc", "gradient_dd", "natural_gtd2", "natural_tdc", "my_tdc_dd")

# What an author may get wrong: the learner, what its step says, what it says with the error, the contract that catches
# it, and the contract that catches it where the rule does not state `expected`.
STATES, AVERAGE = "moves_as_it_states", "moves_on_average_as_it_states"
SIZES, END, REST = "keeps_to_its_step_sizes", "never_looks_past_the_end", "rests_at_the_fixed_point"
ON, OFF, USES = "is_stable_on_policy", "is_stable_off_policy", "uses_all_it_declares"
PLANTED = [
    ("td", "rho * delta", "delta", STATES, REST),
    ("td", "alpha * rho", "-alpha * rho", STATES, ON),
    ("td", "alpha * rho", "alpha * rho * rho", STATES, REST),
    ("td", "alpha * rho", "2 * alpha * rho", STATES, None),
    ("td", "alpha * rho * delta", "rho * delta", STATES, USES),
    ("gtd", "rho_x * x_eta", "x_eta", STATES, None),
    ("gtd", "-alpha * rho * discount", "alpha * rho * discount", STATES, OFF),
    ("gtd", "-alpha * rho * discount", "-alpha * rho", STATES, END),
    ("gtd", "-alpha * rho * discount", "-alpha * discount", STATES, OFF),
    ("gtd", "beta * (rho * delta)", "beta * delta", STATES, REST),
    ("gtd", "eta_eta = -beta", "eta_eta = -beta * rho", STATES, None),
    ("gtd", "eta_eta = -beta", "eta_eta = beta", STATES, ON),
    ("gtd", "eta_eta = -beta", "eta_eta = 0.0", STATES, USES),
    ("gtd", "eta_eta = -beta", "eta_eta = -alpha", STATES, SIZES),
    ("gtd2", "alpha * (rho_x * x_eta)", "beta * (rho_x * x_eta)", STATES, SIZES),
    ("gtd2", "rho_x * x_eta", "rho * rho_x * x_eta", STATES, OFF),
    ("gtd2", "rho_x * x_eta", "rho_x * delta", STATES, REST),
    ("gtd2", "-alpha * rho * discount", "alpha * rho * discount", STATES, OFF),
    ("gtd2", "-alpha * rho * discount", "-alpha * rho_x * discount", AVERAGE, OFF),
    ("gtd2", "-alpha * rho * discount", "-alpha * rho", STATES, END),
    ("gtd2", "-alpha * rho * discount", "-alpha * discount", STATES, OFF),
    ("gtd2", "-alpha * rho * discount", "-beta * rho * discount", STATES, SIZES),
    ("gtd2", "-alpha * rho * discount * x_eta", "0.0", STATES, USES),
    ("gtd2", "rho * delta - x_eta", "delta - x_eta", STATES, REST),
    ("gtd2", "rho * delta - x_eta", "rho * (delta - x_eta)", STATES, None),
    ("gtd2", "rho * delta - x_eta", "rho * delta + x_eta", STATES, ON),
    ("gtd2", "rho * delta - x_eta", "rho * delta", STATES, ON),
    ("gtd2", "rho * delta - x_eta", "rho_x * delta - x_eta", AVERAGE, REST),
    ("gtd2", "beta * (rho", "alpha * (rho", STATES, USES),
    ("gtd2", "beta * (rho * delta", "-beta * (rho * delta", STATES, ON),
    ("tdc", "alpha * rho * delta", "alpha * delta", STATES, REST),
    ("tdc", "alpha * rho * delta", "-alpha * rho * delta", STATES, ON),
    ("tdc", "-alpha * rho * discount", "alpha * rho * discount", STATES, OFF),
    ("tdc", "-alpha * rho * discount", "-alpha * rho", STATES, END),
    ("tdc", "-alpha * rho * discount", "-alpha * discount", STATES, OFF),
    ("tdc", "-alpha * rho * discount * x_eta", "-alpha * rho * discount * delta", STATES, REST),
    ("tdc", "rho * delta - x_eta", "rho * (delta - x_eta)", STATES, None),
    ("tdc", "rho * delta - x_eta", "delta - x_eta", STATES, REST),
    ("tdc", "rho * delta - x_eta", "rho * delta + x_eta", STATES, ON),
    ("tdrc", "-beta * reg", "beta * reg", STATES, ON),
    ("tdrc", "-beta * reg", "-beta * reg * rho", STATES, None),
    ("tdrc", "-beta * reg", "-alpha * reg", STATES, SIZES),
    ("tdrc", "-beta * reg", "-reg", STATES, SIZES),
    ("tdrc", "-beta * reg", "-beta * reg * discount", STATES, None),
    ("tdrc", "-alpha * rho * discount", "alpha * rho * discount", STATES, None),
    ("tdrc", "rho * delta - x_eta", "rho * (delta - x_eta)", STATES, None),
    ("gradient_dd", "- kappa * x_change", "+ kappa * x_change", STATES, None),
    ("gradient_dd", "- kappa * x_change", "- rho * kappa * x_change", STATES, None),
    ("gradient_dd", "- kappa * x_change", "- rho_x * kappa * x_change", STATES, None),
    ("gradient_dd", "- kappa * x_change", "- kappa * discount * x_change", STATES, None),
    ("gradient_dd", "- kappa * x_change", "- x_change", STATES, USES),
    ("gradient_dd", "- kappa * x_change", "- kappa * delta", STATES, REST),
    ("gradient_dd", "-alpha * rho * discount", "alpha * rho * discount", STATES, OFF),
    (
        "gradient_dd",
        "-alpha * rho * discount * x_eta",
        "-alpha * rho * discount * (x_eta - kappa * x_change)",
        STATES,
        None,
    ),
    ("gradient_dd", "rho * delta - x_eta", "rho * delta - x_change", STATES, ON),
    ("natural_gtd2", "-alpha * rho * discount", "alpha * rho * discount", STATES, OFF),
    ("natural_gtd2", "rho * delta - x_eta", "rho * (delta - x_eta)", STATES, None),
    ("natural_tdc", "-alpha * rho * discount", "-alpha * rho", STATES, END),
    ("natural_tdc", "alpha * rho * delta", "alpha * delta", STATES, REST),
    ("my_tdc_dd", "-alpha * rho * discount", "alpha * rho * discount", STATES, OFF),
    ("my_tdc_dd", "- kappa * x_change", "+ kappa * x_change", STATES, None),
    ("my_tdc_dd", "-alpha * rho * discount", "-alpha * discount", STATES, OFF),
    ("my_tdc_dd", "-alpha * rho * discount", "-alpha * rho", STATES, END),
]


def planted(rule, right, wrong):
    """Return the rule with an error in its step. Arguments that the wrong step does not need are not asked for."""
    source = getsource(rule.step)
    assert source.count(right) == 1
    tree = ast.parse(source.replace(right, wrong))
    (function,) = tree.body
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    function.args.args = [argument for argument in function.args.args if argument.arg in used]
    names = {}
    exec(compile(tree, "planted", "exec"), names)
    return replace(rule, name="planted", step=names[function.name])


def catcher(rule):
    """Return the name of the first contract that a rule breaks, or None."""
    for contract in UNCOMPILED:
        try:
            contract(rule)
        except AssertionError:
            return contract.__name__
    return None


@pytest.mark.parametrize(("name", "right", "wrong", "contract", "unstated"), PLANTED)
def test_a_planted_error_is_caught(name, right, wrong, contract, unstated):
    rule = planted(RULES[name].plain, right, wrong)
    assert catcher(rule) == contract
    assert catcher(replace(rule, expected=None)) == unstated


def test_the_page_says_how_many_are_caught():
    page = (Path(__file__).parent.parent / "docs" / "add-a-learner.md").read_text()
    without = sum(unstated is not None for *_, unstated in PLANTED)
    assert f"of {len(PLANTED)} errors planted in" in page
    assert f"and {without} without" in page
    assert {name for name, *_ in PLANTED} == set(PLANTED_IN)


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("gtd2", ("w_next", "w_x", "eta_x")),
        ("tdc", ("eta_x", "w_next", "w_x")),
        ("tdrc", ("w_x", "w_next", "eta_eta", "eta_x")),
        ("gradient_dd", ("w_x", "eta_x", "w_next")),
    ],
)
def test_moves_in_another_order_are_caught(name, moves):
    rule = replace(RULES[name], moves=moves)
    assert catcher(rule) == STATES
    assert catcher(replace(rule, expected=None)) in (END, SIZES, REST, ON)


@pytest.mark.parametrize("name", ["natural_gtd2", "natural_tdc"])
def test_a_forgotten_metric_is_caught(name):
    """Without `natural` the ridge that the rule declares is not used."""
    assert catcher(replace(RULES[name], natural=False)) == USES


@pytest.mark.parametrize("name", PLANTED_IN)
def test_what_is_right_passes(name):
    assert catcher(RULES[name]) is None
    assert catcher(replace(RULES[name], expected=None)) is None


def test_every_built_in_rule_states_its_mean_update():
    """The trace of true-online TD depends on itself, so that its mean has no closed form."""
    assert [name for name, rule in LEARNERS.items() if rule.expected is None] == ["true_online_td"]


# The same along the trace: the learner, what its step with λ says, what it says with the error, the contract.
JOINS = "joins_its_forms"
PLANTED_ALONG_THE_TRACE = [
    ("td", "alpha * delta", "-alpha * delta", STATES),
    ("gtd2", "(1.0 - lam) * discount", "discount", STATES),
    ("gtd2", "-beta * x_eta", "-beta * z_eta", STATES),
    ("tdc", "-alpha * ((1.0 - lam)", "alpha * ((1.0 - lam)", STATES),
    ("tdc", "beta * delta", "alpha * delta", STATES),
    ("tdrc", "-beta * reg", "beta * reg", STATES),
    ("tdc_dd", "-alpha * kappa", "alpha * kappa", STATES),
    ("gradient_dd", "- kappa * x_change", "- kappa * z_eta", STATES),
    ("gtd2_to_td", "(1.0 - c) * (1.0 - lam)", "(1.0 - lam)", STATES),
    ("htd", "z_eta - b_eta", "z_eta + b_eta", STATES),
    ("htd", "beta * discount * b_eta", "-beta * discount * b_eta", STATES),
    ("htd", "beta * discount * b_eta", "beta * b_eta", STATES),
    ("pgtd2", "w_next * (discount * next_next - x_next)", "w_next * (discount * next_next + x_next)", STATES),
    ("pgtd2", "eta_z * x_z + eta_x * x_x", "eta_z * x_x + eta_x * x_z", STATES),
    ("tree_backup", "alpha * rho * delta", "alpha * delta", STATES),
]


@pytest.mark.parametrize(("name", "right", "wrong", "contract"), PLANTED_ALONG_THE_TRACE)
def test_an_error_planted_along_the_trace_is_caught(name, right, wrong, contract):
    rule = RULES[name]
    if rule.along_trace is None:
        assert catcher(planted(rule, right, wrong)) == contract
        return
    step = planted(rule.traced, right, wrong).step
    assert catcher(replace(rule, along_trace=replace(rule.along_trace, step=step))) == contract


@pytest.mark.parametrize(
    ("name", "right", "wrong", "contract"),
    [
        ("td", "rho * discount_before * lam, rho", "rho * discount_before * lam, 1.0 + 0.0 * rho", AVERAGE),
        ("tdc", "rho * discount_before * lam, rho", "discount_before * lam, rho", AVERAGE),
        ("tdc", "rho * discount_before * lam, rho", "rho * discount_before, rho + 0.0 * lam", AVERAGE),
        ("htd", "rho * discount_before * lam, rho", "rho * lam * rho * discount_before, rho", AVERAGE),
    ],
)
def test_an_error_in_the_trace_is_caught(name, right, wrong, contract):
    """The matrices of the trace are computed from the task's table, without the trace's own function."""
    rule = RULES[name].traced
    source = getsource(rule.traces[0].step)
    assert source.count(right) == 1
    names = {}
    exec(source.replace(right, wrong), names)
    crooked = replace(rule.traces[0], step=names[rule.traces[0].step.__name__])
    matrices = replace(rule, traces=(crooked, *rule.traces[1:]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gradient_dd.testing.mean_update.Z", crooked)
        assert catcher(matrices) == contract


def test_a_wrong_step_that_agrees_with_a_wrong_statement_breaks_its_promise():
    """Both have the sign of TDC's correction turned round, so they agree, and the mean is unstable off-policy."""

    def expected(alpha, beta, A, b, B, C, w, eta):
        return alpha * (b - A @ w + B @ eta), beta * (b - A @ w - C @ eta)

    wrong = planted(RULES["tdc"].plain, "-alpha * rho * discount", "alpha * rho * discount")
    assert catcher(replace(wrong, expected=expected)) == OFF


def test_td_is_unstable_on_the_harsh_tasks():
    """So a promise of stability means something there."""
    for seed, episodic in HARSH_TASKS:
        task = harsh_task(seed, episodic)
        assert task.episodic is episodic
        assert len(set(task.discount)) == len(task.discount)
        assert mean_radius(RULES["td"], task, "R", {"alpha": 1e-3}) > 1
    assert catcher(replace(RULES["td"], stable_off_policy=True)) == OFF


# Learners that are right in other ways ------------------------------------------------------------------------------


def make(step, moves, parameters=(ALPHA,), **fields):
    return Rule("mine", "mine", step, moves, parameters, "A test.", module="", **fields)


def residual_gradient(alpha, rho, discount, delta):
    return alpha * rho * delta, -alpha * rho * discount * delta


def gtd_with_ratio_on_the_leak(alpha, beta, rho, discount, delta, x_eta):
    return alpha * rho * x_eta, -alpha * rho * discount * x_eta, beta * rho * delta, -beta * rho


def gtd2_through_the_trace(alpha, beta, rho, discount, delta, x_eta):
    return alpha * x_eta, -alpha * rho * discount * x_eta, beta * (rho * delta - x_eta)


def clipped_ratio(alpha, clip, rho, delta):
    return (alpha * min(rho, clip) * delta,)


def clipped_error(alpha, clip, rho, delta):
    return (alpha * rho * max(-clip, min(clip, delta)),)


def td_with_momentum(alpha, friction, rho, delta, x_change):
    return (alpha * rho * delta + friction * x_change,)


CLIP = Parameter("clip", "largest value", default=1.0)
FRICTION = Parameter("friction", "share of the last change", default=0.1)
W, ETA = ("w_x", "w_next"), ("w_x", "w_next", "eta_x")
OTHERS = {
    "residual gradient": make(residual_gradient, W, td_fixed_point=False, stable_off_policy=True),
    "GTD, ratio on the leak": make(
        gtd_with_ratio_on_the_leak, (*ETA, "eta_eta"), (ALPHA, ZETA), stable_off_policy=True
    ),
    "GTD2 through the trace": make(
        gtd2_through_the_trace,
        ETA,
        (ALPHA, ZETA),
        expected=lambda alpha, beta, A, b, B, C, w, eta: (alpha * ((C - B) @ eta), beta * (b - A @ w - C @ eta)),
        stable_off_policy=True,
    ),
    "clipped ratio": make(clipped_ratio, ("w_x",), (ALPHA, CLIP), td_fixed_point=False),
    "clipped error": make(clipped_error, ("w_x",), (ALPHA, CLIP), td_fixed_point=False),
    "momentum": make(td_with_momentum, ("w_x",), (ALPHA, FRICTION)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_learners_of_other_kinds_pass(name):
    assert catcher(OTHERS[name]) is None


def test_what_could_not_be_seen_is_said():
    assert check_learner(RULES["td"]) == []
    (unstated,) = check_learner(replace(RULES["td"], expected=None))
    assert "td states no `expected`" in unstated
    assert "a wrong sign" in unstated
    notes = [contract(OTHERS["clipped error"]) for contract in UNCOMPILED]
    assert any(note and "is not affine in the weights" in note for note in notes)


def test_a_promise_that_is_not_kept_is_caught():
    assert catcher(replace(OTHERS["residual gradient"], td_fixed_point=True)) == REST
    assert catcher(replace(OTHERS["clipped ratio"], td_fixed_point=True)) == REST


@pytest.mark.parametrize(
    ("rule", "contract", "sentence"),
    [
        (make(lambda alpha, rho, delta, x_change: (alpha * rho * delta,), ("w_x",)), USES, "asks for 'x_change'"),
        (
            make(lambda alpha, rho, delta: (alpha * rho * delta, 0.0), W),
            USES,
            "the move 'w_next', which is always zero",
        ),
        (make(RULES["td"].step, ("w_x",), (ALPHA, CLIP)), USES, "declares the parameter 'clip' and does not use it"),
        (make(RULES["td"].step, ("w_x",), (ALPHA, ZETA)), USES, "declares the parameter 'zeta' and does not use it"),
        (make(lambda alpha, rho, delta: (0.1 * rho * delta + 0 * alpha,), ("w_x",)), USES, "asks for 'alpha'"),
        (make(lambda rho, delta: (0.1 * rho * delta,), ("w_x",)), USES, "declares the parameter 'alpha'"),
        (make(lambda alpha, rho, delta: ((1 + alpha) * rho * delta,), ("w_x",)), SIZES, "moves w with alpha = 0"),
    ],
)
def test_what_a_contract_says(rule, contract, sentence):
    assert catcher(rule) == contract
    with pytest.raises(AssertionError, match=sentence):
        check_learner(rule)


def test_a_step_that_remembers_is_caught():
    calls = []

    def step(alpha, rho, delta):
        calls.append(delta)
        return (alpha * rho * delta * (1 + len(calls) % 2),)

    assert catcher(make(step, ("w_x",))) == "is_a_pure_function"


# What a contract or an engine does not know ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["move", "signal"])
def test_an_unknown_move_or_signal_is_refused_by_name(kind, monkeypatch):
    """A later version may have more of both; whoever does not handle one says so, and never leaves it out."""
    monkeypatch.setitem(MOVES, "w_e", "of w along the trace")
    monkeypatch.setitem(SIGNALS, "e_eta", "e·η")
    step = {
        "move": lambda alpha, rho, delta: (alpha * rho * delta, alpha * delta),
        "signal": lambda alpha, rho, delta, e_eta: (alpha * rho * delta, alpha * e_eta),
    }[kind]
    rule = make(step, ("w_x", "w_e" if kind == "move" else "w_next"))
    task = tasks.random_walk(3)
    w = np.zeros(3)
    for what, use in {
        "The mean update": lambda: expected_move(rule, task, w, w, w),
        "The reference engine": lambda: reference.run(task, rule, steps=1),
        "The lane engine": lambda: LaneRun(task, [rule.setting()], Horizon(steps=1)),
        "`Learner`": lambda: Learner(rule, n_features=3),
        "The theory": lambda: SampleMaps(task, rule.setting()),
    }.items():
        name = {"move": "w_e", "signal": "e_eta"}[kind]
        with pytest.raises(
            BadRequestError, match=f"{what} does not know the {kind} '{name}' of the rule 'mine'. It knows"
        ):
            use()


@pytest.mark.parametrize(
    ("expected", "sentence"),
    [
        (lambda alpha, D: (alpha * D,), "Unknown argument of `expected` of the rule 'mine': 'D'"),
        (lambda alpha, beta: (alpha * beta,), "Unknown argument of `expected` of the rule 'mine': 'beta'"),
    ],
)
def test_a_statement_in_unknown_terms_is_refused(expected, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        make(RULES["td"].step, ("w_x",), expected=expected)


def test_a_parameter_may_not_hide_a_term_of_the_statement():
    parameters = (ALPHA, Parameter("A", "a number", 1.0))
    with pytest.raises(BadRequestError, match="must not have the name of a signal, or of what `expected` may ask for"):
        make(lambda alpha, A: (alpha * A,), ("w_x",), parameters, expected=lambda alpha, A: (alpha * A,))
    make(lambda alpha, A: (alpha * A,), ("w_x",), parameters)


@pytest.mark.parametrize(
    "expected",
    [
        lambda alpha, A, b, w: alpha * (b - A @ w),
        lambda alpha, A, b, w: (alpha * (b - A @ w), 0 * w),
        lambda alpha, A, b, w: (alpha * A,),
    ],
)
def test_a_statement_must_be_one_vector_for_each_weight_vector(expected):
    with pytest.raises(AssertionError, match="must return a tuple with one vector for each of w"):
        check_learner(make(RULES["td"].step, ("w_x",), expected=expected))


def test_every_term_is_used_by_some_rule():
    assert {name for rule in RULES.values() for name in rule.expected_arguments} >= set(TERMS)


def test_the_mean_of_both_placements_is_the_same():
    """E[ρ|s] = 1, so one statement serves both."""
    task = harsh_task(*HARSH_TASKS[0])
    w, eta, w_prev = np.random.default_rng(5).standard_normal((3, task.n_features))
    for rule in (rule for rule in LEARNERS.values() if not rule.uses_sample_twice):
        first, *others = (expected_move(rule, task, w, eta, w_prev, mode) for mode in modes(rule))
        assert all(np.allclose(first, other, rtol=1e-12, atol=1e-15) for other in others)


def test_the_page_names_every_contract():
    page = (Path(__file__).parent.parent / "docs" / "add-a-learner.md").read_text()
    assert [name for name in (contract.__name__ for contract in CONTRACTS) if f"| `{name}` |" not in page] == []
