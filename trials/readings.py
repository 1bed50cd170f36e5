"""Measure the effect of two choices: the length of runs, and the last 100 steps instead of 100 episodes.

    python -m trials.readings [--part lengths | steps] [results]

`results` is the folder of a reproduction at the full scale.

lengths   The paper gives no length for the Boyan chain and for Baird's counterexample. The store has the curves of all
          settings. Learners are tuned for their error after a number of episodes or steps on one half of the runs, as
          in the paper, and compared on the other half.
steps     The text of 5.1 averages "the final 100 steps", its captions "the last 100 episodes". The selected settings of
          the walk run again on 20 new runs, with as many steps as 20,000 episodes have on average. Their error is the
          mean over the last 100 steps.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.asking import AS_PRINTED
from gradient_dd.experiments.paper.baird import DD, GTD2, TDC, TDRC
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.experiments.tuning import StudyEvidence
from gradient_dd.learners import Setting
from gradient_dd.report.figure import Line
from gradient_dd.studies import Study
from gradient_dd.studies.intervals import ratio_interval, select
from gradient_dd.studies.results import Results, places
from gradient_dd.studies.study import as_grid
from gradient_dd.studies.sweep import run_all
from tools.programs import parser_of, print_table

RIVALS = ("td", "tdrc", "gtd2", "tdc")
LENGTHS = {"boyan": (1_000, 2_000, 5_000, 10_000), "baird": (50_000, 100_000, 200_000), "baird-long": (1_000_000,)}
ON_BAIRD = {"gradient_dd": DD["R"], "gtd2": GTD2["R"], "tdc": TDC, "tdrc": TDRC}
RUNS, FIRST_RUN = 20, 1_000
EPISODES = STUDIES["walk"].episodes or 0


def told(ours: Array, theirs: Array) -> str:
    """Return a ratio with its interval."""
    ratio, low, high = ratio_interval((ours, theirs))
    return f"{ratio:.3g} [{low:.3g}, {high:.3g}]"


def after(results: Results, task: str, line: Line, length: int) -> Array:
    """Return errors of a line after a number of episodes or steps: tuned on half of the runs, tested on others."""
    settings = list(results.study.settings())
    ours = [settings[place] for place in places(settings, line.has)]
    ends = np.cumsum(results.study.horizon.bin_sizes() * results.study.horizon.every)
    errors = results.curves(task, ours)[1][:, :, int(np.searchsorted(ends, length))]
    half = errors.shape[1] // 2
    shown: Array = errors[select(errors[:, :half]), half:]
    return shown


def lengths(store: Path) -> Iterator[tuple[str, ...]]:
    """Yield the ratios of Gradient-DD to each rival by task and length."""
    for name, some in LENGTHS.items():
        results = Results(STUDIES[name], store)
        lines = AS_PRINTED if name == "boyan" else ON_BAIRD
        for task in (one for one in results.tasks if "ratios=paper" not in one):
            for length in some:
                ours = after(results, task, lines["gradient_dd"], length)
                rivals = (after(results, task, lines[rival], length) if rival in lines else None for rival in RIVALS)
                yield task, f"{length:,}", *("–" if one is None else told(ours, one) for one in rivals)


def final_steps(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the ratios on the walk by size, over the last 100 episodes of test runs and over the final 100 steps."""
    study, store = STUDIES["walk"], folder / "results.db"
    evidence = StudyEvidence(Results(study, store))
    for case, (task, *_) in evidence.cases.items():
        chosen = {name: evidence.choose(case, AS_PRINTED[name]).setting for name in ("gradient_dd", *RIVALS)}
        ends = last_episodes(study.fresh(2 * study.runs, list(chosen.values()), (task,)), store, chosen)
        steps = -(-int(EPISODES * task.expected_length) // 1000) * 1000
        again = replace(
            study,
            name="walk-final-steps",
            tasks=(task,),
            grids=tuple(map(as_grid, chosen.values())),
            episodes=None,
            steps=steps,
            runs=RUNS,
            first_run=FIRST_RUN,
        )
        (results,) = run_all([again], folder / "readings.db", workers=1)
        settings, errors = results.errors(str(task))
        final = {name: errors[settings.index(setting)] for name, setting in chosen.items()}
        for what, found in (("last 100 episodes", ends), ("final 100 steps", final)):
            yield case, what, *(told(found["gradient_dd"], found[rival]) for rival in RIVALS)


def last_episodes(study: Study, store: Path, chosen: dict[str, Setting]) -> dict[str, Array]:
    """Return the errors over the last 100 episodes on the test runs of a reproduction."""
    (task,) = Results(study, store).tasks
    settings, errors = Results(study, store).errors(task)
    return {name: errors[settings.index(setting)] for name, setting in chosen.items()}


def main(words: list[str] | None = None) -> None:
    """Print one table, or both."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("results"))
    parser.add_argument("--part", choices=("lengths", "steps"))
    chosen = parser.parse_args(words)
    if chosen.part != "steps":
        print_table(("task", "length", *(f"over {name}" for name in RIVALS)), lengths(chosen.folder / "results.db"))
    if chosen.part != "lengths":
        print_table(("task", "measured", *(f"over {name}" for name in RIVALS)), final_steps(chosen.folder))


if __name__ == "__main__":
    main()
