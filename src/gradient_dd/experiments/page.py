"""The report: what its template shows, made from verdicts, evidence and pictures.

What depends on the way of tuning is written once for each way, or once for several where it is the same, with the
classes t-p, t-a and t-f; the page's one control shows one of them.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

from gradient_dd.experiments.experiment import Job, Section, read_scale
from gradient_dd.experiments.figure_tabs import figure_tabs
from gradient_dd.experiments.forests import LOOKS, ClaimForest, sign, sign_of
from gradient_dd.experiments.measuring import ByStudy
from gradient_dd.experiments.summary import (
    COUNTED,
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
from gradient_dd.experiments.verdicts import ClaimVerdict, Comparison, compared, in_words, tally
from gradient_dd.experiments.wording import (
    NOUNS,
    OUTCOME_WORDS,
    TUNED,
    factors,
    number,
    sentence,
    task_words,
    upper,
)
from gradient_dd.report import read
from gradient_dd.report.figure import COLOURS, GREEK, NAMES, joined
from gradient_dd.report.page import fill
from gradient_dd.report.study_figure import header_file
from gradient_dd.report.svg import Series, inline_svg, over_size
from gradient_dd.studies.study import provenance

CHIPS = {  # by verdict: the class and the sign of a chip
    "holds": ("y", "✓"),
    "partly holds": ("m", "◐"),
    "does not hold": ("n", "✗"),
    "undecided": ("u", "?"),
    "not judged": ("u", "–"),
}
PLURALS = {"holds": "hold", "partly holds": "partly hold", "does not hold": "do not hold", "undecided": "undecided"}
CLAUSE = re.compile(r"(^|; )(no clear difference|no clear change|undecided|yes|no)\b", re.IGNORECASE)
SHORTER = {" ratios": "", "ρ on the ": "", " sample": "", " initial weights": "", "the paper's": "paper’s"}
CLASSES = {"yes": "y", "no": "n"}


def nice(text: str) -> str:
    """Return a text for a page, with numbers that do not break."""
    return escape(text).replace(" = ", "\xa0=\xa0").replace(" times", "\xa0times").replace("limit ", "limit\xa0")


def marked(text: str) -> str:
    """Return a sentence for a page; the word that begins each clause is marked."""
    return CLAUSE.sub(lambda at: f'{at[1]}<b class="{CLASSES.get(at[2].lower(), "u")}">{at[2]}</b>', nice(text))


class ClaimView:
    """A claim as the page shows it."""

    def __init__(self, verdict: ClaimVerdict, job: Job, linked: Collection[str]) -> None:
        self.verdict, self.job = verdict, job
        every = [one for way in WAYS for one in comparisons_of(verdict, way)]
        self.chart = ClaimForest(verdict.statement, every)
        self.chips = switched(self.chip)
        self.sentences = switched(lambda way: marked(sentence(comparisons_of(verdict, way), verdict.needed)))
        self.forests = switched(lambda way: self.chart.html(comparisons_of(verdict, way)))
        self.tables = switched(self.details)
        self.figure = verdict.figure if verdict.figure in linked else ""
        level = verdict.comparisons[0].level if verdict.comparisons else 0.95
        self.level = f"{100 * level:.3g}"

    @property
    def note(self) -> list[tuple[str, str]]:
        """What to say of ways of tuning under which the claim is not judged."""
        if self.verdict.source == "time":
            return [("", "depends on the machine; not counted")]
        kinds = {one.kind for one in self.verdict.comparisons}
        asked = {one.tuning for one in self.verdict.judgements}
        missing = [way for way in WAYS if way.tuning not in asked]
        if not missing or "exact" in kinds:
            return []
        shown = next((way.label for way in WAYS if way.tuning == self.verdict.judgements[0].tuning), "")
        classes = "t " + " ".join(f"t-{way.key}" for way in missing)
        return [(classes, f"not judged with this tuning; shown: {shown}")]

    def chip(self, way: Way) -> dict[str, Any]:
        """Return the verdict with its counts, and the paper's where that is another."""
        word, first = word_of(self.verdict, way), word_of(self.verdict, WAYS[0])
        look, mark = CHIPS[word]
        held, unsure, lost = counts = tally(comparisons_of(self.verdict, way))
        was = f"paper’s tuning: {first}" if word != first else ""
        bar = [(kind, count) for kind, count in (("y", held), ("u", unsure), ("n", lost)) if count]
        told = f"{held} yes, {unsure} undecided, {lost} no"
        shares = [100 * one // max(1, sum(counts)) for one in (held, held + unsure)]
        return {"look": look, "sign": mark, "word": word, "told": told, "bar": bar, "was": was, "shares": shares}

    def details(self, way: Way) -> dict[str, Any]:
        """Return all comparisons under a way of tuning, the edges of grids, and the files that have the numbers."""
        some = comparisons_of(self.verdict, way)
        goals = len({one.tuned_for for one in some}) > 1
        used = dict.fromkeys(name for one in some for name in one.study.split(", ") if name)
        files = [f"{kind}-{name}.csv" for name in used for kind in ("fresh", "runs")]
        edges = list(dict.fromkeys(one.edge for one in some if one.edge))
        return {
            "rows": [detail(one, goals) for one in some],
            "edges": "; ".join(edges[:4]) + (" …" if len(edges) > 4 else ""),
            "files": [one for one in files if (self.job.folder / "tables" / one).is_file()],
        }

    @property
    def also(self) -> list[tuple[str, str]]:
        """What was found under ways of tuning that the page's control does not have."""
        others = dict.fromkeys(one.tuning for one in self.verdict.judgements)
        return [
            (upper(tuning), sentence(compared(one for one in self.verdict.judgements if one.tuning == tuning)))
            for tuning in others
            if tuning not in {way.tuning for way in WAYS}
        ]


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
    """Return counts by verdict as sign, class and number."""

    def made(way: Way) -> list[tuple[str, str, int, str]]:
        found = counts(verdicts, way)
        return [(*CHIPS[word], found[word], PLURALS[word]) for word in COUNTED if found[word]]

    return switched(made)


def budget(verdicts: Sequence[ClaimVerdict], way: Way) -> str:
    """Return how many settings each learner chooses from, on the first task of the paper."""
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
    return "; ".join(f"{count} settings for {names}" for count, names in sorted(whom.items()))


def explained(verdicts: Sequence[ClaimVerdict], way: Way) -> str:
    """Return what a way of tuning is."""
    told = budget(verdicts, way)
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
            cells.append((*CHIPS[word], word))
        judged = [look for look, _, word in cells if word != "not judged"]
        whole += len(judged) == len(cells) and set(judged) == {"y"}
        words = [part.removeprefix("with ").removeprefix("from ").removeprefix("after ") for part in key]
        label = ", ".join(words)
        for long, short in SHORTER.items():
            label = label.replace(long, short)
        rows.append((sign(sign_of(key[1:], [])), label, cells))
    told = "No variant makes" if not whole else f"{whole} of {len(full)} variants make"
    heads = [(one.claim, one.short or one.statement) for one in verdicts]
    return {"told": f"{told} all {len(verdicts)} claims hold.", "heads": heads, "rows": rows} if full else None


def section_facts(
    section: Section, job: Job, evidence: ByStudy, verdicts: Sequence[ClaimVerdict], views: Mapping[str, ClaimView]
) -> dict[str, Any]:
    """Return what a section shows."""
    own = [one for one in verdicts if one.section == section.name]
    parts = [tab for one in job.figures if one.section == section.name for tab in figure_tabs(one, job, evidence)]
    folder = job.folder / "figures"
    drawings = [
        (one, inline_svg(folder / f"{one.name}.svg", one.name)) for one in job.drawings if one.section == section.name
    ]
    headers = [
        inline_svg(file, file.stem)
        for one in job.figures
        if one.section == section.name and one.header
        for file in [header_file(folder, one.name)]
        if file.is_file()
    ]
    groups: dict[str, list[ClaimView]] = {}
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
        "by_size": switched(lambda way: by_size(section, by_name, way)),
        "variants": switched(lambda way: variant_table(several, way)) if several else [],
        "headers": headers,
        "groups": list(groups.items()),
    }


