"""The plain kind of experiment: claims and figures that name studies, judged on fresh runs of what was selected there.

The evidence is a dict: that of each study by its name. Its tables are:

NAME.csv          of a figure: one row per setting of its study, nothing dropped. All means are of the runs that
                  settings are selected on
STUDY.csv         the same of a study that no figure shows
fresh-STUDY.csv   the same columns for the selected settings on fresh runs, which verdicts rest on
runs-STUDY.csv    what verdicts rest on run by run: `runs` says whether they are fresh; `unit` counts them, or random
                  first weights, whose errors are relative to the first one
times.csv         nanoseconds of an update in each run
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gradient_dd.experiments.claims import Claim, decisive
from gradient_dd.experiments.drawing import Picture, figure_picture
from gradient_dd.experiments.experiment import STEPS, Experiment, Job, PageContent, Scale
from gradient_dd.experiments.searching import SearchEvidence, search_all
from gradient_dd.experiments.tuning import StudyEvidence, as_grid
from gradient_dd.experiments.verdicts import MAIN, SIGNS, ClaimQuestion, ClaimVerdict, Comparison, totals
from gradient_dd.learners import Setting
from gradient_dd.report.figure import BLACK, COLOURS, NAMES, SYMBOLS, Figure, joined, panels_of
from gradient_dd.report.page import Shown, figure_facts
from gradient_dd.report.svg import BARE, Dot, forest, ratio_axis
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results, with_old_names
from gradient_dd.studies.search import SearchStudy
from gradient_dd.tasks import Task

if TYPE_CHECKING:
    import pandas as pd

PARAMETERS = ("alpha", "zeta", "kappa", "reg", "c")
MEASURES = ("last100", "mean_error", "early", "episodes")
MOST_DOTS = 14  # of a small picture
OURS = "gradient_dd"
MEASURED = {"last100": "at the end", "mean_error": "over the whole run"}
WORLDS = {"random_walk": "Random walk", "boyan_chain": "Boyan chain", "baird": "Baird's counterexample"}
READING = "usual ratios, ρ placed R, the paper's first weights"  # whose numbers stand for a task with several readings

ByStudy = dict[str, StudyEvidence]
Companions = Mapping[str, tuple[Study, ...]]


def study_experiment(
    name: str,
    title: str,
    studies: Iterable[Study],
    claims: Iterable[Claim],
    figures: Iterable[Figure],
    companions: Companions | None = None,
    **more: Any,
) -> Experiment:
    """Return an experiment of studies. `companions` are the studies that claims on a study are judged on besides."""
    known = {one.name: one for one in studies}
    longest = max(one.episodes or (one.steps or 0) // STEPS for one in known.values())
    full = Scale(max(one.runs for one in known.values()), max(1, longest))
    beside, asked = companions or {}, tuple(claims)
    plain = Experiment(
        name,
        title,
        title,
        full,
        partial(measure, companions=beside, claims=asked),
        partial(judge, claims=asked),
        tables,
        content,
        pictures=pictures,
        studies=known | {one.name: one for some in beside.values() for one in some},
        figures={one.name: one for one in figures},
    )
    return replace(plain, **more)


def measure(job: Job, companions: Companions, claims: tuple[Claim, ...]) -> ByStudy:
    """Run the studies of the figures that are wanted, and their companions, and the selected settings afresh."""
    shown = list(dict.fromkeys(figure.study for figure in job.figures))
    beside = {one.name: name for name in shown for one in companions.get(name, ()) if not job.leaves_out(one)}
    studies = {name: job.at_scale(job.experiment.studies[name]) for name in (*shown, *beside)}
    plain = [one for one in studies.values() if not isinstance(one, SearchStudy)]
    results = job.results(plain, f"{len(plain)} studies")
    evidence = {one.study.name: StudyEvidence(one) for one in results}
    for companion, name in beside.items():
        one, study = studies[companion], studies[name]
        if isinstance(one, SearchStudy):
            evidence[companion] = SearchEvidence(Results(one, job.store), beside=study)
        elif one.horizon == study.horizon:
            evidence[companion].beside = study
    search_all([one for one in evidence.values() if isinstance(one, SearchEvidence)], job)
    of_studies = tuple(claim for claim in claims if claim.studies)
    questions = [one for _, asked in ask_all(job, evidence, of_studies) for one in asked]
    run_afresh(fresh_work(questions), evidence, job)
    return evidence


def ask_all(job: Job, evidence: ByStudy, claims: tuple[Claim, ...]) -> list[tuple[Claim, list[ClaimQuestion]]]:
    """Return the questions of every claim whose studies are at hand; those of theory only if all figures are wanted."""
    asked = [
        (claim, claim.ask(evidence))
        for claim in claims
        if set(claim.studies) <= set(evidence) and (claim.studies or not job.names)
    ]
    return [(claim, questions) for claim, questions in asked if questions or not job.scale.is_first_look]


def fresh_work(questions: Iterable[ClaimQuestion]) -> dict[tuple[str, str], list[Setting]]:
    """Return for each study and case every setting that a question names, once."""
    work: dict[tuple[str, str], list[Setting]] = {}
    for pair in (pair for question in questions for pair in question.pairs):
        for chosen in (pair.ours, pair.rival):
            if chosen is not None:
                settings = work.setdefault((chosen.evidence.study.name, chosen.case), [])
                if chosen.setting not in settings:
                    settings.append(chosen.setting)
    return work


def run_afresh(work: dict[tuple[str, str], list[Setting]], evidence: ByStudy, job: Job) -> None:
    """Run the selected settings of each study and case on fresh runs, and add them to the evidence.

    Studies that share a task, its runs and their length run together: the trajectory is sampled once for all settings.
    """
    shared: dict[str, tuple[Study, list[Setting]]] = {}
    wanted: dict[tuple[str, str], Study] = {}
    for (name, case), settings in work.items():
        wanted[name, case] = study = evidence[name].fresh_study(case, settings)
        how = [str(study.schedule), study.horizon, study.run_numbers, study.sampling, *map(str, study.built_tasks)]
        shared.setdefault(repr(how), (study, []))[1].extend(settings)
    studies = [replace(study, grids=tuple(map(as_grid, settings))) for study, settings in shared.values()]
    job.results(studies, "The selected settings on fresh runs")
    for (name, case), study in wanted.items():
        evidence[name].fresh[case] = Results(study, job.store)


def judge(job: Job, evidence: ByStudy, claims: tuple[Claim, ...]) -> list[ClaimVerdict]:
    """Return the verdict of every claim that can be asked about."""
    return [claim.judge(questions) for claim, questions in ask_all(job, evidence, claims)]


def pictures(job: Job, evidence: ByStudy) -> list[Picture]:
    """Return the pictures of the figures that are wanted."""
    return [figure_picture(figure, evidence[figure.study].results, job.note) for figure in job.figures]


def tables(job: Job, evidence: ByStudy) -> dict[str, str]:
    """Return all tables by name."""
    import pandas as pd

    texts = {name: pd.concat(one.frames()).to_csv(index=False) for name, one in evidence.items()}
    shown = {figure.study for figure in job.figures}
    named = {figure.name: texts[figure.study] for figure in job.figures}
    named |= {name: text for name, text in texts.items() if name not in shown}
    for name, one in evidence.items():
        if one.fresh:
            named[f"fresh-{name}"] = fresh_frame(one).to_csv(index=False)
        if one.used:
            named[f"runs-{name}"] = runs_frame(one).to_csv(index=False)
    times = [row for name, one in evidence.items() for row in time_rows(name, one)]
    if times:
        named["times"] = "\n".join(["study,task,learner,unit,nanoseconds", *times]) + "\n"
    return named


def fresh_frame(evidence: StudyEvidence) -> "pd.DataFrame":
    """Return one row for each case and selected setting, on fresh runs."""
    import pandas as pd

    return pd.concat([results.frame() for results in evidence.fresh.values()], ignore_index=True)


def runs_frame(evidence: StudyEvidence) -> "pd.DataFrame":
    """Return one row for each setting and run that a verdict rests on."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for used in evidence.used.values():
        setting = used.setting
        common: dict[str, Any] = {
            "task": used.case,
            "runs": "fresh" if used.fresh else "selection",
            "learner": setting.rule.name,
        }
        common |= {name: setting.values.get(name) for name in PARAMETERS} | {"rho_mode": setting.rho_mode}
        length = len(next(iter(used.errors.values())))
        for unit in range(length):
            measured = {name: used.errors[name][unit] for name in MEASURES if name in used.errors}
            rows.append(common | {"unit": unit} | measured)
    columns = ["task", "runs", "learner", *PARAMETERS, "rho_mode", "unit", *MEASURES]
    return with_old_names(pd.DataFrame(rows, columns=columns))


