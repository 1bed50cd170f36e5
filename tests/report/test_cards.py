"""What an object looks like at a prompt and in a notebook: short, escaped, without dumps of arrays."""

from dataclasses import replace

import pytest

import gradient_dd as gdd
from tests.evaluation.test_compare import LOG as WALK_LOG
from tests.evaluation.test_compare import OPTIONS, to_the_right
from tests.ranking.test_standing import made_up

ODD = replace(gdd.LEARNERS["td"], name="odd", label="<b>odd</b>")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    study = gdd.Study("<i>small</i>", ("five_state_walk",), (gdd.grid("td", alpha=[0.1, 0.2]),), episodes=5, runs=2)
    return gdd.run(study, tmp_path_factory.mktemp("card") / "results.db")


@pytest.fixture
def shown(results):
    """One object of each class that a person looks at."""
    compared = gdd.compare(WALK_LOG, {"<right>": to_the_right(0.7)}, **OPTIONS)
    found = gdd.evaluate_log(WALK_LOG, target=to_the_right(0.7), **OPTIONS)
    objects = [ODD, ODD.setting(), gdd.tasks.random_walk(n_states=5), gdd.Learner(ODD, 2), results.study, results]
    return [*objects, found, compared, made_up()]


def test_everything_is_short_and_escaped(shown):
    names = set()
    for one in shown:
        text, html = repr(one), one._repr_html_()
        names.add(type(one).__name__)
        assert text.startswith(f"<{type(one).__name__} "), text
        assert len(text) < 400, text
        assert "\n" not in text, text
        assert "array(" not in html
        assert len(html) < 20_000
        assert not any(mark in html for mark in ("<b>odd", "<i>small", "<right>")), html
    assert names >= {"Results", "Evaluation", "PolicyComparison", "Standing", "Rule", "Setting", "Study", "Task"}


def test_a_card_of_results_has_the_best_setting_and_one_before_the_sweep_has_none(results):
    assert "five_state_walk" in results._repr_html_()
    before = gdd.Results(results.study, results.path.with_name("other.db"))
    assert "<table" in before._repr_html_()
    assert "five_state_walk" not in before._repr_html_()
