"""The report: what its template shows, made from verdicts, evidence and pictures.

What depends on the way of tuning is written once for each way, or once for several where it is the same, with the
classes t-p, t-a and t-f; the page's one control shows one of them.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from gradient_dd.experiments.figure_tabs import figure_tabs
from gradient_dd.experiments.forests import LOOKS, forest, sign, sign_of
from gradient_dd.experiments.job import Job, read_scale
from gradient_dd.experiments.paper.studies import RUNS, STUDIES
from gradient_dd.experiments.paper.texts import ERRATA, READINGS, SECTIONS, TITLE, Section
from gradient_dd.experiments.summary import (
    WAYS,
    Answer,
    Switched,
    Way,
    answers,
    comparisons_of,
    counts,
    published,
    switched,
    word_of,
)
from gradient_dd.experiments.tuning import ByStudy
from gradient_dd.experiments.verdicts import ClaimVerdict, Comparison, compared, in_words, tally
from gradient_dd.experiments.wording import NOUNS, OUTCOME_WORDS, TUNED, factors, number, sentence, task_words, upper
from gradient_dd.report import read
from gradient_dd.report.figure import COLOURS, GREEK, NAMES, joined
from gradient_dd.report.page import fill
from gradient_dd.report.study_figure import header_file
from gradient_dd.report.svg import Series, inline_svg, over_size
from gradient_dd.studies.provenance import provenance

CHIPS = {  # by verdict: the class and the sign of a chip, and the words beside a count
    "holds": ("y", "✓", "hold"),
    "partly holds": ("m", "◐", "partly hold"),
    "does not hold": ("n", "✗", "do not hold"),
    "undecided": ("u", "?", "undecided"),
    "not judged": ("u", "–", ""),
}
CLAUSE = re.compile(r"(^|; )(no clear difference|no clear change|undecided|yes|no)\b", re.IGNORECASE)
SHORTER = {" ratios": "", "ρ on the ": "", " sample": "", " initial weights": "", "the paper's": "paper’s"}
CLASSES = {"yes": "y", "no": "n"}


def marked(text: str) -> str:
    """Return a sentence for a page: numbers do not break, and the word that begins each clause is marked."""
    nice = escape(text).replace(" = ", "\xa0=\xa0").replace(" times", "\xa0times").replace("limit ", "limit\xa0")
    return CLAUSE.sub(lambda at: f'{at[1]}<b class="{CLASSES.get(at[2].lower(), "u")}">{at[2]}</b>', nice)


def claim_view(verdict: ClaimVerdict, folder: Path, linked: Collection[str]) -> dict[str, Any]:
    """Return a claim as the page shows it; `linked` are the figures that are not in sight at first."""
    every = [one for way in WAYS for one in comparisons_of(verdict, way)]
    asked = list(dict.fromkeys(one.tuning for one in verdict.judgements))
    missing = [f"t-{way.key}" for way in WAYS if way.tuning not in asked]
    note = []  # about ways of tuning under which the claim is not judged
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
        "also": [  # ways of tuning that the page's control does not have
            (upper(tuning), sentence(compared(one for one in verdict.judgements if one.tuning == tuning)))
            for tuning in asked
            if tuning not in {way.tuning for way in WAYS}
        ],
    }


def chip(verdict: ClaimVerdict, way: Way) -> dict[str, Any]:
    """Return the verdict under a way of tuning with its counts, and the paper's where it differs."""
    word, first = word_of(verdict, way), word_of(verdict, WAYS[0])
    look, mark, _ = CHIPS[word]
    held, unsure, lost = counts = tally(comparisons_of(verdict, way))
    was = f"paper’s tuning: {first}" if word != first else ""
    bar = [(kind, count) for kind, count in (("y", held), ("u", unsure), ("n", lost)) if count]
    told = f"{held} yes, {unsure} undecided, {lost} no"
    shares = [100 * one // max(1, sum(counts)) for one in (held, held + unsure)]
    return {"look": look, "sign": mark, "word": word, "told": told, "bar": bar, "was": was, "shares": shares}


def details(some: Sequence[Comparison], folder: Path) -> dict[str, Any]:
    """Return a table of comparisons, the edges of grids, and the files that have the numbers."""
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
    """Return a learner with its setting."""
    if not side or "values" not in side:
        return str((side or {}).get("label", ""))
    varied = ", ".join(f"{GREEK.get(name, name)} {value:.3g}" for name, value in side["values"].items())
    return f"{side['label'].partition(',')[0]} {varied}"


def counted(verdicts: Sequence[ClaimVerdict]) -> Switched:
    """Return counts by verdict: class, sign, number and words."""
    return switched(
        lambda way: [
            (*CHIPS[word][:2], count, CHIPS[word][2]) for word, count in counts(verdicts, way).items() if count
        ]
    )


def explained(verdicts: Sequence[ClaimVerdict], way: Way) -> str:
    """Return what a way of tuning is, and the number of settings of each learner on the first task of the paper."""
    first = [one for one in verdicts if one.section and one.section == verdicts[0].section]
    found: dict[str, int] = {}
    for one in compared(j for v in first for j in v.judgements if j.tuning == way.tuning):
        for side in (one.ours, one.rival):
            if side and "settings" in side and one.kind == "ratio":
                label = NAMES.get(side["learner"], side["label"])
                found[label] = max(side["settings"], found.get(label, 0))
    by_count: dict[int, list[str]] = {}
    for label, count in found.items():
        by_count.setdefault(count, []).append(label)
    whom = {count: "every learner" if len(by_count) == 1 else joined(sorted(by_count[count])) for count in by_count}
    told = "; ".join(f"{count} settings for {names}" for count, names in sorted(whom.items()))
    return f"{way.explanation} Random walk: {told}." if told else way.explanation


def by_size(section: Section, verdicts: Mapping[str, ClaimVerdict], way: Way) -> list[tuple[str, str]]:
    """Return small plots of errors over size: title and SVG."""
    found = []
    for title, measure, claims in section.by_size:
        points: dict[str, dict[int, float]] = {}
        letter = ""
        for one in (c for name in claims if name in verdicts for c in comparisons_of(verdicts[name], way)):
            if one.kind == "ratio" and one.measure == one.tuned_for == measure:
                letter = factors(one)["size"][0]
                for side in (one.ours, one.rival):
                    if side and "mean" in side:
                        points.setdefault(side["learner"], {})[one.size] = side["mean"]
        series = [
            Series(NAMES[name], COLOURS[name], name == "gradient_dd", list(some), list(some.values()))
            for name, some in sorted(points.items(), key=lambda item: item[0] == "gradient_dd")
        ]
        if series:
            found.append((title, over_size(letter, series)))
    return found


def variant_table(verdicts: Sequence[ClaimVerdict], way: Way) -> dict[str, Any] | None:
    """Return which claims hold under which variant; where the place of ρ makes no difference, under both."""
    found: dict[tuple[str, ...], dict[str, list[Comparison]]] = {}
    for verdict in verdicts:
        for one in comparisons_of(verdict, way):
            row = factors(one)
            found.setdefault((row["ratios"], row["rho"], row["start"]), {}).setdefault(verdict.claim, []).append(one)
    full = [key for key in found if all(key)]
    rows, whole = [], 0
    for key in full:
        cells = []
        for verdict in verdicts:
            some = found[key].get(verdict.claim) or found.get((key[0], "", key[2]), {}).get(verdict.claim, [])
            word = in_words(some, verdict.needed)
            cells.append((*CHIPS[word][:2], word))
        whole += all(word == "holds" for *_, word in cells)
        label = ", ".join(part.removeprefix("with ").removeprefix("from ").removeprefix("after ") for part in key)
        for long, short in SHORTER.items():
            label = label.replace(long, short)
        rows.append((sign(sign_of(key[1:], [])), label, cells))
    told = "No variant makes" if not whole else f"{whole} of {len(full)} variants make"
    heads = [(one.claim, one.short or one.statement) for one in verdicts]
    return {"told": f"{told} all {len(verdicts)} claims hold.", "heads": heads, "rows": rows} if full else None


def section_facts(
    section: Section, job: Job, evidence: ByStudy, verdicts: Sequence[ClaimVerdict], views: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a section shows."""
    own = [one for one in verdicts if one.section == section.name]
    shown, folder = [one for one in job.figures if one.section == section.name], job.folder / "figures"
    parts = [tab for one in shown for tab in figure_tabs(one, job, evidence)]
    drawings = [
        (one, inline_svg(folder / f"{one.name}.svg", one.name)) for one in job.drawings if one.section == section.name
    ]
    headers = [header_file(folder, one.name) for one in shown if one.header]
    groups: dict[str, list[Any]] = {}
    for one in own:
        groups.setdefault(one.group, []).append(views[one.claim])
    several = [one for one in own if len({c.reading for c in one.comparisons}) > 1]
    by_name = {one.claim: one for one in verdicts}
    return section._asdict() | {
        "short": section.short or section.title,
        "counts": counted(own),
        "figures": parts,
        "tabs": [(one["name"], one["tab"]) for one in parts] + [(one.name, one.tab) for one, _ in drawings],
        "drawings": drawings,
        "by_size": switched(partial(by_size, section, by_name)),
        "variants": switched(partial(variant_table, several)) if several else [],
        "headers": [inline_svg(file, file.stem) for file in headers if file.is_file()],
        "groups": list(groups.items()),
    }


def banner(job: Job) -> dict[str, Any] | None:
    """Return the mark of a page of few runs: what is missing, and how long it takes; None at the full scale."""
    if not job.scale.note:
        return None
    left_out = [name for name, one in STUDIES.items() if job.leaves_out(one)]
    searches = [name for name in left_out if name.endswith(("-fully", "-one"))]
    others = [name for name in left_out if name not in searches]
    missing = [f"tuning by search ({len(searches)} studies)"] if searches else []
    missing += [f"{len(others)} longer studies ({joined(others)})"] if others else []
    runs = job.scale.runs or 0
    return {
        "share": job.scale.note.partition(": ")[2],
        "missing": joined(missing) if missing else "",
        "minutes": job.minutes_left() if job.minutes_left else 0,
        "is_first_look": job.scale.is_first_look,
        "runs": runs if 0 < runs < RUNS else 0,
        "full": RUNS,
    }


def page_text(job: Job, evidence: ByStudy, verdicts: list[ClaimVerdict], statements: Sequence[Any]) -> str:
    """Return the report."""
    judged = [one for one in verdicts if one.judgements]
    own = published(judged)
    has_data = {one.tuning for verdict in own for one in verdict.judgements}
    enabled = [way for way in WAYS if way.tuning in has_data]
    figures = [[one.name for one in job.figures if one.section == section.name] for section in SECTIONS]
    linked = {name for names in figures for name in names[1:]}  # the first figure of a section is in sight
    views = {one.claim: claim_view(one, job.folder, linked) for one in judged}
    sections = [section_facts(section, job, evidence, judged, views) for section in SECTIONS]
    in_sections = [(section, [one for one in own if one.section == section.name]) for section in SECTIONS]
    return fill(
        "experiments/page.html",
        "experiments/page.css",
        script=read("experiments/page.js"),
        title=TITLE,
        first=banner(job),
        ways=WAYS,
        enabled=enabled,
        start=(enabled or list(WAYS))[0],
        claims=len(own),
        answers=switched(partial(told_answers, job, judged, enabled)),
        counts=counted(judged),
        tiles=[
            (section, switched(lambda way, some=some: [(one, chip(one, way)) for one in some]))  # type: ignore[misc]
            for section, some in in_sections
            if some
        ],
        explained=switched(partial(explained, judged)),
        sections=[one for one in sections if one["figures"] or one["drawings"] or one["groups"]],
        ours=[views[one.claim] for one in judged if one.section not in {section.name for section in SECTIONS}],
        statements=statements,
        readings=READINGS,
        errata=ERRATA,
        studies=[(name, str(one.study)) for name, one in evidence.items()],
        files=sorted(file.name for file in (job.folder / "tables").glob("*.csv")),
        record=provenance() | read_scale(job.folder)[1],
    )


def told_answers(
    job: Job, verdicts: Sequence[ClaimVerdict], enabled: Sequence[Way], way: Way
) -> list[tuple[Answer, str, str]]:
    """Return the answers under a way of tuning, with the word as the page says it, and the words of other ways."""
    told = []
    others = [(other.label, answers(verdicts, job.scale, other)) for other in enabled if other != way]
    for place, one in enumerate(answers(verdicts, job.scale, way)):
        word = f"So far: {one.word.lower()}" if job.scale.note and not one.word.startswith("Not") else one.word
        words = " · ".join(f"{label} – {found[place].word.lower()}" for label, found in others)
        told.append((one, word, f"Other ways of tuning: {words}" if words else ""))
    return told
