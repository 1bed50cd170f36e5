"""Reproduce the paper: run its studies, evaluate the selected settings afresh, judge, draw, write.

Leaves in a folder: results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json, report.html.
`reproduce` runs what is missing; `rewrite_report` and `plot` only read what a folder holds.
"""

import json
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from gradient_dd.errors import Words, must, unknown
from gradient_dd.learners import Setting
from gradient_dd.paper.claims import Evidence, Verdict, as_data, judge_all
from gradient_dd.paper.draw_all import draw_all
from gradient_dd.paper.exact_statements import Statement, check_statements
from gradient_dd.paper.figures import DRAWINGS, FIGURES
from gradient_dd.paper.page import PageContent, write_page
from gradient_dd.paper.scale import Scale, stored_scale
from gradient_dd.paper.studies import STUDIES
from gradient_dd.report.figure import Figure
from gradient_dd.report.panels import panels_of
from gradient_dd.studies import Study
from gradient_dd.studies.frames import MEASURES
from gradient_dd.studies.results import Results
from gradient_dd.studies.sweep import Progress, run_all

OnProgress = Callable[[Progress], None]
OnNotice = Callable[[str], None]
Provider = Callable[[list[Study], Path], list[Results]]  # runs studies, or reads them


@dataclass(frozen=True)
class Reproduction:
    """What was made: the verdicts on claims and exact statements, and the page that shows everything."""

    verdicts: list[Verdict]
    statements: list[Statement]
    page: Path


def reproduce(
    names: tuple[str, ...],
    folder: Path,
    scale: Scale,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress = lambda state: None,
    on_notice: OnNotice = lambda sentence: None,
    on_stage: OnNotice = lambda sentence: None,
) -> Reproduction:
    """Make the figures of these names (all by default) and judge the claims that rest on their studies.

    Studies run as in `run_all`. `on_stage` is called after each stage with a sentence: what it was, how long it took.
    """
    run = partial(run_all, workers=workers, executor=executor, on_progress=on_progress, on_notice=on_notice)
    return make_all(names, folder, scale, run, on_stage)


def rewrite_report(names: tuple[str, ...], folder: Path, on_stage: OnNotice = lambda sentence: None) -> Reproduction:
    """Make the same from the results that a folder holds, at the scale they were made at; runs nothing."""
    return make_all(names, folder, stored_scale(folder / "results.db"), read_stored, on_stage)


def plot(names: tuple[str, ...], folder: Path) -> list[Path]:
    """Draw figures from the results that a folder holds, and return the paths of the SVGs; runs nothing."""
    figures, drawings = chosen_figures(names)
    scale = stored_scale(folder / "results.db") if figures else Scale()
    needed = list(dict.fromkeys(figure.study for figure in figures))
    found = read_stored([scale.of(STUDIES[name]) for name in needed], folder / "results.db")
    results = dict(zip(needed, found, strict=True))
    shown = [(figure, panels_of(figure, results[figure.study]), results[figure.study].study) for figure in figures]
    return draw_all(shown, drawings, folder / "figures", scale.note)


def chosen_figures(names: tuple[str, ...]) -> tuple[list[Figure], list[str]]:
    """Return the figures of these names, or all: those of studies, and the names of those that need none."""
    known = [*FIGURES, *DRAWINGS]
    for name in names:
        if name not in known:
            raise unknown("figure", name, known)
    chosen = names or known
    return [FIGURES[name] for name in chosen if name in FIGURES], [name for name in chosen if name in DRAWINGS]


def make_all(names: tuple[str, ...], folder: Path, scale: Scale, provide: Provider, on_stage: OnNotice) -> Reproduction:
    """Get the results from `provide`, then judge, draw and write everything into the folder."""
    figures, drawings = chosen_figures(names)
    folder.mkdir(parents=True, exist_ok=True)
    studies = list(dict.fromkeys(figure.study for figure in figures))
    evidence = gather(studies, folder / "results.db", scale, provide, on_stage)
    begin = perf_counter()
    verdicts, statements = judge_all(evidence), check_statements()
    panels = {figure.name: panels_of(figure, evidence[figure.study].results) for figure in figures}
    write_tables(figures, evidence, folder / "tables")
    shown = [(figure, panels[figure.name], evidence[figure.study].results.study) for figure in figures]
    draw_all(shown, drawings, folder / "figures", scale.note)
    write_claims(verdicts, folder / "claims.json")
    results = {name: one.results for name, one in evidence.items()}
    page = write_page(PageContent(verdicts, statements, panels, drawings, results, scale.note), folder)
    on_stage(f"Verdicts, tables, figures and report: {perf_counter() - begin:.1f} s")
    return Reproduction(verdicts, statements, page)


def read_stored(studies: list[Study], store: Path) -> list[Results]:
    """Return the results of studies that a store holds completely, or raise."""
    found = [Results(study, store) for study in studies]
    for results in found:
        study = results.study
        for task in results.tasks:
            missing = int(np.isnan(results.errors(task)[1]).sum())
            if missing:
                got = Words(f"{missing:,} of {study.n_settings * study.runs:,} missing for {task}")
                hint = "gradient-dd reproduce runs what is missing."
                raise must(f"The results of study {study.name!r} in {store}", "be complete", got, hint)
    return found


def gather(names: list[str], store: Path, scale: Scale, provide: Provider, on_stage: OnNotice) -> dict[str, Evidence]:
    """Return the results of these studies, and those of the settings they select on fresh runs of each task."""
    begin = perf_counter()
    results = provide([scale.of(STUDIES[name]) for name in names], store)
    updates = sum(one.study.estimate()["updates"] for one in results)
    on_stage(f"{len(results)} studies, {updates:.3g} updates: {perf_counter() - begin:.1f} s")
    begin = perf_counter()
    chosen = [
        (one, task, one.study.fresh(fresh_runs(one.study), settings, (one.tasks[task],)))
        for one in results
        for task, settings in selected_settings(one).items()
    ]
    fresh = provide([study for *_, study in chosen], store)
    evidence = {name: Evidence(one, {}) for name, one in zip(names, results, strict=True)}
    for (one, task, _), found in zip(chosen, fresh, strict=True):
        evidence[one.study.name].fresh[task] = found
    updates = sum(study.estimate()["updates"] for *_, study in chosen)
    on_stage(f"The selected settings on fresh runs, {updates:.3g} updates: {perf_counter() - begin:.1f} s")
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
