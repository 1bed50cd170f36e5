"""`gradient-dd reproduce family`: run, tune, show, judge, draw, write; `gradient-dd report` writes it again.

Leaves in a folder: results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json, scale.json, report.html.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from gradient_dd.errors import Words, must
from gradient_dd.experiments.family.contest import Contest, hold, run_missing
from gradient_dd.experiments.family.figures import draw_all
from gradient_dd.experiments.family.ledger import judge
from gradient_dd.experiments.family.page import PageContent, write_page
from gradient_dd.experiments.family.problems import PROBLEMS, Problem, Scale, study_name
from gradient_dd.experiments.family.standings import Standing, conclusions, effects, standings
from gradient_dd.experiments.family.tables import costs_of, read_trials, write_tables, write_trials
from gradient_dd.experiments.family.trials import Trial, all_trials
from gradient_dd.experiments.paper.claims import Verdict
from gradient_dd.experiments.paper.reproduce import read_stored
from gradient_dd.experiments.paper.tables import write_claims
from gradient_dd.learners import LEARNERS
from gradient_dd.studies.store import Store

OnNotice = Callable[[str], None]
STORE, SCALE, TRIALS = "results.db", "scale.json", "tables/trials.csv"


@dataclass(frozen=True)
class Comparison:
    """What was made: conclusions in sentences, verdicts, standings, and the page that shows everything."""

    conclusions: list[str]
    verdicts: list[Verdict]
    standings: list[Standing]
    page: Path


def reproduce_family(
    folder: Path,
    scale: Scale,
    problems: Sequence[Problem] = PROBLEMS,
    learners: Sequence[str] = (),
    *,
    on_stage: OnNotice = lambda sentence: None,
    **how: Any,
) -> Comparison:
    """Compare learners (all by default) on problems; `how` goes to `run_all`. A second call resumes."""
    learners = tuple(learners) or tuple(LEARNERS)
    folder.mkdir(parents=True, exist_ok=True)
    begin = perf_counter()
    contest = hold(problems, learners, scale, partial(run_missing, store=folder / STORE, **how))
    on_stage(f"{len(learners)} learners on {len(problems)} problems, tuned and shown: {perf_counter() - begin:.1f} s")
    begin = perf_counter()
    trials = all_trials(problems, learners, scale)
    write_trials(trials, folder / TRIALS)
    (folder / SCALE).write_text(json.dumps(asdict(scale)) + "\n", encoding="utf-8")
    on_stage(f"{len(trials)} trials beside them: {perf_counter() - begin:.1f} s")
    return write_all(contest, trials, scale, folder, on_stage)


def rewrite_family(
    folder: Path,
    problems: Sequence[Problem] = PROBLEMS,
    learners: Sequence[str] = (),
    on_stage: OnNotice = lambda sentence: None,
) -> Comparison:
    """Make the same from what a folder holds, at the scale it was made at; runs nothing."""
    for name in (SCALE, TRIALS):
        if not (folder / name).is_file():
            hint = "`gradient-dd reproduce family` makes it."
            raise must(
                f"The folder {str(folder)!r}", f"hold {name}, which a finished comparison has", Words("none"), hint
            )
    scale = Scale(**json.loads((folder / SCALE).read_text("utf-8")))
    contest = hold(problems, learners, scale, partial(read_stored, store=folder / STORE))
    return write_all(contest, read_trials(folder / TRIALS), scale, folder, on_stage)


def holds_the_family(store: Path) -> bool:
    """Return whether a study of this comparison was started in a results file."""
    with Store(store) as opened:
        started = {one["name"] for one in opened.studies()}
    return any(study_name(problem) in started for problem in PROBLEMS)


def write_all(contest: Contest, trials: list[Trial], scale: Scale, folder: Path, on_stage: OnNotice) -> Comparison:
    """Judge, draw and write everything into the folder."""
    begin = perf_counter()
    verdicts, found = judge(contest, trials), standings(contest)
    answer, costs = conclusions(verdicts, found), costs_of(contest.problems, scale, folder / STORE)
    write_tables(contest, found, scale, folder / "tables")
    write_claims(verdicts, folder / "claims.json")
    figures = draw_all(contest, found, verdicts, costs, folder / "figures", scale.note)
    page = write_page(PageContent(contest, scale, answer, effects(verdicts), verdicts, found, figures), folder)
    on_stage(f"Verdicts, tables, figures and report: {perf_counter() - begin:.1f} s")
    return Comparison(answer, verdicts, found, page)
