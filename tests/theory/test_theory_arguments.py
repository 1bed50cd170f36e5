"""The theory refuses what it cannot compute with, in one sentence, before it computes."""

import numpy as np
import pytest

from gradient_dd import tasks, theory
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS

WALK = tasks.random_walk(3)
SETTING = LEARNERS["gradient_dd"].setting(alpha=0.1)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.rate(3, SETTING), "'task' must be a Task, e.g. tasks.random_walk(20). Got 3."),
        (lambda: theory.rate(WALK, "td"), "'setting' must be a setting, e.g. LEARNERS['td'].setting(alpha=0.1)."),
        (lambda: theory.rate(WALK, SETTING, "iod"), "'sampling' must be 'trajectory' or 'iid'. Got 'iod'."),
        (lambda: theory.exact_limits(WALK, SETTING, np.ones(2)), "'sampling' must be 'trajectory' or 'iid'. Got"),
        (lambda: theory.advise(WALK, 50), "'horizon' must be a Horizon, e.g. Horizon(steps=10_000). Got 50."),
        (lambda: theory.kappa_of_mu(WALK, [0, 0, 0], "1"), "'mu' must be a positive number. Got '1'."),
        (lambda: theory.kappa_of_mu(WALK, 3, 1), "The shape of 'v' must be (3,). Got ()."),
        (lambda: theory.kappa_of_mu(WALK, [0.0, 1.0], 1), "The shape of 'v' must be (3,). Got (2,)."),
        (lambda: theory.kappa_of_mu(WALK, [10**400], 1), "'v' must be numbers."),
        (
            lambda: theory.kappa_of_mu(tasks.rooms(), 3, 1),
            "The task of the theory must ask its question in every state",
        ),
        (lambda: theory.natural_relation(WALK, [0, 0, 0], 1, 0, 1), "'alpha' must be a positive number. Got 0."),
        (lambda: theory.interpolation(WALK, 3.0), "'kappa_alphas' must be a vector. Got shape ()."),
        (lambda: theory.interpolation(WALK, [0.1], -1), "'zeta' must be a number that is zero or more. Got -1."),
        (lambda: theory.diverging_mdps(10**30), "'count' must be a whole number from 1 to 10"),
        (lambda: theory.expected_run(WALK, SETTING, 10**30), "'steps' must be a whole number from 1 to 10"),
    ],
)
def test_an_odd_argument_gets_one_sentence(call, sentence):
    with pytest.raises(BadRequestError) as caught:
        call()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_lists_are_taken_as_weights():
    listed = theory.penalised_step(WALK, [0.1, 0.2, 0.3], 1)
    assert np.array_equal(listed, theory.penalised_step(WALK, np.array([0.1, 0.2, 0.3]), 1.0))


def test_what_floats_cannot_compute_is_refused():
    with pytest.raises(BadRequestError, match=r"range of floating-point arithmetic\. Got float division by zero"):
        theory.largest_stable_alpha(WALK, "gtd", "iid", zeta=0.0)
