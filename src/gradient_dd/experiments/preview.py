"""The preview of the report, 1200 × 630: learning curves of the first figure, and the headline."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from matplotlib.figure import Figure as Canvas

from gradient_dd.experiments.experiment import Job
from gradient_dd.experiments.measuring import ByStudy
from gradient_dd.experiments.summary import answers, counts, published
from gradient_dd.experiments.verdicts import ClaimVerdict
from gradient_dd.report.canvas import styled
from gradient_dd.report.figure import error_range, panels_of, title_of
from gradient_dd.report.study_figure import key, over_time

INK, SOFT = "#1a1c20", "#5a616c"
LOOKS = {
    "holds": ("hold", "#0a7a55"),
    "partly holds": ("partly hold", "#8a5a00"),
    "does not hold": ("do not", "#b3243b"),
    "undecided": ("undecided", "#5f6875"),
}
WIDE, HIGH, DPI = 12.0, 6.3, 100


def draw_preview(job: Job, evidence: ByStudy, verdicts: Sequence[ClaimVerdict], target: Path) -> None:
    """Draw the preview of a report into a file."""
    with styled():
        canvas = Canvas(figsize=(WIDE, HIGH), facecolor="white")
        canvas.text(0.04, 0.93, job.experiment.title, size=34, weight="bold", color=INK, va="top")
        words = f"{len(published(verdicts))} published claims, re-run and judged on test runs"
        canvas.text(0.04, 0.815, words, size=15, color=SOFT, va="top")
        right = 0.96
        for word, count in reversed(counts(verdicts).items()):
            if count:
                label, colour = LOOKS[word]
                canvas.text(right, 0.94, f"{count}", size=38, weight="bold", color=colour, va="top", ha="right")
                canvas.text(right, 0.815, label, size=12, color=colour, va="top", ha="right")
                right -= 0.095
        if job.figures:
            figure = job.figures[0]
            panels = panels_of(figure, evidence[figure.study].results)[:3]
            for place, panel in enumerate(panels):
                axes = canvas.add_axes((0.07 + 0.31 * place, 0.235, 0.26, 0.44))
                over_time(axes, panel, error_range([panel], "curve"), "episodes")
                axes.set_title(title_of(panel.task))
            entries = [key(*pair) for pair in enumerate(figure.lines)]
            canvas.legend(handles=entries, loc="lower center", bbox_to_anchor=(0.5, 0.095), ncols=7, frameon=False)
        for one in answers(job.experiment, verdicts, job.scale)[:1]:
            told = fill(f"{one.question} {one.word}. {one.sentence}", 140, max_lines=2)
            canvas.text(0.5, 0.085, told, size=11, color=INK, va="top", ha="center")
        canvas.savefig(target, dpi=DPI)
