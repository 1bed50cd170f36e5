"""The page of a reproduction: offline, small, the same numbers as claims.json, and usable on every screen."""

import json
import re
from dataclasses import replace
from html import escape

import pandas as pd
import pytest

from gradient_dd.experiments.claim_view import claim_view
from gradient_dd.experiments.job import Scale
from gradient_dd.experiments.page import variant_table
from gradient_dd.experiments.paper.baird import reading_name
from gradient_dd.experiments.paper.figures import FIGURES
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.experiments.summary import WAYS, answers
from gradient_dd.experiments.verdicts import ALIKE, FULLY, MAIN, ClaimVerdict, Comparison, Judgement, in_words
from gradient_dd.experiments.wording import sentence
from gradient_dd.report.figure import panels_of
from gradient_dd.report.panels import columns_of
from gradient_dd.report.svg import PlotAxis
from gradient_dd.studies.results import Results
from tests.browser import browse, in_a_browser
from tests.experiments.check_page import under

pytestmark = pytest.mark.xdist_group("reproduction")


@pytest.fixture(scope="module")
def text(made):
    return made[1].page.read_text(encoding="utf-8")


def test_the_page_is_small_and_needs_no_network(made, text):
    assert len(text.encode()) < 2_000_000
    links = set(re.findall(r'(?:src|href|content)="(?!#|data:)([^" ]+\.\w+)"', text))
    assert {"play.html", "claims.json"} <= links
    assert all((made[0] / link).is_file() for link in links), "a link to a file that is not beside the page"
    assert 'lang="en"' in text
    assert 'name="viewport"' in text


def test_every_number_of_a_claim_is_in_the_tables(made):
    """Means of comparisons are those of test runs in the tables; ratios are their quotients."""
    names = ("walk-constant", "walk-constant-alike", "walk-constant-fully")
    tables = {name: pd.read_csv(made[0] / "tables" / f"fresh-{name}.csv") for name in names}
    comparisons = [one for verdict in made[1].verdicts for one in verdict.comparisons]
    assert len(comparisons) >= 8
    for one in comparisons:
        for side in (one.ours, one.rival):
            means = tables[side["study"]][f"{one.measure}_mean"]
            assert (abs(means - side["mean"]) <= 1e-12 * abs(side["mean"])).any()
        assert one.estimate == pytest.approx(one.ours["mean"] / one.rival["mean"])


def test_dots_of_a_figure_stand_where_the_table_has_them(made):
    """The height of each dot is the error on the axis whose ticks are written beside it."""
    figure, study = FIGURES["walk-constant"], made[1].job.scale.of(STUDIES["walk-constant"])
    (panel,) = panels_of(figure, Results(study, made[0] / "results.db"))
    (column,) = columns_of([panel], "episodes")
    ticks = re.findall(r'<text x="41" y="(\d+)" class="e">([\d.]+)</text>', column.above)
    (high, first), (low, last) = ((int(y) - 4, float(value)) for y, value in (ticks[-1], ticks[0]))
    drawn = re.findall(r'<path class="dots" d="(.*?)"', column.above)
    assert len(drawn) == len(panel.lines)
    for path, line in zip(drawn, panel.lines, strict=True):
        heights = [float(y) for _, y in re.findall(r"M(\d+) ([\d.]+)h0", path)]
        values = [last * (first / last) ** ((low - y) / (low - high)) for y in heights]
        assert values == pytest.approx(list(line.mean[~panel.beyond(line.mean)]), rel=0.05)
    assert column.above.count('class="gone"') == sum(panel.beyond(line.mean).any() for line in panel.lines) > 0
    assert "diverged (beyond 10 × initial error)" in column.above


def test_a_curve_of_one_bin_stands_where_its_axis_begins():
    """Ten episodes of Baird's counterexample are 100 steps, one bin."""
    assert PlotAxis(50.0, 50.0).place(50.0, 46, 294) == 46


def comparison(rival, size, low, high, *, task="random_walk", measure="last100", tuning=MAIN, edge="", bound=1.0):
    estimate = (low * high) ** 0.5
    outcome = "holds" if high < bound else "fails" if low > bound else "open"
    sides = [
        {"label": label, "learner": name, "mean": mean, "settings": 240}
        for name, label, mean in (("gradient_dd", "Gradient-DD", estimate), (rival, rival.upper(), 1.0))
    ]
    return Comparison(
        kind="ratio", study=task, task=f"{task}(n={size})", size=size, reading="default", tuning=tuning,
        tuned_for=measure, measure=measure, ours=sides[0], rival=sides[1], side="below", bound=bound, runs=100,
        level=0.95, estimate=estimate, low=low, high=high, outcome=outcome, holds=outcome == "holds", edge=edge,
    )  # fmt: skip


