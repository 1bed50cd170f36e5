"""`gradient-dd bench --paper`: what each study of the paper costs, against C for the same learners, lanes and updates.

For each task of a study, all its settings are advanced over a short piece of a run, as a unit of a sweep does it:
sampling, cutting into segments, every block, errors. C advances blocks of the same lanes over a piece of the same
length; sampling is not counted for it. Both are timed in turns on one core, in CPU time, so other work on the machine
does not count, and the best time is scaled up to the study. C has no natural learners: GTD2 and TDC stand for them.

Studies have settings in common. The last row is what `gradient-dd reproduce` runs: each setting once, and the studies
that run in the same way in shared units.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gradient_dd.bench import best_times, horizon_of, on_one_core, piece
from gradient_dd.bench.baselines import c_call, library
from gradient_dd.engine.kernels.rows import outcome_rows
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.studies import Study
from gradient_dd.tasks import Task

STEPS = 2**15  # of a piece
REPEATS = 7
HEAD = ("study", "updates", "engine s", "C s", "/ C")


def run_paper_bench(on_progress: Callable[[str], None]) -> dict[str, Any]:
    """Measure every study; return a row for each and the ratio of the sums. `on_progress` gets each study's name."""
    with on_one_core():
        rows = [study_row(study, on_progress) for study in STUDIES.values()]
        shared = [study_row(study, on_progress) for study in shared_studies(list(STUDIES.values()))]
    return {"studies": rows, "ratio": totals(rows)["ratio"], "shared": totals(shared)}


def shared_studies(studies: list[Study]) -> list[Study]:
    """Return studies of one task each that together are what a sweep runs of all: no setting twice."""
    groups: dict[Any, list[tuple[Any, Study]]] = {}
    for study in studies:
        for one in study.tasks:
            how = str(one), study.horizon, study.schedule, study.sampling, study.seed
            groups.setdefault(how, []).append((one, study))
    made = []
    for group in groups.values():
        before = 0
        for runs in sorted({study.runs for _, study in group}):  # the first runs are those of all, the last of some
            some = [study for _, study in group if study.runs >= runs]
            grids = tuple(grid for study in some for grid in study.grids)
            made.append(replace(some[0], tasks=(group[0][0],), grids=grids, first_run=before, runs=runs - before))
            before = runs
    return made


def study_row(study: Study, on_progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the updates of a study and the core-seconds of the engine and of C, all tasks and runs together."""
    engine, c = 0.0, 0.0 if library(8, True, 2) else None
    for task in study.built_tasks:
        on_progress(f"{study.name}: {task}")
        steps = (study.steps or study.episodes * task.expected_length) * study.runs  # type: ignore[operator]
        ours, theirs = seconds_per_step(study, task)
        engine += ours * steps
        c = None if c is None or theirs is None else c + theirs * steps
    row = {"updates": study.estimate()["updates"], "engine_seconds": engine, "c_seconds": c}
    return {"study": study.name} | totals([row])


def seconds_per_step(study: Study, task: Task) -> tuple[float, float | None]:
    """Return what one step of all settings of a study costs the engine and C; None where there is no C compiler."""
    settings, how = list(study.settings()), (horizon_of(task), study.schedule, study.sampling)
    unit = LaneRun(task, settings, *how)
    column, segments = piece(task, STEPS, study.schedule, study.sampling)
    shape = outcome_rows(task, "R")[1]
    in_c = []
    for rule in {setting.rule: None for setting in settings}:  # C has a kernel for each learner
        for block in LaneRun(task, [setting for setting in settings if setting.rule == rule], *how).blocks:
            code = library(len(block.errors.now), shape.one_hot, shape.width)
            in_c += [c_call(code, block, column, segments)] if code else []

    def run_c() -> None:
        for call in in_c:
            call()

    best = best_times({"engine": lambda: unit.advance(STEPS), "C": run_c}, REPEATS)
    return best["engine"] / STEPS, best["C"] / STEPS if in_c else None


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums of all columns, None where a value is missing, and the ratio of the times."""
    columns = {name: [row[name] for row in rows] for name in ("updates", "engine_seconds", "c_seconds")}
    total = {name: None if None in values else sum(values) for name, values in columns.items()}
    return total | {"ratio": total["c_seconds"] and total["engine_seconds"] / total["c_seconds"]}


def paper_table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the printed table; the sum and what is run of it last."""
    sums = [{"study": "all"} | totals(result["studies"]), {"study": "all, each setting once"} | result["shared"]]
    return [
        (
            row["study"],
            f"{row['updates']:.3g}",
            f"{row['engine_seconds']:.1f}",
            "" if row["c_seconds"] is None else f"{row['c_seconds']:.1f}",
            "" if row["ratio"] is None else f"{row['ratio']:.2f}",
        )
        for row in [*result["studies"], *sums]
    ]
