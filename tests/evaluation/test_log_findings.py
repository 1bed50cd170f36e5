"""Findings on a log, and the verdict: the exact sentence and level of each."""

from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pytest

from gradient_dd.evaluation.findings import FINDINGS, LEVELS, NOT_JUDGED, Finding, findings_of, verdict_of
from gradient_dd.stream.log import LogColumns, RewardSums
from tests.evaluation.test_findings import ROOT, found, log_facts


def test_ends():
    sentence = (
        "The column of episodes, 'visit', goes on with the same episode after an end in {}, first after row 12,345. "
        "One of the two columns is not what it was taken for."
    )
    assert found("ends_inside", log_facts(inside=1)) == [("not", sentence.format("1 row"))]
    assert found("ends_inside", log_facts(inside=2000)) == [("not", sentence.format("2,000 rows"))]
    assert found("ends_inside", log_facts()) == []
    words = "No column says where episodes end, so all are taken to go on. If some end, name the column."
    assert found("no_ends", log_facts(columns=LogColumns(("x",)))) == [("with care", words)]
    assert found("no_ends", log_facts(columns=LogColumns(("x",)))._replace(discount=0.0)) == []
    for role in ("terminated", "truncated", "done", "discount"):
        assert found("no_ends", log_facts(columns=LogColumns(("x",), **{role: "end"}))) == []


def test_left_out():
    sentence = (
        "{} of 2,000 rows were left out because their next observation is not known, and they pay 1 in the mean, the "
        "others 0.5. If episodes end there, name the column that says so."
    )
    assert found("left_out", log_facts((19, 1.0), (1981, 0.5))) == []
    assert found("left_out", log_facts((20, 1.0), (1980, 0.5))) == [("with care", sentence.format(20))]
    assert found("left_out", log_facts((200, 1.0), (1800, 0.5))) == [("with care", sentence.format(200))]
    assert found("left_out", log_facts((201, 1.0), (1799, 0.5))) == [("not", sentence.format(201))]
    for apart, count in ((0.24, 1), (0.22, 0)):  # standard error 0.0458: of 100 and of 1,900 rewards of both kinds
        assert len(found("left_out", log_facts((100, 0.5 - apart), (1900, 0.5)))) == count


def test_rewards_are_counted():
    rewards = RewardSums()
    assert (rewards.mean, rewards.variance) == (0.0, 1e-12)
    rewards.add(np.array([1.0, 2.0]))
    rewards.add(np.array([3.0]))
    assert (rewards.count, rewards.mean) == (3, 2.0)
    assert rewards.variance == pytest.approx((2 / 3) / 2)


def test_unused_columns():
    sentence = (
        "Nothing uses the columns 'a', 'b'. If the state is not described without them, the value is wrong. Name all "
        "columns of the observation, or those that are used, to confirm them."
    )
    columns = LogColumns(("x",), unused=("a", "b"))
    assert found("unused_columns", log_facts(columns=columns)) == [("with care", sentence)]
    assert found("unused_columns", log_facts(columns=columns, named=True)) == []
    assert found("unused_columns", log_facts()) == []


def test_unseen_states():
    sentence = "2 of the 1,500 states asked for have no data nearby: their intervals are as wide as the rewards allow."
    assert found("unseen_states", log_facts()._replace(asked=1500, unseen=2)) == [("with care", sentence)]
    assert found("unseen_states", log_facts()._replace(asked=1500)) == []


def test_the_verdict_is_the_word_of_the_gravest_finding():
    fine, care, bad = (Finding(level, level, f"{level}.") for level in LEVELS)
    assert verdict_of([]) == ("trust", ())
    assert verdict_of([fine]) == ("trust", (fine,))
    assert verdict_of([fine, care]) == ("with care", (care, fine))
    verdict = verdict_of([fine, care, bad, fine])
    assert verdict == ("not", (bad, care, fine, fine))
    assert str(verdict) == "not"
    assert verdict.reasons == ["not.", "with care."]
    assert NOT_JUDGED == ("not", (("not", "verdict", "The answer has not been judged."),))


def test_a_subject_is_asked_for_all_of_its_findings():
    said = findings_of("log", log_facts((201, 1.0), (1799, 0.5), LogColumns(("x",), unused=("a",)), inside=1))
    assert [(one.level, one.about) for one in said] == [
        ("not", "ends"), ("with care", "ends"), ("not", "left out"), ("with care", "unused columns")]  # fmt: skip


def test_the_page_lists_every_finding():
    """docs/choosing.md has the tables that docs/reference.py makes of the registry."""
    spec = spec_from_file_location("reference", ROOT / "docs/reference.py")
    reference = module_from_spec(spec)
    spec.loader.exec_module(reference)
    page = (ROOT / "docs/choosing.md").read_text(encoding="utf-8")
    for subjects in (("data", "rows", "log"), ("answer",), ("policy",)):
        table = reference.findings_table(*subjects)
        assert table in page, f"the table of docs/choosing.md must be\n\n{table}"
    assert all(check.meaning and check.gravest in LEVELS for check in FINDINGS.values())
