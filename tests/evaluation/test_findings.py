"""Findings: the level of each at both sides of its bounds, and the page that lists them."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd.evaluation import data_findings
from gradient_dd.evaluation.data_findings import RatioFacts, time_limit_of, unexplained, worst_feature
from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.evaluation.value import PolicyEstimate
from gradient_dd.stream.log import LogColumns, RewardSums
from gradient_dd.studies.intervals import Bounds

ROOT = Path(__file__).parents[2]


def levels(key, evidence):
    """Return the levels that one finding gives."""
    return [level for level, _ in FINDINGS[key].find(evidence)]


def data(columns=None, dropped=(0, 0.0), used=(100, 0.5), inside=0, named=False, discount=0.9, **rows):
    """Return a log of which only this is known."""
    read = SimpleNamespace(ends_inside=inside, first_inside=12_345, dropped=rewards(*dropped), used=rewards(*used))
    reader = SimpleNamespace(columns=columns or LogColumns(("x",), terminated="end"), discount=discount)
    rows = SimpleNamespace(**{"n": 1000, "episodes": 100, "ended": 100, "cut": 0, "read": read} | rows)
    return SimpleNamespace(reader=reader, rows=rows, named=named, first=None)


def rewards(count, mean):
    """Return so many rewards of 0 and 1 with this mean."""
    return RewardSums(count, count * mean, count * mean)


@pytest.mark.parametrize(
    ("rows", "level"),
    [({"episodes": 10}, "fine"), ({"episodes": 9}, "with care"), ({"episodes": 1}, "with care"),
     ({"n": 2000, "episodes": 1, "ended": 0}, "fine"), ({"n": 1999, "episodes": 1, "ended": 0}, "with care")],
)  # fmt: skip
def test_episodes(rows, level):
    assert levels("episodes", data(**rows)) == [level]


@pytest.mark.parametrize(
    ("pairs", "forward", "backward", "said"),
    [(19, 0, 0, []), (20, 18, 0, ["fine"]), (20, 17, 0, ["with care"]), (20, 0, 18, ["with care"]),
     (20, 0, 19, ["not"])],
)  # fmt: skip
def test_order_of_columns(pairs, forward, backward, said, monkeypatch):
    monkeypatch.setattr(data_findings, "in_order", lambda sample: (pairs, forward, backward))
    assert levels("order_of_columns", data()) == said


def test_ends_and_rows_left_out():
    assert levels("ends_inside", data(inside=1)) == ["not"]
    assert levels("ends_inside", data()) == []
    assert levels("no_ends", data(LogColumns(("x",)))) == ["with care"]
    assert levels("no_ends", data(LogColumns(("x",)), discount=0.0)) == []
    for role in ("terminated", "truncated", "done", "discount"):
        assert levels("no_ends", data(LogColumns(("x",), **{role: "end"}))) == []
    assert levels("left_out", data(dropped=(19, 1.0), used=(1981, 0.5))) == []
    assert levels("left_out", data(dropped=(200, 1.0), used=(1800, 0.5))) == ["with care"]
    assert levels("left_out", data(dropped=(201, 1.0), used=(1799, 0.5))) == ["not"]
    for apart, count in ((0.24, 1), (0.22, 0)):  # standard error 0.0458: of 100 and of 1,900 rewards
        assert len(levels("left_out", data(dropped=(100, 0.5 - apart), used=(1900, 0.5)))) == count


def test_unused_columns():
    columns = LogColumns(("x",), terminated="end", unused=("a", "b"))
    assert levels("unused_columns", data(columns)) == ["with care"]
    assert levels("unused_columns", data(columns, named=True)) == levels("unused_columns", data()) == []


def ratios(**changes):
    """Return ratios that are as they should be, but for some changes."""
    fine = {"rows": 1000, "total": 1000.0, "squares": 2000.0, "largest": 2.0, "at": 17, "mean": 1.0, "error": 0.001}
    return RatioFacts(**fine | {"feature": 0, "off": 0.0} | changes)


@pytest.mark.parametrize(
    ("key", "changes", "said"),
    [
        ("effective_rows", {}, ["fine"]),
        ("effective_rows", {"total": 100.0, "squares": 101.0}, ["with care"]),
        ("effective_rows", {"total": 100.0, "squares": 1001.0}, ["not"]),
        ("effective_rows", {"rows": 10_000, "total": 1000.0, "squares": 2001.0}, ["with care"]),
        ("largest_ratio", {"largest": 14.1}, []),
        ("largest_ratio", {"largest": 14.2}, ["with care"]),
        ("largest_ratio", {"largest": 14.2, "rows": 99}, []),
        ("mean_ratio", {"mean": 1.029}, ["fine"]),
        ("mean_ratio", {"mean": 1.04}, ["with care"]),
        ("mean_ratio", {"mean": 1.04, "error": 0.009}, ["fine"]),
        ("mean_ratio", {"mean": 0.89}, ["not"]),
        ("mean_ratio", {"off": 0.05}, ["with care"]),
        ("mean_ratio", {"off": -0.2}, ["not"]),
    ],
)
def test_ratios(key, changes, said):
    assert levels(key, ratios(**changes)) == said


def test_a_feature_along_which_ratios_are_off_must_be_sure():
    """5.3 standard errors or more, for two features; and features that are always 0 are left out."""
    sign, rows = np.where(np.arange(100) % 2, 1.0, -1.0), np.full(100, 10.0)
    for spread, off in ((0.074, 0.04), (0.077, 0.0)):  # standard errors are 10.05 % of it
        z = np.column_stack([10.0 * (0.04 + spread * sign), 0.01 * sign])
        assert worst_feature(z, rows, np.ones(2)) == (0, pytest.approx(off))
    assert worst_feature(z, rows, np.zeros(2))[1] == 0.0


def lengths(*counts):
    """Return a piece of episodes with these lengths, all of which ended."""
    episode = np.repeat(np.arange(len(counts)), counts)
    ended = np.append(np.diff(episode) > 0, True)
    return SimpleNamespace(episode=episode, ended=ended)


def test_a_spike_of_lengths_is_a_time_limit_at_any_length(monkeypatch):
    rng = np.random.default_rng(0)
    for limit in (2, 6, 50):
        natural = rng.geometric(0.03, size=300)
        assert time_limit_of(lengths(*np.minimum(natural, limit)))[0] == limit
        assert time_limit_of(lengths(*natural)) is None
    assert time_limit_of(lengths(*np.ones(100, int))) is None  # a bandit
    assert time_limit_of(lengths(*np.full(19, 6))) is None
    monkeypatch.setattr(data_findings, "time_limit_of", lambda sample: (6, 0.5))
    for known, said in ((False, ["with care"]), (True, [])):
        monkeypatch.setattr(data_findings, "knows_time", lambda log, known=known: known)
        assert levels("time_limit", data()) == said


def value(**changes):
    """Return the value of a policy, all of it as it should be, but for some changes."""
    estimates = {
        "q": PolicyEstimate(10.0, 0.5),
        "d": PolicyEstimate(10.0, 0.5),
        "blend": 10.0,
        "gap": 0.0,
        "apart": 0.0,
    }
    fine = {"value": 10.0, "low": 9.0, "high": 11.0, "steps": 9, "rest": 0.1, "effective": 900.0} | estimates
    fine |= {"impossible": False, "outside": False, "policy": SimpleNamespace(logging=False, by_ratio=False)}
    return SimpleNamespace(**fine | changes)


def evidence(found=None, logging=None, longest=9, **changes):
    """Return evidence on the value of a policy."""
    rows = SimpleNamespace(n=1000, episodes=100, longest=longest)
    data = SimpleNamespace(rows=rows, behaviour=changes.pop("behaviour", None))
    rest = {"untried": 0.0, "lonely": 0.0, "never": 0.0, "bounds": Bounds(0, 100), "scale": 10.0}
    both = {"found": found or value(), "logging": logging or value()}
    return SimpleNamespace(**both, data=data, **rest | changes)


@pytest.mark.parametrize(
    ("key", "given", "said"),
    [
        ("interval", evidence(value(low=5.0, high=15.0)), []),
        ("interval", evidence(value(low=4.9, high=15.0)), ["with care"]),
        ("doubly_robust", evidence(), ["fine"]),
        ("doubly_robust", evidence(value(steps=0)), []),
        ("doubly_robust", evidence(value(gap=2.1, d=PolicyEstimate(11.1, 0.5))), ["with care"]),
        ("doubly_robust", evidence(value(gap=3.1, d=PolicyEstimate(11.1, 0.5))), ["not"]),
        ("doubly_robust", evidence(value(gap=3.1, d=PolicyEstimate(10.9, 0.5))), ["fine"]),
        ("doubly_robust", evidence(value(gap=3.1, d=PolicyEstimate(11.1, 0.5)), longest=1), ["fine"]),
        ("possible_values", evidence(value(impossible=True)), ["with care"]),
        ("possible_values", evidence(value(outside=True)), ["with care"]),
        ("possible_values", evidence(), []),
        ("other_features", evidence(value(apart=1.1)), ["with care"]),
        ("other_features", evidence(value(apart=0.9)), []),
        ("horizon", evidence(value(rest=0.6, effective=499.0)), ["with care"]),
        ("horizon", evidence(value(rest=0.6, effective=501.0)), []),
        ("horizon", evidence(value(rest=0.6, steps=2)), ["with care"]),
        ("horizon", evidence(value(rest=0.4, steps=2)), []),
        ("logging_policy", evidence(logging=value(gap=2.1, d=PolicyEstimate(11.1, 0.5))), ["with care"]),
        ("logging_policy", evidence(logging=value(gap=3.1, d=PolicyEstimate(11.1, 0.5))), ["not"]),
        ("logging_policy", evidence(), ["fine"]),
        ("untried_actions", evidence(untried=0.02), ["not"]),
        ("untried_actions", evidence(untried=0.01), []),
        ("lonely_visits", evidence(lonely=0.02), ["with care"]),
        ("lonely_visits", evidence(lonely=0.11), ["not"]),
        ("never_tried_cells", evidence(never=0.02), ["with care"]),
        ("never_tried_cells", evidence(never=0.11), ["not"]),
        ("propensities", evidence(), []),
        ("propensities", evidence(behaviour=SimpleNamespace(words="x", gap=0.01, worst=0.09)), ["fine"]),
        ("propensities", evidence(behaviour=SimpleNamespace(words="x", gap=0.01, worst=0.11)), ["with care"]),
        ("unseen_states", (1500, 2), ["with care"]),
        ("unseen_states", (1500, 0), []),
    ],
)
def test_findings_on_a_policy(key, given, said):
    assert levels(key, given) == said


def test_what_a_linear_function_leaves():
    x = np.arange(10.0)[:, None] - 4.5
    assert unexplained(x, 3 * x[:, 0] + 1) == pytest.approx(0.0, abs=1e-12)
    assert unexplained(x[:, :0], x[:, 0]) == 1.0


def test_the_page_lists_every_finding():
    """docs/reference.py makes the page of findings from the registry; no subject is forgotten."""
    spec = spec_from_file_location("reference", ROOT / "docs/reference.py")
    reference = module_from_spec(spec)
    spec.loader.exec_module(reference)
    page = reference.findings_page()
    for check in FINDINGS.values():
        assert f"| {check.about} | {check.gravest} | {check.meaning} | {check.remedy} |" in page
