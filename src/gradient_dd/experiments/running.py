"""Running an experiment, and writing all of it again from what a folder holds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import Any

from gradient_dd.errors import Unquoted, bad_request, unknown
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
from gradient_dd.experiments.measuring import judge, measure, tables
from gradient_dd.experiments.page import page_text
from gradient_dd.experiments.paper.experiment import EXPERIMENT
from gradient_dd.experiments.preview import draw_preview
from gradient_dd.experiments.verdicts import ClaimVerdict, as_data
from gradient_dd.report.play.page import live_page
from gradient_dd.studies.study import provenance
from gradient_dd.studies.sweep import Progress

PAGE, LIVE, PREVIEW = "report.html", "play.html", "preview.png"
FIRST_RUNS = 3  # of the first look: with two, no interval decides anything


@dataclass(frozen=True)
class Made:
    """What was made: the verdicts, the exact statements, and the page that shows everything; how long it took."""

    job: Job
    verdicts: list[ClaimVerdict]
    statements: list[Any]
    page: Path
    seconds: float

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
    record = {"started": read_scale(folder)[1].get("started") or now()}
    is_whole = not names and scale == Scale() and (experiment.full.runs or 0) > FIRST_RUNS
    if is_whole and not (folder / PAGE).exists():
        look_first(job, record)
    else:
        write_scale(folder, scale, record)
    return make(job, record)


def now() -> str:
    """Return the time in words."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def look_first(job: Job, record: dict[str, Any]) -> None:
    """Write the page of the first runs alone, and say about how long the others will take."""
    begin, cost = perf_counter(), Cost(job.how["on_progress"] if job.how and "on_progress" in job.how else None)
    whole = sum(study.estimate()["updates"] for study in job.experiment.studies.values())
    workers = (job.how or {}).get("workers") or cpu_count() or 1

    def minutes_left() -> int:
        share = max(0.0, whole / cost.updates - 1) if whole and cost.updates else 0.0
        return max(1, round(cost.core_seconds * share / workers / 60))

    how = {**(job.how or {}), "on_progress": cost}
    first = replace(job, scale=Scale(FIRST_RUNS, is_first_look=True), how=how, minutes_left=minutes_left)
    write_scale(job.folder, first.scale, record)
    made = make(first, record)
    job.on_stage(
        f"First look after {perf_counter() - begin:.0f} s, {first.note.removeprefix('First look: ')}: {made.page}\n"
        f"The page is written again when all runs are done, in about {minutes_left()} min."
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


def plot(names: tuple[str, ...], folder: Path) -> list[Path]:
    """Draw figures from the results that a folder holds, and return the paths of the SVGs; runs nothing."""
    drawn_alone = EXPERIMENT.drawings
    if names and set(names) <= set(drawn_alone):
        return draw_all([drawing_picture(drawn_alone[name]) for name in names], folder / "figures")
    job = reading(names, folder)
    needed = list(dict.fromkeys(figure.study for figure in job.figures))
    found = job.results([job.at_scale(job.experiment.studies[name]) for name in needed], "The studies of figures")
    results = dict(zip(needed, found, strict=True))
    pictures = [figure_picture(figure, results[figure.study], job.note) for figure in job.figures]
    return draw_all([*pictures, *map(drawing_picture, job.drawings)], folder / "figures")


def reading(
    names: tuple[str, ...],
    folder: Path,
    on_stage: OnNotice = lambda sentence: None,
    experiment: Experiment = EXPERIMENT,
) -> Job:
    """Return the job that makes all again from the results that a folder holds, at their scale; it runs nothing."""
    check_names(experiment, names)
    scale, _ = read_scale(folder)
    if scale is None:
        rule, hint = "hold the results of an experiment", "Run gradient-dd reproduce."
        raise bad_request(f"The folder {str(folder)!r}", rule, Unquoted("none"), hint)
    return Job(experiment, names, folder, scale, None, on_stage)


def check_names(experiment: Experiment, names: tuple[str, ...]) -> None:
    """Raise unless an experiment has figures of these names, for those who ask for some alone."""
    known = [*experiment.figures, *experiment.drawings]
    for name in names:
        if name not in known:
            raise unknown("figure", name, known)


def make(job: Job, record: Mapping[str, Any] | None = None) -> Made:
    """Get the results, then judge, draw and write everything into the folder.

    `record` is kept beside the results once all of them are there, with the time, the versions and the machine.
    """
    begin, figures = perf_counter(), job.folder / "figures"
    drawings = [drawing_picture(one) for one in job.drawings]
    with drawn_meanwhile(drawings, figures, gently=True):  # what needs no study, while the studies run
        evidence = measure(job)
        if record is not None:  # until here `report` can write the page of a first look again
            write_scale(job.folder, job.scale, {**record, "finished": now(), **provenance()})
        measured = perf_counter()
        with drawn_meanwhile(
            [figure_picture(one, evidence[one.study].results, job.note) for one in job.figures], figures
        ):
            verdicts, statements = judge(job, evidence), job.experiment.exact()
            for name, text in tables(job, evidence).items():
                write_text(job.folder / "tables" / f"{name}.csv", text)
            write_claims(verdicts, job.folder / "claims.json")
    page = job.folder / PAGE
    write_text(page, page_text(job, evidence, verdicts, statements))
    draw_preview(job, evidence, verdicts, job.folder / PREVIEW)
    write_text(job.folder / LIVE, live_page())
    job.on_stage(f"Verdicts, tables, figures and report: {perf_counter() - measured:.1f} s")
    return Made(job, verdicts, statements, page, perf_counter() - begin)


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
