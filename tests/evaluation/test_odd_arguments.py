"""Arguments of an evaluation and of lanes that an adversary found to escape: each is refused in one sentence."""

from functools import reduce

import numpy as np
import pytest

import gradient_dd as gdd
from gradient_dd.errors import BadRequestError
from gradient_dd.stream.log.cells import kind_of_name

NESTED = reduce(lambda inner, _: [inner], range(70), [])  # more dimensions than NumPy has
LOG = {"x": np.eye(4), "reward": np.ones(4), "terminated": [False, True, False, True]}
ACTED = LOG | {"action": [0, 1, 0, 1]}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: gdd.evaluate_log(LOG, discount=0.9, learner=np.ones(3)), "Unknown learner array"),
        (
            lambda: gdd.evaluate_log(ACTED, target=NESTED, discount=0.9),
            "'target' must be numbers",
        ),
        (lambda: gdd.evaluate_log(LOG, discount=0.9, features=np.ones(3)), "'features' must be a feature map"),
        (lambda: gdd.evaluate_log(LOG, discount=0.9, columns={"episode": np.array(2.0)}), "The column for 'episode'"),
        (lambda: gdd.evaluate_log(LOG, discount=0.9, seed=10**30), "'seed' must be a whole number from 0 to"),
        (lambda: gdd.Learner("td", 2).update_many(np.eye(2), [[1], [2, 3]], 0.9, np.eye(2)), "'reward' must"),
        (lambda: gdd.Learner("td", 2).predict(([0], [[[1], [2, 3]]])), "The values of 'x' must be"),
        (lambda: gdd.features.TileCoder([0.0], [1.0], size=10**30), "'size' must be a whole number from"),
        (lambda: gdd.AutoLearner(10**400), "An AutoLearner of 1"),
        (lambda: gdd.Learner("td", 10**400), "A td learner of 1"),
        (lambda: gdd.Questions([gdd.Question("a", 1.0, 0.5)], n_features=10**400), "The weights of 1"),
        (
            lambda: gdd.Questions([gdd.Question("a", 1.0, 0.5)], n_features=3, initial_w=1e308).predict(np.ones(3)),
            "The predictions for 'x' must be finite",
        ),
        (lambda: gdd.AutoLearner(2**62), "An AutoLearner of 4611686018427387904 features must take at most"),
        (
            lambda: gdd.Learner("td", 2).save("x" * 300),
            "The path of the learner must be a file whose name",
        ),
    ],
)
def test_odd_arguments_are_refused_in_one_sentence(call, sentence):
    with pytest.raises(BadRequestError) as caught:
        call()
    assert str(caught.value).startswith(sentence), str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_that_other_forms_take_for_numbers_are_no_names():
    assert [kind_of_name(word) for word in ("inf", "-Infinity", "true", "north")] == [None, None, None, "text"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda found: found.predict([[1], [2, 3]]), "Observations must be numbers or text, one row each."),
        (lambda found: found.q([[1], [2, 3]], 0), "Observations must be numbers or text, one row each."),
        (lambda found: found.q([0.1], [[1], [1, 2]]), "'action' must be one action, or one for each observation."),
        (lambda found: found.q([0.1], [1, 0, 1]), "'action' must be one action, or one for each observation."),
    ],
)
def test_odd_rows_for_an_evaluation_are_refused_in_one_sentence(call, sentence):
    log = {"x": np.linspace(0, 1, 40), "action": np.arange(40) % 2, "reward": np.ones(40), "propensity": [0.5] * 40}
    words = {"target": lambda seen: np.full((len(seen), 2), 0.5), "discount": 0.5}
    with pytest.raises(BadRequestError) as caught:
        call(gdd.evaluate_log(log, **words))
    assert str(caught.value).startswith(sentence), str(caught.value)
    with pytest.raises(BadRequestError, match="'at' must be observations, one per row"):
        gdd.evaluate_log(log, **words, at=[[1], [2, 3]])
