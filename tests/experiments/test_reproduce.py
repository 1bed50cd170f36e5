"""The paper: its figures and claims name known things, and a small reproduction is whole, right and offline."""

import json
import re
import shutil
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gradient_dd.engine import reference
from gradient_dd.engine.schedules import constant
from gradient_dd.errors import BadRequestError
from gradient_dd.experiments.drawing import draw_all, drawing_picture, drawn_meanwhile, figure_picture
from gradient_dd.experiments.job import Scale, read_scale
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.studies import PAPER_STUDIES, STUDIES
from gradient_dd.experiments.paper.texts import QUESTIONS
from gradient_dd.experiments.running import make, plot, reading, reproduce
from gradient_dd.experiments.summary import COUNTED
from gradient_dd.studies.results import Results
from gradient_dd.studies.store import Store
from tests.experiments.check_page import check_page
from tests.experiments.recompute_verdicts import recompute

pytestmark = pytest.mark.xdist_group("reproduction")


@pytest.mark.parametrize("figure", FIGURES.values(), ids=lambda figure: figure.name)
def test_every_line_of_a_figure_is_in_its_study(figure):
    settings = list(STUDIES[figure.study].settings())
    for line in figure.lines:
        assert any(line.has(setting) for setting in settings), line.label


def test_every_claim_rests_on_known_studies():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert set(claim.studies) <= {study.name for study in PAPER_STUDIES}
        assert claim.statement
        assert claim.ask.criterion
        assert claim.source in ("paper", "time", "ours")


def test_the_studies_have_the_paper_s_scale():
    assert all(study.runs == 50 for study in PAPER_STUDIES)
    assert STUDIES["walk"].episodes == 20_000
    alphas = {setting.values["alpha"] for setting in STUDIES["walk"].settings()}
    assert sorted(alphas) == pytest.approx([10 ** (-i / 4) for i in range(12, -1, -1)])
    assert len({setting.values["alpha"] for setting in STUDIES["boyan"].settings()}) == 10


SMALL = Scale(runs=3, episodes=120)


def test_everything_is_there(made):
    folder, result = made
    page = result.page
    for place in ("results.db", "claims.json", "figures/walk-constant.svg", "figures/walk-constant.png"):
        assert (folder / place).stat().st_size > 500, place
    assert page == folder / "report.html"
    verdicts = json.loads((folder / "claims.json").read_text())
    assert {verdict["claim"] for verdict in verdicts} == {"walk-constant", "walk-constant-td", "fully-walk-constant"}
    assert all(verdict["verdict"] in COUNTED for verdict in verdicts)
    assert all(verdict["finding"] for verdict in verdicts)
    assert "FIRST LOOK: 3 OF 50 RUNS" in (folder / "figures/walk-constant.svg").read_text()


def test_the_table_has_every_setting_and_the_reference_engine_s_numbers(made):
    folder, *_ = made
    frame = pd.read_csv(folder / "tables" / "walk-constant.csv")
    study = SMALL.of(STUDIES["walk-constant"])
    assert len(frame) == study.n_settings
    (walk,) = study.built_tasks
    for row in frame.sample(6, random_state=0).itertuples():
        values = {name: getattr(row, name) for name in ("alpha", "zeta", "kappa") if not np.isnan(getattr(row, name))}
        values |= {"reg": row.reg} if not np.isnan(row.reg) else {}
        traces = [
            reference.run(walk, row.learner, episodes=120, schedule=constant, run=number, **values)
            for number in range(3)
        ]
        assert row.last100_mean == pytest.approx(np.mean([trace.errors[-100:].mean() for trace in traces]), rel=1e-10)
        assert row.mean_error_mean == pytest.approx(np.mean([trace.errors.mean() for trace in traces]), rel=1e-10)


def test_verdicts_come_from_fresh_runs(made):
    folder, *_ = made
    with Store(folder / "results.db") as store:
        runs = {unit.run for unit in store.units()}
        before = store.rows("SELECT count(*) FROM unit")
    assert runs == set(range(13))  # 3 tuning runs, twice as many test runs, then the 4 tuning runs of the search
    reproduce(("walk-constant",), folder, SMALL)
    with Store(folder / "results.db") as store:
        assert store.rows("SELECT count(*) FROM unit") == before


