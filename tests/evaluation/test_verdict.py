"""The verdict: planted failures are named, and valid logs raise no alarm about the data."""

import pytest

from gradient_dd.evaluation import evaluate_log
from gradient_dd.evaluation.findings import FINDINGS, LEVELS, Finding, verdict_of
from tests.evaluation.planted_failures import NOT_PLANTED, PLANTED, alarms, is_noticed, valid


@pytest.mark.parametrize("failure", PLANTED)
def test_a_planted_failure_is_named(failure):
    planted = PLANTED[failure]
    assert is_noticed(planted, evaluate_log(planted.log(3), seed=0, **planted.options))


def test_every_finding_has_a_planted_failure_or_a_reason():
    planted = {key for failure in PLANTED.values() for key in failure.wanted}
    assert planted | set(NOT_PLANTED) == set(FINDINGS)
    assert not planted & set(NOT_PLANTED)


def test_valid_logs_raise_no_alarm_about_the_data():
    for seed in range(8):
        assert set(alarms(evaluate_log(valid(seed)))) <= {"interval"}, seed  # which may be wide


def test_the_verdict_is_the_word_of_the_gravest_finding():
    fine, care, bad = (Finding(level, level, f"{level}.") for level in LEVELS)
    assert verdict_of([]) == ("trust", ())
    assert verdict_of([fine]) == ("trust", (fine,))
    assert verdict_of([fine, care]) == ("with care", (care, fine))
    verdict = verdict_of([fine, care, bad, fine])
    assert verdict == ("not", (bad, care, fine, fine))
    assert str(verdict) == "not"
    assert verdict.reasons == ["not.", "with care."]


def test_every_alarm_says_what_it_means_and_what_to_do():
    for name, planted in PLANTED.items():
        for one in evaluate_log(planted.log(3), seed=0, **planted.options).verdict.findings:
            assert one.level == "fine" or len(one.sentence.split()) > 12, (name, one)
    assert all(check.meaning and check.remedy and check.gravest in LEVELS for check in FINDINGS.values())
