"""Running an experiment, and writing all of it again from what a folder holds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import Any

from gradient_dd.errors import Unquoted, bad_request, unknown
from gradient_dd.experiments import find_experiment
from gradient_dd.experiments.drawing import draw_all, drawing_picture, drawn_meanwhile, figure_picture
from gradient_dd.experiments.experiment import (
    Experiment,
    Job,
    OnNotice,
    OnProgress,
    Scale,
    read_scale,
    write_scale,
    write_text,
)
from gradient_dd.experiments.verdicts import ClaimVerdict, as_data
from gradient_dd.report.page import render
from gradient_dd.report.play.page import live_page
from gradient_dd.report.svg import inline_svg
from gradient_dd.studies.sweep import Progress

PAGE, LIVE = "report.html", "play.html"
LATER = "The answer in words comes with all runs: a first look leaves out the studies that take longest."
FIRST_RUNS = 3  # of the first look: with two, no interval decides anything


@dataclass(frozen=True)
class Made:
    """What was made: the answer, the verdicts, the exact statements, and the page that shows everything."""

    experiment: Experiment
    answer: list[str]
    verdicts: list[ClaimVerdict]
    statements: list[Any]
    page: Path

    def data(self) -> list[dict[str, Any]]:
        """Return verdicts and statements as plain data."""
        return as_data(self.verdicts) + [one._asdict() for one in self.statements]


def reproduce(
    experiment: Experiment,
    names: tuple[str, ...],
    folder: Path,
    scale: Scale,
    on_stage: OnNotice = lambda sentence: None,
    **how: Any,
) -> Made:
    """Make the figures of these names (all by default), and judge the claims that rest on their studies.

    `how` goes to `run_all`: studies run as there. `on_stage` is called after each stage with a sentence: what it was,
    how long it took. A second call resumes.

    The whole of an experiment at its full scale begins with a first look: the first runs of every study, and a page of
    them, which the page of all runs replaces. All of its runs are among those of the studies, so none is wasted.
    """
    check_names(experiment, names)
    folder.mkdir(parents=True, exist_ok=True)
    job = Job(experiment, names, folder, scale, how, on_stage)
    if has_first_look(job):
        look_first(job)
    else:
        write_scale(folder, experiment.name, scale)
    made = make(job)
    write_scale(folder, experiment.name, scale)  # only now: until here `report` can write the first look again
    return made


def has_first_look(job: Job) -> bool:
    """Return whether a first look comes before all runs: the whole at full scale, where there is no page yet."""
    is_whole = not job.names and job.scale == Scale() and (job.experiment.full.runs or 0) > FIRST_RUNS
    return is_whole and not (job.folder / PAGE).exists()


def look_first(job: Job) -> None:
    """Write the page of the first runs alone, and say about how long the others will take."""
    begin, cost = perf_counter(), Cost(job.how["on_progress"] if job.how and "on_progress" in job.how else None)
    first = replace(job, scale=Scale(FIRST_RUNS, is_first_look=True), how={**(job.how or {}), "on_progress": cost})
    write_scale(job.folder, job.experiment.name, first.scale)
    made = make(first)
    whole = sum(study.estimate()["updates"] for study in job.experiment.studies.values())
    share = max(0.0, whole / cost.updates - 1) if whole and cost.updates else 0.0
    left = cost.core_seconds * share / ((job.how or {}).get("workers") or cpu_count() or 1)
    job.on_stage(
        f"First look after {perf_counter() - begin:.0f} s, {first.note.removeprefix('First look: ')}: {made.page}\n"
        f"The page is written anew when all runs are done, in about {max(1, round(left / 60))} min."
    )


class Cost:
    """Passes progress on, and sums the core-seconds of all studies."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.on_progress = on_progress
        self.states: dict[int, Progress] = {}

    def __call__(self, state: Progress) -> None:
        self.states[id(state)] = state
        if self.on_progress:
            self.on_progress(state)

    @property
    def updates(self) -> float:
        """How many updates all units made so far."""
        return sum(state.updates for state in self.states.values())

    @property
    def core_seconds(self) -> float:
        """How long all units took so far, compiling not counted."""
        return sum(state.core_seconds for state in self.states.values())


