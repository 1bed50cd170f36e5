"""`gradient-dd reproduce family`: run, tune, show, judge, draw, write.

Leaves in a folder: results.db, figures/NAME.{svg,png}, tables/NAME.csv, claims.json, report.html.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from gradient_dd.family.contest import hold
from gradient_dd.family.figures import draw_all
from gradient_dd.family.ledger import judge
from gradient_dd.family.page import PageContent, write_page
from gradient_dd.family.problems import PROBLEMS, Problem, Scale
from gradient_dd.family.standings import Standing, conclusions, standings
from gradient_dd.family.tables import costs_of, write_tables
from gradient_dd.family.trials import all_trials
from gradient_dd.learners import LEARNERS
from gradient_dd.paper.claims import Verdict
from gradient_dd.paper.tables import write_claims

OnNotice = Callable[[str], None]


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
    contest = hold(problems, learners, scale, folder / "results.db", **how)
    on_stage(f"{len(learners)} learners on {len(problems)} problems, tuned and shown: {perf_counter() - begin:.1f} s")
    begin = perf_counter()
    trials = all_trials(problems, learners, scale)
    on_stage(f"{len(trials)} trials beside them: {perf_counter() - begin:.1f} s")
    begin = perf_counter()
    verdicts, found = judge(contest, trials), standings(contest)
    told, costs = conclusions(verdicts, found), costs_of(problems, scale, folder / "results.db")
    write_tables(contest, found, scale, folder / "tables")
    write_claims(verdicts, folder / "claims.json")
    figures = draw_all(contest, found, verdicts, costs, folder / "figures", scale.note)
    page = write_page(PageContent(contest, scale, told, verdicts, found, figures), folder)
    on_stage(f"Verdicts, tables, figures and report: {perf_counter() - begin:.1f} s")
    return Comparison(told, verdicts, found, page)