def verdict(claim, *comparisons, readings=("default",)):
    judgements = [
        Judgement(reading, tuning, "last100", in_words(some), 0, 0, 0, some)
        for reading in readings
        for tuning in dict.fromkeys(one.tuning for one in comparisons)
        for some in [[replace(one, reading=reading) for one in comparisons if one.tuning == tuning]]
    ]
    word = in_words(judgements[0].comparisons) if judgements else "not judged"
    return ClaimVerdict(claim, "paper", "5", "s", "c", word, 1, 0, 1, "", "", "f", ["s"], None, judgements)


LOWER, HIGHER, UNSURE = (0.25, 0.3), (1.4, 1.6), (0.9, 1.1)


def test_a_sentence_says_where_each_outcome_is():
    assert sentence([comparison("td", 10, *LOWER), comparison("td", 20, *LOWER)]) == (
        "Yes in both comparisons: 0.27 times the final error."
    )
    mixed = [comparison("td", 10, *LOWER), comparison("td", 20, *HIGHER), comparison("td", 40, *UNSURE)]
    assert sentence(mixed) == (
        "Yes at m = 10 (0.27 times the final error); no at m = 20 (1.50); no clear difference at m = 40 (0.99)."
    )
    rivals = [comparison("td", 10, *LOWER), comparison("tdc", 10, *HIGHER)]
    assert sentence(rivals) == "Yes against TD (0.27 times the final error); no against TDC (1.50)."


def test_a_wide_interval_has_no_estimate():
    """Where the ends are more than a factor of 10 apart, the end that decides stands for the estimate, or nothing."""
    wide = [comparison("td", 10, 0.001, 0.5), comparison("td", 20, 0.01, 90), comparison("td", 40, 2, 90)]
    told = sentence(wide)
    assert told == (
        "Yes at m = 10 (below 0.50 times the final error); no at m = 40 (above 2.00); no clear difference at m = 20 "
        "(intervals span more than a factor of 10)."
    )


@pytest.mark.parametrize(
    ("ends", "word"),
    [
        ([LOWER] * 4, "Yes"),
        ([LOWER, LOWER, LOWER, UNSURE], "Mostly"),
        ([LOWER, LOWER, LOWER, HIGHER], "More often than not"),
        ([LOWER, UNSURE, UNSURE, UNSURE], "Partly"),
        ([LOWER, HIGHER, HIGHER, UNSURE], "Mostly not"),
        ([HIGHER, UNSURE, UNSURE, UNSURE], "No"),
        ([UNSURE] * 4, "Undecided"),
    ],
)
def test_an_answer_is_one_word_by_rule(ends, word):
    found = verdict(
        "walk-better", *(comparison("gtd2", m, *one) for m, one in zip((10, 20, 40, 80), ends, strict=True))
    )
    (answer,) = answers([found], Scale())
    assert answer.word == word
    (answer,) = answers([found], Scale(runs=5))
    assert answer.word == ("Not decided with 5 runs" if word == "Undecided" else word)


def test_a_claim_says_where_it_is_not_judged(tmp_path):
    found = verdict("walk-better", comparison("td", 10, *LOWER), comparison("td", 10, *HIGHER, tuning=ALIKE))
    view = claim_view(found, tmp_path, ())
    assert [(chip["word"], chip["was"]) for _, chip in view["chips"]] == [
        ("holds", ""), ("does not hold", "paper’s tuning: holds"),
    ]  # fmt: skip
    assert view["chips"][0][0] == "t t-p t-f", "by search it is not judged: the paper's tuning stands there"
    assert view["note"] == [("t t-f", "not judged with this tuning; shown: as in the paper")]


