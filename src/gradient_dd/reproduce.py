"""Reproduce the paper: run its studies, evaluate the selected settings afresh, draw, judge, write.

Leaves in a folder: results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json. The report is made from the same.
"""

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.claims import Evidence, Verdict, as_data, judge_all
from gradient_dd.errors import Words, must, unknown
from gradient_dd.fingerprint import digest, fingerprint
from gradient_dd.learners import Setting
from gradient_dd.panels import Panel, panels_of
from gradient_dd.results import MEASURES, Results
from gradient_dd.studies import Study
from gradient_dd.studies.figures import DRAWINGS, FIGURES, Figure
from gradient_dd.studies.paper import STUDIES

PACKAGE = Path(__file__).parent
Runner = Callable[[list[Study], Path], list[Results]]


@dataclass(frozen=True)
class Scale:
    """The paper's scale, or less of it for a quick look."""

    runs: int | None = None
    episodes: int | None = None

    @property
    def note(self) -> str:
        """What a figure says of a smaller scale."""
        return "Smaller than the paper's scale" if self.runs or self.episodes else ""

    def of(self, study: Study) -> Study:
        """Return a study at this scale; a run counted in steps has ten for each episode."""
        runs = self.runs or study.runs
        if not self.episodes:
            return replace(study, runs=runs)
        if study.episodes:
            return replace(study, runs=runs, episodes=self.episodes)
        return replace(study, runs=runs, steps=-(-self.episodes // 10) * 100)


@dataclass(frozen=True)
class Reproduction:
    """What was made: verdicts, panels of the figures, names of drawings, evidence of the studies, a word on scale."""

    verdicts: list[Verdict]
    panels: dict[str, list[Panel]]
    drawings: list[str]
    evidence: dict[str, Evidence]
    note: str


def chosen_figures(names: tuple[str, ...]) -> tuple[list[Figure], list[str]]:
    """Return the figures of these names, or all: those of studies, and the names of those that need none."""
    known = [*FIGURES, *DRAWINGS]
    for name in names:
        if name not in known:
            raise unknown("figure", name, known)
    chosen = names or known
    return [FIGURES[name] for name in chosen if name in FIGURES], [name for name in chosen if name in DRAWINGS]


def reproduce(
    names: tuple[str, ...], folder: Path, scale: Scale, run: Runner, said: Callable[[str], None]
) -> Reproduction:
    """Make the figures of these names (all by default) and judge the claims that rest on their studies."""
    figures, drawings = chosen_figures(names)
    folder.mkdir(parents=True, exist_ok=True)
    evidence = gather(list(dict.fromkeys(figure.study for figure in figures)), folder / "results.db", scale, run, said)
    begin = perf_counter()
    made = Reproduction(
        judge_all(evidence),
        {figure.name: panels_of(figure, evidence[figure.study].results) for figure in figures},
        drawings,
        evidence,
        scale.note,
    )
    write_tables(figures, evidence, folder / "tables")
    draw_all(figures, made, folder / "figures")
    write_claims(made.verdicts, folder / "claims.json")
    said(f"Verdicts, tables and figures: {perf_counter() - begin:.1f} s")
    return made


def stored(studies: list[Study], store: Path) -> list[Results]:
    """Return the results of studies that a store holds whole; a runner that runs nothing."""
    for study in studies:
        results = Results(study, store)
        for task in results.tasks:
            missing = int(np.isnan(results.errors(task)[1]).sum())
            if missing:
                got = Words(f"{missing:,} of {study.n_settings * study.runs:,} missing for {task}")
                hint = "gradient-dd reproduce goes on from there."
                raise must(f"The results of study {study.name!r} in {store}", "be complete", got, hint)
    return [Results(study, store) for study in studies]


def plot(names: tuple[str, ...], folder: Path, scale: Scale) -> list[Path]:
    """Draw figures from results that are there, and return their paths."""
    figures, drawings = chosen_figures(names)
    needed = list(dict.fromkeys(figure.study for figure in figures))
    results = stored([scale.of(STUDIES[name]) for name in needed], folder / "results.db") if needed else []
    evidence = {name: Evidence(one, {}) for name, one in zip(needed, results, strict=True)}
    panels = {figure.name: panels_of(figure, evidence[figure.study].results) for figure in figures}
    draw_all(figures, Reproduction([], panels, drawings, evidence, scale.note), folder / "figures")
    return [folder / "figures" / f"{name}.svg" for name in (*panels, *drawings)]


def gather(
    names: list[str], store: Path, scale: Scale, run: Runner, said: Callable[[str], None]
) -> dict[str, Evidence]:
    """Run the studies of these names, then the settings they select on fresh runs of each task."""
    begin = perf_counter()
    results = run([scale.of(STUDIES[name]) for name in names], store)
    updates = sum(one.study.estimate()["updates"] for one in results)
    said(f"{len(results)} studies, {updates:.3g} updates: {perf_counter() - begin:.1f} s")
    begin = perf_counter()
    chosen = [
        (one, task, one.study.fresh(fresh_runs(one.study), settings, (one.tasks[task],)))
        for one in results
        for task, settings in selected_settings(one).items()
    ]
    fresh = run([study for *_, study in chosen], store)
    evidence = {name: Evidence(one, {}) for name, one in zip(names, results, strict=True)}
    for (one, task, _), found in zip(chosen, fresh, strict=True):
        evidence[one.study.name].fresh[task] = found
    updates = sum(study.estimate()["updates"] for *_, study in chosen)
    said(f"The selected settings on fresh runs, {updates:.3g} updates: {perf_counter() - begin:.1f} s")
    return evidence


def fresh_runs(study: Study) -> int:
    """Return how many fresh runs a verdict rests on: half as many as the study has."""
    return -(-study.runs // 2)


def selected_settings(results: Results) -> dict[str, list[Setting]]:
    """Return for each task every setting that a line of a figure of the study selects, by either measure."""
    probe = Evidence(results, {})
    figures = [figure for figure in FIGURES.values() if figure.study == results.study.name]
    lines = dict.fromkeys(line for figure in figures for line in figure.lines)
    chosen: dict[str, list[Setting]] = {}
    for task in results.tasks:
        found = [probe.selected(task, line, measure) for line in lines for measure in MEASURES]
        chosen[task] = [setting for i, setting in enumerate(found) if setting not in found[:i]]
    return chosen


def write_tables(figures: list[Figure], evidence: dict[str, Evidence], folder: Path) -> None:
    """Write a table for each figure: one row per setting of its study, nothing dropped."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: one.results.frame().to_csv(index=False) for name, one in evidence.items()}
    for figure in figures:
        (folder / f"{figure.name}.csv").write_text(tables[figure.study], encoding="utf-8")


def write_claims(verdicts: list[Verdict], target: Path) -> None:
    """Write the verdicts as JSON."""
    target.write_text(json.dumps(as_data(verdicts), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def draw_all(figures: list[Figure], made: Reproduction, folder: Path) -> None:
    """Draw every figure that is not there yet as it would be drawn, on all cores."""
    from gradient_dd.figures import draw_drawing
    from gradient_dd.figures.study_figure import draw

    jobs: dict[str, tuple[partial[None], str]] = {}
    for name in made.drawings:
        jobs[name] = partial(draw_drawing, name, folder), made_from(name)
    for figure in figures:
        panels, study = made.panels[figure.name], made.evidence[figure.study].results.study
        job = partial(draw, figure, panels, study, folder, made.note)
        jobs[figure.name] = job, made_from(figure, str(study), made.note, [panel_numbers(panel) for panel in panels])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {name: job for name, (job, mark) in jobs.items() if not is_drawn(folder / name, mark)}
    if len(wanted) < 4:  # starting processes takes longer
        for job in wanted.values():
            job()
    else:
        with ProcessPoolExecutor(cpu_count() or 1, mp_context=get_context("spawn")) as pool:
            for done in [pool.submit(job) for job in wanted.values()]:
                done.result()
    for name in wanted:
        with (folder / f"{name}.svg").open("a", encoding="utf-8") as file:
            file.write(f"<!-- {jobs[name][1]} -->\n")


def panel_numbers(panel: Panel) -> list[Any]:
    """Return all that is drawn of a panel."""
    arrays = ("alphas", "mean", "sem", "curve", "curve_sem")
    return [str(panel.task), [[str(line.best), *(getattr(line, a).tolist() for a in arrays)] for line in panel.lines]]


def made_from(*parts: Any) -> str:
    """Return a mark of what a figure is drawn from: the code of this package, and the numbers."""
    code = "".join(digest(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py")))
    return f"made from {fingerprint(code, *parts)}"


def is_drawn(path: Path, mark: str) -> bool:
    """Return whether a figure is there, drawn from what the mark says."""
    svg, png = (path.with_name(f"{path.name}.{ending}") for ending in ("svg", "png"))
    return svg.is_file() and png.is_file() and svg.read_text(encoding="utf-8").endswith(f"<!-- {mark} -->\n")
