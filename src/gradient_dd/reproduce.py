"""Reproduce the paper: run its studies, evaluate the selected settings afresh, draw, judge, write.

Leaves in a folder: results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json. The report is made from the same.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from gradient_dd.claims import Evidence, Verdict, as_data, judge_all
from gradient_dd.errors import unknown
from gradient_dd.learners import Setting
from gradient_dd.panels import Panel, panels_of
from gradient_dd.results import Results
from gradient_dd.studies import Study
from gradient_dd.studies.figures import FIGURES, Figure
from gradient_dd.studies.paper import STUDIES

Runner = Callable[[Study, Path], Results]


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
    """What was made: verdicts, panels of every figure, seconds and updates of every study, files."""

    verdicts: list[Verdict]
    panels: dict[str, list[Panel]]
    studies: dict[str, Study]
    seconds: dict[str, float]
    files: list[Path]
    note: str


def chosen_figures(names: tuple[str, ...]) -> list[Figure]:
    """Return the figures of these names, or all."""
    for name in names:
        if name not in FIGURES:
            raise unknown("figure", name, FIGURES)
    return [FIGURES[name] for name in names or FIGURES]


def reproduce(
    names: tuple[str, ...], folder: Path, scale: Scale, run: Runner, said: Callable[[str], None]
) -> Reproduction:
    """Make the figures of these names (all by default) and judge the claims that rest on their studies."""
    figures = chosen_figures(names)
    needed = list(dict.fromkeys(figure.study for figure in figures))
    store = folder / "results.db"
    folder.mkdir(parents=True, exist_ok=True)
    evidence, seconds = {}, {}
    for name in needed:
        begin = perf_counter()
        study = scale.of(STUDIES[name])
        results = run(study, store)
        fresh = study.fresh(study.runs, selected_settings(results, name))
        evidence[name] = Evidence(results, run(fresh, store))
        seconds[name] = perf_counter() - begin
        said(f"{name}: {study.estimate()['updates']:.2g} updates and their evaluation in {seconds[name]:.1f} s")
    verdicts = judge_all(evidence)
    panels = {figure.name: panels_of(figure, evidence[figure.study].results) for figure in figures}
    files = write_tables(figures, evidence, folder / "tables")
    files += draw_all(figures, panels, evidence, folder / "figures", scale.note)
    target = folder / "claims.json"
    target.write_text(json.dumps(as_data(verdicts), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    studies = {name: one.results.study for name, one in evidence.items()}
    return Reproduction(verdicts, panels, studies, seconds, [*files, target], scale.note)


def selected_settings(results: Results, study: str) -> list[Setting]:
    """Return every setting that a line of a figure of a study selects, by either measure, on any task."""
    probe, chosen = Evidence(results, results), []
    lines = dict.fromkeys(line for figure in FIGURES.values() if figure.study == study for line in figure.lines)
    for task in results.tasks:
        for line in lines:
            for measure in ("last100", "area"):
                setting = probe.selected(task, line, measure)
                if setting not in chosen:
                    chosen.append(setting)
    return chosen


def write_tables(figures: list[Figure], evidence: dict[str, Evidence], folder: Path) -> list[Path]:
    """Write a table for each figure: one row per setting of its study, nothing dropped."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = {name: one.results.frame() for name, one in evidence.items()}
    paths = []
    for figure in figures:
        paths.append(folder / f"{figure.name}.csv")
        frames[figure.study].to_csv(paths[-1], index=False)
    return paths


def draw_all(
    figures: list[Figure], panels: dict[str, list[Panel]], evidence: dict[str, Any], folder: Path, note: str
) -> list[Path]:
    """Draw every figure."""
    from gradient_dd.figures import draw

    return [
        path
        for figure in figures
        for path in draw(figure, panels[figure.name], evidence[figure.study].results.study, folder, note)
    ]