def banner(job: Job) -> dict[str, Any] | None:
    """Return how a page of few runs is marked: what is missing, and how long it takes; None at the full scale."""
    if not job.note:
        return None
    share = job.note.partition(": ")[2]
    left_out = [name for name, one in job.experiment.studies.items() if job.leaves_out(one)]
    searches = [name for name in left_out if name.endswith(("-fully", "-one"))]
    others = [name for name in left_out if name not in searches]
    missing = [f"tuning by search ({len(searches)} studies)"] if searches else []
    missing += [f"{len(others)} longer studies ({joined(others)})"] if others else []
    runs, full = job.scale.runs or 0, job.experiment.full.runs or 0
    return {
        "share": share,
        "missing": joined(missing) if missing else "",
        "minutes": job.minutes_left() if job.minutes_left else 0,
        "is_first_look": job.scale.is_first_look,
        "runs": runs if 0 < runs < full else 0,
        "full": full,
    }


def page_text(job: Job, evidence: ByStudy, verdicts: list[ClaimVerdict], statements: Sequence[Any]) -> str:
    """Return the report."""
    experiment = job.experiment
    judged = [one for one in verdicts if one.judgements]
    has_data = {one.tuning for verdict in published(judged) for one in verdict.judgements}
    enabled = [way for way in WAYS if way.tuning in has_data]
    figures = [[one.name for one in job.figures if one.section == section.name] for section in experiment.sections]
    linked = {name for names in figures for name in names[1:]}  # the first of a section is in sight
    views = {one.claim: ClaimView(one, job, linked) for one in judged}
    places = {one.name for one in experiment.sections}
    own = published(judged)
    return fill(
        "experiments/page.html",
        "experiments/page.css",
        script=read("experiments/page.js"),
        title=experiment.title,
        first=banner(job),
        ways=WAYS,
        enabled=enabled,
        start=(enabled or list(WAYS))[0],
        claims=len(own),
        answers=told_answers(job, judged, enabled),
        counts=counted(judged),
        tiles=[
            (section, switched(lambda way, some=some: [(one.verdict, one.chip(way)) for one in some]))  # type: ignore[misc]
            for section in experiment.sections
            if (some := [views[one.claim] for one in own if one.section == section.name])
        ],
        explained=switched(lambda way: explained(judged, way)),
        sections=[
            facts
            for section in experiment.sections
            if (facts := section_facts(section, job, evidence, judged, views))
            and (facts["figures"] or facts["drawings"] or facts["groups"])
        ],
        ours=[views[one.claim] for one in judged if one.section not in places],
        statements=statements,
        readings=experiment.readings,
        errata=experiment.errata,
        studies=[(name, str(one.study)) for name, one in evidence.items()],
        files=sorted(file.name for file in (job.folder / "tables").glob("*.csv")),
        record=provenance() | read_scale(job.folder)[1],
    )


def told_answers(job: Job, verdicts: Sequence[ClaimVerdict], enabled: Sequence[Way]) -> Switched:
    """Return the answers under each way of tuning, with the word as the page says it, and the words of other ways."""
    by_way = {way.key: answers(job.experiment, verdicts, job.scale, way) for way in WAYS}

    def made(way: Way) -> list[tuple[Answer, str, str]]:
        told = []
        for place, one in enumerate(by_way[way.key]):
            others = [f"{other.label} – {by_way[other.key][place].word.lower()}" for other in enabled if other != way]
            word = f"So far: {one.word.lower()}" if job.note and not one.word.startswith("Not") else one.word
            told.append((one, word, f"Other ways of tuning: {' · '.join(others)}" if others else ""))
        return told

    return switched(made)
