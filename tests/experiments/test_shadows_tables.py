"""The tables of a trial of the learner that chooses, and the causes of its failures."""

import csv

import pytest

from gradient_dd.experiments.shadows import trial as shadows_trial
from trials import shadows_causes, shadows_tables

TUNED, FREE = shadows_trial.CHOOSERS


@pytest.fixture
def rows():
    """One task; a setting of GTD2 has its number as its mean, one of TD ten times its number."""
    means = {
        "TD": [10.0 * i for i in range(60)],
        "GTD2": [float(i) for i in range(60)],
        TUNED: [float(i) for i in range(15)],
        FREE: [9.0],
    }
    chosen = {"TD": 20, "GTD2": 22, TUNED: 7, FREE: 0}
    measure = {"TD": 200.0, "GTD2": 2.0, TUNED: 4.0, FREE: 1.0}
    row = {"group": "g", "task": "t", "td_stable": True, "start": 3.0, "measure": measure}
    return [row | {"worst_run": measure, "setting": chosen, "every_setting": means}]


def test_a_wrong_alpha_keeps_the_other_parameter_and_stays_on_the_grid(rows):
    """Setting 22 of GTD2 is the sixth alpha and the third zeta; alphas fall, so twice as large is one place before."""
    assert shadows_tables.wrong_alpha(rows, "GTD2", 1) == pytest.approx([18 / 2])
    assert shadows_tables.wrong_alpha(rows, "GTD2", -2) == pytest.approx([30 / 2])
    assert shadows_tables.wrong_alpha(rows, "GTD2", 10) == pytest.approx([2 / 2])
    assert shadows_tables.wrong_alpha(rows, "TD", 1) == pytest.approx([160 / 2])
    assert shadows_tables.wrong_alpha(rows, TUNED, -4) == pytest.approx([11 / 2])


def test_every_ratio_is_to_the_best_rival(rows, tmp_path):
    shadows_tables.write_csv(rows, tmp_path / "ratios.csv")
    with (tmp_path / "ratios.csv").open(encoding="utf-8") as file:
        (line,) = csv.DictReader(file)
    assert (line["TD"], line["GTD2"], line[TUNED], line[FREE], line["start"]) == ("100", "1", "2", "0.5", "1.5")
    tail = list(shadows_tables.tail_table(rows))
    assert tail[-1].endswith("| 0.50 | 0.50 | 0 | 100 % |")
    assert tail[-2].endswith("| 2.00 | 2.00 | 1 | 0 % |")


@pytest.mark.parametrize(
    ("numbers", "cause"),
    [
        ((1.4, 9, 9, 9), "luck"),
        ((2, 1.4, 9, 9), "alpha"),
        ((2, 2, 1.6, 9), "ladder"),
        ((2, 2, 1.4, 1.2), "too quick"),
        ((2, 2, 1.4, 1.0), "too slow"),
    ],
)
def test_the_first_cause_that_applies_is_given(numbers, cause):
    assert shadows_causes.named(*numbers) == cause


def test_a_rung_alone_is_the_learner_it_says():
    """With an alpha of 0.1: seven learners, TD among them at 0.1 and 0.02."""
    settings = shadows_causes.rung_settings(0.1, scale=5.0)
    alphas = [setting.values["alpha"] for setting in settings if setting.rule.name == "td"]
    assert len(settings) == 7
    assert alphas == pytest.approx([0.1, 0.02])
    assert len(shadows_causes.rung_settings(None, scale=5.0)) == 15