def test_the_selected_settings_have_a_table_of_their_fresh_runs(made):
    folder, *_ = made
    fresh, shown = (pd.read_csv(folder / "tables" / f"{name}.csv") for name in ("fresh-walk-constant", "walk-constant"))
    assert list(fresh.columns) == list(shown.columns)
    assert set(fresh.runs) == {6}
    assert set(shown.runs) == {3}
    verdicts = json.loads((folder / "claims.json").read_text())
    comparisons = [one for verdict in verdicts for j in verdict["judgements"] for one in j["comparisons"]]
    ours = [one["ours"] for one in comparisons if one["ours"]["study"] == "walk-constant"]
    for facts in ours:
        row = fresh[(fresh.learner == "gradient_dd") & np.isclose(fresh.alpha, facts["values"]["alpha"])]
        assert row.last100_mean.item() == pytest.approx(facts["mean"])


KINDS = {"ratio", "growth", "share", "count", "time"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The claims of all three tasks and some figures, on runs far too short to mean anything."""
    folder = tmp_path_factory.mktemp("tiny")
    figures = ("walk", "walk-various-kappa", "walk-various-u", "walk-iid", "boyan", "boyan-iid", "Baird")
    reproduce(figures, folder, Scale(runs=2, episodes=10))
    return folder


@pytest.mark.slow
def test_every_verdict_follows_from_the_tables_alone(tiny):
    verdicts = json.loads((tiny / "claims.json").read_text())
    comparisons = [one for verdict in verdicts for j in verdict["judgements"] for one in j["comparisons"]]
    assert {one["kind"] for one in comparisons} == KINDS
    assert {one["measure"] for one in comparisons} == {"last100", "mean_error", "early", "episodes", "nanoseconds"}
    assert recompute(tiny) == (len(verdicts), len(comparisons))


def test_the_verdicts_and_the_page_of_one_figure_follow_from_its_tables(made):
    assert recompute(made[0])[0] == 3
    scorecard, _, claims, _ = check_page(made[0])
    assert scorecard >= 18
    assert claims > 400


def test_a_verdict_that_does_not_follow_is_found(made, tmp_path):
    """The recomputation is no formality: a changed number, outcome or table fails it."""
    folder = tmp_path / "copy"
    shutil.copytree(made[0] / "tables", folder / "tables")
    verdicts = json.loads((made[0] / "claims.json").read_text())

    def fails(change):
        changed = json.loads(json.dumps(verdicts))
        change(changed[0]["judgements"][0]["comparisons"][0], changed[0])
        (folder / "claims.json").write_text(json.dumps(changed))
        try:
            recompute(folder)
        except AssertionError:
            return True
        return False

    assert not fails(lambda one, verdict: None)
    assert fails(lambda one, verdict: one.update(high=one["high"] * 1.01))
    assert fails(lambda one, verdict: one.update(holds=not one["holds"]))
    assert fails(lambda one, verdict: one["rival"]["values"].update(alpha=0.001))
    assert fails(lambda one, verdict: one["ours"].update(settings=12))
    assert fails(lambda one, verdict: verdict.update(held=verdict["held"] + 1))
    assert fails(lambda one, verdict: verdict.update(verdict="holds"))


@pytest.mark.slow
def test_every_number_of_the_page_follows_from_the_claims(tiny):
    scorecard, answers, claims, sizes = check_page(tiny, QUESTIONS)
    assert (scorecard, answers) >= (100, 20)
    assert claims > 10_000
    assert sizes > 30


def test_a_number_of_the_page_that_does_not_follow_is_found(made, tmp_path):
    shutil.copy(made[0] / "claims.json", tmp_path)
    page = (made[0] / "report.html").read_text(encoding="utf-8")

    def fails(begin, pattern, instead):
        place = page.index(begin)
        changed = page[:place] + re.sub(pattern, instead, page[place:], count=1)
        assert changed != page
        (tmp_path / "report.html").write_text(changed, encoding="utf-8")
        try:
            check_page(tmp_path)
        except (AssertionError, KeyError):
            return True
        return False

    article = 'id="c-walk-constant"'
    assert not fails("</html>", "</html>", "</html> ")
    assert fails('<ul class="big">', r"<b>\d+</b>", "<b>7</b>")
    assert fails('<div class="tiles">', r"--h:\d+%", "--h:77%")
    assert fails(article, r"\d+ undecided", "7 undecided")
    assert fails(
        article, r'<span class="chip \w"><b aria-hidden="true">.</b> [\w ]+', '<span class="chip y"><b>.</b> holds'
    )
    assert fails(article, r"\d\.\d+\stimes", "1.2345 times")
    assert fails(article, r'(<td class="v [^>]*>)[\d.]+', r"\g<1>77.7")
    assert fails(article, r"<td>\d\.\d+ to ", "<td>0.0123 to ")
    assert fails('<table class="all">', r">(no|undecided|yes)(?=<tr>|</table>)", ">maybe")


def test_every_test_that_the_page_names_exists(made):
    page = made[1].page.read_text(encoding="utf-8")
    named = set(re.findall(r"<code>tests/experiments/test_claims\.py::(\w+)(?:\[([\w-]+)\])?</code>", page))
    claims = {verdict["claim"] for verdict in json.loads((made[0] / "claims.json").read_text())}
    written = set(re.findall(r"^def (test_\w+)", Path(__file__).with_name("test_claims.py").read_text(), re.MULTILINE))
    assert {test for test, _ in named} <= written
    assert {claim for _, claim in named} == claims


def test_the_labels_of_a_figure_keep_their_digits(made):
    labels = re.findall(r"<text[^>]*>([^<]+)</text>", (made[0] / "figures" / "walk-constant.svg").read_text())
    assert {"0.001", "0.01", "0.1", "1"} <= set(labels)
    assert "0.0" not in labels


def test_a_figure_is_drawn_again_only_if_it_would_be_another(made):
    folder, *_ = made
    figure, study = FIGURES["walk-constant"], SMALL.of(STUDIES["walk-constant"])
    results = Results(study, folder / "results.db")
    drawing, note = folder / "figures" / "walk-constant.png", SMALL.note
    before = drawing.stat().st_mtime_ns
    draw_all([figure_picture(figure, results, note)], folder / "figures")
    assert drawing.stat().st_mtime_ns == before
    draw_all([figure_picture(figure, results, "Another note")], folder / "figures")
    assert drawing.stat().st_mtime_ns > before
    draw_all([figure_picture(figure, results, note)], folder / "figures")


def test_drawings_that_are_not_wanted_any_more_are_stopped(tmp_path):
    def interrupted():
        with drawn_meanwhile([drawing_picture(DRAWINGS["safety"])], tmp_path, gently=True):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert active_children() == []
    assert not (tmp_path / "safety.svg").exists(), "nobody waited for it"


def test_an_unknown_figure_gets_one_sentence(tmp_path):
    with pytest.raises(BadRequestError, match=r"Unknown figure 'wak'. Did you mean 'walk'\?"):
        reproduce(("wak",), tmp_path, Scale())
    assert not list(tmp_path.iterdir())


def test_reading_runs_nothing_and_refuses_what_is_not_whole(made):
    folder, *_ = made
    assert read_scale(folder)[0] == SMALL
    assert plot(("walk-constant", "illustration"), folder)[1].stat().st_size > 500
    assert make(reading(("walk-constant",), folder)).verdicts
    with pytest.raises(BadRequestError, match=r"must be complete. Got 507 of 507 missing"):
        plot(("walk-iid",), folder)


def test_a_quick_look_has_the_same_grids():
    def quick(name, **scale):
        return Scale(**scale or {"runs": 2, "episodes": 50}).of(STUDIES[name])

    baird, starts, long = (quick(name) for name in ("baird", "baird-starts", "baird-long"))
    assert (baird.runs, baird.steps, baird.every) == (2, 500, 100)
    assert baird.n_settings == STUDIES["baird"].n_settings
    assert (starts.runs, starts.steps, starts.every) == (1, 500, 500)
    assert (long.runs, long.steps, long.every) == (1, 2500, 2500)
    assert quick("baird-starts", runs=100).runs == 4
    assert Scale().of(STUDIES["walk"]) == STUDIES["walk"]


@pytest.mark.parametrize(
    ("scale", "note"),
    [
        ((None, None), ""),
        ((60, 30_000), ""),
        ((49, None), "First look: 49 of 50 runs"),
        ((None, 19_999), "First look: 19,999 of 20,000 episodes"),
        ((5, 1_000), "First look: 5 of 50 runs, 1,000 of 20,000 episodes"),
    ],
)
def test_only_a_smaller_scale_is_a_first_look(scale, note):
    assert Scale(*scale).note == note
    assert str(Scale(*scale).folder) == ("results-quick" if note else "results")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"experiment": "paper"}', '{"experiment": "paper", "runs": 0, "episodes": 1}']
)
def test_a_damaged_scale_gets_one_sentence(tmp_path, text):
    (tmp_path / "scale.json").write_text(text)
    with pytest.raises(BadRequestError, match=r"must be"):
        reading((), tmp_path)
