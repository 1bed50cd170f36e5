"""The trial of `AutoLearner`, small enough to run at once: figures and verdicts of docs/auto-learner.md."""

from functools import partial
from typing import Any, NamedTuple

from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.experiments.claims import Ask, Claim
from gradient_dd.experiments.drawing import Picture
from gradient_dd.experiments.experiment import STEPS as STEPS_OF_AN_EPISODE
from gradient_dd.experiments.experiment import Experiment, Job, PageContent, Scale, csv_text
from gradient_dd.experiments.learner import cases, draw, trial
from gradient_dd.experiments.verdicts import ClaimQuestion, ClaimVerdict, exactly

FIRST = 61_000_000  # seeds of the reduced trial
EACH, TUNED, SHOWN, STEPS = 2, 2, 3, 20_000
ROWS = "trial.rows"  # one line for each task that is done
WHERE = "docs/auto-learner.md"
FIGURES = {
    "learner-bars": "Geometric mean, 95th percentile and worst task of every learner.",
    "learner-plane": "Speed where TD is stable against safety where it is not.",
}
SUMMARY = "rivals group learner tasks geometric_mean low high percentile_95 worst"


class LearnerEvidence(NamedTuple):
    """The rows of the reduced trial, and its tables: over the best rival as it is, and as it is or averaged."""

    rows: list[trial.Row]
    plain: dict[str, dict[str, Any]]
    averaged: dict[str, dict[str, Any]]


def reduced_cases() -> list[cases.Case]:
    """Return the tasks of the reduced trial: two of every kind but the torus, other seeds."""
    return [*cases.small_cases(EACH, FIRST, steps=STEPS)]


def rules_at(scale: Scale) -> trial.TrialRules:
    """Return the rules of the reduced trial: fewer runs to tune on in proportion to those that are shown."""
    shown = scale.runs or SHOWN
    return trial.TrialRules(max(1, TUNED * shown // SHOWN), shown, min(STEPS, scale.steps or STEPS))


def measure(job: Job) -> LearnerEvidence:
    """Hold the trial, which goes on from the tasks that are done."""
    rows = trial_rows(job)
    return LearnerEvidence(rows, trial.tables(rows), trial.tables(rows, averaged=True))


def trial_rows(job: Job) -> list[trial.Row]:
    """Return a row for each task of the trial: run what the folder lacks, or raise where nothing may run."""
    some, rules, file = reduced_cases(), rules_at(job.scale), job.folder / ROWS
    known = trial.read_rows(file)
    if job.how is None:
        done = {row["task"] for row in known if row.get("rules") == str(rules)}
        missing = sum(case.name not in done for case in some)
        if missing:
            got, hint = Unquoted(f"{missing} of {len(some)} tasks missing"), "gradient-dd reproduce learner goes on."
            raise bad_request(f"The trial in {str(job.folder)!r}", "be complete", got, hint)

    def keep(row: trial.Row) -> None:
        trial.keep_row(file, row)
        job.on_stage(f"  done: {row['task']}")

    how = {name: value for name, value in (job.how or {}).items() if name in ("workers", "executor")}
    job.on_stage(f"A reduced trial of {len(some)} tasks, {rules}")
    return trial.run_trial(some, rules, known, keep, **how)


def number(name: str, statement: str, value: float, bound: float, numbers: str) -> ClaimVerdict:
    """Return the verdict on a statement that a number is below a bound; `numbers` is what is shown of it."""
    asked = ClaimQuestion("exact", (), "below", bound, tuned_for="", answer=exactly(value), facts={"text": numbers})
    claim = Claim(name, WHERE, statement, Ask("the number on this trial", (), lambda evidence: [asked]), source="ours")
    return claim.judge([asked], finding=numbers)


def judge(job: Job, evidence: LearnerEvidence) -> list[ClaimVerdict]:
    """Return the verdicts on the goals of the trial."""
    free, _, tuned = trial.AUTO
    plain, averaged = evidence.plain["all tasks"], evidence.averaged["all tasks"]
    far = max(end / row["start"] for row in evidence.rows for end in row["ends"])

    def mean(table: dict[str, Any], name: str) -> tuple[float, str]:
        low, high = table[name]["interval"]
        return table[name]["geometric_mean"], f"{table[name]['geometric_mean']:.3f} [{low:.3f}, {high:.3f}]"

    tail = plain[free]["percentile_95"]
    goals = (
        ("free", "Nothing tuned: geometric mean of the ratio to the best tuned rival ≤ 0.95", 0.95, mean(plain, free)),
        ("free-averaged", "Nothing tuned, rivals averaged too: ≤ 1.12", 1.12, mean(averaged, free)),
        ("free-tail", "Nothing tuned: 95th percentile ≤ 1.7", 1.7, (tail, f"{tail:.2f}")),
        ("tuned", "Alpha tuned: ≤ 0.88", 0.88, mean(plain, tuned)),
        ("tuned-averaged", "Alpha tuned, rivals averaged too: ≤ 1.03", 1.03, mean(averaged, tuned)),
        ("ends", "No run ends above 3 × its first error", 3.0, (far, f"worst {far:.2f} ×")),
    )
    return [number(name, statement, value, bound, text) for name, statement, bound, (value, text) in goals]


def tables(job: Job, evidence: LearnerEvidence) -> dict[str, str]:
    """Return the summary of every learner in every group of tasks."""
    rows = (
        (rivals, group, name, one["tasks"], one["geometric_mean"], *one["interval"], one["percentile_95"], one["worst"])
        for rivals, found in (("as they are", evidence.plain), ("averaged", evidence.averaged))
        for group, table in found.items()
        for name, one in table.items()
    )
    return {"learner-trial": csv_text(SUMMARY, rows)}


def late_pictures(job: Job, evidence: LearnerEvidence, verdicts: list[ClaimVerdict]) -> list[Picture]:
    """Return the two pictures."""
    made = partial(draw.draw_bars, evidence.plain["all tasks"]), partial(draw.draw_plane, evidence.plain)
    return [Picture(name, one) for name, one in zip(FIGURES, made, strict=True)]


def content(job: Job, evidence: LearnerEvidence, verdicts: list[ClaimVerdict]) -> PageContent:
    """Return what the page shows."""
    facts = {"tasks": len(evidence.rows), "rules": rules_at(job.scale), "verdicts": verdicts, "figures": FIGURES}
    return PageContent(facts | {"table": "\n".join(trial.lines(evidence.averaged))})


EXPERIMENT = Experiment(
    "learner",
    "A learner with nothing to tune",
    "AutoLearner against tuned rivals, as they are and averaged",
    Scale(SHOWN, STEPS // STEPS_OF_AN_EPISODE),
    measure,
    judge,
    tables,
    content,
    late_pictures=late_pictures,
    columns={"statement": "statement", "verdict": "verdict", "measured": "finding"},
    folder="experiments/learner",
)
