"""Every claim is judged in made-up worlds: where the paper is right in all it says, where it is not, and in between."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd.engine.lanes import LaneResults
from gradient_dd.experiments.paper.asking import AS_PRINTED, WHOLE, good_step_sizes
from gradient_dd.experiments.paper.ledger import CLAIMS, costs_as_much
from gradient_dd.experiments.paper.studies import COMPANIONS, PAPER_STUDIES, STUDIES
from gradient_dd.experiments.summary import counts
from gradient_dd.experiments.tuning import StudyEvidence, first_below, task_errors
from gradient_dd.experiments.verdicts import (
    ALIKE,
    FULLY,
    MAIN,
    ClaimQuestion,
    in_words,
    judged,
    outcome_of,
    over_all,
    tally,
)
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.intervals import Interval
from gradient_dd.studies.store import Store, Work
from tests.experiments.made_up_worlds import FRESH, MadeUp, first, right, world_evidence, wrong

SAMPLED = [claim for claim in CLAIMS if claim.studies and claim.name != "same-cost"]  # its numbers are times
BY_NAME = {claim.name: claim for claim in CLAIMS}


def verdict_of(name, evidence):
    claim = BY_NAME[name]
    return claim.judge(claim.ask(evidence))


def needed_studies(claim):
    """Return the names of the studies a claim is judged on."""
    return [*claim.studies, *(one.name for study in claim.studies for one in COMPANIONS.get(study, ()))]


@pytest.fixture(scope="module")
def worlds():
    return {world: world_evidence(world) for world in (right, wrong)}


@pytest.mark.parametrize("claim", SAMPLED, ids=lambda claim: claim.name)
def test_a_claim_holds_where_it_is_true(worlds, claim):
    verdict = claim.judge(claim.ask(worlds[right]))
    assert verdict.verdict == "holds", verdict.finding
    assert verdict.held > verdict.open == verdict.refuted == 0
    for judgement in verdict.judgements:
        assert judgement.verdict == "holds", verdict.finding


@pytest.mark.parametrize("claim", SAMPLED, ids=lambda claim: claim.name)
def test_a_claim_does_not_hold_where_it_is_false(worlds, claim):
    verdict = claim.judge(claim.ask(worlds[wrong]))
    assert verdict.verdict == "does not hold", verdict.finding
    assert verdict.refuted > verdict.held == verdict.open == 0
    for judgement in verdict.judgements:
        assert judgement.verdict == "does not hold", verdict.finding
        assert all(one.outcome == "fails" for one in judgement.comparisons)


def test_a_claim_that_is_true_somewhere_holds_in_part(worlds):
    mixed = worlds[right] | {"boyan": worlds[wrong]["boyan"]}
    verdict = verdict_of("converges-better-than-td", mixed)
    assert (verdict.verdict, verdict.tally, verdict.alike) == ("partly holds", "6 / 0 / 6", "holds (12 / 0 / 0)")


def test_several_cases_are_three(worlds):
    """Of 21 cases three must be better than TD; one or two are not several."""

    def better_at(sizes):
        def world(study, one, setting, measure="last100", fresh=False):
            ours = 0.5 if one.parameters.get("n_states") in sizes and measure == "mean_error" else 2.0
            return ours if setting.rule.name == "gradient_dd" else 1.0

        return verdict_of("better-than-td", world_evidence(world, needed_studies(BY_NAME["better-than-td"])))

    assert (better_at((10,)).verdict, better_at((10,)).tally) == ("does not hold", "2 / 0 / 19")
    assert (better_at((10, 20)).verdict, better_at((10, 20)).tally) == ("holds", "6 / 0 / 15")  # 20 is in two studies


def test_several_cases_must_hold_whatever_is_tuned_for(worlds):
    verdict = verdict_of("better-than-td", worlds[right])
    speed, end = (
        replace(one, verdict=word) for one, word in zip(verdict.judgements, ("holds", "does not hold"), strict=False)
    )
    assert over_all([speed, speed], needed=3) == "holds"
    assert over_all([speed, end], needed=3) == "partly holds"
    assert over_all([replace(end, comparisons=[])], needed=3) == "not judged"


def test_verdicts_follow_the_fresh_runs_and_not_those_of_the_selection():
    def flattered(study, one, setting, measure="last100", fresh=False):
        return (wrong if fresh else right)(study, one, setting, measure)

    def unlucky(study, one, setting, measure="last100", fresh=False):
        return (right if fresh else wrong)(study, one, setting, measure)

    for name in ("walk-constant", "walk-linear", "boyan-constant"):
        studies = needed_studies(BY_NAME[name])
        assert verdict_of(name, world_evidence(flattered, studies)).verdict == "does not hold"
        # The settings are those that the selection chose, judged by what they do afresh.
        comparison = verdict_of(name, world_evidence(unlucky, studies)).judgements[0].comparisons[0]
        assert comparison.ours["mean"] == pytest.approx(
            right(STUDIES[name].name, STUDIES[name].built_tasks[0], setting_of(comparison.ours)), rel=1e-2
        )
        assert comparison.runs == FRESH


def setting_of(facts):
    return LEARNERS[facts["learner"]].setting(rho_mode=facts["rho_mode"], **facts["values"])


@pytest.mark.parametrize(
    ("low", "high", "side", "outcome"),
    [
        (0.8, 0.9, "below", "holds"),
        (0.8, 1.1, "below", "open"),  # the far end decides
        (1.1, 1.2, "below", "fails"),
        (1.1, 1.2, "above", "holds"),
        (0.9, 1.2, "above", "open"),
        (0.8, 0.9, "above", "fails"),
        (np.inf, np.inf, "above", "holds"),
        (np.nan, np.nan, "below", "open"),
    ],
)
def test_the_whole_interval_must_be_on_the_side_of_the_claim(low, high, side, outcome):
    assert outcome_of(low, high, side, 1.0) == outcome


def asked(estimate, low, high, side="below"):
    return ClaimQuestion("exact", (), side, 1.0, answer=lambda level: Interval(estimate, low, high))


def test_words_of_a_verdict():
    yes, no, maybe = asked(0.5, 0.4, 0.6), asked(2, 1.9, 2.1), asked(1, 0.9, 1.1)

    def word(*questions, needed=None):
        return in_words([question.compare(0.95) for question in questions], needed)

    assert word(yes, yes) == "holds"
    assert word(yes, no) == word(yes, maybe) == "partly holds"
    assert word(no, maybe) == word(no) == "does not hold"
    assert word(maybe, maybe) == "undecided"
    assert word() == "not judged"
    assert word(yes, no, no, needed=1) == "holds"
    assert word(yes, no, no, needed=2) == "does not hold"


def test_the_intervals_of_a_judgement_hold_together():
    """Of n comparisons each interval has level 1 − 0.05/n; judgements do not share their level."""
    levels = []

    def answer(level):
        levels.append(level)
        return Interval(1.0, 0.9, 1.1)

    questions = [
        ClaimQuestion("exact", (), "below", 1.0, reading, answer=answer) for reading in ("a", "b", "a", "a", "b")
    ]
    found = judged(questions, None)
    assert [(one.reading, str(tally(one.comparisons))) for one in found] == [("a", "0 / 3 / 0"), ("b", "0 / 2 / 0")]
    assert levels == pytest.approx([1 - 0.05 / 3] * 3 + [1 - 0.05 / 2] * 2)


def ratios(ours, theirs, learner=None):
    """Return a world in which Gradient-DD has one error, and others (or one of them) another."""

    def world(study, one, setting, measure="last100", fresh=False):
        unit = first(one) if one.name == "baird" else 1.0
        if setting.rule.name == "gradient_dd":
            return ours * unit
        return (theirs if learner in (None, setting.rule.name) else 1.0) * unit

    return world


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "verdict"),
    [
        ("walk-constant-td", 1.23, 1.0, "holds"),  # as good: below 1.25
        ("walk-constant-td", 1.27, 1.0, "does not hold"),
        ("walk-constant", 0.98, 1.0, "holds"),  # lower: below 1
        ("walk-constant", 1.02, 1.0, "does not hold"),
        ("baird-zero", 0.9e-3, 1.0, "holds"),  # zero: a thousandth of the first error
        ("baird-zero", 1.1e-3, 1.0, "does not hold"),
        ("baird-others-zero", 1.0, 1.1e-3, "holds"),
        ("baird-others-zero", 1.0, 0.9e-3, "does not hold"),
        ("baird-tdrc", 1.0, 0.51, "holds"),  # learns at all: halves the first error
        ("baird-tdrc", 1.0, 0.49, "does not hold"),
        ("baird-td", 1.0, 1.02, "holds"),  # diverges: ends above the first error
        ("baird-td", 1.0, 0.98, "does not hold"),
    ],
)
def test_thresholds(name, ours, theirs, verdict):
    evidence = world_evidence(ratios(ours, theirs), needed_studies(BY_NAME[name]))
    assert verdict_of(name, evidence).verdict == verdict


@pytest.mark.parametrize(("factor", "verdict"), [(1.95, "holds"), (2.05, "does not hold")])
@pytest.mark.parametrize("name", ["boyan-kappa", "boyan-zeta"])
def test_insensitive_is_a_factor_of_two(name, factor, verdict):
    def world(study, one, setting, measure="last100", fresh=False):
        if setting.rule.name != "gradient_dd":
            return 1.0
        value = setting.values[name.partition("-")[2]]
        return factor if value == 4.0 else 1.5 if value == 1.0 else 1.0

    assert verdict_of(name, world_evidence(world, needed_studies(BY_NAME[name]))).verdict == verdict


def test_good_step_sizes_are_within_twice_the_best_error():
    errors = np.array([[1.0, 1.0], [1.99, 1.99], [2.01, 2.01], [np.inf, 1.0]])
    assert good_step_sizes(errors, np.full((1, 2), 0.5)).tolist() == [2]


def test_early_is_the_first_twentieth_of_a_curve():
    curves = np.arange(2 * 3 * 200.0).reshape(2, 3, 200)
    study = SimpleNamespace(settings=lambda: ["a", "b"])
    settings, found = task_errors(SimpleNamespace(study=study, curves=lambda *_: (None, curves)), "walk", "early")
    assert settings == ["a", "b"]
    assert found.tolist() == curves[:, :, :10].mean(axis=2).tolist()


def test_tdrc_is_judged_at_the_largest_size():
    """It is said of N = 20: what happens at N = 7 does not count."""

    def unstable_at(size):
        def world(study, one, setting, measure="last100", fresh=False):
            return first(one) * (2.0 if one.n_states == size else 1e-5)

        return verdict_of("baird-tdrc", world_evidence(world, needed_studies(BY_NAME["baird-tdrc"])))

    assert unstable_at(20).verdict == "holds"
    assert unstable_at(7).verdict == "does not hold"
    assert {one.size for judgement in unstable_at(7).judgements for one in judgement.comparisons} == {20}


def test_both_tunings_stand_where_they_differ():
    """Slower at first if tuned for all episodes, not if tuned for the end."""

    def world(study, one, setting, measure="last100", fresh=False):
        ours, alpha = setting.rule.name == "gradient_dd", setting.values["alpha"]
        if measure == "early":
            return (2.0 if alpha > 1 else 0.5) if ours else 1.0
        return alpha if measure == "last100" else 1 / alpha

    verdict = verdict_of("boyan-slow-start", world_evidence(world, needed_studies(BY_NAME["boyan-slow-start"])))
    found = {one.tuned_for: one.verdict for one in verdict.judgements if one.tuning == MAIN}
    assert found == {"mean_error": "holds", "last100": "does not hold"}
    assert (verdict.verdict, verdict.tally) == ("partly holds", "6 / 0 / 6")


@pytest.mark.parametrize("study", [study for study in COMPANIONS if study != "walk-natural"])
def test_alike_means_as_many_settings_for_every_learner(study):
    companion = STUDIES[f"{study}-alike"]
    base = STUDIES[study]
    assert (companion.tasks, companion.runs, companion.schedule) == (base.tasks, base.runs, base.schedule)
    found = {}
    for setting in companion.settings():
        found.setdefault((setting.rule.name, setting.rho_mode), []).append(setting)
    assert {name for name, _ in found} == {"td", "tdrc", "gtd2", "tdc", "gradient_dd"}
    assert {len(settings) for settings in found.values()} == {{"w": 65, "b": 50}[study[0]] if study != "baird" else 105}


def test_a_comparison_says_how_many_settings_were_to_choose_from(worlds):
    verdict = verdict_of("walk-better", worlds[right])
    numbers = {
        one.tuning: {(c.ours["settings"], c.rival["settings"]) for c in one.comparisons} for one in verdict.judgements
    }
    assert numbers == {MAIN: {(13, 65)}, "ζ = 1 for GTD2 and TDC": {(13, 13)}, ALIKE: {(65, 65)}, FULLY: {(160, 160)}}


def test_a_comparison_says_that_a_setting_is_at_the_edge(worlds):
    comparison = verdict_of("boyan-better", worlds[right]).judgements[0].comparisons[0]
    assert "Gradient-DD: highest alpha" in comparison.edge


def test_random_starts_are_judged_on_others_than_they_were_selected_on():
    evidence = MadeUp("baird-starts", right)
    assert len(evidence.cases) == 4
    for case, tasks in evidence.cases.items():
        fresh = evidence.fresh_study(case, [evidence.settings[0]])
        selected = {one.parameters["start_seed"] for one in tasks}
        judged_on = {one.parameters["start_seed"] for one in fresh.tasks}
        assert (len(selected), len(judged_on), selected & judged_on) == (5, 20, set())
        assert fresh.first_run == evidence.study.runs
        weights = np.array([one.initial_weights for one in (*tasks, *fresh.tasks)])
        assert len(np.unique(weights[:, 0])) == 25


def test_there_are_twice_as_many_fresh_runs_as_runs_to_select_on():
    evidence = MadeUp("walk-constant", right)
    (case,) = evidence.cases
    fresh = evidence.fresh_study(case, [evidence.settings[0]])
    assert list(fresh.run_numbers) == list(range(50, 150))


def test_statements_are_counted_once(worlds):
    names = [claim.name for claim in CLAIMS]
    assert len(set(names)) == len(names)
    baird = [claim for claim in CLAIMS if claim.studies == ("baird",)]
    assert len(baird) == len({claim.statement for claim in baird}) == 7
    verdict = verdict_of("baird-better", worlds[right])
    cells = {(one.reading, one.tuning) for one in verdict.judgements}
    assert len(cells) == len(verdict.judgements) == 24  # ratios × placement × first weights × tuning
    # TD and TDRC do not change with the placement of ρ.
    assert len(verdict_of("baird-td", worlds[right]).judgements) == 12
    ours = [replace(verdict, source="ours"), verdict]
    assert counts(ours)["holds"] == 1


def test_episodes_to_an_error_are_read_off_the_curve():
    """Straight lines from 3 at 0 over the middles of the bins."""
    curves, middles = np.array([[[2.0, 1.0, 0.5, 0.7], [3.0, 2.0, 1.5, 1.2]]]), np.array([10.0, 20.0, 30.0, 40.0])
    assert first_below(curves, middles, 3.0, 0.75).tolist() == [[25.0, np.inf]]
    assert first_below(curves, middles, 3.0, 2.5).tolist() == [[5.0, 15.0]]
    exploded = np.array([[[0.5, np.inf, np.inf, np.inf], [np.inf, np.inf, np.inf, np.inf]]])
    assert first_below(exploded, middles, 3.0, 1.0).tolist() == [[8.0, np.inf]]


def test_what_the_paper_does_not_say_is_marked_as_ours():
    ours = {claim.name for claim in CLAIMS if claim.source == "ours"}
    assert ours == {
        *("walk-natural", "walk-iid", "boyan-iid", "boyan-constant", "theorem-assumptions"),
        *("boyan-as-fast", "walk-iid-td", "boyan-iid-td", "boyan-constant-td"),
        *("walk-u", *(claim.name for claim in CLAIMS if claim.name.startswith("fully-")), "kappa-zeta-one"),
    }
    assert [claim.name for claim in CLAIMS if claim.source == "time"] == ["same-cost"]


def test_the_paper_s_studies_do_not_contain_the_new_settings():
    """Figures read them by line; a line of a figure must not pick up what a companion added."""
    assert not {study.name for study in PAPER_STUDIES} & {one.name for some in COMPANIONS.values() for one in some}
    walk = list(STUDIES["walk"].settings())
    assert sum(AS_PRINTED["td"].has(one) for one in walk) == 13
    assert sum(WHOLE["tdrc"].has(one) for one in walk) == 13


THEORY = {
    "theorem": ("holds", "6 / 0 / 0"),
    "theorem-assumptions": ("does not hold", "0 / 0 / 4"),
    "natural-gradient": ("holds", "3 / 0 / 0"),
    "less-drastic": ("does not hold", "0 / 0 / 6"),
}


@pytest.mark.parametrize("name", THEORY)
def test_statements_of_theory_are_computed(name):
    verdict = verdict_of(name, {})
    assert (verdict.verdict, verdict.tally) == THEORY[name], verdict.finding


@pytest.mark.parametrize(("dd", "verdict"), [(1.05, "holds"), (1.15, "does not hold")])
def test_the_cost_is_read_from_the_units_of_the_study(tmp_path, dd, verdict):
    study = Study("walk", (task("random_walk", n_states=3),), (grid("td", alpha=0.1),), episodes=5, runs=3)
    (walk,) = study.built_tasks
    with Store(tmp_path / "a.db", write=True) as store:
        lanes = [(key, facts) for key, _, facts in study.lanes(walk)]
        store.add_settings(lanes)
        one, zeros = np.ones((1, 1)), np.zeros((1, 1), int)
        results = LaneResults(one, one, np.ones((1, 1, 5)), zeros, zeros, np.array([9]))
        for run, cost in ((0, dd), (1, dd), (2, dd), (3, 100.0)):  # run 3 is not of the study
            work = Work(1.0, {"gtd2": (1e-9 * 10, 10), "gradient_dd": (1e-9 * 10 * cost, 10)})
            store.add_unit(walk, run, [key for key, _ in lanes], results, work, {})
    evidence = {"walk": StudyEvidence(SimpleNamespace(tasks={str(walk): walk}, study=study, path=tmp_path / "a.db"))}
    (judgement,) = judged(costs_as_much("walk")(evidence), None)
    assert judgement.verdict == verdict
    assert judgement.comparisons[0].estimate == pytest.approx(dd)
    assert judgement.comparisons[0].runs == 3


def test_what_was_not_measured_is_not_judged(tmp_path):
    study = Study("walk", (task("random_walk", n_states=3),), (grid("td", alpha=0.1),), episodes=5, runs=1)
    (walk,) = study.built_tasks
    Store(tmp_path / "a.db", write=True).close()
    evidence = {"walk": StudyEvidence(SimpleNamespace(tasks={str(walk): walk}, study=study, path=tmp_path / "a.db"))}
    assert costs_as_much("walk")(evidence) == []
