"""Findings: the exact sentence and level of each, at both sides of every bound, and the page that lists them."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd.evaluation.choice import Candidate
from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.evaluation.log_findings import LogFacts
from gradient_dd.evaluation.portfolio import TdStability
from gradient_dd.evaluation.returns import ReturnCheck
from gradient_dd.stream.log import LogColumns, RewardSums
from gradient_dd.studies.intervals import Bounds

ROOT = Path(__file__).parents[2]


def found(key, evidence):
    """Return what one finding says, as a list of (level, sentence)."""
    return list(FINDINGS[key].find(evidence))


def data(stability=("stable", 1.0, 0.0), chosen="lstd", sums=None, **seen):
    """Return evidence on a stream of which only this is known."""
    return SimpleNamespace(
        diagnosis=SimpleNamespace(**{"with_ratios": True, "rows": 1000} | seen),
        sums=sums,
        stability=TdStability(*stability),
        chosen=chosen,
    )


@pytest.mark.parametrize(
    ("count", "level", "sentence"),
    [
        (10, "fine", "There are 12,345 transitions in 10 episodes; 1,009 ended, 1 were cut."),
        (9, "with care", "There are 12,345 transitions in 9 episodes; 1,009 ended, 1 were cut."),
        (1, "with care", "There is one episode of 12,345 transitions, so intervals rest on stretches of it."),
    ],
)
def test_episodes(count, level, sentence):
    assert found("episodes", data(rows=12_345, episodes=count, ended=1009, cut=1)) == [(level, sentence)]
    for rows, endless in ((2000, "fine"), (1999, "with care")):
        assert [one for one, _ in found("episodes", data(rows=rows, episodes=1, ended=0, cut=0))] == [endless]


def test_time_limit():
    sentence = (
        "30% of the episodes end after exactly 50 steps, the longest there is. If that is a time limit, it must be "
        "recorded as truncated, not as terminated: values are wrong otherwise."
    )
    assert found("time_limit", data(time_limit=(50, 0.3))) == [("with care", sentence)]
    assert found("time_limit", data(time_limit=None)) == []


@pytest.mark.parametrize(
    ("pairs", "forward", "backward", "said"),
    [
        (19, 0, 19, []),
        (20, 18, 19, [("fine", "The next state of a row is the state of the row after, as it should be.")]),
        (20, 17, 19, [("not", "In 95% of the rows the state is the next state of the row after: the columns are "
                       "swapped.")]),
        (20, 17, 18, [("with care", "The next state is the state of the row after in 85% of the rows only: rows are "
                       "missing, out of order, or already sampled.")]),
    ],
)  # fmt: skip
def test_order_of_columns(pairs, forward, backward, said):
    assert found("order_of_columns", data(pairs=pairs, next_is_next=forward, next_is_last=backward)) == said


def ratios(total, square, **more):
    """Return sums over two groups of ratios with this sum and this sum of squares."""
    return SimpleNamespace(ratio=np.array([0.25, 0.75]) * total, ratio_square=np.array([0.5, 0.5]) * square, **more)


def test_without_ratios_nothing_else_is_said_of_them():
    evidence = data(with_ratios=False)
    for key in ("effective_rows", "largest_ratio", "mean_ratio"):
        assert found(key, evidence) == []
    sentence = "All ratios are 1: the value is that of the policy that made the data."
    assert found("no_ratios", evidence) == [("fine", sentence)]
    assert found("no_ratios", data()) == []


@pytest.mark.parametrize(
    ("total", "square", "rows", "level", "sentence"),
    [
        (100.0, 100.0, 1000, "fine", "The ratios leave 100 effective rows, 10% of all."),
        (100.0, 100.0, 2000, "fine", "The ratios leave 100 effective rows, 5% of all."),
        (100.0, 100.0, 2100, "with care", "The ratios leave 100 effective rows, 5% of all."),
        (99.0, 99.0, 1000, "with care", "The ratios leave 99 effective rows, 10% of all."),
        (10.0, 10.0, 20, "with care", "The ratios leave 10 effective rows, 50% of all."),
        (9.0, 9.0, 20, "not", "The ratios leave 9 effective rows, 45% of all."),
        (4000.0, 8000.0, 4000, "fine", "The ratios leave 2,000 effective rows, 50% of all."),
        (0.0, 0.0, 4000, "not", "The ratios leave 0 effective rows, 0% of all."),
    ],
)
def test_effective_rows(total, square, rows, level, sentence):
    assert found("effective_rows", data(rows=rows, sums=ratios(total, square))) == [(level, sentence)]


@pytest.mark.parametrize(
    ("ratio", "rows", "level", "sentence"),
    [
        (10.0, 100, "fine", "The largest ratio is 10, in row 17; it has 10% of the weight."),
        (20.0, 100, "with care", "The largest ratio is 20, in row 17; it has 40% of the weight."),
        (20.0, 99, "fine", "The largest ratio is 20, in row 17; it has 40% of the weight."),
    ],
)
def test_largest_ratio(ratio, rows, level, sentence):
    evidence = data(rows=rows, largest_ratio=ratio, largest_at=17, sums=ratios(500.0, 1000.0))
    assert found("largest_ratio", evidence) == [(level, sentence)]


def group_means(means, along=(0.0, 0.0), small=True, wobble=0.0):
    """Return sums over 100 groups of 10 rows, and one without rows, whose ratios have this mean.

    Along two test features the ratios are off by `along`; `wobble` is the deviation of every other group.
    """
    n, sign = 100, np.where(np.arange(100) % 2, 1.0, -1.0)
    sums = SimpleNamespace(m=2, small=small, rows=np.r_[np.full(n, 10.0), 0.0])
    sums.ratio = np.r_[10.0 * (means + wobble * sign), 0.0]
    sums.ratio_z = np.r_[10.0 * (np.array(along) + 0.01 * sign[:, None]), np.zeros((1, 2))] * [1.0, 2.0]
    sums.C = np.zeros((n + 1, 2, 2))
    sums.C[:n] = 10.0 * np.diag([1.0, 4.0])
    return data(sums=sums)


WRONG = "The propensities are not those of the policy that made the data, or the two columns are swapped."
UNCOVERED = (
    "The behaviour never takes some actions of the target, or the propensities are not those of the policy that made "
    "the data."
)
FOLLOWS = (
    "the propensities are wrong there, an action of the target is missing there, or the feature knows the action that "
    "follows."
)


@pytest.mark.parametrize(
    ("evidence", "level", "sentence"),
    [
        (group_means(1.02), "fine", "The ratios average to 1.020 ± 0.000, as they should to 1."),
        (group_means(1.04), "with care", f"The ratios average to 1.040 ± 0.000, not to 1. {WRONG}"),
        (group_means(0.96), "with care", f"The ratios average to 0.960 ± 0.000, not to 1. {UNCOVERED}"),
        (group_means(1.11), "not", f"The ratios average to 1.110 ± 0.000, not to 1. {WRONG}"),
        (group_means(0.89), "not", f"The ratios average to 0.890 ± 0.000, not to 1. {UNCOVERED}"),
        (group_means(1.04, wobble=0.07), "with care", f"The ratios average to 1.040 ± 0.007, not to 1. {WRONG}"),
        (group_means(1.04, wobble=0.09), "fine", "The ratios average to 1.040 ± 0.009, as they should to 1."),
        (group_means(1.0, (0.0, 0.02)), "fine", "The ratios average to 1.000 ± 0.000, as they should to 1."),
        (
            group_means(1.0, (0.05, 0.04)),
            "with care",
            f"The ratios average to 1.000, but along feature 0 they are off by +0.05: {FOLLOWS}",
        ),
        (
            group_means(1.0, (0.05, -0.2)),
            "not",
            f"The ratios average to 1.000, but along feature 1 they are off by -0.20: {FOLLOWS}",
        ),
        (
            group_means(1.0, (0.0, 0.05), small=False),
            "with care",
            f"The ratios average to 1.000, but along some features they are off by +0.05: {FOLLOWS}",
        ),
    ],
)
def test_mean_ratio(evidence, level, sentence):
    assert found("mean_ratio", evidence) == [(level, sentence)]


def test_a_feature_along_which_ratios_are_off_must_be_sure():
    """5.3 standard errors or more, for two features; and features that are always 0 are left out."""
    evidence = group_means(1.0, (0.04, 0.0))
    sign = np.where(np.arange(100) % 2, 1.0, -1.0)
    for spread, level in ((0.074, "with care"), (0.077, "fine")):  # standard errors are 10.05 % of it
        evidence.sums.ratio_z[:100, 0] = 10.0 * (0.04 + spread * sign)
        assert found("mean_ratio", evidence)[0][0] == level
    evidence.sums.C[:] = 0.0
    evidence.sums.ratio_z[:100, 0] = 0.4
    assert found("mean_ratio", evidence)[0][0] == "fine"


def test_features():
    sentence = "Features 0, 1, 2, 3, 4 never change: one constant is enough."
    assert found("constant_features", data(constant=[0, 1, 2, 3, 4, 5])) == [("fine", sentence)]
    assert found("constant_features", data(constant=[0, 3])) == [
        ("fine", "Features 0, 3 never change: one constant is enough.")
    ]
    assert found("constant_features", data(constant=[0])) == []
    one = "Features 1 and 4 are the same up to a factor: values are unique, weights are not."
    three = "Features 1 and 4 are the same up to a factor, and 2 more pairs: values are unique, weights are not."
    assert found("duplicated_features", data(twins=[(1, 4)])) == [("fine", one)]
    assert found("duplicated_features", data(twins=[(1, 4), (1, 5), (4, 5)])) == [("fine", three)]
    assert found("duplicated_features", data(twins=[])) == []
    leak = (
        "Feature 2 tells the return of the rest of the episode almost exactly (97% of what the other features leave "
        "open). If it was computed from what came later, leave it out."
    )
    assert found("leaked_future", data(leaks=[(2, 0.97), (2, 0.97)])) == [("with care", leak)] * 2
    assert found("leaked_future", data(leaks=[])) == []


@pytest.mark.parametrize(
    ("verdict", "chosen", "level", "sentence"),
    [
        ("stable", "td", "fine", "TD is stable on these data: of its copies without rewards 75% died out, 25% grew."),
        ("unclear", "td", "fine", "The data are too short to tell whether TD is stable: of its copies "
         "without rewards 75% died out, 25% grew."),
        ("unstable", "td", "not", "TD diverges on these data: of its copies without rewards 75% died out, "
         "25% grew. Take a learner that is stable off-policy."),
        ("unstable", "tdc", "fine", "TD diverges on these data: of its copies without rewards 75% died out, "
         "25% grew. Take a learner that is stable off-policy."),
    ],
)  # fmt: skip
def test_td_stability(verdict, chosen, level, sentence):
    assert found("td_stability", data((verdict, 0.75, 0.25), chosen)) == [(level, sentence)]


def candidate(name="tdc", error=0.1, diverged=0, w=(2.0,)):
    """Return a candidate with this error."""
    return Candidate(name, f"{name}(alpha=0.1)", np.array(w), np.zeros((1, 1)), np.array([error]), diverged)


def answer(chosen=None, lstd=None, moved=None, by_returns=False, still=1.0, **evaluation):
    """Return evidence on an answer of which only this is known; its value is 2, from 1 to 4."""
    start = {"start": np.ones(1), "start_value": 2.0, "start_interval": Bounds(1.0, 4.0), "scale": 3.0}
    rest = {"candidates": (candidate("initial weights", still),), "spread": SimpleNamespace(confidence=0.9)}
    return SimpleNamespace(
        evaluation=SimpleNamespace(**start | rest | evaluation),
        chosen=chosen or candidate(),
        lstd=lstd,
        moved=moved,
        by_returns=by_returns,
    )


def test_divergence():
    evidence = answer(candidate(diverged=12_345))
    assert found("divergence", evidence) == [("not", "tdc(alpha=0.1) diverged at update 12,345.")]
    assert found("divergence", answer()) == []


def test_held_out_error():
    better = ("fine", "The held-out error is 0.123; that of the initial weights is 1.23.")
    worse = ("not", "The held-out error, 1.23, is not below that of the initial weights, 1.23.")
    perfect = ("fine", "The held-out error is 0; that of the initial weights is 0.")
    nothing = "Nothing that was tried does better on held-out data than the initial weights: nothing was learnt."
    assert found("held_out_error", answer(candidate(error=0.12345), still=1.2345)) == [better]
    assert found("held_out_error", answer(candidate(error=1.2345), still=1.2345)) == [worse]
    assert found("held_out_error", answer(candidate(error=0.0), still=0.0)) == [perfect]
    assert found("held_out_error", answer(candidate("initial weights"), by_returns=True)) == [("not", nothing)]
    assert found("held_out_error", answer(by_returns=True)) == []


def test_overruled_by_returns():
    sentence = (
        "The returns of the log prefer these values to those with the smallest Bellman error: the features do not "
        "carry all that the values need."
    )
    assert found("overruled_by_returns", answer(by_returns=True)) == [("with care", sentence)]
    assert found("overruled_by_returns", answer()) == []
    assert found("overruled_by_returns", answer(candidate("initial weights"), by_returns=True)) == []


def test_switches():
    once, twice = ((1000, "lstd(ridge=0)"),), ((1000, "lstd(ridge=0)"), (64_000, "td(alpha=0.1)"))
    sentence = "The smallest held-out error had lstd(ridge=0) from row 1,000 on; td(alpha=0.1) from row 64,000 on."
    assert found("switches", answer(switches=twice)) == [("fine", sentence)]
    assert found("switches", answer(switches=once)) == []


@pytest.mark.parametrize(
    ("newer", "interval", "level", "sentence"),
    [
        (1.5, (1.0, 4.0), "fine", "The value moved by +1.5 from one half to the next."),
        (1.75, (1.0, 4.0), "with care", "The value moved by +1.75 from one half to the next."),
        (-1.75, (1.0, 4.0), "with care", "The value moved by -1.75 from one half to the next."),
        (1.5e-9, (2.0, 2.0), "fine", "The value moved by +1.5e-09 from one half to the next."),
        (2.5e-9, (2.0, 2.0), "with care", "The value moved by +2.5e-09 from one half to the next."),
    ],
)
def test_still_moving(newer, interval, level, sentence):
    evidence = answer(moved=(np.ones(1), np.array([1 + newer])), start_interval=Bounds(*interval))
    assert found("still_moving", evidence) == [(level, sentence)]
    assert found("still_moving", answer()) == []


def test_far_from_lstd():
    lstd, near = candidate("lstd", w=(2.5,)), "The exact solution of the sample, LSTD, differs by +0.5"
    beyond = [("not", f"{near}, more than its own interval.")]
    assert found("far_from_lstd", answer(lstd=lstd)) == [("fine", f"{near}.")]
    for interval in (Bounds(2.0, 4.0), Bounds(1.0, 2.0)):
        assert found("far_from_lstd", answer(lstd=lstd, start_interval=interval)) == beyond
    assert found("far_from_lstd", answer(lstd=lstd, start_interval=Bounds(2.0, 2.0))) == [("fine", f"{near}.")]
    little = answer(lstd=lstd, start_interval=Bounds(2.0, 4.0), scale=5.1)
    assert found("far_from_lstd", little) == [("with care", f"{near}, more than its own interval.")]
    assert found("far_from_lstd", answer(chosen=lstd, lstd=lstd)) == []
    assert found("far_from_lstd", answer()) == []


def test_interval():
    sentence = "The value where episodes begin is 2, from 1 to 4 at 90%."
    assert found("interval", answer(scale=3.0)) == [("fine", sentence)]
    assert found("interval", answer(scale=2.99)) == [("with care", sentence)]


def check(gap, doubt=1.0, kind="episodes", value=10.0, steps=7, starts=60, effective=50.0, rest=0.0):
    """Return a check of values that are `value` in the mean."""
    returns = value + gap
    return ReturnCheck(kind, starts, returns, returns - 1, returns + 1, value, gap, doubt, steps, effective, rest)


WEIGHTED = "The returns, weighted by the ratios, average to {}, from {} to {}, where episodes begin"
DIFFER = (
    "{}, but the values there average to {}. They differ by {}, where {} may be chance. The features do not carry the "
    "values, or a column is not what it was taken for."
)
UNCHECKED = "; the values agree: {}. But values that are all wrong {} would agree as well, so nothing has checked them."
APART = (
    "; the values there average to {}, which may differ by {} by chance. Values that are all wrong {} would do as "
    "well, so nothing has checked them."
)


@pytest.mark.parametrize(
    ("checks", "level", "sentence"),
    [
        ([check(1.0)], "fine", WEIGHTED.format(11, 10, 12) + "; the values agree: 10."),
        ([check(-1.25)], "with care", DIFFER.format(WEIGHTED.format(8.75, 7.75, 9.75), 10, "-1.25", 1)),
        ([check(2.0)], "with care", DIFFER.format(WEIGHTED.format(12, 11, 13), 10, "+2", 1)),
        ([check(2.5)], "not", DIFFER.format(WEIGHTED.format(12.5, 11.5, 13.5), 10, "+2.5", 1)),
        ([check(0.25, 0.1)], "with care", DIFFER.format(WEIGHTED.format(10.25, 9.25, 11.25), 10, "+0.25", 0.1)),
        ([check(-1.0, 0.1)], "with care", DIFFER.format(WEIGHTED.format(9, 8, 10), 10, "-1", 0.1)),
        ([check(-1.05, 0.1)], "not", DIFFER.format(WEIGHTED.format(8.95, 7.95, 9.95), 10, "-1.05", 0.1)),
        ([check(0.5), check(3.0, kind="rows", effective=59.5)], "not", DIFFER.format(
            "The returns average to 13, from 12 to 14, from all rows on", 10, "+3", 1)),
        ([check(0.5, effective=59.25), check(9.0, steps=0)], "fine", WEIGHTED.format(10.5, 9.5, 11.5)
         + "; the values agree: 10."),
        ([check(0.0, 5.0)], "fine", WEIGHTED.format(10, 9, 11) + "; the values agree: 10."),
        ([check(0.0, 7.0), check(0.0, 6.0, effective=60.0)], "with care",
         "The returns average to 10, from 9 to 11, where episodes begin"
         + UNCHECKED.format(10, "by 6, where the largest is 4,")),
        ([check(0.0, 3.0, rest=0.5)], "with care", WEIGHTED.format(10, 9, 11)
         + UNCHECKED.format(10, "by 6, where the largest is 4,")
         + " Episodes are cut, or their ratios too heavy, after 7 steps: 50% of the returns are values themselves."),
        ([check(9.0, steps=0, rest=1.0)], "with care", WEIGHTED.format(19, 18, 20)
         + APART.format(10, "+9", "by any amount")
         + " Episodes are cut, or their ratios too heavy, after 0 steps: 100% of the returns are values themselves."),
    ],
)  # fmt: skip
def test_returns_beside_values(checks, level, sentence):
    assert found("returns_beside_values", answer(checks=tuple(checks), scale=4.0)) == [(level, sentence)]


@pytest.mark.parametrize(("scale", "doubt"), [(1000.0, 60.0), (100.0, 60.0), (1.0, 1e9)])
def test_numbers_that_are_far_apart_never_agree(scale, doubt):
    said = found("returns_beside_values", answer(checks=(check(13.62 - 66.03, doubt, value=66.03),), scale=scale))
    assert ("agree" in said[0][1]) == (scale == 1000.0)  # beside values of 1,000 the two are near
    assert said[0][0] == ("fine" if scale == 1000.0 else "with care")


@pytest.mark.parametrize(("rest", "level"), [(0.89, "fine"), (0.9, "with care")])
def test_returns_that_are_values_themselves_check_nothing(rest, level):
    said = found("returns_beside_values", answer(checks=(check(0.0, 0.01, rest=rest),), scale=10.0))
    assert [one for one, _ in said] == [level]


def test_values_of_many_sizes_are_checked_by_the_largest():
    said = found("returns_beside_values", answer(checks=(check(0.0, 5.0),), scale=4.0))
    assert [level for level, _ in said] == ["fine"]
    for scale, level in ((10.0, "fine"), (9.9, "with care")):
        said = found("returns_beside_values", answer(checks=(check(0.0, 5.0, value=1.0),), scale=scale))
        assert [one for one, _ in said] == [level]
    assert found("returns_beside_values", answer(checks=())) == []


def log_facts(dropped=(0, 0.0), used=(1000, 0.5), columns=None, named=False, inside=0):
    """Return facts of a log; (count, mean) of rewards that are 0 or 1."""
    rewards = [RewardSums(count, count * mean, count * mean) for count, mean in (dropped, used)]
    columns = columns or LogColumns(("x",), episode="visit", terminated="end")
    return LogFacts(columns, named, inside, 12_345, *rewards)
