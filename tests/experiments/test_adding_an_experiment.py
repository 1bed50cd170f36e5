"""Adding an experiment takes a module with data and a line in the registry: here both, and a run from end to end."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from gradient_dd.experiments.by_study import study_experiment

from gradient_dd.cli.commands import cli
from gradient_dd.experiments import EXPERIMENTS
from gradient_dd.experiments.claims import Ask, Claim
from gradient_dd.experiments.experiment import Job, Scale
from gradient_dd.experiments.running import reproduce, rewrite
from gradient_dd.experiments.verdicts import ClaimQuestion, Pair
from gradient_dd.report.figure import BLACK, RED, Figure, Line
from gradient_dd.studies import Study, grid, task

ALPHAS = (0.01, 0.1, 0.3)
STUDY = Study(
    "short-walk",
    tasks=(task("random_walk", n_states=5),),
    grids=(grid("td", alpha=ALPHAS), grid("gtd2", alpha=ALPHAS)),
    episodes=40,
    runs=4,
)
TD, GTD2 = Line("TD", "td", colour=RED), Line("GTD2", "gtd2", colour=BLACK)


def td_over_gtd2(evidence):
    """Return the question whether tuned TD has a lower error than tuned GTD2."""
    found = evidence["short-walk"]
    pairs = [Pair(found.choose(case, TD), found.choose(case, GTD2), "last100") for case in found.cases]
    return [ClaimQuestion("ratio", (pair,), "below", 1.0) for pair in pairs]


EXPERIMENT = study_experiment(
    "tiny",
    "TD against GTD2 on a short walk",
    studies=(STUDY,),
    claims=(Claim("td-better", "here", "TD is better", Ask("ratio below 1", ("short-walk",), td_over_gtd2)),),
    figures=(Figure("short-walk", "A short walk", "short-walk", (TD, GTD2)),),
)


def test_an_experiment_is_data_and_a_line(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "tiny", __name__)
    folder = ["--out", str(tmp_path / "tiny")]
    done = CliRunner().invoke(cli, ["reproduce", "tiny", *folder])
    assert done.exit_code == 0, done.output
    assert "holds (1 / 0 / 0)" in done.stdout
    assert "3 of 4 runs: " in done.stderr, "the page of a first look comes before that of all runs"
    (verdict,) = json.loads((tmp_path / "tiny" / "claims.json").read_text(encoding="utf-8"))
    assert (verdict["claim"], verdict["verdict"], verdict["judgements"][0]["comparisons"][0]["runs"]) == (
        "td-better", "holds", 8,
    )  # fmt: skip
    page = (tmp_path / "tiny" / "report.html").read_text(encoding="utf-8")
    assert 'id="claim-td-better"' in page
    assert '<figure id="short-walk">' in page
    for name in ("figures/short-walk.svg", "tables/short-walk.csv", "tables/fresh-short-walk.csv", "results.db"):
        assert (tmp_path / "tiny" / name).is_file()
    again = CliRunner().invoke(cli, ["report", *folder])
    assert again.stdout == done.stdout
    assert CliRunner().invoke(cli, ["plot", "short-walk", *folder]).exit_code == 0


def test_a_stopped_run_leaves_the_first_look(tmp_path, monkeypatch):
    """What is interrupted after the first look has its page, can write it again, and computes nothing twice."""
    monkeypatch.setitem(EXPERIMENTS, "tiny", __name__)
    seen = {}  # the states themselves are kept, so that no id is used twice

    def stop(sentence):
        if sentence.startswith("First look"):
            raise KeyboardInterrupt

    def count(state):
        seen[id(state)] = state

    page = tmp_path / "report.html"
    with pytest.raises(KeyboardInterrupt):
        reproduce(EXPERIMENT, (), tmp_path, Scale(), stop, on_progress=count)
    assert "First look: 3 of 4 runs" in page.read_text("utf-8")
    assert rewrite((), tmp_path).page == page
    assert "First look: 3 of 4 runs" in page.read_text("utf-8")
    stages = []
    reproduce(EXPERIMENT, (), tmp_path, Scale(), stages.append, on_progress=count)
    assert "First look" not in page.read_text("utf-8") + "".join(stages)
    ran = sum(state.cells[0] - state.stored for state in seen.values())
    assert ran == 4 * STUDY.n_settings + 2 * 8, "fresh runs of the first look are runs of the study"


def test_a_first_look_is_only_of_the_whole(tmp_path):
    stages = []
    reproduce(EXPERIMENT, (), tmp_path, Scale(3), stages.append)
    assert not any(sentence.startswith("First look") for sentence in stages)


def test_a_first_look_leaves_out_companions_with_too_few_runs(tmp_path):
    few = replace(STUDY, name="few", runs=1)  # three of four runs of it are less than one

    def left_out(study, **look):
        return Job(EXPERIMENT, (), tmp_path, Scale(3, **look)).leaves_out(study)

    assert left_out(few, is_first_look=True)
    assert not left_out(STUDY, is_first_look=True)
    assert not left_out(few), "a quick look that was asked for has all studies"