def time_rows(name: str, evidence: StudyEvidence) -> list[str]:
    """Return a line for each learner and run whose time was taken."""
    return [
        f'{name},"{case}",{learner},{unit},{value!r}'
        for (case, learner), values in evidence.times.items()
        for unit, value in enumerate(values.tolist())
    ]


def content(job: Job, evidence: ByStudy, verdicts: list[ClaimVerdict]) -> PageContent:
    """Return what the page shows: the ledger of claims, and the figures with their numbers."""
    results = {figure.study: evidence[figure.study].results for figure in job.figures}
    facts = {
        "totals": totals(verdicts),
        "signs": SIGNS,
        "runs": run_counts(results.values(), verdicts),
        "rows_of_paper": [ledger_row(one, job) for one in verdicts if one.source == "paper"],
        "rows_of_time": [ledger_row(one, job) for one in verdicts if one.source == "time"],
        "rows_of_ours": [ledger_row(one, job) for one in verdicts if one.source == "ours"],
        "figures": [shown_figure(figure, job, results[figure.study], verdicts) for figure in job.figures],
    }
    return PageContent(facts, results, [one.study for one in evidence.values()])


def shown_figure(figure: Figure, job: Job, results: Results, verdicts: list[ClaimVerdict]) -> dict[str, Any]:
    """Return what the page shows of a figure. Figures of one study share one table, that of the first of them."""
    table = next(one.name for one in job.figures if one.study == figure.study)
    claims = tuple(verdict.claim for verdict in verdicts if figure.study in verdict.studies)
    told = heading(figure, results.tasks.values(), verdicts)
    shown = Shown(figure, panels_of(figure, results), results.study, table, claims, told)
    return figure_facts(shown, job.folder / "figures")


