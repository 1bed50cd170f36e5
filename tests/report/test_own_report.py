"""The report of a user's own study: from the results file alone, with the numbers of its table."""

import re

import pandas as pd
import pytest
from click.testing import CliRunner

from gradient_dd.cli.commands import cli
from gradient_dd.errors import BadRequestError
from gradient_dd.report.own_study import report_folder, report_stored
from gradient_dd.studies.store import Store

SWEEP = (
    "sweep --task random_walk:n_states=5 --task random_walk:n_states=7,features=linear --learner td --learner gtd2 "
    "--alpha 0.03..3:4 --zeta 0.25,1 --episodes 60 --runs 3"
)
pytestmark = pytest.mark.xdist_group("kernels of td")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    file = tmp_path_factory.mktemp("own") / "mine.db"
    done = CliRunner().invoke(cli, [*SWEEP.split(), "--out", str(file), "--report"])
    assert done.exit_code == 0, done.output
    return file


def plain(markup):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup))


def test_a_sweep_writes_its_report_beside_its_results(swept):
    folder = report_folder(swept)
    assert folder.name == "mine-report"
    frame = pd.read_csv(folder / "tables" / "settings.csv")
    text = plain((folder / "report.html").read_text(encoding="utf-8"))
    assert len(frame) == 2 * (4 + 8)
    for (_, learner), some in frame.groupby(["size", "learner"]):
        for measure in ("last100_mean", "mean_error_mean"):
            assert f"{some[measure].min():.3g} ±" in text, (learner, measure)
    assert {path.name for path in (folder / "figures").glob("*.png")} == {"last100.png", "mean_error.png"}


def test_the_same_report_is_made_from_the_file_alone(swept, tmp_path):
    page = report_stored(swept, tmp_path / "again", {})
    before = report_folder(swept) / "report.html"
    assert (
        plain(page.read_text(encoding="utf-8")).partition("How this was made")[0]
        == (plain(before.read_text(encoding="utf-8")).partition("How this was made")[0])
    )
    done = CliRunner().invoke(cli, ["report", "--out", str(swept)])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(before)


def test_a_file_without_results_gets_one_sentence(tmp_path):
    with Store(tmp_path / "empty.db", write=True):
        pass
    with pytest.raises(BadRequestError, match=r"must hold results. Got none"):
        report_stored(tmp_path / "empty.db", tmp_path / "report", {})
    assert not (tmp_path / "report").exists()
