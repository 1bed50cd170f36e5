"""The report: the content of its template, made from verdicts, evidence and pictures.

Content that depends on the way of tuning is written once for each way, or once for several ways with equal content, and
has the classes t-p, t-a and t-f. A control on the page selects the way to show.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gradient_dd.experiments.claim_view import CHIPS, chip, claim_view, sign, sign_of
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
)
from gradient_dd.experiments.tuning import ByStudy, StudyEvidence, case_name, initial_error
from gradient_dd.experiments.verdicts import FULLY, MAIN, SUFFIXES, ClaimVerdict, Comparison, compared, in_words
from gradient_dd.experiments.wording import factors, upper
from gradient_dd.report import read
from gradient_dd.report.figure import COLOURS, NAMES, Figure, LineData, Panel, joined, panels_of
from gradient_dd.report.own_study import lines_of
from gradient_dd.report.page import fill
from gradient_dd.report.panels import columns_of, legend
from gradient_dd.report.study_figure import header_file
from gradient_dd.report.svg import Series, inline_svg, over_size
from gradient_dd.studies import intervals
from gradient_dd.studies.study import provenance

SHORTER = {" ratios": "", "ρ on the ": "", " sample": "", " initial weights": "", "the paper's": "paper’s"}
OTHER = "This figure always shows the paper’s tuning."
NO_GRID = "A search uses no grid of step sizes, so only learning curves are shown."
Shown = tuple[list[Panel], bool]  # the panels of a figure, and whether their learning curves show test runs


def counted(verdicts: Sequence[ClaimVerdict]) -> Switched:
    """Return class, sign, count and words for each verdict."""
    return switched(
        lambda way: [
            (*CHIPS[word][:2], count, CHIPS[word][2]) for word, count in counts(verdicts, way).items() if count
        ]
    )


def explained(verdicts: Sequence[ClaimVerdict], way: Way) -> str:
    """Return the explanation of a way of tuning, with the number of settings per learner on the random walk."""
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
    """Return small plots of errors against task size: title and SVG."""
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
    """Return the verdicts by variant and claim; a verdict without a place of ρ appears under both places."""
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
    """Return the content of a section."""
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
    """Return the banner of a page of few runs: missing studies and remaining time; None at the full scale."""
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
    """Return the HTML of the report."""
    judged = [one for one in verdicts if one.judgements]
    own = published(judged)
    has_data = {one.tuning for verdict in own for one in verdict.judgements}
    enabled = [way for way in WAYS if way.tuning in has_data]
    figures = [[one.name for one in job.figures if one.section == section.name] for section in SECTIONS]
    linked = {name for names in figures for name in names[1:]}  # the first figure of a section is visible
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
    """Return the answers under a way of tuning, each with its word on the page and the words under other ways."""
    told = []
    others = [(other.label, answers(verdicts, job.scale, other)) for other in enabled if other != way]
    for place, one in enumerate(answers(verdicts, job.scale, way)):
        word = f"So far: {one.word.lower()}" if job.scale.note and not one.word.startswith("Not") else one.word
        words = " · ".join(f"{label} – {found[place].word.lower()}" for label, found in others)
        told.append((one, word, f"Other ways of tuning: {words}" if words else ""))
    return told


# Figures --------------------------------------------------------------------------------------------------------------


def figure_tabs(figure: Figure, job: Job, evidence: ByStudy) -> list[dict[str, Any]]:
    """Return the tabs of a figure: one tab, or one for each value of the parameter that splits the figure.

    A tab shows pictures, legend and caption under each way of tuning, and a note if the figure lacks that way.
    """
    found = {way: panels_under(figure, evidence, way) for way in WAYS}
    unit = "episodes" if STUDIES[figure.study].episodes else "steps"

    def value_of(panel: Panel) -> str:
        return str(panel.task.parameters.get(figure.split, ""))

    def view(way: Way, value: str) -> dict[str, Any]:
        panels, is_tested = found[way] or found[WAYS[0]] or ([], False)
        columns = columns_of([one for one in panels if value_of(one) == value], unit)
        note = OTHER if not found[way] else "" if columns[0].above else NO_GRID
        words = caption(figure, is_tested, bool(columns[0].above))
        return {"columns": columns, "legend": legend(panels[0].lines), "caption": words, "note": note}

    values, tabs = sorted({value_of(one) for one in (found[WAYS[0]] or ([],))[0]}), []
    for value in values:
        name = figure.name + (f"-{value or 'plain'}" if len(values) > 1 else "")
        tab = figure.tabs.get(value, figure.tab) or figure.name
        shown = switched(partial(view, value=value))
        tabs.append({"name": name, "tab": tab, "shown": shown, "files": f"figures/{figure.name}"})
    return tabs


def caption(figure: Figure, is_tested: bool, has_alphas: bool) -> str:
    """Return the caption of a figure."""
    lead = f"Paper’s {figure.source}." if figure.source else "Not in the paper."
    above = f"Top: {'final' if figure.measure == 'last100' else 'mean'} error on tuning runs. " if has_alphas else ""
    below = f"{'Bottom: l' if has_alphas else 'L'}earning curves at the best setting{', on test runs' * is_tested}."
    return f"{lead} {above}{below}" + (f" {upper(figure.remark)}." if figure.remark else "")


def panels_under(figure: Figure, evidence: ByStudy, way: Way) -> Shown | None:
    """Return the panels of a figure under a way of tuning; None if there are none.

    Learning curves show the selected settings on test runs if all settings have test runs, else on tuning runs.
    """
    one = evidence.get(figure.study + SUFFIXES[way.tuning])
    if one is None or (way.tuning != MAIN and not figure.compares_rivals):
        return None
    own = figure if way.tuning == MAIN else replace(figure, lines=lines_of(one.study))
    panels = blank_panels(own, one) if way.tuning == FULLY else panels_of(own, one.results)
    found = []
    for panel in panels:
        case = case_name(panel.task)
        chosen = [one.choose(case, line.line, figure.measure).setting for line in panel.lines]
        fresh = one.fresh.get(case)
        if fresh is None or not set(map(str, chosen)) <= set(map(str, fresh.study.settings())):
            return (panels, False) if len(panel.middle) else None
        middle, curves = fresh.curves(next(iter(fresh.tasks)), chosen)
        means = [intervals.estimate(curve.T) for curve in curves]
        lines = [
            line._replace(curve=mean.mean, curve_sem=mean.sem) for line, mean in zip(panel.lines, means, strict=True)
        ]
        found.append(panel._replace(lines=lines, middle=middle))
    return found, True


def blank_panels(figure: Figure, one: StudyEvidence) -> list[Panel]:
    """Return panels without errors over step sizes, because the settings that a search tried lie on no grid."""
    none, panels = np.empty(0), []
    for task in one.results.tasks.values():
        lines = [
            LineData(line, none, none, none, none, best.setting, none, none)
            for line in figure.lines
            for best in [one.choose(case_name(task), line, figure.measure)]
        ]
        panels.append(Panel(task, lines, none, initial_error(task)))
    return panels
