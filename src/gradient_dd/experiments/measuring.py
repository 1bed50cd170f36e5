"""From studies to verdicts: run what is wanted, select settings, run them on test runs, judge, and write the tables.

The evidence is a dict: that of each study by its name. The tables are:

NAME.csv          of a figure: one row per setting of its study, nothing dropped. All means are of the tuning runs
STUDY.csv         the same of a study that no figure shows
fresh-STUDY.csv   the same columns for the selected settings on test runs, which verdicts rest on
runs-STUDY.csv    what verdicts rest on run by run: `runs` says whether they are test runs ("fresh"); `unit` counts
                  them, or random initial weights, whose errors are relative to the initial one
times.csv         nanoseconds of an update in each run
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradient_dd.experiments.claims import Claim
from gradient_dd.experiments.experiment import Job
from gradient_dd.experiments.searching import SearchEvidence, search_all
from gradient_dd.experiments.tuning import StudyEvidence
from gradient_dd.experiments.verdicts import ClaimQuestion, ClaimVerdict
from gradient_dd.learners import Setting
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results, with_old_names
from gradient_dd.studies.search import SearchStudy
from gradient_dd.studies.study import as_grid

if TYPE_CHECKING:
    import pandas as pd

PARAMETERS = ("alpha", "zeta", "kappa", "reg", "c")
MEASURES = ("last100", "mean_error", "early", "episodes")

ByStudy = dict[str, StudyEvidence]


def measure(job: Job) -> ByStudy:
    """Run the studies of the figures that are wanted, their companions, and the selected settings on test runs."""
    shown = list(dict.fromkeys(figure.study for figure in job.figures))
    companions = job.experiment.companions
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
    questions = [one for _, asked in ask_all(job, evidence, with_theory=False) for one in asked]
    run_afresh(fresh_work(questions), evidence, job)
    return evidence


def ask_all(job: Job, evidence: ByStudy, with_theory: bool = True) -> list[tuple[Claim, list[ClaimQuestion]]]:
    """Return the questions of every claim whose studies are at hand; those of theory only if all figures are wanted."""
    asked = [
        (claim, claim.ask(evidence))
        for claim in job.experiment.claims
        if set(claim.studies) <= set(evidence) and (claim.studies or (with_theory and not job.names))
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
    """Run the selected settings of each study and case on test runs, and add them to the evidence.

    Studies that share a task, its runs and their length run together: the trajectory is sampled once for all settings.
    """
    shared: dict[str, tuple[Study, list[Setting]]] = {}
    wanted: dict[tuple[str, str], Study] = {}
    for (name, case), settings in work.items():
        wanted[name, case] = study = evidence[name].fresh_study(case, settings)
        how = [str(study.schedule), study.horizon, study.run_numbers, study.sampling, *map(str, study.built_tasks)]
        shared.setdefault(repr(how), (study, []))[1].extend(settings)
    studies = [replace(study, grids=tuple(map(as_grid, settings))) for study, settings in shared.values()]
    job.results(studies, "The selected settings on test runs")
    for (name, case), study in wanted.items():
        evidence[name].fresh[case] = Results(study, job.store)


def judge(job: Job, evidence: ByStudy) -> list[ClaimVerdict]:
    """Return the verdict of every claim that can be asked about."""
    return [claim.judge(questions) for claim, questions in ask_all(job, evidence)]


def tables(job: Job, evidence: ByStudy) -> dict[str, str]:
    """Return all tables by name."""
    import pandas as pd

    texts = {name: pd.concat(one.frames()).to_csv(index=False) for name, one in evidence.items()}
    shown = {figure.study for figure in job.figures}
    named = {figure.name: texts[figure.study] for figure in job.figures}
    named |= {name: text for name, text in texts.items() if name not in shown}
    for name, one in evidence.items():
        if one.fresh:
            frames = [results.frame() for results in one.fresh.values()]
            named[f"fresh-{name}"] = pd.concat(frames, ignore_index=True).to_csv(index=False)
        if one.used:
            named[f"runs-{name}"] = runs_frame(one).to_csv(index=False)
    times = [
        f'{name},"{case}",{learner},{unit},{value!r}'
        for name, one in evidence.items()
        for (case, learner), values in one.times.items()
        for unit, value in enumerate(values.tolist())
    ]
    if times:
        named["times"] = "\n".join(["study,task,learner,unit,nanoseconds", *times]) + "\n"
    return named


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
