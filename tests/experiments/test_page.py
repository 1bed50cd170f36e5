"""The page of a reproduction: offline, the same numbers everywhere, and in a browser nothing vanishes or lies."""

import re
from dataclasses import replace
from html import escape

import pandas as pd
import pytest

from gradient_dd.experiments.paper.baird import matrix_of, reading_name
from gradient_dd.experiments.paper.experiment import forests, headline, hero
from gradient_dd.experiments.verdicts import ALIKE, FULLY, MAIN, ClaimVerdict, Comparison, Judgement
from gradient_dd.studies.intervals import EXPLODED
from gradient_dd.tasks import random_walk
from tests.browser import browse, in_a_browser, outcome_of

pytestmark = pytest.mark.xdist_group("reproduction")


@pytest.fixture(scope="module")
def text(made):
    return made[1].page.read_text(encoding="utf-8")


def test_the_page_is_small_and_needs_no_network(made, text):
    assert len(text.encode()) < 2_000_000
    links = set(re.findall(r'(?:src|href)="(?!#|data:)([^"]+)"', text))
    assert links
    assert all((made[0] / link).is_file() for link in links), "a link to a file that is not beside the page"
    assert 'lang="en"' in text
    assert 'name="viewport"' in text


def plain(markup):
    """Return the text of a piece of a page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup))


def test_every_number_of_the_ledger_is_in_the_tables(made, text):
    """Means of comparisons are those of fresh runs in the tables; ratios are their quotients."""
    tables = {
        name: pd.read_csv(made[0] / "tables" / f"fresh-{name}.csv")
        for name in ("walk-constant", "walk-constant-alike", "walk-constant-fully")
    }
    seen = 0
    for verdict in made[1].verdicts:
        row = text[text.index(f'id="claim-{verdict.claim}"') :]
        row = plain(row[: row.index("</tbody>")])
        for one in (one for judgement in verdict.judgements for one in judgement.comparisons):
            for side in (one.ours, one.rival):
                means = tables[side["study"]][f"{one.measure}_mean"]
                assert (abs(means - side["mean"]) <= 1e-12 * abs(side["mean"])).any()
                assert f"{side['label']} {side['mean']:.3g}" in row
            assert one.estimate == pytest.approx(one.ours["mean"] / one.rival["mean"])
            assert f" {one.estimate:.3g} " in row
            seen += 1
    assert seen >= 8


def test_the_heading_of_a_figure_is_the_quotient_of_fresh_means(made, text):
    shown, fresh = (
        pd.read_csv(made[0] / "tables" / f"{name}.csv") for name in ("walk-constant", "fresh-walk-constant")
    )

    def judged(learner):
        some = shown[shown.learner == learner]
        if learner == "gradient_dd":
            some = some[(some.kappa == 1) & (some.zeta == 1)]
        best = some.loc[some.last100_mean.idxmin()]
        same = fresh[(fresh.learner == learner) & (fresh.alpha == best.alpha)]
        return same[same.zeta.isna() | (same.zeta == best.zeta)].last100_mean.iloc[0]

    title = re.search(r'<figure id="walk-constant">\s*<h3>(.*?)</h3>', text)[1]
    assert title.startswith("Random walk, on-policy, at the end: at m = 20 the error of Gradient-DD is ")
    for learner, name in (("td", "TD"), ("tdrc", "TDRC"), ("gtd2", "GTD2"), ("tdc", "TDC")):
        wanted = f"{judged('gradient_dd') / judged(learner):.3g} × that of {name}"
        assert wanted in re.sub(r"( and |, )", " ", title) + " ", title


def comparison(rival, size, estimate, low, high, *, task="random_walk", measure="last100", tuning=MAIN, edge=""):
    sides = [
        {"label": name, "learner": name, "mean": mean, "settings": 240}
        for name, mean in (("gradient_dd", estimate), (rival, 1.0))
    ]
    return Comparison(
        "ratio", "s", f"{task}(n={size})", size, "default", tuning, measure, measure, *sides, None, "below", 1.0,
        100, 0.95, estimate, low, high, "open", False, edge, "",
    )  # fmt: skip


def verdict(claim, *comparisons, readings=("default",), tunings=(MAIN, ALIKE)):
    judgements = [
        Judgement(
            reading, tuning, "last100", "partly holds", 1, 0, 1, [one for one in comparisons if one.tuning == tuning]
        )
        for reading in readings
        for tuning in tunings
    ]
    return ClaimVerdict(claim, "paper", "5", "s", "c", "holds", 1, 0, 1, "", "", "f", ["s"], None, judgements)


def full(claim, *comparisons):
    return verdict(claim, *(replace(one, tuning=FULLY) for one in comparisons), tunings=(FULLY,))


def test_the_words_of_the_headline_follow_the_intervals():
    small, large = comparison("td", 10, 1.1, 1.05, 1.2), comparison("td", 40, 0.25, 0.2, 0.3)
    (lower,) = headline([full("fully-walk", small, large)])
    assert "240 settings for every learner" in lower
    assert "ends with a lower error than TD: 0.25 × TD (random walk, m = 40)." in lower
    (higher,) = headline([full("fully-walk", comparison("td", 40, 1.5, 1.2, 1.8))])
    assert "a higher error than TD" in higher
    (undecided,) = headline([full("fully-walk", comparison("td", 40, 0.9, 0.7, 1.1))])
    assert "no lower error than TD" in undecided
    mixed = full("fully-walk", comparison("td", 40, 0.5, 0.4, 0.6), comparison("tdrc", 40, 1.5, 1.4, 1.6))
    assert "not always lower" in headline([mixed])[0]
    assert headline([]) == forests([]) == hero([]) == []


def test_the_headline_counts_what_is_lower_and_higher():
    several = [
        comparison("gtd2_to_td", size, *of)
        for size, of in ((10, (2, 1.5, 3)), (20, (0.5, 0.4, 0.6)), (40, (1, 0.9, 1.1)))
    ]
    (knob,) = headline([full("fully-walk", *several)])
    assert "a higher error than it in 1 comparisons, a lower one in 1, and 1 are open" in knob
    (baird,) = headline([full("fully-baird", *(replace(one, task="baird(n=7)") for one in several))])
    assert baird.endswith("so often: GTD2 to TD 1 / 1 / 1.")


def test_a_statement_under_several_readings_is_a_row_of_cells():
    usual = {mode: reading_name("standard", mode, "random first weights") for mode in ("R", "T", "")}
    printed = reading_name("paper", "", "random first weights")
    placed = verdict("a", comparison("gtd2", 7, 1, 1, 1), readings=(usual["R"], usual["T"]))
    unplaced = verdict("b", comparison("gtd2", 7, 1, 1, 1), readings=(usual[""], printed))
    found = dict(matrix_of([placed, unplaced], 1000).rows)
    printed = reading_name("paper", "R", "random first weights")
    assert set(found) == {usual["R"], usual["T"], printed}
    assert [cell and cell.tally for cell in found[usual["R"]]] == ["0 / 1 / 0", "0 / 1 / 0"]
    assert found[usual["T"]][1] is None, "what ρ makes no difference to is shown once"
    assert found[printed][0] is None
    assert matrix_of([verdict("c")], 1000) is None, "one reading needs no matrix"


def tuned(frame, learner, measure, **held):
    ours = frame[frame.learner == learner]
    for name, value in held.items():
        ours = ours[ours[name] == value]
    return ours.groupby("alpha")[f"{measure}_mean"].min()


def values(line):
    """Return the errors of a line's points, from their titles."""
    return [float(re.search(r": ([\d.e+-]+)(?:;|$| at)", title)[1]) for title in line["points"]]


