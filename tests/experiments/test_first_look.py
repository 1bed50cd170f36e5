"""A reproduction from end to end, of a small paper with one study, one figure and one claim."""

import json
from dataclasses import replace

import pytest

from gradient_dd.experiments.job import Job, Scale
from gradient_dd.experiments.paper.texts import Section
from gradient_dd.experiments.running import make, reading, reproduce
from gradient_dd.experiments.verdicts import Ask, Claim, ClaimQuestion, Pair
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


CLAIM = Claim("td-better", "here", "TD is better", Ask("ratio below 1", ("short-walk",), td_over_gtd2), section="walk")
FIGURE = Figure("short-walk", "A short walk", "short-walk", (TD, GTD2), section="walk", tab="Final error")
SMALL_PAPER = {
    "job": {"FIGURES": {"short-walk": FIGURE}, "DRAWINGS": {}, "RUNS": 4, "WALK_EPISODES": 40},
    "running": {"STUDIES": {"short-walk": STUDY}, "COMPANIONS": {}, "CLAIMS": (CLAIM,)},
    "page": {
        "STUDIES": {"short-walk": STUDY},
        "SECTIONS": (Section("walk", "A short walk", "1", "Five states in a row."),),
        "RUNS": 4,
    },
    "summary": {"QUESTIONS": ()},
}
pytestmark = pytest.mark.usefixtures("small_paper")


@pytest.fixture
def small_paper(monkeypatch):
    for module, constants in SMALL_PAPER.items():
        for name, value in constants.items():
            monkeypatch.setattr(f"gradient_dd.experiments.{module}.{name}", value)


def test_the_whole_begins_with_a_first_look(tmp_path):
    stages = []
    made = reproduce((), tmp_path, Scale(), stages.append)
    assert any("3 of 4 runs: " in one for one in stages), "the page of a first look comes before that of all runs"
    (verdict,) = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    assert (verdict["claim"], verdict["verdict"], verdict["judgements"][0]["comparisons"][0]["runs"]) == (
        "td-better", "holds", 8,
    )  # fmt: skip
    page = made.page.read_text(encoding="utf-8")
    assert 'id="c-td-better"' in page
    assert 'id="fig-short-walk"' in page
    for name in ("figures/short-walk.svg", "tables/short-walk.csv", "tables/fresh-short-walk.csv", "results.db"):
        assert (tmp_path / name).is_file()
    again = make(reading((), tmp_path))
    assert again.verdicts == made.verdicts
    assert again.page.read_text(encoding="utf-8") == page


def test_a_stopped_run_leaves_the_first_look(tmp_path):
    """What is interrupted after the first look has its page, can write it again, and computes nothing twice."""
    seen = {}  # the states themselves are kept, so that no id is used twice

    def stop(sentence):
        if sentence.startswith("First look"):
            raise KeyboardInterrupt

    def count(state):
        seen[id(state)] = state

    page = tmp_path / "report.html"
    with pytest.raises(KeyboardInterrupt):
        reproduce((), tmp_path, Scale(), stop, on_progress=count)
    assert "3 of 4 runs" in page.read_text("utf-8")
    assert make(reading((), tmp_path)).page == page
    assert "3 of 4 runs" in page.read_text("utf-8")
    stages = []
    reproduce((), tmp_path, Scale(), stages.append, on_progress=count)
    assert "First look" not in page.read_text("utf-8") + "".join(stages)
    ran = sum(state.cells[0] - state.stored for state in seen.values())
    assert ran == 4 * STUDY.n_settings + 2 * 8, "fresh runs of the first look are runs of the study"


def test_a_first_look_is_only_of_the_whole(tmp_path):
    stages = []
    reproduce((), tmp_path, Scale(3), stages.append)
    assert not any(sentence.startswith("First look") for sentence in stages)


def test_a_first_look_leaves_out_companions_with_too_few_runs(tmp_path):
    few = replace(STUDY, name="few", runs=1)  # three of four runs of it are less than one

    def left_out(study, **look):
        return Job((), tmp_path, Scale(3, **look)).leaves_out(study)

    assert left_out(few, is_first_look=True)
    assert not left_out(STUDY, is_first_look=True)
    assert not left_out(few), "a quick look that was asked for has all studies"
