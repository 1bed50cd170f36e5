"""The whole family compared: every learner on the problems of the field, tuned alike, judged on fresh runs."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from gradient_dd.experiments.claims import tallies
from gradient_dd.experiments.experiment import Experiment, Job, PageContent
from gradient_dd.experiments.family.contest import Contest, hold_contest
from gradient_dd.experiments.family.figures import late_pictures
from gradient_dd.experiments.family.ledger import judge
from gradient_dd.experiments.family.problems import FULL, PROBLEMS, Problem
from gradient_dd.experiments.family.ranks import mean_ranks
from gradient_dd.experiments.family.standings import Standing, conclusions, effects, standings, tables
from gradient_dd.experiments.family.trials import all_trials, read_trials, trials_text
from gradient_dd.experiments.verdicts import SIGNS, ClaimVerdict
from gradient_dd.learners import LEARNERS
from gradient_dd.report.figure import BLACK, BLUE, RED
from gradient_dd.report.page import setting_text
from gradient_dd.report.svg import BARE, Dot, forest, ratio_axis

TRIALS = "tables/trials.csv"
COLOURS = {"holds": RED, "fails": BLUE, "open": BLACK}
MOST_DOTS = 12  # of a small picture
MOST_LISTED = 8  # comparisons of a finding; of more, only the counts are shown


def measure(job: Job, problems: Sequence[Problem], learners: Sequence[str]) -> Contest:
    """Return the contest: every learner tuned and shown on every problem, and the trials beside the studies."""
    contest = hold_contest(job, problems, learners)
    make = partial(all_trials, problems, learners, job.scale)
    contest.trials = job.beside(TRIALS, "Trials beside the studies", make, trials_text, read_trials)
    return contest


def content(job: Job, contest: Contest, verdicts: list[ClaimVerdict]) -> PageContent:
    """Return what the page shows."""
    settings = contest.table(contest.problems[0].name, "area").settings  # each learner has as many on all problems
    return PageContent(
        {
            "effects": effects(verdicts),
            "alphas": [f"alpha-{problem.name}" for problem in contest.problems],
            "ledger": [ledger_row(one) for one in verdicts],
            "problems": [problem_row(contest, one, job) for one in contest.problems],
            "budgets": [
                (LEARNERS[name].label, sum(one.rule.name == name for one in settings)) for name in contest.learners
            ],
            "standings": [standing_row(one) for one in standings(contest)],
        }
    )


def ledger_row(verdict: ClaimVerdict) -> dict[str, Any]:
    """Return a row of the ledger: a verdict, its picture and its comparisons."""
    comparisons = verdict.comparisons
    dots = [
        Dot(one.text.removesuffix(":"), one.estimate, one.low, one.high, COLOURS[one.outcome]) for one in comparisons
    ][:MOST_DOTS]
    bound = comparisons[0].bound
    return {
        "verdict": verdict,
        "class": SIGNS.get(verdict.verdict, "open"),
        "picture": forest(dots, ratio_axis(dots, bound), bound, size=BARE),
        "comparisons": comparisons,
        "finding": verdict.finding if len(comparisons) <= MOST_LISTED else tallies(verdict.judgements, goals=False),
    }


def problem_row(contest: Contest, problem: Problem, job: Job) -> dict[str, Any]:
    """Return what the page tells of a problem."""
    steps, every = problem.length(job.scale.steps)
    return {
        "name": problem.name,
        "title": f"{problem.title}, {problem.example().policies}",
        "steps": f"{steps:,}",
        "every": every,
        "tuning": len(problem.runs_to_tune(job.scale)),
        "shown": len(problem.runs_to_show(job.scale)),
        "first": contest.first[problem.name],
        "best": LEARNERS[contest.favourite(problem.name)].label,
        "drawn": "drawn anew in every run" if problem.drawn else "",
    }


def standing_row(one: Standing) -> dict[str, Any]:
    """Return a standing as the page shows it."""
    return one._asdict() | {"label": LEARNERS[one.learner].label, "setting": setting_text(one.setting)}


def family_experiment(problems: Sequence[Problem] = PROBLEMS, learners: Sequence[str] = ()) -> Experiment:
    """Return the comparison of some learners, all by default, on some problems."""
    return Experiment(
        "family",
        "The family of gradient TD learners, compared",
        "Where does the DD term help, and with what?",
        FULL,
        partial(measure, problems=problems, learners=tuple(learners) or tuple(LEARNERS)),
        lambda job, contest: judge(contest),
        tables,
        content,
        lambda contest, verdicts: conclusions(verdicts, mean_ranks(contest)),
        late_pictures=late_pictures,
        folder="experiments/family",
    )


EXPERIMENT = family_experiment()
