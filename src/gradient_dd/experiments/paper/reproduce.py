"""Reproduce the paper: run its studies, evaluate the selected settings afresh, judge, draw, write.

Leaves in a folder: results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json, report.html. Tables are described
in `tables.py`.
`reproduce` runs what is missing; `rewrite_report` and `plot` only read what a folder holds.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from gradient_dd.errors import Words, must, unknown
from gradient_dd.experiments.paper.claims import Evidence, Verdict, ask_all, fresh_work, judge_all
from gradient_dd.experiments.paper.draw_all import draw_all, drawn_meanwhile
from gradient_dd.experiments.paper.exact_statements import Statement, check_statements
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.page import PageContent, write_page
from gradient_dd.experiments.paper.scale import Scale, stored_scale
from gradient_dd.experiments.paper.studies import COMPANIONS, STUDIES
from gradient_dd.experiments.paper.tables import write_claims, write_tables
from gradient_dd.learners import Setting
from gradient_dd.report.figure import Figure
from gradient_dd.report.panels import panels_of
from gradient_dd.studies import Grid, Study
from gradient_dd.studies.results import Results
from gradient_dd.studies.sweep import run_all
from gradient_dd.studies.units import Progress

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
    store = folder / "results.db"
    with drawn_meanwhile([], drawings, folder / "figures", gently=True):  # what needs no study, while the studies run
        evidence = run_studies(with_companions(figures), store, scale, provide, on_stage)
        begin = perf_counter()
        asked = ask_all(evidence, whole=not names)
        on_stage(f"The questions of {len(asked)} claims: {perf_counter() - begin:.1f} s")
        run_afresh(fresh_work(asked), evidence, store, provide, on_stage)
        begin = perf_counter()
        panels = {figure.name: panels_of(figure, evidence[figure.study].results) for figure in figures}
        shown = [(figure, panels[figure.name], evidence[figure.study].results.study) for figure in figures]
        with drawn_meanwhile(shown, [], folder / "figures", scale.note):
            verdicts, statements = judge_all(asked), check_statements()
            write_tables(figures, evidence, folder / "tables")
            write_claims(verdicts, folder / "claims.json")
    studies = [one.study for one in evidence.values()]
    results = {figure.study: evidence[figure.study].results for figure in figures}
    page = write_page(PageContent(verdicts, statements, panels, drawings, results, studies, scale.note), folder)
    on_stage(f"Verdicts, tables, figures and report: {perf_counter() - begin:.1f} s")
    return Reproduction(verdicts, statements, page)


def with_companions(figures: list[Figure]) -> list[str]:
    """Return the names of the studies that figures show, and of those their claims are judged on besides."""
    shown = list(dict.fromkeys(figure.study for figure in figures))
    return shown + [companion.name for name in shown for companion in COMPANIONS.get(name, ())]


def as_grid(setting: Setting) -> Grid:
    """Return a grid of one setting; a study runs equal ones once."""
    return Grid(setting.rule, tuple((name, (value,)) for name, value in setting.values.items()), setting.rho_mode)


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


def run_studies(
    names: list[str], store: Path, scale: Scale, provide: Provider, on_stage: OnNotice
) -> dict[str, Evidence]:
    """Return the results of these studies, by name."""
    begin = perf_counter()
    results = provide([scale.of(STUDIES[name]) for name in names], store)
    updates = sum(one.study.estimate()["updates"] for one in results)
    shared = "with settings that they share counted in each"
    on_stage(f"{len(results)} studies, {updates:.3g} updates {shared}: {perf_counter() - begin:.1f} s")
    return {name: Evidence(one) for name, one in zip(names, results, strict=True)}


def run_afresh(
    work: dict[tuple[str, str], list[Setting]],
    evidence: dict[str, Evidence],
    store: Path,
    provide: Provider,
    on_stage: OnNotice,
) -> None:
    """Run the selected settings of each study and case on fresh runs, and add them to the evidence.

    Studies that share a task, its runs and their length run together: the trajectory is sampled once for all settings.
    """
    begin = perf_counter()
    shared: dict[str, tuple[Study, list[Setting]]] = {}
    wanted: dict[tuple[str, str], Study] = {}
    for (name, case), settings in work.items():
        wanted[name, case] = study = evidence[name].fresh_study(case, settings)
        how = [str(study.schedule), study.horizon, study.run_numbers, study.sampling, *map(str, study.built_tasks)]
        shared.setdefault(repr(how), (study, []))[1].extend(settings)
    studies = [replace(study, grids=tuple(map(as_grid, settings))) for study, settings in shared.values()]
    provide(studies, store)
    for (name, case), study in wanted.items():
        evidence[name].fresh[case] = Results(study, store)
    updates = sum(study.estimate()["updates"] for study in studies)
    on_stage(f"The selected settings on fresh runs, {updates:.3g} updates: {perf_counter() - begin:.1f} s")
