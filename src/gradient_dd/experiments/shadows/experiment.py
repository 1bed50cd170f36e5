"""The learner that chooses, on a trial small enough to run at once: figures and verdicts of docs/shadows.md."""

from functools import partial
from typing import Any, NamedTuple

from gradient_dd.errors import Words, must
from gradient_dd.experiments.claims import Ask, Claim
from gradient_dd.experiments.drawing import Picture
from gradient_dd.experiments.experiment import STEPS as STEPS_OF_AN_EPISODE
from gradient_dd.experiments.experiment import Experiment, Job, PageContent, Scale, csv_text
from gradient_dd.experiments.shadows import draw, trial
from gradient_dd.experiments.shadows.measure import (
    Choices,
    StabilityMap,
    arrays_text,
    choices_over_time,
    read_choices,
    read_maps,
    reduced_cases,
    stability_maps,
)
from gradient_dd.experiments.verdicts import ClaimVerdict, Question, exactly

TUNED, SHOWN = 2, 3  # runs of the reduced trial
ROWS = "trial.rows"  # one line for each task that is done
WHERE = "docs/shadows.md"
FIGURES = {
    "shadows-plane": "Speed against safety.",
    "shadows-bars": "Geometric mean, 95th percentile and worst task of every learner.",
    "shadows-choices": "What is chosen over time on four tasks.",
    "shadows-maps": "Stability over c and alpha, measured and computed.",
}
SUMMARY = "group learner tasks geometric_mean low high percentile_95 worst"


class ShadowEvidence(NamedTuple):
    """The tables of the reduced trial, what is chosen over time, and maps of stability."""

    tables: dict[str, dict[str, Any]]
    choices: list[Choices]
    maps: list[StabilityMap]


