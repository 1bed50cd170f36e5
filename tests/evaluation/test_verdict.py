"""The verdict: planted failures are named, healthy logs trusted, and returns overrule only where they are sure."""

import numpy as np
import pytest

from gradient_dd.evaluation import evaluate_stream, transitions_of
from gradient_dd.evaluation.data_findings import Data
from gradient_dd.evaluation.diagnosis import Diagnosis
from gradient_dd.evaluation.findings import FINDINGS, findings_of
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.evaluation.portfolio import TdStability
from tests.evaluation.planted_failures import NOT_PLANTED, PLANTED, alarms, evaluated, healthy, is_noticed

QUICK = {"learner": "lstd", "passes": 1}


@pytest.mark.parametrize("failure", PLANTED)
def test_a_planted_failure_is_named(failure):
    planted = PLANTED[failure]
    assert is_noticed(planted, evaluated(planted.log(3), 0, **QUICK | dict(planted.options)))


def test_every_finding_has_a_planted_failure_or_a_reason():
    planted = {key for failure in PLANTED.values() for key in failure.wanted}
    assert planted | set(NOT_PLANTED) == set(FINDINGS)
    assert not planted & set(NOT_PLANTED)


def test_healthy_logs_raise_no_alarm_about_the_data():
    about_data = {FINDINGS[key].about for failure in PLANTED.values() for key in failure.wanted}
    for seed in range(4):
        task, log = healthy(seed)
        assert not about_data & set(alarms(evaluate_stream([log], task.n_features, **QUICK)))


def findings_on(rho, x=None):
    """Return findings on the ratios of a log with these ratios, 10 rows an episode."""
    n = len(rho)
    x = np.ones((n, 1)) if x is None else x
    log = transitions_of(x, 1.0, np.where(np.arange(n) % 10 == 9, 0.0, 0.9), x, rho)
    sums, diagnosis = GroupSums(x.shape[1]), Diagnosis(x.shape[1])
    begins = np.arange(n) % 10 == 0
    sums.add(log, (np.arange(n) // 10) % 200, begins)
    diagnosis.add(log, begins)
    found = findings_of("data", Data(diagnosis, sums, TdStability("stable", 1.0, 0.0), "lstd"))
    return {one.about: one.level for one in found}, [one for one in found if one.about == "mean ratio"]


def test_ratios():
    rng = np.random.default_rng(0)
    good = rng.choice([0.5, 1.5], size=4000)
    levels, _ = findings_on(good)
    assert set(levels.values()) == {"fine"}
    levels, _ = findings_on(0.9 * good)
    assert levels["mean ratio"] == "with care"
    levels, _ = findings_on(0.7 * good)
    assert levels["mean ratio"] == "not"
    heavy = good.copy()
    heavy[17] = 500.0
    levels, _ = findings_on(heavy)
    assert levels["largest ratio"] == "with care"
    feature = np.column_stack([np.ones(4000), (good > 1) * 1.0])  # it knows the action
    levels, (found,) = findings_on(good, feature)
    assert levels["mean ratio"] == "not"
    assert "along feature 1" in found.sentence
