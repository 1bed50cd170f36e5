"""`gradient-dd reproduce shadows`: its numbers, figures and verdicts, on one small task in place of its trial."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gradient_dd import tasks
from gradient_dd.cli.commands import cli
from gradient_dd.engine import ladder
from gradient_dd.engine.choosing import Chosen
from gradient_dd.errors import GradientDDError
from gradient_dd.experiments.experiment import Scale
from gradient_dd.experiments.running import rewrite
from gradient_dd.experiments.shadows import cases as shadows_cases
from gradient_dd.experiments.shadows import experiment, measure
from gradient_dd.experiments.shadows import trial as shadows_trial
from gradient_dd.experiments.shadows.measure import Choices, StabilityMap


def row(task, group, stable, measures):
    """Return a row of a trial with made-up measures."""
    names = ("TD", "TDC", "TDRC", "GTD2", "Gradient-DD", *shadows_trial.CHOOSERS)
    filled = dict(zip(names, measures, strict=True))
    rules = shadows_trial.rules_text(experiment.rules_at(Scale()))
    return {"group": group, "task": task, "rules": rules, "td_stable": stable, "start": 1.0, "measure": filled}


ROWS = [row("a", "paper", True, (1, 2, 1.2, 3, 2, 1.1, 1.5)), row("b", "diverging", False, (9, 3, 3, 1, 2, 1.05, 2.0))]


def made_up_map(name):
    """Return a map with growth of both signs."""
    growth = np.linspace(-0.01, 0.02, measure.SHARES.size * measure.MAP_ALPHAS.size)
    growth = growth.reshape(measure.SHARES.size, measure.MAP_ALPHAS.size)
    return StabilityMap(name, growth, growth - 1e-3, growth + 1e-3, growth, growth)


@pytest.fixture
def small(monkeypatch):
    """Make the report quick: everything that would be run is made up."""
    steps = np.arange(1.0, 51.0)
    shares = np.where(steps < 20, np.nan, steps % 2)
    choices = [Choices(name, 1 / steps, shares, np.full(50, 0.1)) for name in "abcd"]
    cases = [shadows_cases.Case(one["group"], one["task"], tasks.random_walk(3)) for one in ROWS]
    monkeypatch.setattr(experiment, "reduced_cases", lambda: cases)
    monkeypatch.setattr(shadows_trial, "shown", lambda case, rules: next(r for r in ROWS if r["task"] == case.name))
    monkeypatch.setattr(experiment, "choices_over_time", lambda: choices)
    monkeypatch.setattr(experiment, "stability_maps", lambda: [made_up_map("one"), made_up_map("other")])


def test_a_run_is_shown_by_the_share_and_the_step_size_of_its_choices(monkeypatch):
    """A rung that averages is shown as its source; one that stands still has no share."""
    rungs = ladder.WIDE.rungs
    run = Chosen(np.ones(3), np.array([0, 17, len(rungs) - 1]), np.zeros(2))
    monkeypatch.setattr(measure, "run_shadow_learner", lambda *_, **__: run)
    found = measure.chosen("walk", tasks.random_walk(3))
    assert rungs[17].averages == 3
    assert found.shares[:2].tolist() == [rungs[0].c, rungs[3].c]
    assert found.sizes[:2].tolist() == [ladder.UNIT * rungs[0].multiple, ladder.UNIT * rungs[3].multiple]
    assert np.isnan([found.shares[2], found.sizes[2]]).all()


def test_the_command_leaves_figures_verdicts_and_a_page(small, tmp_path, monkeypatch):
    made = CliRunner().invoke(cli, ["reproduce", "shadows", "--out", str(tmp_path), "--json"])
    assert made.exit_code == 0, made.output
    claims = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    assert json.loads(made.stdout) == claims
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in experiment.FIGURES:
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 5000
        assert f'id="{name}"' in page
    assert page.count("<svg") == len(experiment.FIGURES)
    assert all(one["statement"] in page and one["finding"] in page for one in claims)
    for name in ("choices_over_time", "stability_maps"):
        monkeypatch.setattr(experiment, name, lambda: pytest.fail("a report runs nothing"))
    (tmp_path / "report.html").unlink()
    again = CliRunner().invoke(cli, ["report", "--out", str(tmp_path)])
    assert again.exit_code == 0, again.output
    assert "Within 1.1 of TDRC where TD is stable" in again.output
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page


def test_a_trial_of_another_scale_is_not_taken_for_this_one(small, tmp_path):
    done = CliRunner().invoke(cli, ["reproduce", "shadows", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    scale = json.dumps({"experiment": "shadows", "runs": 1, "episodes": 20})
    (tmp_path / "scale.json").write_text(scale, encoding="utf-8")
    with pytest.raises(GradientDDError, match=r"must be complete. Got 2 of 2 tasks missing"):
        rewrite((), tmp_path)


def test_figures_of_the_paper_are_refused(tmp_path):
    made = CliRunner().invoke(cli, ["reproduce", "shadows", "walk", "--out", str(tmp_path)])
    assert "'shadows' must stand alone, without figures. Got shadows walk." in str(made.exception)
    assert not list(tmp_path.iterdir())


def test_a_smaller_scale_has_fewer_and_shorter_runs():
    assert experiment.rules_at(Scale()) == experiment.rules_at(Scale(3, 2000))
    small = experiment.rules_at(Scale(1, 20))
    assert (small.steps, small.tuned, small.shown) == (200, 1, 1)


def test_what_stands_beside_the_trial_comes_back_with_all_its_digits():
    choices = Choices("a walk", np.array([1 / 3, 0.1]), np.array([np.nan, 0.3]), np.array([2e-9, np.nan]))
    (back,) = measure.read_choices(measure.arrays_text([choices]))
    assert back.name == choices.name
    assert all(np.array_equal(*pair, equal_nan=True) for pair in zip(back[1:], choices[1:], strict=True))
    one = made_up_map("one")
    (back,) = measure.read_maps(measure.arrays_text([one]))
    assert all(np.array_equal(*pair) for pair in zip(back[1:], one[1:], strict=True))


def test_verdicts_follow_the_numbers():
    found = {one.statement: one for one in experiment.trial_verdicts(shadows_trial.tables(ROWS))}
    assert found["Within 1.1 of TDRC where TD is stable"].finding == "0.92 × TDRC"
    assert found["Within 1.1 of GTD2 where TD is unstable"].finding == "1.05 × GTD2"
    assert found["Geometric mean of the ratio to the best rival ≤ 1.10"].verdict == "holds"
    assert found["With nothing tuned within 1.5 of the best tuned rival"].verdict == "does not hold"


def test_a_shadow_that_grows_where_the_mean_square_converges_is_counted():
    growth = np.array([[-1.0, 1.0], [1.0, -1.0]])
    one = StabilityMap("x", growth, growth - 0.1, growth + 0.1, np.full((2, 2), -1.0), np.array([[-1, -1], [-1, 1.0]]))
    first, second = experiment.map_verdicts([one])
    assert (first.verdict, first.finding) == ("does not hold", "2 of 3 such settings")
    assert (second.verdict, second.finding) == ("seen", "1 of 1 such settings")


def test_a_trial_goes_on_from_the_rows_it_has(tmp_path, monkeypatch):
    """A line that was cut off is run again, tasks that are done are not."""
    rows = tmp_path / "trial.rows"
    for one in ROWS:
        shadows_trial.keep_row(rows, one)
    rows.write_text(rows.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    cases = [shadows_cases.Case(one["group"], one["task"], tasks.random_walk(3)) for one in ROWS]
    again = []
    monkeypatch.setattr(shadows_trial, "shown", lambda case, *_: again.append(case.name) or ROWS[1])
    made = shadows_trial.run_trial(cases, experiment.rules_at(Scale()), shadows_trial.read_rows(rows))
    assert again == ["b"]
    assert made == ROWS


def test_the_reduced_trial_has_every_kind_of_task(monkeypatch):
    known = next(shadows_cases.diverging_cases(1, 17_000_006))
    monkeypatch.setattr(shadows_cases, "diverging_cases", lambda number, first: [known])
    cases = measure.reduced_cases()
    assert len({case.name for case in cases}) == len(cases)
    groups = {case.group for case in cases}
    assert groups == {"paper", "Baird", "random, on policy", "random, off policy", "diverging", "greedy target"}
    assert 0.25 < np.mean([shadows_cases.td_is_stable(case.task) for case in cases]) < 0.75


def test_maps_compare_measured_with_exact_growth(monkeypatch):
    """One state, one feature: with c = 1 and a slow eta all three growths are those of one matrix."""
    monkeypatch.setattr(measure, "SHARES", np.array([0.0, 1.0]))
    monkeypatch.setattr(measure, "MAP_ALPHAS", np.array([0.05, 0.1]))
    task = tasks.from_tables(np.ones((1, 1, 1)), np.ones((1, 1, 1)), 0.9, np.ones((1, 1)))
    found = measure.stability_map("one", task)
    assert np.allclose(found.mean, found.square, rtol=1e-6)
    assert np.allclose(found.measured, found.mean, rtol=0.01)
