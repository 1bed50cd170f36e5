"""The contracts see: every planted error is caught, by the contract named here, and what is right is let through."""

from dataclasses import replace
from inspect import getsource
from pathlib import Path

import pytest

from gradient_dd.learners import LEARNERS
from gradient_dd.testing.mean_contracts import HARSH_TASKS, harsh_task, mean_radius
from tests.learners.planting import AVERAGE, END, OFF, ON, REST, RULES, SIZES, STATES, USES, catcher, planted

PLANTED_IN = ("td", "gtd", "gtd2", "tdc", "tdrc", "gradient_dd", "natural_gtd2", "natural_tdc", "my_tdc_dd")

# What an author may get wrong: the learner, what its step says, what it says with the error, the contract that catches
# it, and the contract that catches it where the rule does not state `expected`.
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


@pytest.mark.parametrize(("name", "right", "wrong", "contract", "unstated"), PLANTED)
def test_a_planted_error_is_caught(name, right, wrong, contract, unstated):
    rule = planted(RULES[name].plain, right, wrong)
    assert catcher(rule) == contract
    assert catcher(replace(rule, expected=None)) == unstated


def test_the_page_says_how_many_are_caught():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-learner.md").read_text()
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
        patch.setattr("gradient_dd.testing.mean_contracts.Z", crooked)
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
