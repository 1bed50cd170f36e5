"""Which settings run afresh, and on which runs."""

import pytest

from gradient_dd.experiments.by_study import fresh_work
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.studies import STUDIES
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


@pytest.mark.parametrize(("name", "runs"), [("walk-alike", range(50, 150)), ("walk-fully", range(50, 100))])
def test_a_companion_is_judged_on_the_fresh_runs_of_its_study(name, runs):
    """All learners meet the same runs whatever the way of tuning; few runs to select on are judged on half of them."""
    companion = MadeUp(name, right)
    companion.beside = STUDIES["walk"]
    case = next(iter(companion.cases))
    fresh = companion.fresh_study(case, companion.settings[:1])
    assert (fresh.name, fresh.run_numbers) == (f"{name}-fresh", runs)
    assert set(fresh.run_numbers).isdisjoint(companion.study.run_numbers)
