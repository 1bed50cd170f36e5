"""Standings: how every learner did on every problem, from the shown runs; what that says, in sentences; and all tables.

standings.csv      a row for each problem and learner: its tuned setting, error on the shown runs, rank, ratio
tuning-NAME.csv    of a problem: every setting on the tuning runs
shown-NAME.csv     of a problem: the selected settings, run by run, on the shown runs
trials.csv         the trials beside the studies, number by number; a report is written again from it
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.experiments.claims import first_upper
from gradient_dd.experiments.experiment import Job, csv_text
from gradient_dd.experiments.family.contest import MEASURES, Contest, Entrant, trace_length
from gradient_dd.experiments.family.problems import WITH_DD
from gradient_dd.experiments.family.ranks import MeanRank, ranks_in_words
from gradient_dd.experiments.verdicts import ClaimVerdict, Comparison
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies.intervals import Interval, estimate, has_exploded, ratio_interval
from gradient_dd.studies.results import edge
from gradient_dd.studies.store import Store

LITTLE = 0.01  # a change of the error whose whole interval is smaller is called little, whatever its sign
TIMED = ("collision", "walk-19", "random-mdp")  # problems whose costs are shown: few and many features, dense ones
MOST_TIMED = 5  # runs
SETTING = "learner lam setting"
TUNING = f"{SETTING} runs area_mean area_sem last100_mean last100_sem exploded_runs"
STANDINGS = "problem learner setting mean sem rank ratio low high diverged_runs exploded_settings settings edge"


class Standing(NamedTuple):
    """A learner on a problem, tuned over everything for the error over the whole run.

    mean, sem          its error on the shown runs
    rank               1 for the lowest mean
    ratio              to the learner that was best on the tuning runs, on the same shown runs, with its interval
    diverged           shown runs that exploded
    exploded, of       settings that exploded in some tuning run, of how many
    edge               parameters whose best value is the first or last that was tried
    """

    problem: str
    learner: str
    setting: Setting
    mean: float
    sem: float
    rank: int
    ratio: Interval
    diverged: int
    exploded: int
    of: int
    edge: str


@lru_cache(maxsize=1)
def standings(contest: Contest) -> list[Standing]:
    """Return a standing for each problem and learner; tables, pictures and page ask for those of one contest."""
    return [one for problem in contest.problems for one in on_problem(contest, problem.name)]


def on_problem(contest: Contest, problem: str) -> list[Standing]:
    """Return the standings of a problem, in the order of the learners."""
    errors = {name: contest.shown(problem, Entrant(name)) for name in contest.learners}
    means = {name: float(one.mean()) for name, one in errors.items()}
    best = errors[contest.favourite(problem)]
    found = []
    for name, ours in errors.items():
        setting = contest.choose(problem, Entrant(name))
        among = [one for one in contest.settings(problem, name) if one.rule is setting.rule]
        found.append(
            Standing(
                problem,
                name,
                setting,
                means[name],
                float(ours.std(ddof=1) / np.sqrt(len(ours))) if len(ours) > 1 and np.isfinite(ours).all() else np.inf,
                1 + sum(other < means[name] for other in means.values()),
                ratio_interval((ours, best)),
                int(has_exploded(ours, contest.first[problem]).sum()),
                *contest.exploded(problem, name),
                edge(setting, among),
            )
        )
    return found


def dd_comparisons(verdicts: list[ClaimVerdict]) -> dict[str, dict[str, list[Comparison]]]:
    """Return the comparisons of each learner with the DD term against itself without, by reading: how λ was chosen."""
    names = {f"dd-{base}": dd for dd, base in WITH_DD.items()}
    return {
        names[one.claim]: {judgement.reading: judgement.comparisons for judgement in one.judgements}
        for one in verdicts
        if one.claim in names
    }


def conclusions(verdicts: list[ClaimVerdict], ranks: dict[str, MeanRank]) -> list[str]:
    """Return what the comparison says, in short: how often the DD term helps, where most, where not, and who leads."""
    readings: dict[str, list[tuple[str, Comparison]]] = {}
    for dd, judged in dd_comparisons(verdicts).items():
        for reading, comparisons in judged.items():
            readings.setdefault(reading, []).extend((LEARNERS[WITH_DD[dd]].label, one) for one in comparisons)
    counts = [counted(reading, pairs) for reading, pairs in readings.items()]
    return [*counts, ranks_in_words(ranks)]


def counted(reading: str, pairs: list[tuple[str, Comparison]]) -> str:
    """Return in how many comparisons the term helps, and where it helps and harms most; each pair names a learner."""
    clear = [(label, one) for label, one in pairs if one.outcome != "open" and not is_little(one)]
    lower, higher = ([pair for pair in clear if pair[1].outcome == word] for word in ("holds", "fails"))
    sentence = f"With {reading} the DD term lowers the error in {len(lower)} of {len(pairs)} comparisons"
    sentence += f"{most(min, lower)}, raises it in {len(higher)}{most(max, higher)}, "
    return f"{sentence}and changes it by less than {100 * LITTLE:g} % or not clearly in {len(pairs) - len(clear)}."


def most(which: Callable[..., tuple[str, Comparison]], pairs: list[tuple[str, Comparison]]) -> str:
    """Return the strongest of some comparisons in brackets; nothing where there is none."""
    if not pairs:
        return ""
    label, one = which(pairs, key=lambda pair: pair[1].estimate)
    return f" (most in {label} on {listed([one])[:-1].replace(' (', ', ')})"


def is_little(one: Comparison) -> bool:
    """Return whether the whole interval of a ratio is close to 1."""
    return max(1 - one.low, one.high - 1) < LITTLE


def effects(verdicts: list[ClaimVerdict]) -> list[str]:
    """Return for each learner where the DD term helps it and where not, with intervals."""
    sentences = []
    for dd, readings in dd_comparisons(verdicts).items():
        parts = [f"with {reading} it {effect(comparisons)}." for reading, comparisons in readings.items()]
        label = LEARNERS[WITH_DD[dd]].label
        sentences.append(f"The DD term in {label}: {' '.join([parts[0], *map(first_upper, parts[1:])])}")
    return sentences


def effect(comparisons: list[Comparison]) -> str:
    """Return on which problems the term lowers the error, raises it, or changes it too little to matter or to show."""
    little = [one for one in comparisons if is_little(one)]
    rest = [one for one in comparisons if one not in little]
    lower, higher, open_ = ([one for one in rest if one.outcome == word] for word in ("holds", "fails", "open"))
    if len(open_) == len(comparisons):
        return "makes no difference that shows on any problem"
    parts = [f"lowers the error on {listed(lower)}"] if lower else []
    parts += [f"raises the error on {listed(higher)}"] if higher else []
    parts += [f"changes the error by less than {100 * LITTLE:g} % on {named(little)}"] if little else []
    return "; ".join([*parts, f"shows no difference on {named(open_)}"] if open_ else parts)


def named(comparisons: list[Comparison]) -> str:
    """Return problems by their names."""
    return ", ".join(one.task for one in comparisons)


def listed(comparisons: list[Comparison]) -> str:
    """Return problems with their ratios and intervals."""
    return ", ".join(f"{one.task} ({one.estimate:.2f} × [{one.low:.2f}, {one.high:.2f}])" for one in comparisons)


def tables(job: Job, contest: Contest) -> dict[str, str]:
    """Return all tables by name; that of the trials is written as soon as they are made."""
    ranked = ((*one[:2], str(one.setting), *one[3:6], *one.ratio, *one[7:]) for one in standings(contest))
    found = {"standings": csv_text(STANDINGS, ranked)}
    for problem in contest.problems:
        name, runs = problem.name, problem.runs_to_show(job.scale)
        found[f"tuning-{name}"] = csv_text(TUNING, tuning_rows(contest, name))
        found[f"shown-{name}"] = csv_text(f"{SETTING} run area last100", shown_rows(contest, name, runs))
    return found


def facts(setting: Setting) -> tuple[Any, ...]:
    """Return the columns that tell which setting a row is of."""
    return setting.rule.name, trace_length(setting), str(setting)


def tuning_rows(contest: Contest, problem: str) -> Iterable[tuple[Any, ...]]:
    """Yield a row for each setting."""
    settings, areas = contest.table(problem, "area")
    folded = [estimate(contest.table(problem, measure).errors) for measure in MEASURES]
    gone = has_exploded(areas, contest.first[problem]).sum(axis=1)
    for place, setting in enumerate(settings):
        measured = [value for one in folded for value in (one.mean[place], one.sem[place])]
        yield *facts(setting), areas.shape[1], *measured, gone[place]


def shown_rows(contest: Contest, problem: str, runs: range) -> Iterable[tuple[Any, ...]]:
    """Yield a row for each selected setting and run."""
    errors = [contest.table(problem, measure, fresh=True).errors for measure in MEASURES]
    for place, setting in enumerate(contest.table(problem, "area", fresh=True).settings):
        for number, run in enumerate(runs):
            yield *facts(setting), run, *(some[place, number] for some in errors)


def costs_of(job: Job, contest: Contest) -> dict[str, dict[str, float]]:
    """Return by problem and learner the nanoseconds of an update, the median over the first tuning runs."""
    found: dict[str, dict[str, float]] = {}
    with Store(job.store) as opened:
        for problem in (one for one in contest.problems if one.name in TIMED):
            times: dict[str, list[float]] = {}
            for run in problem.runs_to_tune(job.scale)[:MOST_TIMED]:
                for unit in opened.units([task.build() for task in problem.tasks_of(run)], range(run, run + 1)):
                    for learner, (seconds, updates) in unit.facts["costs"].items():
                        times.setdefault(learner, []).append(seconds / updates * 1e9)
            found[problem.name] = {learner: float(np.median(some)) for learner, some in times.items()}
    return found
