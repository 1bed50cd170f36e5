"""The rules with a share c: identities at both ends, and the legal range."""

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.theory import stability


@pytest.mark.parametrize(("name", "c", "same"), [("gtd2_to_td", 0.0, "gtd2"), ("tdc_to_td", 0.0, "tdc")])
def test_with_c_zero_nothing_is_left_out(name, c, same):
    """Without a share left out, it is GTD2 or TDC bit for bit."""
    task = tasks.baird(7)
    got, wanted = (
        reference.run(task, rule, steps=500, alpha=0.01, **more) for rule, more in ((name, {"c": c}), (same, {}))
    )
    assert np.array_equal(got.w, wanted.w)
    assert np.array_equal(got.eta, wanted.eta)


def test_with_c_one_the_form_of_tdc_is_td():
    task = tasks.baird(7)
    got, wanted = (
        reference.run(task, rule, steps=500, alpha=0.01, **more) for rule, more in (("tdc_to_td", {"c": 1}), ("td", {}))
    )
    assert np.array_equal(got.w, wanted.w)


def test_a_share_lies_between_zero_and_one():
    with pytest.raises(BadRequestError, match=r"'c' of gtd2_to_td must be in \[0, 1\]. Got 1.5."):
        LEARNERS["gtd2_to_td"].setting(c=1.5)


def test_rates_grow_with_c_on_the_walk_and_end_on_the_diverging_side_on_baird():
    """The mean of the walk is faster with every larger c; that of Baird's counterexample is unstable at c = 1."""
    walk, rule = tasks.random_walk(6), LEARNERS["gtd2_to_td"]
    rates = [stability.rate(walk, rule.setting(alpha=0.05, zeta=4, c=c)) for c in (0, 0.3, 0.7, 1)]
    assert rates == sorted(rates)
    baird = [stability.rate(tasks.baird(7), rule.setting(alpha=0.01, c=c), "iid") for c in (0, 0.5, 1)]
    assert baird[1] > baird[0] > 0 > baird[2]
