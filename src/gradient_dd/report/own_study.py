"""The report of any study: the best learner on each task and its setting, figures, divergence, tables, provenance."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.files import check_regular
from gradient_dd.learners import Rule, Setting
from gradient_dd.report.figure import (
    GREEK,
    MADE_FROM,
    TASK_NAMES,
    Figure,
    Line,
    colours_of,
    joined,
    panels_of,
    title_of,
)
from gradient_dd.report.forest import Forest, ForestRow, Mark, axis_of
from gradient_dd.report.page import render
from gradient_dd.report.panels import columns_of, legend
from gradient_dd.report.study_figure import draw, scale
from gradient_dd.studies import Study, intervals, study_from
from gradient_dd.studies.intervals import Interval
from gradient_dd.studies.results import Results, edges, places, tuned
from gradient_dd.studies.store import Store

CONDITIONS = ("schedule", "episodes", "steps", "every", "sampling", "seed")
PLACED = {"R": "", "T": ", ρ on the bootstrap"}  # the placement of ρ, in the label of a learner
COLUMNS = ("ratio [95 % interval]", "error ± standard error", "best setting", "diverged settings")


class Winner(NamedTuple):
    """The best setting of a line on a task: its errors (runs,), a warning, and the line's number of diverged settings.

    `ratio` is the ratio of the setting's error to the lowest error of the task.
    """

    label: str
    setting: Setting
    errors: Array
    note: str
    diverged: str
    ratio: Interval = Interval(1.0, 1.0, 1.0)


def write_report(results: Results, page: Path) -> Path:
    """Write the page of a study, and in its folder the figures and the table; return the path of the page."""
    check_complete(results, "gradient-dd sweep")
    check_regular(page)
    study, folder = results.study, page.parent
    for inside in ("figures", "tables"):
        (folder / inside).mkdir(parents=True, exist_ok=True)
    results.frame().to_csv(folder / "tables" / "settings.csv", index=False)
    unit, titles, facts = ("episodes" if study.episodes else "steps"), {}, []
    for key, task in results.tasks.items():
        name = TASK_NAMES.get(task.name, "")
        titles[key] = f"{name[:1].upper()}{name[1:]}, {title_of(task)}" if name else title_of(task)
    last = f"last 100 {'episodes' if study.episodes else 'errors'}"
    for measure, title in (
        ("last100", f"Final error (mean of the {last})"),
        ("mean_error", f"Mean error (mean over all {unit})"),
    ):
        figure = Figure(measure, title, study.name, lines_of(study), measure)
        panels = panels_of(figure, results)
        draw(figure, panels, study, folder / "figures")
        columns = zip(columns_of(panels, unit), titles.values(), strict=True)
        found = {name: winners(results, key, measure) for key, name in titles.items()}
        facts.append(
            {
                "name": measure,
                "title": title,
                "sentences": [sentence(task, ordered) for task, ordered in found.items()],
                "forest": forest(title, found),
                "columns": [column._replace(title=name) for column, name in columns],
                "legend": legend(panels[0].lines),
            }
        )
    text = render("own_study.html", [study], name=study.name, scale=scale(study), measures=facts)
    page.write_text(text, encoding="utf-8")
    return page


def report_stored(results: Path, folder: Path, rules: dict[str, Rule]) -> Path:
    """Write the report of the last study in a results file, with all settings stored under its conditions.

    `rules` are the user's rules, by name. Runs that are missing for some settings are left out.
    """
    with Store(results) as store, store.snapshot():
        studies, settings, units = store.studies(), store.settings(), store.units()
    runs = Counter(key for unit in units for key in unit.keys)
    done = [setting for setting in settings if setting.key in runs]
    if not done:
        got, again = ("none yet", " again; it resumes") if studies else ("none", "")
        raise bad_request(f"{str(results)!r}", "hold results", Unquoted(got), f"Run gradient-dd sweep{again}.")
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
    return write_report(Results(study_from(data, rules), results), folder / "report.html")


def report_folder(results: Path) -> Path:
    """Return the folder for the report of a results file: NAME-report next to NAME.db."""
    return results.with_name(f"{results.stem}-report")


def check_complete(results: Results, command: str) -> None:
    """Raise unless every setting has all runs of the study; `command` would run the missing runs."""
    study = results.study
    for task in results.tasks:
        missing = int(np.isnan(results.errors(task)[1]).sum())
        if missing:
            got = Unquoted(f"{missing:,} of {study.n_settings * study.runs:,} missing for {task}")
            what = f"The results of study {study.name!r} in {results.path}"
            raise bad_request(what, "be complete", got, f"{command} runs the missing ones.")


def lines_of(study: Study) -> tuple[Line, ...]:
    """Return a line for each learner and placement of ρ, tuned over all parameters except alpha."""
    labels = {(setting.rule.name, setting.rho_mode): setting.rule.label for setting in study.settings()}
    colours = colours_of(name for name, _ in labels)
    return tuple(
        Line(label + PLACED[mode], name, (), mode, colours[name], mode == "T" or name in MADE_FROM)
        for (name, mode), label in labels.items()
    )


def winners(results: Results, task: str, measure: str) -> list[Winner]:
    """Return the best setting of each line on a task, the smallest error first."""
    settings, errors = results.errors(task, measure)
    initial, found = results.tasks[task].rmsve(results.tasks[task].initial_weights), []
    for line in lines_of(results.study):
        ours, best = places(settings, line.has), tuned(settings, errors, line.has)
        diverged = int(intervals.has_exploded(errors[ours], initial).any(axis=1).sum())
        note = []
        for end, name, beyond in edges(settings[best], [settings[place] for place in ours]):
            more = f": also try {beyond}" if beyond else ""
            note.append(f"The best {GREEK.get(name, name)} is the {end} of its grid{more}.")
        found.append(Winner(line.label, settings[best], errors[best], " ".join(note), f"{diverged} of {len(ours)}"))
    first, *others = sorted(found, key=lambda one: one.errors.mean())
    return [first, *(one._replace(ratio=intervals.ratio_interval((one.errors, first.errors))) for one in others)]


def forest(title: str, found: dict[str, list[Winner]]) -> str:
    """Return a forest plot of the ratio of each learner's error to the lowest error of the task, on the same runs."""
    rows = []
    for task, ordered in found.items():
        for one in ordered:
            value, low, high = one.ratio
            shown, look = f"{value:.3g} [{low:.3g}, {high:.3g}]".replace("inf", "∞"), "n" if low > 1 else "u"
            if one is ordered[0]:
                shown, look = "lowest", "y"
            error, mark = intervals.estimate(one.errors[None]), Mark(value, low, high, look)
            chosen = (f"{GREEK.get(name, name)}\xa0=\xa0{v:.4g}" for name, v in one.setting.values.items())
            cells = f"{error.mean[0]:.3g}\xa0±\xa0{error.sem[0]:.2g}", ", ".join(chosen), one.diverged
            rows.append(ForestRow(task, one.label, [[mark]], shown, look, cells=cells, note=one.note))
    axis = axis_of(rows, 1.0, ratios=True)
    return Forest(title, ["error ÷ lowest"], rows, axis, 1.0, "", wide_groups=True, columns=COLUMNS).html()


def sentence(task: str, ordered: Sequence[Winner]) -> str:
    """Return a sentence on the learner with the lowest error on a task and those not significantly different."""
    best, *others = ordered
    higher = [f"{one.label} has {one.ratio.estimate:.3g} times its error" for one in others if one.ratio.low > 1]
    unsure = [one.label for one in others if not one.ratio.low > 1]
    parts = [f"{task}: {best.label} has the lowest error, {best.errors.mean():.3g}", *higher]
    parts += [f"the difference from {joined(unsure)} is not significant"] if unsure else []
    return f"{'; '.join(parts)}."
