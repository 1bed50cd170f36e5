"""Which settings run afresh, and on which runs."""

from types import SimpleNamespace

import pytest

from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.experiments.running import fresh_work
from gradient_dd.experiments.tuning import SearchEvidence
from gradient_dd.experiments.verdicts import FULLY
from tests.experiments.made_up_worlds import MadeUp, right, world_evidence


def test_fresh_runs_are_of_every_setting_that_a_question_names():
    """Where the best step size differs between the end and all episodes, both settings run afresh."""

    def world(study, one, setting, measure="last100", fresh=False):
        alpha = setting.values["alpha"]
        return alpha if measure == "last100" else 1 / alpha

    evidence = world_evidence(world, ["walk-iid", "walk-iid-alike", "walk-iid-fully"])
    claim = next(one for one in CLAIMS if one.name == "walk-iid")
    work = fresh_work(claim.ask(evidence))
    (case,) = evidence["walk-iid"].cases
    assert set(work) == {("walk-iid", case), ("walk-iid-alike", case), ("walk-iid-fully", case)}
    ours = {s.values["alpha"] for s in work["walk-iid", case] if s.rule.name == "gradient_dd"}
    assert sorted(ours) == pytest.approx([1e-3, 1.0])
    judgements = [one for one in claim.judge(claim.ask(evidence)).judgements if one.tuning != FULLY]
    goals = {one.tuned_for: one.comparisons[0].ours["values"]["alpha"] for one in judgements}
    assert goals == {"last100": pytest.approx(1e-3), "mean_error": 1.0}


@pytest.mark.parametrize("name", ["walk-alike", "walk-fully"])
def test_a_companion_is_judged_on_the_fresh_runs_of_its_study(name):
    """All learners have the same 100 test runs, whatever the way of tuning."""
    companion = MadeUp(name, right)
    companion.beside = STUDIES["walk"]
    case = next(iter(companion.cases))
    fresh = companion.fresh_study(case, companion.settings[:1])
    assert (fresh.name, fresh.run_numbers) == (f"{name}-fresh", range(50, 150))


@pytest.mark.parametrize(("name", "base"), [("walk-fully", "walk"), ("baird-starts-fully", "baird-starts")])
def test_a_search_is_judged_on_other_runs_and_other_first_weights_than_it_is_tuned_on(name, base):
    study = STUDIES[name]
    results = SimpleNamespace(study=study, tasks={str(one): one for one in study.built_tasks})
    evidence = SearchEvidence(results, beside=STUDIES[base])
    case, settings = next(iter(evidence.cases)), [next(study.settings())]
    tuning = evidence.round(case, settings, range(study.runs))
    fresh = evidence.fresh_study(case, settings)
    units = {(str(one), run) for part in tuning for one in part.built_tasks for run in part.run_numbers}
    tests = {(str(one), run) for one in fresh.built_tasks for run in fresh.run_numbers}
    assert (len(units), len(tests)) == (80, 100 if base == "walk" else 20 * len(fresh.run_numbers))
    assert {run for _, run in units}.isdisjoint(run for _, run in tests)
    if base != "walk":
        assert {one for one, _ in units}.isdisjoint(one for one, _ in tests)
        assert len({one for one, _ in units}) == 80