def run_counts(results: Iterable[Results], verdicts: list[ClaimVerdict]) -> dict[str, str]:
    """Return on how many runs settings were selected and judged, in words."""
    selection = sorted({one.study.runs for one in results})
    comparisons = [one for verdict in verdicts for one in verdict.comparisons]
    fresh = sorted({one.runs for one in comparisons if one.kind in ("ratio", "growth", "share")})
    return {"selection": " or ".join(map(str, selection)), "fresh": ", ".join(map(str, fresh))}


def ledger_row(verdict: ClaimVerdict, job: Job) -> dict[str, Any]:
    """Return a row of the ledger: a verdict, its picture, what it links to, and all of its comparisons."""
    used = dict.fromkeys(name for one in verdict.comparisons for name in one.study.split(", ") if name)
    names = [f"{kind}-{study}" for study in used for kind in ("fresh", "runs")]
    return {
        "verdict": verdict,
        "class": SIGNS.get(verdict.verdict, "open"),
        "picture": small_picture(verdict),
        "figures": [figure.name for figure in job.figures if figure.study in verdict.studies],
        "tables": [name for name in names if (job.folder / "tables" / f"{name}.csv").is_file()],
        "studies": list(used),
        "comparisons": verdict.comparisons,
    }


def rival_of(one: Comparison) -> str:
    """Return the name of the learner that a comparison is against; empty where there is none."""
    return str((one.rival or {}).get("learner", ""))


