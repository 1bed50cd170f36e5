"""Ranks, ratios and what comes out, from made-up test errors; nothing is run."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from gradient_dd.learners import LEARNERS
from gradient_dd.ranking.standing import Standing, ordinal
from gradient_dd.ranking.standings import OCTAVES, TEST_RUNS, Entry
from gradient_dd.ranking.suites import CLASSIC
from gradient_dd.report.ranking_page import PICTURES

TWIN = replace(LEARNERS["td"], name="twin", label="twin_of_TD")
RULES = {rule.name: rule for rule in (*(LEARNERS[name] for name in ("td", "tdrc", "gtd2", "etd")), TWIN)}
LEVELS = {"td": 1.0, "tdrc": 0.8, "gtd2": 1.3, "etd": 4.0, "twin": 1.0}


def made_up(own="twin", quick=False, edges=()):
    runs, entries = TEST_RUNS[quick], {}
    for place, problem in enumerate(CLASSIC):
        for name, level in LEVELS.items():
            noise = np.random.default_rng([place, 0 if name == "twin" else list(LEVELS).index(name)])
            errors = (level * np.exp(0.05 * noise.standard_normal((2, runs)))).astype(np.float32)
            curve = np.full(len(OCTAVES), level, np.float16)
            entries[name, problem.name] = Entry("key", {"alpha": 0.1, "lam": 0.0}, errors, curve, 12, 240, edges)
    return Standing(entries, CLASSIC, RULES, own, ("td", "tdrc"), quick)


def test_the_order_is_that_of_the_errors_and_equals_share_a_place():
    standing = made_up()
    assert [standing.place(name) for name in ("tdrc", "td", "twin", "gtd2", "etd")] == [1, 2, 2, 4, 5]
    assert standing.ranks["tdrc"] == pytest.approx((1.0, 1.0, 1.0, 1.0))
    assert standing.ranks["twin"] == standing.ranks["td"]
    assert next(iter(standing.ranks)) == "tdrc"


def test_the_interval_of_a_rank_is_wider_where_problems_disagree():
    standing = made_up()
    for place, problem in enumerate(CLASSIC):
        if place % 2:
            entries = {**standing.entries, ("etd", problem.name): standing.entries["tdrc", problem.name]}
            standing = replace(standing, entries=entries)
    low, high = standing.ranks["etd"][1:3]
    assert low < standing.ranks["etd"].mean < high


def test_a_twin_is_neither_better_nor_worse():
    standing = made_up()
    assert standing.counts("twin", "td") == (0, 0)
    assert standing.counts("twin", "tdrc") == (0, len(CLASSIC))
    assert standing.counts("tdrc", "td") == (len(CLASSIC), 0)
    assert standing.geometric_ratio("twin", "td") == 1.0
    assert standing.geometric_ratio("etd", "td") == pytest.approx(4.0, rel=0.02)
    assert standing.geometric_ratio("td", None) == pytest.approx(1.25, rel=0.02)


def test_the_sentence_says_place_interval_and_counts():
    assert made_up().sentence == (
        "twin_of_TD ranks 2nd of 5 on 13 problems (mean rank 2.0, 95 % interval 2.0 to 2.0). It is significantly "
        "better than TD on 0 of 13 problems and worse on 0. It is significantly better than TDRC on 0 of 13 problems "
        "and worse on 13."
    )
    assert made_up(own=None).sentence.startswith("TDRC ranks 1st of 5")


def test_a_first_look_is_marked():
    standing = made_up(quick=True)
    assert standing.sentence.startswith("Quick estimate, not for a claim:")
    assert "Quick estimate" in standing.warnings[0]


def test_an_edge_is_a_warning():
    assert made_up().warnings == []
    standing = made_up(edges=("alpha",))
    for value, end, values in (
        (2.0**-13, "lowest", "1.221e-05,0.0002441,1"),
        (2.0, "highest", "0.0002441,1,20"),
    ):
        entries = {key: one._replace(setting={"alpha": value}) for key, one in standing.entries.items()}
        (warning,) = replace(standing, entries=entries).warnings
        assert warning.startswith(f"The best alpha is the {end} value tried on 13 problems (Collision; five-state")
        assert warning.endswith(f"). Try --grid alpha={values}.")


def test_tables_have_a_row_for_each_learner():
    standing = made_up()
    frame = standing.frame()
    assert frame["learner"].tolist() == list(standing.ranks)
    assert frame["diverged_settings"].tolist() == [0.05] * len(RULES)
    assert len(standing.problem_frame()) == len(RULES) * len(CLASSIC)
    latex = standing.to_latex()
    assert latex.count(r"\\") == len(RULES) + 1
    assert r"\textbf{twin\_of\_TD}" in latex
    assert "<td><b>twin_of_TD</b></td>" in standing._repr_html_()


def test_the_setup_names_what_a_paper_must_say():
    words = made_up().setup
    for part in ("5 learners", "13 problems", "240 settings", "40 other runs", "engine", "standings 1", "seed 0"):
        assert part in words


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_svg(name):
    svg = made_up().plot(name)._repr_svg_()
    words = "".join(ET.fromstring(svg).itertext())
    assert "walk-19" in words or name == "profile"
    assert "twin_of_TD" in words or name == "step_sizes"


def test_the_report_has_everything(tmp_path):
    assert made_up(edges=("alpha",)).report(tmp_path / "page.html") == tmp_path / "page.html"
    written = {one.name for one in tmp_path.iterdir()}
    pictures = {f"page-{name.replace('_', '-')}.svg" for name in PICTURES}
    assert written == {"page.html", "page.csv", "page.tex", *pictures}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for part in ("twin_of_TD ranks 2nd", "Warning.", "Experimental setup", "<svg", r"\begin{tabular}"):
        assert part in page


def test_places_in_words():
    found = " ".join(ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 111))
    assert found == "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 101st 111th"