@in_a_browser
def test_the_twin_shows_the_table_and_its_labels_follow_its_controls(made, tmp_path):
    steps = """twin.open = true; twin.dispatchEvent(new Event("toggle")); look();
      choose("measure", "mean_error"); choose("parameter-zeta", "0.25"); choose("view", "time");
      twin.querySelector("input").click(); look();"""
    outcome = outcome_of(browse(made[1].page, tmp_path, steps=steps))
    assert outcome["seen"] == []
    assert [name for name in outcome["requests"] if not name.startswith(("file:", "data:"))] == []
    frame = pd.read_csv(made[0] / "tables" / "walk-constant.csv")
    first, by_mean_error, zeta_set, over_time, one_less = (
        {line["name"]: line for line in d["lines"]} for d in outcome["drawn"]
    )
    limit = EXPLODED * random_walk(20).rmsve(random_walk(20).initial_weights)
    for found, measure in ((first, "last100"), (by_mean_error, "mean_error")):
        for name, learner, held in (
            ("TD", "td", {}),
            ("GTD2, ζ tuned", "gtd2", {}),
            ("GTD2, ζ = 1", "gtd2", {"zeta": 1.0}),
        ):
            wanted = tuned(frame, learner, measure, **held)
            assert values(found[name]) == pytest.approx([value for value in wanted if value <= limit], rel=1e-3)
            assert len(found[name]["gone"]) == sum(not value <= limit for value in wanted)
    assert set(zeta_set) == {"TD", "TDRC", "GTD2, ζ = 1/4", "TDC, ζ = 1/4", "Gradient-DD"}, "no line twice, none gone"
    set_to = [value for value in tuned(frame, "gtd2", "mean_error", zeta=0.25) if value <= limit]
    assert values(zeta_set["GTD2, ζ = 1/4"]) == pytest.approx(set_to, rel=1e-3)
    assert len(over_time["TD"]["points"]) != len(zeta_set["TD"]["points"])
    assert set(over_time) - set(one_less) == {"TD"}


