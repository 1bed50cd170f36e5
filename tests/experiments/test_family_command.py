"""`gradient-dd reproduce family` from end to end: what it leaves, what a second call does, and its report."""

import csv
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from gradient_dd.cli.commands import cli
from gradient_dd.errors import GradientDDError
from gradient_dd.experiments.experiment import SCALE, STORE, Scale, holds
from gradient_dd.experiments.family.experiment import EXPERIMENT, family_experiment
from gradient_dd.experiments.family.problems import SETTINGS, Problem
from gradient_dd.experiments.family.trials import Trial, read_trials, trials_text
from gradient_dd.experiments.running import Made, reproduce, rewrite
from gradient_dd.studies import task

pytestmark = pytest.mark.xdist_group("family")

TINY = Problem("collision", "Collision", (task("collision"),), 60, points=6, drawn=True, tuning_runs=50)
SMALL = family_experiment([TINY], ("gtd2", "gradient_dd"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return a tiny comparison and the folder it is in."""
    folder = tmp_path_factory.mktemp("family")
    with pytest.MonkeyPatch.context() as patch:  # kernels without a trace only: half as much to compile
        patch.setattr("gradient_dd.experiments.family.problems.LAMBDAS", (0.0,))
        patch.setattr("gradient_dd.experiments.family.experiment.EXPERIMENT", SMALL)  # for `rewrite`
        yield reproduce(SMALL, (), folder, Scale(2), workers=2), folder


def test_a_tiny_comparison_leaves_everything(tiny):
    made, folder = tiny
    for name in ("matrix", "lambda", "dd", "dd-zeta", "cost", "alpha-collision"):
        assert (folder / "figures" / f"{name}.png").is_file()
        assert f'id="{name}"' in made.page.read_text("utf-8")
    assert json.loads((folder / "claims.json").read_text("utf-8"))[-1]["claim"] == "trace-instead"
    assert all(sentence.split("(")[0] in made.page.read_text("utf-8") for sentence in made.answer)
    assert "First look: 2 of" in made.page.read_text("utf-8")
    assert 'class="wide">' not in made.page.read_text("utf-8"), "what scrolls can be reached with the keyboard"


def rows_of(path):
    """Return the rows of a table."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_its_tables_have_every_setting_and_every_run(tiny):
    _, folder = tiny
    tables = {path.stem: rows_of(path) for path in (folder / "tables").glob("*.csv")}
    assert len(tables["tuning-collision"]) == 2 * SETTINGS
    assert {row["run"] for row in tables["shown-collision"]} == {"2", "3"}
    assert {row["learner"] for row in tables["standings"]} == {"gtd2", "gradient_dd"}


def test_a_second_call_runs_nothing_and_says_the_same(tiny):
    made, folder = tiny
    updates = []
    again = reproduce(SMALL, (), folder, Scale(2), on_progress=lambda state: updates.append(state.updates))
    assert updates
    assert not any(updates)
    assert again.answer == made.answer


def test_its_report_is_written_anew_from_what_the_folder_holds(tiny):
    made, folder = tiny
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".html", ".json", ".csv")}
    assert len(before) >= 5
    for path in before:
        if path.name not in (SCALE, "trials.csv"):
            path.unlink()
    again = rewrite((), folder)
    assert again.answer == made.answer
    assert {path: path.read_bytes() for path in before} == before
    assert holds(folder / STORE)
    assert not holds(folder / "sweep.db"), "a file beside it is one of its own"


def test_a_comparison_that_is_not_finished_has_no_report(tiny, tmp_path):
    with pytest.raises(GradientDDError, match=r"must hold the results of an experiment"):
        rewrite((), tmp_path)
    _, folder = tiny
    for name in (SCALE, STORE):
        shutil.copy(folder / name, tmp_path)
    with pytest.raises(GradientDDError, match=r"must hold tables/trials\.csv, as a finished one does"):
        rewrite((), tmp_path)


def test_trials_come_back_with_all_their_digits():
    trials = [Trial("two samples", "collision", {"one": np.array([1 / 3, np.inf]), "two": np.array([2e-9, 5.0])})]
    (back,) = read_trials(trials_text(trials))
    assert (back.name, back.problem) == ("two samples", "collision")
    assert {name: some.tolist() for name, some in back.shown.items()} == {"one": [1 / 3, np.inf], "two": [2e-9, 5.0]}


# The command -------------------------------------------------------------------------------------------------


def test_the_command_passes_its_scale_on(tiny, tmp_path, monkeypatch):
    made, _ = tiny
    asked = {}

    def stand_in(experiment, names, folder, scale, on_stage, **how):
        asked.update(how, experiment=experiment, folder=folder, scale=scale)
        return Made(EXPERIMENT, made.answer, made.verdicts, [], made.page)

    monkeypatch.setattr("gradient_dd.experiments.running.reproduce", stand_in)
    done = CliRunner().invoke(cli, ["reproduce", "family", "--runs", "3", "--episodes", "20", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert asked["scale"] == Scale(3, 20)
    assert asked["scale"].steps == 200
    assert asked["folder"] == tmp_path
    assert made.answer[0] in done.output
    assert "The DD term lowers the error of GTD2" in done.output


def test_the_report_of_a_comparison_is_that_of_the_family(tiny, monkeypatch):
    made, folder = tiny
    asked = []
    monkeypatch.setattr("gradient_dd.experiments.running.rewrite", lambda names, at, said: asked.append(at) or made)
    done = CliRunner().invoke(cli, ["report", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert asked == [folder]
    assert made.answer[0] in done.output


def test_its_figures_are_drawn_anew(tiny):
    _, folder = tiny
    (folder / "figures" / "dd.svg").unlink()
    done = CliRunner().invoke(cli, ["plot", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert str(folder / "figures" / "dd.svg") in done.output
    assert (folder / "figures" / "dd.svg").is_file()
