"""An evaluation as text, for `gradient-dd evaluate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gradient_dd.cli.tables import table
from gradient_dd.errors import file_path, must

if TYPE_CHECKING:
    from gradient_dd.evaluation import Evaluation

WORDS = {
    "trust": "Trust it: nothing was found that speaks against it.",
    "with care": "Take it with care.",
    "not": "Do not trust it.",
}
SHOWN = 6  # of the candidates


def evaluation_text(found: "Evaluation", printed: Sequence[str] = ()) -> str:
    """Return an evaluation as text: the value, the verdict and why, what was tried.

    What was taken for what stands at the end, unless it is `printed` already.
    """
    low, high = found.start_interval
    lines = [
        f"Value where episodes begin: {found.start_value:.4g}, from {low:.4g} to {high:.4g} "
        f"({found.spread.confidence:.0%} interval).",
        f"{WORDS[found.verdict.word]}",
        "",
        *(f"  {one.level:10}{one.sentence}" for one in found.verdict.findings),
        "",
        f"Chosen: {found.chosen}, by its error on rows it had not seen, of {len(found.candidates)} candidates.",
        table(
            ((one.words, "diverged" if one.diverged else f"{one.error:.4g}") for one in found.candidates[:SHOWN]),
            ("candidate", "held-out error"),
        ),
        "",
        *(sentence for sentence in found.stated if sentence not in printed),
    ]
    return "\n".join(lines).rstrip()


def roles_of(texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the columns by role of words like "reward=r" and "observation=a,b"."""
    found = {}
    for text in texts:
        role, equals, names = text.partition("=")
        if not (role and equals and names):
            raise must("'--column'", "be written ROLE=NAME or ROLE=NAME,NAME", text)
        found[role] = names.split(",")
    return found


def page_path(report: str) -> Path:
    """Return where a page is written; this is asked before the work, which may take minutes."""
    page = file_path("'--report'", report)
    if not page.absolute().parent.is_dir() or page.is_dir():
        raise must("'--report'", "be a file in a folder that exists", report)
    return page


def write_page(found: "Evaluation", log: str, page: Path) -> None:
    """Write the page of an evaluation."""
    from gradient_dd.report.evaluation_page import evaluation_page

    page.write_text(evaluation_page(found, log), encoding="utf-8")
