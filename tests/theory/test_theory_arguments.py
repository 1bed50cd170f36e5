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
        (lambda: theory.kkt(WALK, [0, 0, 0], [0, 0, 0], "1", 1), "'mu' must be a finite number. Got '1'."),
        (lambda: theory.kkt(WALK, [0, 0, 0], [0, 0, 0], 1, 1e60), "'kappa' must be a finite number. Got 1e+60."),
        (lambda: theory.kkt((1, 2), [0], [0], 1, 1), "'problem' must be a Task, or A, b and C. Got (1, 2)."),
        (lambda: theory.kkt((1j, 2, 3), [0], [0], 1, 1), "A of 'problem' must be numbers. Got 1j."),
        (lambda: theory.natural_direction(WALK, 3), "'w' must be a vector. Got shape ()."),
        (lambda: theory.natural_direction(WALK, [10**400]), "'w' must be numbers."),
        (lambda: theory.natural_direction(WALK, [0.0, 1.0]), "The shape of 'w' must be (3,). Got (2,)."),
        (lambda: theory.flow_rate(WALK, np.ones((3, 2))), "The shape of 'A_eff' must be (3, 3). Got (3, 2)."),
        (lambda: theory.interpolation(WALK, 3.0), "'kappa_alphas' must be a vector. Got shape ()."),
        (lambda: theory.expected_run(WALK, SETTING, 10**30), "'steps' must be a whole number from 0 to 10"),
        (lambda: theory.prox_run(WALK, 1.0, 10**14), "The weights of 100000000000000 steps must take at most "),
    ],
)
def test_an_odd_argument_gets_one_sentence(call, sentence):
    with pytest.raises(BadRequestError) as caught:
        call()
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_lists_are_taken_as_vectors():
    moments = tuple(array.tolist() for array in WALK.moments)
    direction = theory.natural_direction(moments, [0.1, 0.2, 0.3])
    assert np.allclose(direction, theory.natural_direction(WALK, np.array([0.1, 0.2, 0.3])))


def test_what_floats_cannot_compute_is_refused():
    huge = tuple(np.full_like(array, 1e200) for array in WALK.moments)
    with pytest.raises(BadRequestError, match=r"A of 'problem' must be numbers from -1e\+100 to 1e\+100"):
        theory.natural_direction(huge, np.ones(3))
    singular = np.eye(2), np.zeros(2), -np.eye(2)
    with pytest.raises(BadRequestError, match=r"be of sizes that floats can compute with\. Got Singular matrix"):
        theory.settled_direction(singular, np.ones(2), alpha=1.0, kappa=1.0)
    with pytest.raises(BadRequestError, match=r"be of sizes that floats can compute with\. Got float division by zero"):
        theory.largest_stable_alpha(WALK, "gtd", "iid", zeta=0.0)