def rules_at(scale: Scale) -> trial.TrialRules:
    """Return the rules of the reduced trial: fewer runs to tune on in proportion to those that are shown."""
    shown = scale.runs or SHOWN
    return trial.TrialRules(min(trial.STEPS, scale.steps or trial.STEPS), max(1, TUNED * shown // SHOWN), shown)


def measure(job: Job) -> ShadowEvidence:
    """Hold the trial, which goes on from the tasks that are done, and measure what stands beside it."""
    rows = trial_rows(job)
    made = "Choices over time", choices_over_time, arrays_text, read_choices
    maps = "Stability maps", stability_maps, arrays_text, read_maps
    return ShadowEvidence(
        trial.tables(rows),
        job.beside("tables/shadows-choices.csv", *made),
        job.beside("tables/shadows-maps.csv", *maps),
    )


def trial_rows(job: Job) -> list[trial.Row]:
    """Return a row for each task of the trial: run what the folder lacks, or raise where nothing may run."""
    cases, rules, file = reduced_cases(), rules_at(job.scale), job.folder / ROWS
    known = trial.read_rows(file)
    if job.how is None:
        done = {row["task"] for row in known if row.get("rules") == trial.rules_text(rules)}
        missing = sum(case.name not in done for case in cases)
        if missing:
            got, hint = Words(f"{missing} of {len(cases)} tasks missing"), "gradient-dd reproduce shadows goes on."
            raise must(f"The trial in {str(job.folder)!r}", "be complete", got, hint)

    def keep(row: trial.Row) -> None:
        trial.keep_row(file, row)
        job.on_stage(f"  done: {row['task']}")

    how = {name: value for name, value in (job.how or {}).items() if name in ("workers", "executor")}
    job.on_stage(f"A reduced trial of {len(cases)} tasks, {rules.tuned} runs to tune and {rules.shown} to show")
    return trial.run_trial(cases, rules, known, keep, **how)


def number(name: str, statement: str, value: float, bound: float, numbers: str, judged: bool = True) -> ClaimVerdict:
    """Return the verdict on a statement that a number is below a bound; `numbers` is what is shown of it."""
    asked = Question("exact", (), "below", bound, tuned_for="", answer=exactly(value), facts={"text": numbers})
    claim = Claim(name, WHERE, statement, Ask("the number on this trial", (), lambda evidence: [asked]), judged=judged)
    return claim.judge([asked], finding=numbers)


def judge(job: Job, evidence: ShadowEvidence) -> list[ClaimVerdict]:
    """Return the verdicts on the goals of the trial, and on the signs of measured exponents against exact ones."""
    return [*trial_verdicts(evidence.tables), *map_verdicts(evidence.maps)]


def trial_verdicts(tables: dict[str, dict[str, Any]]) -> list[ClaimVerdict]:
    """Return the verdicts on the goals of the trial."""
    whole, stable, unstable = (tables[name] for name in ("all tasks", "TD stable", "TD unstable"))
    tuned, free = trial.CHOOSERS
    mean, tail = whole[tuned]["geometric_mean"], whole[tuned]["percentile_95"]
    low, high = whole[tuned]["interval"]
    to_tdrc = stable[tuned]["geometric_mean"] / stable["TDRC"]["geometric_mean"]
    to_gtd2 = unstable[tuned]["geometric_mean"] / unstable["GTD2"]["geometric_mean"]
    rivals = {name: row["geometric_mean"] for name, row in whole.items() if name not in trial.CHOOSERS}
    best = min(rivals, key=lambda name: rivals[name])
    untuned = whole[free]["geometric_mean"]
    interval = f"{mean:.3f} [{low:.3f}, {high:.3f}]"
    return [
        number("ratio", "Geometric mean of the ratio to the best rival ≤ 1.10", mean, 1.1, interval),
        number("tail", "95th percentile of that ratio ≤ 1.5", tail, 1.5, f"{tail:.2f}"),
        number("stable", "Within 1.1 of TDRC where TD is stable", to_tdrc, 1.1, f"{to_tdrc:.2f} × TDRC"),
        number("unstable", "Within 1.1 of GTD2 where TD is unstable", to_gtd2, 1.1, f"{to_gtd2:.2f} × GTD2"),
        number(
            "even", "More even than every rival with 60 settings", mean, rivals[best], f"{best}: {rivals[best]:.3f}"
        ),
        number("free", "With nothing tuned within 1.5 of the best tuned rival", untuned, 1.5, f"{untuned:.2f}"),
    ]


def map_verdicts(maps: list[StabilityMap]) -> list[ClaimVerdict]:
    """Return the verdicts on the signs of measured exponents against exact ones; what shrinks is only counted."""
    made = []
    for place, one in enumerate(maps):
        safe, grows = one.square < 0, one.low > 0
        steady = (one.mean < 0) & ~safe
        wrong, shrinking = int((safe & grows).sum()), int((steady & (one.high < 0)).sum())
        no_growth = f"{one.name}: no shadow grows clearly where the mean square converges"
        shrinks = f"{one.name}: shadows that shrink where the mean converges and its square does not"
        of_safe, of_steady = (f"of {int(some.sum())} such settings" for some in (safe, steady))
        made.append(number(f"signs-{place + 1}", no_growth, wrong, 0.5, f"{wrong} {of_safe}"))
        made.append(number(f"shrinks-{place + 1}", shrinks, shrinking, 0, f"{shrinking} {of_steady}", judged=False))
    return made


def tables(job: Job, evidence: ShadowEvidence) -> dict[str, str]:
    """Return the summary of every learner in every group of tasks."""
    rows = (
        (group, name, one["tasks"], one["geometric_mean"], *one["interval"], one["percentile_95"], one["worst"])
        for group, table in evidence.tables.items()
        for name, one in table.items()
    )
    return {"shadows-trial": csv_text(SUMMARY, rows)}


def late_pictures(job: Job, evidence: ShadowEvidence, verdicts: list[ClaimVerdict]) -> list[Picture]:
    """Return the four pictures."""
    made = (
        partial(draw.draw_plane, evidence.tables),
        partial(draw.draw_bars, evidence.tables["all tasks"]),
        partial(draw.draw_choices, evidence.choices),
        partial(draw.draw_maps, evidence.maps),
    )
    return [Picture(name, one) for name, one in zip(FIGURES, made, strict=True)]


def content(job: Job, evidence: ShadowEvidence, verdicts: list[ClaimVerdict]) -> PageContent:
    """Return what the page shows."""
    rules, tasks = rules_at(job.scale), next(iter(evidence.tables["all tasks"].values()))["tasks"]
    facts = {"tasks": tasks, "rules": rules, "verdicts": verdicts, "figures": FIGURES}
    return PageContent(facts | {"table": "\n".join(trial.lines(evidence.tables))})


EXPERIMENT = Experiment(
    "shadows",
    "Shadows",
    "A learner that measures which learner it should be",
    Scale(SHOWN, trial.STEPS // STEPS_OF_AN_EPISODE),
    measure,
    judge,
    tables,
    content,
    late_pictures=late_pictures,
    columns={"statement": "statement", "verdict": "verdict", "measured": "finding"},
    folder="experiments/shadows",
)