def test_variants_are_rows_and_claims_are_columns():
    usual = {mode: reading_name("standard", mode, "random initial weights") for mode in ("R", "T", "")}
    printed = reading_name("paper", "R", "random initial weights")
    placed = verdict("a", comparison("gtd2", 7, *LOWER, task="baird"), readings=(usual["R"], usual["T"], printed))
    unplaced = verdict("b", comparison("gtd2", 7, *HIGHER, task="baird"), readings=(usual[""],))
    table = variant_table([placed, unplaced], WAYS[0])
    assert table["told"] == "No variant makes all 2 claims hold."
    assert [label for _, label, _ in table["rows"]] == [
        "usual, whole, random", "usual, bootstrap, random", "printed, whole, random",
    ]  # fmt: skip
    words = [[word for _, _, word in cells] for _, _, cells in table["rows"]]
    assert words == [["holds", "does not hold"]] * 2 + [["holds", "not judged"]], "ρ makes no difference to b"
    assert variant_table([verdict("c", comparison("td", 7, *LOWER))], WAYS[0]) is None, "one variant needs no table"


def test_each_way_of_tuning_shows_its_own_numbers(made, text):
    for way, tuning in zip("paf", (MAIN, ALIKE, FULLY), strict=True):
        shown = under(text, way)
        (found,) = (one for one in made[1].verdicts if one.claim == "walk-constant")
        (judged,) = (one for one in found.judgements if one.tuning == tuning)
        article = re.search(r'id="c-walk-constant">(.*?)</article>', shown, re.DOTALL)[1]
        assert article.count('<table class="forest') == 1
        assert article.count('<tr><th scope="row">') == len(judged.comparisons)


def test_claims_carry_their_place_and_their_test(made):
    for one in json.loads((made[0] / "claims.json").read_text(encoding="utf-8")):
        assert {"section", "group", "figure", "test", "variants", "runs", "selection_runs"} <= set(one)
        assert one["runs"] == [6]
        assert one["variants"] == ["constant steps"]
        assert one["figure"] == "walk-constant"


@in_a_browser
def test_the_control_changes_the_claims_and_the_address(made, tmp_path):
    """A way of tuning is chosen by a radio button; the browser shows that way alone and keeps it in the address."""
    watch = """<script>addEventListener("load", () => {
      document.getElementById("t-f").click();
      const shown = [...document.querySelectorAll("#c-walk-constant .t")].filter(one => one.getClientRects().length);
      document.body.dataset.seen = JSON.stringify([location.search, [...new Set(shown.map(one => one.className))]]);
    });</script>"""
    page = tmp_path / "chosen.html"
    page.write_text(made[1].page.read_text(encoding="utf-8").replace("</body>", watch + "</body>"), encoding="utf-8")
    seen = re.search(r'data-seen="([^"]+)"', browse(page, tmp_path))[1].replace("&quot;", '"')
    address, shown = json.loads(seen)
    assert address == "?tuning=f"
    assert shown
    assert all("t-f" in name for name in shown)


@in_a_browser
def test_without_scripts_everything_is_shown(made, tmp_path):
    """A sandboxed frame runs no script of its own; the page around it looks inside."""
    inner = escape(made[1].page.read_text(encoding="utf-8"), quote=True)
    outer = tmp_path / "outer.html"
    look = """onload = () => { const inner = document.querySelector("iframe").contentDocument;
      const seen = name => [...inner.querySelectorAll(name)].filter(one => one.getClientRects().length).length;
      document.body.dataset.seen = ["figure svg.panel", "#c-walk-constant", ".forest"].map(seen).join(); };"""
    outer.write_text(
        f'<html><head></head><body><iframe sandbox="allow-same-origin" width="900" srcdoc="{inner}"></iframe>'
        f"<script>{look}</script></body></html>",
        encoding="utf-8",
    )
    panels, claims, forests = map(int, re.search(r'data-seen="([\d,]+)"', browse(outer, tmp_path))[1].split(","))
    assert (panels, claims) == (2, 1)
    assert forests >= 2


@in_a_browser
def test_on_a_phone_the_page_is_no_wider_than_the_screen(made, tmp_path):
    inner = tmp_path / "inner.html"
    page = made[1].page.read_text(encoding="utf-8")
    tell = """<script>onload = () => {
      document.querySelectorAll("details").forEach(one => { one.open = true; });
      parent.postMessage(document.documentElement.scrollWidth, "*"); };</script>"""
    inner.write_text(page.replace("<head>", "<head>" + tell, 1), encoding="utf-8")
    outer = tmp_path / "outer.html"
    listen = "<script>onmessage = e => { document.body.dataset.width = e.data; };</script>"
    frame = '<iframe src="inner.html" width="390" height="800"></iframe>'
    outer.write_text(f"<html><head></head><body>{listen}{frame}</body></html>")
    width = int(re.search(r'data-width="(\d+)"', browse(outer, tmp_path))[1])
    assert width <= 390
