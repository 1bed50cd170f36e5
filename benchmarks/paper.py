"""Compare the time of each study of the paper with C for the same learners, lanes and updates.

    python -m benchmarks.paper [--quick] [--json]

For each task of a study, all its settings run over a short piece of a run, as in a unit of a sweep: sampling, division
into segments, every block, errors. C runs blocks of the same lanes over a piece of the same length, without sampling.
Both are timed alternately on one core in CPU time, so other work on the machine does not count, and the best time is
scaled up to the study. C has no natural learners: GTD2 and TDC stand for them. Studies with a learner that has no
counterpart in C are not measured; the program lists them at the end.

Studies have settings in common. The last row is the work of `gradient-dd reproduce`: each setting once, with similar
studies in shared units. --quick times one setting of each learner over a few steps of the first task of each study. It
checks that everything runs, and does not measure speed.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.baselines import LEARNERS_IN_C, c_call, library
from benchmarks.engine import best_times, horizon_of, on_one_core, piece, print_progress
from gradient_dd.engine.kernels.rows import outcome_rows
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.studies import Study
from gradient_dd.studies.study import as_grid
from gradient_dd.tasks import Task
from tools.programs import parser_of, print_table

STEPS = 2**15  # of a piece
REPEATS = 7
QUICK_STEPS = 64
NATURAL = "natural_"
HEAD = ("study", "updates", "engine s", "C s", "/ C")


def without_c(study: Study) -> list[str]:
    """Return the learners of a study that have no counterpart in C."""
    names = dict.fromkeys(grid.learner for grid in study.grids)
    return [name for name in names if name.removeprefix(NATURAL) not in LEARNERS_IN_C]


def shortened(study: Study) -> Study:
    """Return the first task of a study with one setting of each learner."""
    first = {setting.rule: setting for setting in reversed(list(study.settings()))}
    return replace(study, tasks=study.tasks[:1], grids=tuple(map(as_grid, first.values())))


def run_paper_bench(on_progress: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """Measure the studies that C can run; return a row for each, the ratio of the sums, and the others by name.

    `on_progress` gets each study's name.
    """
    studies = [study for study in STUDIES.values() if not without_c(study)]
    skipped = {study.name: names for study in STUDIES.values() if (names := without_c(study))}
    pace = (QUICK_STEPS, 1) if quick else (STEPS, REPEATS)
    if quick:
        studies = [shortened(study) for study in studies]
    with on_one_core():
        rows = [study_row(study, on_progress, *pace) for study in studies]
        shared = [study_row(study, on_progress, *pace) for study in shared_studies(studies)]
    return {"studies": rows, "ratio": totals(rows)["ratio"], "shared": totals(shared), "no_baseline_in_c": skipped}


def shared_studies(studies: list[Study]) -> list[Study]:
    """Return studies of one task each that together have every setting of a sweep once."""
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


def study_row(study: Study, on_progress: Callable[[str], None], piece_steps: int, repeats: int) -> dict[str, Any]:
    """Return the updates of a study and the core-seconds of the engine and of C, all tasks and runs together."""
    engine, c = 0.0, 0.0 if library(8, True, 2) else None
    for task in study.built_tasks:
        on_progress(f"{study.name}: {task}")
        steps = (study.steps or study.episodes * task.expected_length) * study.runs  # type: ignore[operator]
        ours, theirs = seconds_per_step(study, task, piece_steps, repeats)
        engine += ours * steps
        c = None if c is None or theirs is None else c + theirs * steps
    row = {"updates": study.estimate()["updates"], "engine_seconds": engine, "c_seconds": c}
    return {"study": study.name} | totals([row])


def seconds_per_step(study: Study, task: Task, steps: int, repeats: int) -> tuple[float, float | None]:
    """Return the time of one step of all settings of a study for the engine and C; None without a C compiler."""
    settings, how = list(study.settings()), (horizon_of(task), study.schedule, study.sampling)
    unit = LaneRun(task, settings, *how)
    column, segments = piece(task, steps, study.schedule, study.sampling)
    shape = outcome_rows(task, "R")[1]
    in_c = []
    for rule in {setting.rule: None for setting in settings}:  # C has a kernel for each learner
        for block in LaneRun(task, [setting for setting in settings if setting.rule == rule], *how).blocks:
            code = library(len(block.errors.now), shape.one_hot, shape.width)
            in_c += [c_call(code, block, column, segments)] if code else []

    def run_c() -> None:
        for call in in_c:
            call()

    best = best_times({"engine": lambda: unit.advance(steps), "C": run_c}, repeats)
    return best["engine"] / steps, best["C"] / steps if in_c else None


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums of all columns, None where a value is missing, and the ratio of the times."""
    columns = {name: [row[name] for row in rows] for name in ("updates", "engine_seconds", "c_seconds")}
    total = {name: None if None in values else sum(values) for name, values in columns.items()}
    return total | {"ratio": total["c_seconds"] and total["engine_seconds"] / total["c_seconds"]}


def paper_table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the printed table, with the sum and the work of a reproduction last."""
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


def main(words: list[str] | None = None) -> None:
    """Measure, and print the table or JSON."""
    parser = parser_of(__doc__)
    parser.add_argument("--quick", action="store_true", help="show that everything runs; its times mean nothing")
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")
    chosen = parser.parse_args(words)
    result = run_paper_bench(print_progress, chosen.quick)
    if chosen.json:
        print(json.dumps(result, indent=2))
        return
    print_table(HEAD, paper_table(result))
    for name, learners in result["no_baseline_in_c"].items():
        print(f"No baseline in C: {name} ({', '.join(learners)})")


if __name__ == "__main__":
    main()