@in_a_browser
def test_what_exploded_stands_in_a_labelled_strip_and_all_else_on_the_axes(made, tmp_path):
    outcome = outcome_of(
        browse(made[1].page, tmp_path, steps='twin.open = true; twin.dispatchEvent(new Event("toggle")); look();')
    )
    (shown,) = outcome["drawn"]
    exploded = {line["name"]: len(line["gone"]) for line in shown["lines"] if line["gone"]}
    assert exploded, "nothing exploded in this study: the test would be empty"
    assert shown["strip"] == f"exploded, beyond {EXPLODED:g} × the first error"
    assert all("runs exploded" in title for line in shown["lines"] for title in line["gone"])
    assert all(0 < height < 430 for line in shown["lines"] for height in line["heights"])
    drawing = (made[0] / "figures" / "parts" / "walk-constant-1.svg").read_text(encoding="utf-8")
    assert "exploded, beyond" in drawing


@in_a_browser
def test_a_view_can_be_linked(made, tmp_path):
    address = "#twin=walk-constant&measure=mean_error&zeta=0.25&hide=TD"
    outcome = outcome_of(browse(made[1].page, tmp_path, steps='look(); choose("scale", "linear");', address=address))
    assert outcome["open"]
    names = {line["name"] for line in outcome["drawn"][0]["lines"]}
    assert names == {"TDRC", "GTD2, ζ = 1/4", "TDC, ζ = 1/4", "Gradient-DD"}
    for part in ("twin=walk-constant", "measure=mean_error", "zeta=0.25", "hide=TD", "scale=linear"):
        assert part in outcome["drawn"][1]["hash"]


@in_a_browser
def test_without_scripts_there_is_no_twin_and_all_else(made, tmp_path):
    """A sandboxed frame runs no script of its own; the page around it looks inside."""
    inner = escape(made[1].page.read_text(encoding="utf-8"), quote=True)
    outer = tmp_path / "outer.html"
    look = """onload = () => { const inner = document.querySelector("iframe").contentDocument;
      const seen = name => [...inner.querySelectorAll(name)].filter(one => one.getClientRects().length).length;
      document.body.dataset.seen = ["details.twin", "figure svg", "#claim-walk-constant"].map(seen).join(); };"""
    outer.write_text(
        f'<html><head></head><body><iframe sandbox="allow-same-origin" width="900" srcdoc="{inner}"></iframe>'
        f"<script>{look}</script></body></html>",
        encoding="utf-8",
    )
    twins, drawings, claims = map(int, re.search(r'data-seen="([\d,]+)"', browse(outer, tmp_path))[1].split(","))
    assert (twins, claims) == (0, 1)
    assert drawings >= 1


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
