"""A reproduction from studies to the page: tuning runs, selection, test runs, verdicts, pictures and files.

The evidence is a dict of the evidence of each study, by name. The tables are:

NAME.csv          for a figure: one row for every setting of its study, with means over tuning runs
STUDY.csv         the same table for a study that no figure shows
fresh-STUDY.csv   the same columns for the selected settings on test runs, on which verdicts are based
runs-STUDY.csv    the errors behind the verdicts, run by run: `runs` is "fresh" for test runs; `unit` counts runs, or
                  random initial weights, whose errors are relative to the initial error
times.csv         nanoseconds per update in each run
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gradient_dd.errors import Unquoted, bad_request, unknown
from gradient_dd.experiments.drawing import draw_all, drawing_picture, drawn_meanwhile, figure_picture
from gradient_dd.experiments.job import Job, OnNotice, Scale, read_scale, write_scale, write_text
from gradient_dd.experiments.page import page_text
from gradient_dd.experiments.paper.exact_statements import ExactStatement, check_statements
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.studies import COMPANIONS, STUDIES
from gradient_dd.experiments.tuning import ByStudy, SearchEvidence, StudyEvidence, search_all
from gradient_dd.experiments.verdicts import Claim, ClaimQuestion, ClaimVerdict
from gradient_dd.learners import Setting
from gradient_dd.report.play.page import live_page
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results, with_old_names
from gradient_dd.studies.search import SearchStudy
from gradient_dd.studies.study import as_grid, provenance
from gradient_dd.studies.sweep import Progress

if TYPE_CHECKING:
    import pandas as pd

PAGE = "report.html"
FIRST_RUNS = 3  # runs of the first look; with two runs, every interval would be undecided
PARAMETERS = ("alpha", "zeta", "kappa", "reg", "c")
MEASURES = ("last100", "mean_error", "early", "episodes")


@dataclass(frozen=True)
class Made:
    """The results of a job: verdicts, exact statements, the page that shows all results, and the duration."""

    job: Job
    verdicts: list[ClaimVerdict]
    statements: list[ExactStatement]
    page: Path
    seconds: float


def reproduce(
    names: tuple[str, ...], folder: Path, scale: Scale, on_stage: OnNotice = lambda sentence: None, **how: Any
) -> Made:
    """Draw the named figures (all by default), judge the claims about their studies, and return everything made.

    `how` holds keywords of `run_all`. `on_stage` is called after each stage with a sentence that names the work done
    and its duration. A second call resumes.

    The whole paper at its full scale begins with a first look: a page of the first runs, which the page of all runs
    later replaces. The first runs are part of the studies' own runs, so nothing runs twice.
    """
    check_names(names)
    folder.mkdir(parents=True, exist_ok=True)
    job = Job(names, folder, scale, how, on_stage)
    record = {"started": read_scale(folder)[1].get("started") or now()}
    if not names and scale == Scale() and not (folder / PAGE).exists():
        look_first(job, record)
    else:
        write_scale(folder, scale, record)
    return make(job, record)


def now() -> str:
    """Return the current UTC time as text."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def look_first(job: Job, record: dict[str, Any]) -> None:
    """Write a page of the first runs, and estimate the duration of the other runs."""
    begin, how = perf_counter(), dict(job.how or {})
    show, states = how.get("on_progress"), dict[int, Progress]()
    whole = sum(study.estimate()["updates"] for study in STUDIES.values())

    def on_progress(state: Progress) -> None:
        states[id(state)] = state
        if show:
            show(state)

    def minutes_left() -> int:
        updates = sum(state.updates for state in states.values())
        share = max(0.0, whole / updates - 1) if updates else 0.0
        seconds = sum(state.core_seconds for state in states.values()) / (how.get("workers") or cpu_count() or 1)
        return max(1, round(seconds * share / 60))

    scale = Scale(FIRST_RUNS, is_first_look=True)
    write_scale(job.folder, scale, record)
    made = make(replace(job, scale=scale, how=how | {"on_progress": on_progress}, minutes_left=minutes_left), record)
    job.on_stage(
        f"First look after {perf_counter() - begin:.0f} s, {scale.note.removeprefix('First look: ')}: {made.page}\n"
        f"The page will be updated when all runs are done, in about {minutes_left()} min."
    )


def plot(names: tuple[str, ...], folder: Path) -> list[Path]:
    """Draw figures from the results in a folder without running anything, and return the paths of the SVGs."""
    if names and set(names) <= set(DRAWINGS):
        return draw_all([drawing_picture(DRAWINGS[name]) for name in names], folder / "figures")
    job = reading(names, folder)
    needed = list(dict.fromkeys(figure.study for figure in job.figures))
    found = job.results([job.scale.of(STUDIES[name]) for name in needed], "The studies of figures")
    results = dict(zip(needed, found, strict=True))
    pictures = [figure_picture(figure, results[figure.study], job.scale.note) for figure in job.figures]
    return draw_all([*pictures, *map(drawing_picture, job.drawings)], folder / "figures")


def reading(names: tuple[str, ...], folder: Path, on_stage: OnNotice = lambda sentence: None) -> Job:
    """Return a job that rewrites all output from the results in a folder, at their scale, without running anything."""
    check_names(names)
    scale, _ = read_scale(folder)
    if scale is None:
        rule, hint = "hold the results of a reproduction", "Run gradient-dd reproduce."
        raise bad_request(f"The folder {str(folder)!r}", rule, Unquoted("none"), hint)
    return Job(names, folder, scale, None, on_stage)


