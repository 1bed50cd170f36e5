"""Differences of policies: both estimates, all intervals at once, and values that rewards do not allow."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from gradient_dd.evaluation.comparison import Judged, PolicyQuestion
from gradient_dd.evaluation.findings import Finding, verdict_of
from gradient_dd.evaluation.policy_findings import IMPOSSIBLE
from gradient_dd.evaluation.policy_gaps import CLOSE, SHARE, gap_of, max_t_factor
from gradient_dd.evaluation.policy_values import PolicyEstimate, PolicyValue, cut_to, moved
from gradient_dd.studies.intervals import Bounds

RNG = np.random.default_rng(0)
COMMON = RNG.standard_normal(2000)  # what all policies share in a bootstrap sample


def policy(name, value, robust=None, noise=0.1, half=1.0):
    """Return the value of a policy whose copies share their noise with all others, but for some of their own."""
    own = noise * RNG.standard_normal(len(COMMON))
    robust = value if robust is None else robust
    both = [PolicyEstimate(one, one - half, one + half, one + COMMON + own) for one in (value, robust)]
    low, high = min(value, robust) - half, max(value, robust) + half
    none = np.empty(0)
    return PolicyValue(name, value, low, high, *both, None, np.nan, none, none, none, none, none)


def question(*found, word="fine"):
    """Return a question about policies; the first is the baseline."""
    verdict = verdict_of([Finding(word, "interval", "A sentence.")])
    return PolicyQuestion("reward", 0.9, [Judged(one, verdict) for one in found], 2.0, 100)


def test_what_policies_share_cancels_and_both_estimates_are_inside():
    base, other = policy("today", 10.0), policy("other", 11.0, robust=10.9)
    gap = gap_of(other, base, 2.0, 5.0)
    assert gap.reach == pytest.approx(2.0 * np.hypot(0.1, 0.1), rel=0.1)
    assert gap.apart == pytest.approx(1.0)
    assert gap.low == pytest.approx((0.9 - gap.reach - CLOSE * 5.0) * (1 - SHARE))
    assert gap.high == pytest.approx((1.0 + gap.reach + CLOSE * 5.0) * (1 + SHARE))
    back = gap_of(base, other, 2.0, 5.0)
    assert (back.low, back.high) == pytest.approx((-gap.high, -gap.low))
    assert gap_of(base, base, 2.0, 5.0)[:] == (0.0, 0.0, 0.0, 0.0, 0.0)


def test_a_constant_added_to_all_values_changes_nothing():
    """A margin of a share of the value would hide real differences between large values."""
    base, other = policy("today", 10.0), policy("other", 11.0)

    def shifted(one):
        robust, action_values = (moved(each, each.value + 1000.0) for each in (one.robust, one.action_values))
        low, high = one.low + 1000.0, one.high + 1000.0
        return one._replace(value=one.value + 1000.0, low=low, high=high, action_values=action_values, robust=robust)

    here, there = gap_of(other, base, 2.0, 5.0), gap_of(shifted(other), shifted(base), 2.0, 5.0)
    assert here == pytest.approx(there)


def test_estimates_that_contradict_each_other_do_not_make_a_policy_better():
    base, other = policy("today", 10.0), policy("other", 12.0, robust=9.5)
    assert gap_of(other, base, 2.0, 5.0).low < 0
    asked = question(base, other)
    assert asked.followed.found.name == "today"
    assert asked.sentence.startswith("Stay with 'today': 'other' and 'today' cannot be told apart")


def test_policies_that_hardly_differ_are_not_ranked():
    base, one, other = policy("today", 8.0), policy("one", 10.0, noise=0.0), policy("other", 10.01, noise=0.0)
    asked = question(base, one, other)
    assert [each.found.name for each in asked.ties] == ["other", "one"]
    assert asked.sentence.startswith("Deploy 'other': it is worth 10.01, 2.01 more than 'today' (from ")
    assert (
        "'other' and 'one' cannot be told apart, and all are better than 'today'; they are closer than "
        in asked.sentence
    )


def test_a_policy_that_looks_better_and_is_refused_is_named():
    asked = question(policy("today", 8.0), policy("one", 10.0))
    assert asked.sentence.startswith("Deploy 'one': ")
    assert "trusted" not in asked.sentence
    refused = Judged(policy("wild", 12.0), verdict_of([Finding("not", "doubly robust", "They differ.")]))
    poor = Judged(policy("poor", 9.0), refused.verdict)
    more = replace(asked, judged=[*asked.judged, refused, poor])
    assert more.followed.found.name == "one"
    assert more.sentence == f"{asked.sentence} 'wild' would be worth more by numbers that cannot be trusted."


def test_the_factor_makes_all_intervals_hold_at_once():
    several = [policy("today", 0.0), *(policy(f"p{k}", 1.0) for k in range(8))]
    factor = max_t_factor(several, 0.95)
    inside = [
        np.abs(one.action_values.copies - several[0].action_values.copies - 1.0)
        <= gap_of(one, several[0], factor, 1.0).reach
        for one in several[1:]
    ]
    assert np.mean(np.all(inside, axis=0)) == pytest.approx(0.95, abs=0.01)
    assert np.mean(inside) > 0.98


def test_an_impossible_value_is_cut_and_never_deployed_for_what_it_promised():
    base, good = policy("today", 50.0), policy("good", 70.0)
    wild = cut_to(policy("wild", 160.0, robust=90.0), Bounds(0.0, 100.0))
    assert (wild.value, wild.robust.value, wild.impossible) == (100.0, 90.0, 60.0)
    assert (wild.low, wild.high) == (29.0, 100.0)
    assert np.mean(wild.action_values.copies) == pytest.approx(100.0, abs=0.2)
    asked = question(base, good, wild)
    assert [one.found.name for one in asked.ties] == ["wild", "good", "today"]
    assert asked.followed.found.name == "good"
    assert asked.sentence.startswith("Deploy 'good': ")
    assert "cannot be told apart, and 'wild' may be no better than 'today'" in asked.sentence
    possible = policy("fine", 60.0)
    assert cut_to(possible, Bounds(0.0, 100.0)) is possible


def test_an_impossible_value_needs_care_and_other_faults_stay():
    eased = importlib.import_module("gradient_dd.evaluation.compare").eased
    cut = eased(Finding("not", IMPOSSIBLE, "A value of 160 is impossible."))
    assert cut.level == "with care"
    assert cut.sentence.startswith("A value of 160 is impossible. It is cut")
    other = Finding("not", "untried actions", "None is known.")
    assert eased(other) is other
