"""The view of a claim on the page: chips, sentences, forest plots and tables, under each way of tuning."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from html import escape
from math import isfinite
from pathlib import Path
from typing import Any

from gradient_dd.experiments.summary import WAYS, Way, comparisons_of, switched, word_of
from gradient_dd.experiments.verdicts import ClaimVerdict, Comparison, compared, tally
from gradient_dd.experiments.wording import (
    FACTORS,
    NOUNS,
    OUTCOME_WORDS,
    TUNED,
    WIDE,
    Row,
    factors,
    frame,
    is_own,
    is_wide,
    number,
    sentence,
    task_words,
    upper,
    values,
)
from gradient_dd.report.figure import GREEK
from gradient_dd.report.forest import SHAPES, Forest, ForestRow, Mark
from gradient_dd.report.svg import PlotAxis

CHIPS = {  # by verdict: the class and the sign of a chip, and the words that follow a count
    "holds": ("y", "✓", "hold"),
    "partly holds": ("m", "◐", "partly hold"),
    "does not hold": ("n", "✗", "do not hold"),
    "undecided": ("u", "?", "undecided"),
    "not judged": ("u", "–", ""),
}
CLAUSE = re.compile(r"(^|; )(no clear difference|no clear change|undecided|yes|no)\b", re.IGNORECASE)
CLASSES = {"yes": "y", "no": "n"}
LOOKS = {"holds": "y", "fails": "n", "open": "u"}
TITLES = {
    "growth": "growth of the advantage",
    "share": "final ÷ initial error",
    "worst": "worst ÷ best error",
    "count": "difference in step sizes",
    "time": "time ÷ GTD2’s",
}
FACETS = {
    "last100": "tuned: final error",
    "mean_error": "tuned: mean error",
    "what is measured": "tuned: same measure",
}
DETERMINED = ("start", "rho")  # factors whose sign is explained once, in the table of variants
Signs = list[tuple[str, ...]]


def marked(text: str) -> str:
    """Return a sentence as HTML: numbers do not wrap, and the word that begins each clause is highlighted."""
    nice = escape(text).replace(" = ", "\xa0=\xa0").replace(" times", "\xa0times").replace("limit ", "limit\xa0")
    return CLAUSE.sub(lambda at: f'{at[1]}<b class="{CLASSES.get(at[2].lower(), "u")}">{at[2]}</b>', nice)


def claim_view(verdict: ClaimVerdict, folder: Path, linked: Collection[str]) -> dict[str, Any]:
    """Return the view of a claim on the page; `linked` are the figures that the page does not show at first."""
    every = [one for way in WAYS for one in comparisons_of(verdict, way)]
    asked = list(dict.fromkeys(one.tuning for one in verdict.judgements))
    missing = [f"t-{way.key}" for way in WAYS if way.tuning not in asked]
    note = []  # names ways of tuning under which the claim is not judged
    if verdict.source == "time":
        note = [("", "depends on the machine; not counted")]
    elif missing and every[0].kind != "exact":
        shown = next((way.label for way in WAYS if way.tuning == asked[0]), "")
        note = [(f"t {' '.join(missing)}", f"not judged with this tuning; shown: {shown}")]
    return {
        "verdict": verdict,
        "chips": switched(partial(chip, verdict)),
        "sentences": switched(lambda way: marked(sentence(comparisons_of(verdict, way), verdict.needed))),
        "forests": switched(lambda way: forest(verdict.statement, every, comparisons_of(verdict, way))),
        "tables": switched(lambda way: details(comparisons_of(verdict, way), folder)),
        "figure": verdict.figure if verdict.figure in linked else "",
        "level": f"{100 * (every[0].level if every else 0.95):.3g}",
        "note": note,
        "also": [  # ways of tuning that the page's control does not offer
            (upper(tuning), sentence(compared(one for one in verdict.judgements if one.tuning == tuning)))
            for tuning in asked
            if tuning not in {way.tuning for way in WAYS}
        ],
    }


def chip(verdict: ClaimVerdict, way: Way) -> dict[str, Any]:
    """Return the verdict and counts under a way of tuning, and the verdict under the paper's way if it differs."""
    word, first = word_of(verdict, way), word_of(verdict, WAYS[0])
    look, mark, _ = CHIPS[word]
    held, unsure, lost = counts = tally(comparisons_of(verdict, way))
    was = f"paper’s tuning: {first}" if word != first else ""
    bar = [(kind, count) for kind, count in (("y", held), ("u", unsure), ("n", lost)) if count]
    told = f"{held} yes, {unsure} undecided, {lost} no"
    shares = [100 * one // max(1, sum(counts)) for one in (held, held + unsure)]
    return {"look": look, "sign": mark, "word": word, "told": told, "bar": bar, "was": was, "shares": shares}


def details(some: Sequence[Comparison], folder: Path) -> dict[str, Any]:
    """Return a table of comparisons, the settings at edges of grids, and the files that contain the numbers."""
    goals = len({one.tuned_for for one in some}) > 1
    used = dict.fromkeys(name for one in some for name in one.study.split(", ") if name)
    files = [f"{kind}-{name}.csv" for name in used for kind in ("fresh", "runs")]
    edges = list(dict.fromkeys(one.edge for one in some if one.edge))
    return {
        "rows": [detail(one, goals) for one in some],
        "edges": "; ".join(edges[:4]) + (" …" if len(edges) > 4 else ""),
        "files": [one for one in files if (folder / "tables" / one).is_file()],
    }


def detail(one: Comparison, goals: bool) -> tuple[str, ...]:
    """Return a comparison as a row: case, measure, both sides, value, interval, runs, and the class of its outcome."""
    row = factors(one)
    letter, size = row["size"]
    case = [f"{letter} = {size}" if letter else task_words(one) or "–"]
    case += [row[name].removeprefix("with ") for name in ("ratios", "rho", "start") if row[name]]
    case += [TUNED.get(one.tuned_for, "")] if goals else []
    what = one.text.rstrip(":") or NOUNS.get(one.measure, one.measure)
    interval = f"{number(one.low)} to {number(one.high)}"
    edge = " †" if one.edge else ""
    return (
        *(", ".join(filter(None, case)), what, setting_words(one.ours), setting_words(one.rival) + edge),
        *(number(one.estimate), interval, str(one.runs or "–"), LOOKS[one.outcome], OUTCOME_WORDS[one.outcome]),
    )


def setting_words(side: Mapping[str, Any] | None) -> str:
    """Return the name of a learner and its setting in words."""
    if not side or "values" not in side:
        return str((side or {}).get("label", ""))
    varied = ", ".join(f"{GREEK.get(name, name)} {value:.3g}" for name, value in side["values"].items())
    return f"{side['label'].partition(',')[0]} {varied}"


# Forest plots --------------------------------------------------------------------------------------------------------


def axis_title(one: Comparison) -> str:
    """Return the title of the axis of a comparison."""
    if title := TITLES.get(frame(one)):
        return title
    noun = NOUNS.get(one.measure, "error")
    if is_own(one):
        return f"ratio of {noun}s" if noun.endswith("error") else "ratio"
    return f"{noun} ÷ rival’s"


def common_axis(comparisons: Sequence[Comparison]) -> PlotAxis:
    """Return one axis for all comparisons of a claim, under every way of tuning."""
    first = comparisons[0]
    if first.kind == "count":
        return PlotAxis(-4.0, 4.0, linear=True)
    reach = 1e4 if first.kind == "share" else 100.0  # how far from the limit the axis extends
    found = [one for each in comparisons for one in (each.low, each.high, each.estimate) if one > 0 and isfinite(one)]
    low = max(min([*found, first.bound / 1.6]), first.bound / reach)
    high = min(max([*found, first.bound * 1.6]), first.bound * reach)
    return PlotAxis(low / 1.1, high * 1.1)


def shown_value(one: Comparison) -> tuple[str, str]:
    """Return the text next to a mark (for a wide interval, the interval) and the text of the mark's tooltip."""
    interval = f"{number(one.low)} to {number(one.high)}"
    if one.kind == "count":
        return f"{one.estimate:+.0f}".replace("-", "−"), interval
    edge = "†" if one.edge else ""
    if is_wide(one):
        return f"{number(one.low)}–{number(one.high)}", f"interval spans more than a factor of {WIDE:g}"
    return number(one.estimate) + edge, f"interval {interval}"


def sign_of(names: tuple[str, ...], signs: Signs) -> int:
    """Return the number of a variant's sign: fixed for Baird's counterexample, else its place in `signs`."""
    text = " ".join(names)
    if "weights" in text or "steps" in text:
        return 4 if "steps" in text else 2 * ("random" in text) + ("bootstrap" in text)
    return signs.index(names) if names in signs else 0


def forest(statement: str, every: Sequence[Comparison], some: Sequence[Comparison]) -> str:
    """Return the plot of the comparisons `some` of one way of tuning, on the axis of `every`; empty if exact."""
    if not some or every[0].kind == "exact":
        return ""
    rows, axis = [factors(one) for one in some], common_axis(every)
    many = {name: len(values(rows, name)) > 1 for name in FACTORS}
    facet = "tuned_for" if many["tuned_for"] else "ratios" if many["ratios"] else ""
    marking = [name for name in ("measure", *DETERMINED) if many[name]]
    if facet == "tuned_for" and marking == ["measure"] and len({(r["measure"], r[facet]) for r in rows}) == 2:
        marking = []  # the measure is also the goal of tuning
    facets = values(rows, facet) if facet else [""]
    signs: Signs = list(dict.fromkeys(tuple(row[name] for name in marking) for row in rows))
    labels = [row_labels(row, rows, many) for row in rows]
    order = list(dict.fromkeys(group for group, _ in labels))
    cells: dict[tuple[str, str], list[list[tuple[Comparison, Mark]]]] = {
        key: [[] for _ in facets] for key in sorted(dict.fromkeys(labels), key=lambda key: order.index(key[0]))
    }
    for one, row, label in zip(some, rows, labels, strict=True):
        shape = sign_of(tuple(row[name] for name in marking), signs)
        mark = Mark(one.estimate, one.low, one.high, LOOKS[one.outcome], shape)
        cells[label][facets.index(row[facet]) if facet else 0].append((one, mark))
    single = len(facets) == 1 and all(len(each) == 1 for found in cells.values() for each in found)
    title, letters = axis_title(some[0]), {row["size"][0] for row in rows}
    plot = Forest(
        f"{statement}: {title}, limit {some[0].bound:g}",
        [upper(FACETS.get(one, one.removeprefix("with the ")) if one else title) for one in facets],
        [forest_row(*key, found, single) for key, found in cells.items()],
        axis,
        some[0].bound,
        some[0].side,
        letters.pop() if len(letters) == 1 else "",
        many["task"],
    )
    return plot.html() + key_of(signs, marking, title if facet else "")


def row_labels(row: Row, rows: list[Row], many: dict[str, bool]) -> tuple[str, str]:
    """Return the group of a row, and its label within the group."""
    letter, size = row["size"]
    several = letter and len({one["size"][0] for one in rows}) > 1
    text = (f"{letter} = {size}" if several else size).replace(" to ", "→")
    if not many["task"]:
        return row["rival"] if many["rival"] else "", text
    task = upper(row["task"].removeprefix("on ").removeprefix("the ")).replace("Random walk", "Walk")
    task = task.replace(" chain", "").replace(" with ", ", ").replace("independent", "indep.")
    if not many["rival"]:
        return task, text
    sizes = {one["size"] for one in rows if one["task"] == row["task"]}
    return task, f"{row['rival']}, {text}" if len(sizes) > 1 else row["rival"]


def forest_row(group: str, label: str, found: list[list[tuple[Comparison, Mark]]], single: bool) -> ForestRow:
    """Return a row of the forest plot."""
    marks = [[mark for _, mark in each] for each in found]
    if single:
        ((one, mark),) = found[0]
        value, title = shown_value(one)
        look = f"{mark.look} long" if len(value) > 7 else mark.look
        return ForestRow(group, label, marks, value, look, f"{title}: {OUTCOME_WORDS[one.outcome]}")
    told = [f"{shown_value(one)[0]} {OUTCOME_WORDS[one.outcome]}" for each in found for one, _ in each]
    return ForestRow(group, label, marks, spoken="; ".join(told))


def key_of(signs: Signs, marking: list[str], title: str) -> str:
    """Return the key to the signs of a plot, or the title of its axis; empty if shown elsewhere on the page."""
    if "start" in marking:
        return ""
    if len(signs) > 1:
        entries = "".join(
            f"<span>{sign(place)}{escape(', '.join(NOUNS.get(one, one) for one in names))}</span> "
            for place, names in enumerate(signs)
        )
        return f'<p class="key">{entries}</p>'
    return f'<p class="key">{escape(upper(title))}</p>' if title else ""


def sign(place: int) -> str:
    """Return a sign of the plots as SVG."""
    look = ' class="h"' if place >= len(SHAPES) else ""
    return f'<svg viewBox="-7 -6 14 12" aria-hidden="true"{look}><use href="#m{SHAPES[place % 4]}"/></svg>'