def check_names(names: tuple[str, ...]) -> None:
    """Raise unless all names are names of figures."""
    known = [*FIGURES, *DRAWINGS]
    for name in names:
        if name not in known:
            raise unknown("figure", name, known)


def make(job: Job, record: Mapping[str, Any] | None = None) -> Made:
    """Get the results and judge the claims, then write pictures, tables and the page to the folder.

    `record`, if given, is stored with complete results, together with the time, the versions and the machine.
    """
    begin, figures = perf_counter(), job.folder / "figures"
    drawings = [drawing_picture(one) for one in job.drawings]
    with drawn_meanwhile(drawings, figures, gently=True):  # drawings need no study, so they are made while studies run
        evidence = measure(job)
        if record is not None:  # before this point, `report` can rewrite the page of a first look
            write_scale(job.folder, job.scale, {**record, "finished": now(), **provenance()})
        measured = perf_counter()
        shown = [figure_picture(one, evidence[one.study].results, job.scale.note) for one in job.figures]
        with drawn_meanwhile(shown, figures):
            verdicts = [claim.judge(questions) for claim, questions in ask_all(job, evidence)]
            statements = check_statements()
            for name, text in tables(job, evidence).items():
                write_text(job.folder / "tables" / f"{name}.csv", text)
            write_claims(verdicts, job.folder / "claims.json")
    page = job.folder / PAGE
    write_text(page, page_text(job, evidence, verdicts, statements))
    write_text(job.folder / "play.html", live_page())
    job.on_stage(f"Verdicts, tables, figures and report: {perf_counter() - measured:.1f} s")
    return Made(job, verdicts, statements, page, perf_counter() - begin)


def measure(job: Job) -> ByStudy:
    """Return the evidence: run the figures' studies, their companions, and the selected settings on test runs."""
    shown = list(dict.fromkeys(figure.study for figure in job.figures))
    beside = {one.name: name for name in shown for one in COMPANIONS.get(name, ()) if not job.leaves_out(one)}
    studies = {name: job.scale.of(STUDIES[name]) for name in (*shown, *beside)}
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
    """Return the questions of every claim whose studies ran; claims of theory only if all figures are requested."""
    asked = [
        (claim, claim.ask(evidence))
        for claim in CLAIMS
        if set(claim.studies) <= set(evidence) and (claim.studies or (with_theory and not job.names))
    ]
    return [(claim, questions) for claim, questions in asked if questions or not job.scale.is_first_look]


def fresh_work(questions: Iterable[ClaimQuestion]) -> dict[tuple[str, str], list[Setting]]:
    """Return the settings that questions name, each once, by study and case."""
    work: dict[tuple[str, str], list[Setting]] = {}
    for chosen in (one for question in questions for pair in question.pairs for one in (pair.ours, pair.rival)):
        if chosen is not None:
            settings = work.setdefault((chosen.evidence.study.name, chosen.case), [])
            if chosen.setting not in settings:
                settings.append(chosen.setting)
    return work


def run_afresh(work: dict[tuple[str, str], list[Setting]], evidence: ByStudy, job: Job) -> None:
    """Run the selected settings of each study and case on test runs, and add the results to the evidence.

    Studies with the same task, runs and length run together: each trajectory is sampled once for all settings.
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


def tables(job: Job, evidence: ByStudy) -> dict[str, str]:
    """Return all tables by name."""
    import pandas as pd

    texts = {name: pd.concat(one.frames()).to_csv(index=False) for name, one in evidence.items()}
    named = {figure.name: texts[figure.study] for figure in job.figures}
    shown = {figure.study for figure in job.figures}
    named |= {name: text for name, text in texts.items() if name not in shown}
    times = []
    for name, one in evidence.items():
        if one.fresh:
            frames = [results.frame() for results in one.fresh.values()]
            named[f"fresh-{name}"] = pd.concat(frames, ignore_index=True).to_csv(index=False)
        if one.used:
            named[f"runs-{name}"] = runs_frame(one).to_csv(index=False)
        for (case, learner), values in one.times.items():
            times += [f'{name},"{case}",{learner},{unit},{value!r}' for unit, value in enumerate(values.tolist())]
    if times:
        named["times"] = "\n".join(["study,task,learner,unit,nanoseconds", *times]) + "\n"
    return named


def runs_frame(evidence: StudyEvidence) -> "pd.DataFrame":
    """Return one row for each setting and run on which a verdict is based."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for (fresh, case, _), (setting, errors) in evidence.used.items():
        common: dict[str, Any] = {name: setting.values.get(name) for name in PARAMETERS}
        common |= {"task": case, "runs": "fresh" if fresh else "selection", "learner": setting.rule.name}
        for unit, row in enumerate(zip(*errors.values(), strict=True)):
            rows.append(common | {"rho_mode": setting.rho_mode, "unit": unit} | dict(zip(errors, row, strict=True)))
    columns = ["task", "runs", "learner", *PARAMETERS, "rho_mode", "unit", *MEASURES]
    return with_old_names(pd.DataFrame(rows, columns=columns))


def write_claims(verdicts: Iterable[ClaimVerdict], target: Path) -> None:
    """Write the verdicts as JSON; infinite and undefined numbers are written as strings, such as "inf"."""
    words = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}
    data = json.loads(json.dumps([asdict(one) for one in verdicts]), parse_constant=words.get)
    write_text(target, json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
