"""The report of any study: which learner was best where, figures, divergence, tables, provenance."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Rule
from gradient_dd.report.figure import MADE_FROM, NAMES, Figure, Line, colours_of, panels_of, title_of
from gradient_dd.report.page import Shown, figure_facts, render, setting_text
from gradient_dd.report.study_figure import draw, scale
from gradient_dd.studies import Study, intervals, study_from
from gradient_dd.studies.results import Results, places, tuned
from gradient_dd.studies.store import Store

CONDITIONS = ("schedule", "episodes", "steps", "every", "sampling", "seed")
MEASURES = {"last100": "the last 100 errors", "mean_error": "all errors"}


def write_report(results: Results, page: Path) -> Path:
    """Write a page, and in its folder the figures and the table of a study; return the path of the page."""
    check_complete(results, "gradient-dd sweep")
    study, folder = results.study, page.parent
    figures = [Figure(name, f"Mean of {words}", study.name, lines_of(study), name) for name, words in MEASURES.items()]
    for inside in ("figures", "tables"):
        (folder / inside).mkdir(parents=True, exist_ok=True)
    results.frame().to_csv(folder / "tables" / "settings.csv", index=False)
    shown = [Shown(figure, panels_of(figure, results), study, "settings") for figure in figures]
    for one in shown:
        draw(one.figure, one.panels, study, folder / "figures")
    compared = {
        words: [compare(results, task, measure) for task in results.tasks] for measure, words in MEASURES.items()
    }
    text = render(
        "report",
        "own_study.html",
        {study.name: results},
        name=study.name,
        scale=scale(study),
        headline=[sentence(task, words) for words, tasks in compared.items() for task in tasks],
        compared=compared,
        edge_notes={words: results.edge_notes(measure) for measure, words in MEASURES.items()},
        figures=[figure_facts(one) for one in shown],
    )
    page.write_text(text, encoding="utf-8")
    return page


def report_stored(results: Path, folder: Path, rules: dict[str, Rule]) -> Path:
    """Write the report of what a results file holds; `rules` are the user's own, by name."""
    return write_report(stored_results(results, rules), folder / "report.html")


def stored_results(path: Path, rules: dict[str, Rule]) -> Results:
    """Return the results of the study that was started last in a file: all settings stored under its conditions.

    `rules` are the user's own, by name. Runs that not every setting has are left out.
    """
    with Store(path) as store, store.snapshot():
        studies, settings, units = store.studies(), store.settings(), store.units()
    if not studies:
        raise bad_request(f"{str(path)!r}", "hold results", Unquoted("none"), "Run gradient-dd sweep.")
    runs = Counter(key for unit in units for key in unit.keys)
    done = [setting for setting in settings if setting.key in runs]
    if not done:
        raise bad_request(
            f"{str(path)!r}", "hold results", Unquoted("none yet"), "Run gradient-dd sweep again; it resumes."
        )
    conditions = {name: done[-1].facts[name] for name in CONDITIONS}
    ours = [one for one in done if conditions.items() <= one.facts.items()]
    learners: dict[str, dict[str, Any]] = {}
    for facts in (one.facts for one in ours):
        table = {"learner": facts["learner"], "rho_mode": facts["rho_mode"], **facts["values"]}
        learners[str(table)] = table
    data = {name: value for name, value in conditions.items() if value is not None} | {
        "name": studies[-1]["name"],
        "tasks": [{"name": one["name"], **one["parameters"]} for one in studies[-1]["tasks"]],
        "learners": list(learners.values()),
        "runs": min(runs[one.key] for one in ours),
    }
    return Results(study_from(data, rules), path)


def report_folder(results: Path) -> Path:
    """Return the folder for the report of a results file: NAME-report beside NAME.db."""
    return results.with_name(f"{results.stem}-report")


def check_complete(results: Results, command: str) -> None:
    """Raise unless every setting has all runs of the study; `command` runs what is missing."""
    study = results.study
    for task in results.tasks:
        missing = int(np.isnan(results.errors(task)[1]).sum())
        if missing:
            got = Unquoted(f"{missing:,} of {study.n_settings * study.runs:,} missing for {task}")
            what = f"The results of study {study.name!r} in {results.path}"
            raise bad_request(what, "be complete", got, f"{command} runs what is missing.")


def lines_of(study: Study) -> tuple[Line, ...]:
    """Return a line for each learner and place of ρ, tuned over everything but alpha."""
    kinds = list(dict.fromkeys((setting.rule.name, setting.rho_mode) for setting in study.settings()))
    colours = colours_of(name for name, _ in kinds)
    return tuple(
        Line(label(name, mode), name, rho_mode=mode, colour=colours[name], dashed=mode == "T" or name in MADE_FROM)
        for name, mode in kinds
    )


def label(learner: str, mode: str) -> str:
    """Return the name of a line."""
    return NAMES.get(learner, learner) + (", ρ placed T" if mode == "T" else "")


def compare(results: Results, task: str, measure: str) -> dict[str, Any]:
    """Return the best setting of each learner on a task, best first, with its ratio to the best."""
    settings, errors = results.errors(task, measure)
    first = results.tasks[task].rmsve(results.tasks[task].initial_weights)
    rows = []
    for line in lines_of(results.study):
        ours = places(settings, line.has)
        place = tuned(settings, errors, line.has)
        exploded = intervals.has_exploded(errors[ours], first).any(axis=1)
        estimate = intervals.estimate(errors[[place]])
        rows.append(
            {
                "line": line.label,
                "setting": setting_text(settings[place]),
                "errors": errors[place],
                "mean": float(estimate.mean[0]),
                "sem": float(estimate.sem[0]),
                "settings": len(ours),
                "exploded": int(exploded.sum()),
            }
        )
    rows.sort(key=lambda row: row["mean"])
    for row in rows[1:]:
        row["ratio"] = intervals.ratio_interval((row["errors"], rows[0]["errors"]))
    return {"task": f"{results.tasks[task].name}, {title_of(results.tasks[task])}", "rows": rows}


def sentence(compared: dict[str, Any], words: str) -> str:
    """Return which learner is lowest on a task, and for which of the others the difference is not certain."""
    best, *others = compared["rows"]
    lead = f"{compared['task']}, mean of {words}: {best['line']} is lowest, {best['mean']:.3g}"
    if not others:
        return f"{lead}."
    higher = [f"{row['line']} has {row['ratio'].estimate:.3g} × its error" for row in others if row["ratio"].low > 1]
    uncertain = [row["line"] for row in others if not row["ratio"].low > 1]
    parts = [", ".join(higher)] if higher else []
    parts += [f"the difference to {', '.join(uncertain)} is not certain"] if uncertain else []
    return f"{lead}; {'; '.join(parts)}."