def dot(one: Comparison, hollow: bool = False) -> Dot:
    """Return a comparison as a dot in the rival's colour; a `hollow` one stands beside the dot before."""
    rival, symbol = rival_of(one), SYMBOLS.get(one.task.partition("(")[0], "")
    label = f"{symbol} = {one.size}, {NAMES.get(rival, rival)}" + (" ⚠" if one.edge and not hollow else "")
    note = "; ".join(part for part in (one.tuning, f"{one.runs} runs", one.edge and f"edge: {one.edge}") if part)
    return Dot(label, one.estimate, one.low, one.high, COLOURS.get(rival, BLACK), hollow, note, beside=hollow)


def small_picture(verdict: ClaimVerdict) -> str:
    """Return the ratios of a verdict and its bound as a small picture; nothing where it has none, or too many."""
    some = [one for one in verdict.comparisons if one.tuning == decisive(verdict.judgements)]
    shown = [one for one in some if one.kind in ("ratio", "growth", "share", "time")]
    if not 0 < len(shown) <= MOST_DOTS:
        return ""
    dots, bound = [dot(one) for one in shown], shown[0].bound
    return forest(dots, ratio_axis(dots, bound), bound, size=BARE)


def heading(figure: Figure, tasks: Iterable[Task], verdicts: Sequence[ClaimVerdict]) -> str:
    """Return what fresh runs say of a figure: Gradient-DD against its rivals, or the best value against the worst.

    Empty where no claim compares the lines of the figure.
    """
    some = [one for verdict in verdicts for one in verdict.comparisons if is_shown(one, figure)]
    if not some:
        return ""
    name = some[0].task.partition("(")[0]
    policies = next(one.policies for one in tasks if one.name == name)
    place = f"{WORLDS.get(name, name)}, {policies}, {MEASURED[figure.measure]}"
    if len({line.learner for line in figure.lines}) == 1:
        return f"{place}: {spread(some, figure)}"
    largest = [one for one in some if one.size == max(other.size for other in some)]
    rivals = {
        rival_of(one): f"{one.estimate:.3g} × that of {NAMES.get(rival_of(one), rival_of(one))}" for one in largest
    }
    reading = "" if largest[0].reading == "default" else f" ({largest[0].reading})"
    told = f"the error of Gradient-DD is {joined(list(rivals.values()))}"
    return f"{place}: at {SYMBOLS.get(name, 'size')} = {largest[0].size}{reading} {told}"


def is_shown(one: Comparison, figure: Figure) -> bool:
    """Return whether a comparison is of lines that a figure shows, tuned as the paper has it for what it shows."""
    if one.kind != "ratio" or not one.ours or not one.rival or figure.study not in one.study.split(", "):
        return False
    if one.tuning != MAIN or one.measure != figure.measure or one.tuned_for != figure.measure:
        return False
    learners = {line.learner for line in figure.lines}
    alone = learners == {OURS}
    if one.ours["learner"] != OURS or (one.rival["learner"] == OURS) != alone:
        return False
    if alone:
        return all(short(side["label"])[0] == figure.lines[0].label[0] for side in (one.ours, one.rival))
    return one.rival["learner"] in learners and one.reading in ("default", READING)


def short(label: str) -> str:
    """Return the parameter of a label such as "Gradient-DD, κ = 4"."""
    return label.partition(", ")[2] or label


def spread(some: list[Comparison], figure: Figure) -> str:
    """Return for each size the best value of a parameter, and how far the worst is from it."""
    parts = []
    for size in sorted({one.size for one in some}):
        worst = max((one for one in some if one.size == size), key=lambda one: one.estimate)
        ours, rival = (short((side or {})["label"]) for side in (worst.ours, worst.rival))
        symbol = SYMBOLS.get(worst.task.partition("(")[0], "size")
        parts.append(f"{symbol} = {size}, {ours} has {worst.estimate:.3g} × the error of {rival}")
    return "; ".join(parts)
