"""The contracts and rules of any kind: right in another way passes; what they cannot see they say or refuse."""

from dataclasses import replace

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import _LEARNERS, LEARNERS, MOVES, SIGNALS, TERMS, Parameter, Rule
from gradient_dd.learners.rule import ALPHA, ZETA
from gradient_dd.stream import Learner
from gradient_dd.testing import check_learner, expected_move, modes
from gradient_dd.testing.mean_contracts import HARSH_TASKS, harsh_task
from gradient_dd.theory import SampleMaps, rate
from tests.learners.planting import END, REST, RULES, SIZES, UNCOMPILED, USES, catcher


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
    assert not any(contract(RULES["td"]) for contract in UNCOMPILED)
    (unstated,) = filter(None, (contract(replace(RULES["td"], expected=None)) for contract in UNCOMPILED))
    assert "td states no `expected`" in unstated
    assert "a wrong sign" in unstated
    notes = [contract(OTHERS["clipped error"]) for contract in UNCOMPILED]
    assert any(note and "is not affine in the weights" in note for note in notes)


def test_a_rule_that_is_not_affine_can_be_listed_and_what_does_not_apply_is_said(monkeypatch):
    """Huber TD clips the TD error: it has no mean update in A, b and C. All other contracts are checked."""
    huber = replace(OTHERS["clipped error"], name="huber_td", affine=False)
    monkeypatch.setitem(_LEARNERS, "huber_td", huber)
    notes = check_learner("huber_td")
    assert notes == [
        "huber_td is not affine, so there is no mean update to compare its terms with.",
        "huber_td is not affine, so the stability of its mean update was not checked.",
    ]
    past_the_end = make(lambda alpha, clip, delta: (alpha * delta, alpha * min(clip, delta)), W, (ALPHA, CLIP))
    assert catcher(replace(past_the_end, affine=False)) == END
    with pytest.raises(
        BadRequestError, match="'expected' of the rule 'mine' must be omitted, because the rule is not affine"
    ):
        make(clipped_error, ("w_x",), (ALPHA, CLIP), affine=False, expected=RULES["td"].expected)
    with pytest.raises(BadRequestError, match="must be affine in delta"):
        rate(tasks.random_walk(3), huber.setting())


def test_a_promise_that_is_not_kept_is_caught():
    assert catcher(replace(OTHERS["residual gradient"], td_fixed_point=True)) == REST
    assert catcher(replace(OTHERS["clipped ratio"], td_fixed_point=True)) == REST


@pytest.mark.parametrize(
    ("rule", "contract", "sentence"),
    [
        (
            make(lambda alpha, rho, delta, x_change: (alpha * rho * delta,), ("w_x",)),
            USES,
            "takes 'x_change', which has no effect",
        ),
        (
            make(lambda alpha, rho, delta: (alpha * rho * delta, 0.0), W),
            USES,
            "the move 'w_next', which is always zero",
        ),
        (make(RULES["td"].step, ("w_x",), (ALPHA, CLIP)), USES, "declares the parameter 'clip' but does not use it"),
        (make(RULES["td"].step, ("w_x",), (ALPHA, ZETA)), USES, "declares the parameter 'zeta' but does not use it"),
        (
            make(lambda alpha, rho, delta: (0.1 * rho * delta + 0 * alpha,), ("w_x",)),
            USES,
            "takes 'alpha', which has no effect",
        ),
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
    monkeypatch.setitem(MOVES, "w_e", "change of w along the trace")
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
        (lambda alpha, beta: (alpha * beta,), "The rule 'mine' must declare ZETA, because it uses 'beta'"),
    ],
)
def test_a_statement_in_unknown_terms_is_refused(expected, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        make(RULES["td"].step, ("w_x",), expected=expected)


def test_a_parameter_may_not_hide_a_term_of_the_statement():
    parameters = (ALPHA, Parameter("A", "a number", 1.0))
    with pytest.raises(BadRequestError, match="must not have the name of a signal or of a term of `expected`"):
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