def rewrite(names: tuple[str, ...], folder: Path, on_stage: OnNotice = lambda sentence: None) -> Made:
    """Make the same from the results that a folder holds, at the scale they were made at; runs nothing."""
    return make(reading(names, folder, on_stage))


def plot(names: tuple[str, ...], folder: Path) -> list[Path]:
    """Draw figures from the results that a folder holds, and return the paths of the SVGs; runs nothing."""
    drawn_alone = find_experiment("paper").drawings
    if names and set(names) <= set(drawn_alone):
        return draw_all([drawing_picture(drawn_alone[name]) for name in names], folder / "figures")
    job = reading(names, folder)
    needed = list(dict.fromkeys(figure.study for figure in job.figures))
    found = job.results([job.at_scale(job.experiment.studies[name]) for name in needed], "The studies of figures")
    results = dict(zip(needed, found, strict=True))
    pictures = [figure_picture(figure, results[figure.study], job.note) for figure in job.figures]
    return draw_all([*pictures, *map(drawing_picture, job.drawings)], folder / "figures")


def reading(names: tuple[str, ...], folder: Path, on_stage: OnNotice = lambda sentence: None) -> Job:
    """Return the job that makes figures from what a folder holds."""
    found = read_scale(folder)
    if found is None:
        if names:
            check_names(find_experiment("paper"), names)
        rule, hint = "hold the results of an experiment", "Run gradient-dd reproduce."
        raise bad_request(f"The folder {str(folder)!r}", rule, Unquoted("none"), hint)
    experiment = find_experiment(found[0])
    check_names(experiment, names)
    return Job(experiment, names, folder, found[1], None, on_stage)


def check_names(experiment: Experiment, names: tuple[str, ...]) -> None:
    """Raise unless an experiment has figures of these names, for those who ask for some alone."""
    known = [*experiment.figures, *experiment.drawings]
    for name in names:
        if name not in known:
            raise unknown("figure", name, known)


def make(job: Job) -> Made:
    """Get the results, then judge, draw and write everything into the folder."""
    experiment, figures = job.experiment, job.folder / "figures"
    drawings = [drawing_picture(one) for one in job.drawings]
    with drawn_meanwhile(drawings, figures, gently=True):  # what needs no study, while the studies run
        evidence = experiment.measure(job)
        begin = perf_counter()
        pictures = experiment.pictures(job, evidence)
        with drawn_meanwhile(pictures, figures):
            verdicts, statements = experiment.judge(job, evidence), experiment.exact()
            for name, text in experiment.tables(job, evidence).items():
                write_text(job.folder / "tables" / f"{name}.csv", text)
            write_claims(verdicts, job.folder / "claims.json")
    whole = [one.name for one in (*drawings, *pictures) if not one.columns]
    answer, content = experiment.answer(evidence, verdicts), experiment.content(job, evidence, verdicts)
    if job.scale.is_first_look and not answer:
        answer = [LATER]
    common: dict[str, Any] = {
        "title": experiment.title,
        "heading": experiment.heading,
        "note": job.note,
        "answer": answer,
        "statements": statements,
        "pictures": {name: inline_svg(figures / f"{name}.svg", name) for name in whole},
    }
    page = job.folder / PAGE
    shown = render(experiment.folder, "page.html", content.results, content.studies, **common | dict(content.facts))
    write_text(page, shown)
    write_text(job.folder / LIVE, live_page())
    job.on_stage(f"Verdicts, tables, figures and report: {perf_counter() - begin:.1f} s")
    return Made(experiment, answer, verdicts, statements, page)


def write_claims(verdicts: list[ClaimVerdict], target: Path) -> None:
    """Write the verdicts as JSON; a number that JSON does not have is written as a text, such as "inf"."""
    text = json.dumps(plain(as_data(verdicts)), ensure_ascii=False, indent=1, allow_nan=False)
    write_text(target, text + "\n")


def plain(value: Any) -> Any:
    """Return the same data with texts in place of numbers that are infinite or undefined."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
