"""Write the tables of claims in docs/evidence/paper.md from the claims.json of a reproduction.

    python -m tools.claims_tables results

Each table stands between `<!-- claims: NAME -->` and `<!-- end -->`: total, paper, time, ours and baird. Pages that
quote the total or the counts of a claim, such as the README, get the same numbers.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gradient_dd.experiments.paper.baird import PLACES
from tools.programs import ROOT

QUOTING = ("README.md", "docs/index.md", "docs/tutorials/reproduce-the-paper.md")
HEAD = ("claim", "section", "statement", "tuned alike", "tuned fully", "yes / undecided / no", "verdict")
PAPER = "as the paper has it"
COUNTS = ("held", "open", "refuted")
MATRIX = {
    "baird-td": "TD diverges",
    "baird-better": "better",
    "baird-tdrc": "TDRC unstable",
    "baird-others-zero": "others above zero",
    "baird-zero": "reaches zero",
    "baird-kappa-one": "κ = 1 good",
}

Verdict = dict[str, Any]


def tally(some: Iterable[Verdict]) -> str:
    """Return how many comparisons of verdicts or judgements say yes, are undecided and say no."""
    listed = list(some)
    return " / ".join(str(sum(one[name] for one in listed)) for name in COUNTS)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [tuple(head)]
    lines += [("---",) * len(lines[0]), *map(tuple, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---").replace("|--- |", "|---|")


def row(one: Verdict) -> tuple[str, ...]:
    """Return the row of a verdict; of the other ways of tuning it has the counts alone."""
    others = [one[way].partition("(")[2].rstrip(")").replace(" ", "") or "–" for way in ("alike", "fully")]
    return (f"`{one['claim']}`", one["where"], one["statement"], *others, tally([one]), one["verdict"])


def total(verdicts: list[Verdict]) -> str:
    """Return the counts of the paper's statements in three sentences."""
    words = [one["verdict"] for one in verdicts]
    held, partly, lost, unsure = (words.count(word) for word in ("holds", "partly holds", "does not hold", "undecided"))
    counted = f"All comparisons support {held} statements, some support {partly} and none supports {lost}"
    undecided = f" Another {unsure} are undecided." if unsure else ""
    yes, unclear, no = (sum(one[name] for one in verdicts) for name in COUNTS)
    return (
        f"The paper makes {len(verdicts)} testable statements, each split into comparisons (one rival, one size, one "
        f"measure). {counted}: they *hold*, *partly hold* and *do not hold*.{undecided} In total, {yes} comparisons "
        f"support their statement, {unclear} are undecided and {no} contradict it."
    )


def placed(reading: str) -> bool:
    """Return whether a variant says where ρ is placed."""
    return any(place in reading for place in PLACES.values())


def matrix(verdicts: list[Verdict]) -> str:
    """Return Baird's counterexample by variant; a statement that does not depend on ρ stands in the rows of R."""
    known = {one["claim"]: one["judgements"] for one in verdicts if one["claim"] in MATRIX}
    judged = {name: [one for one in some if one["tuning"] == PAPER] for name, some in known.items()}
    readings = dict.fromkeys(one["reading"] for some in judged.values() for one in some if placed(one["reading"]))
    rows = []
    for reading in readings:
        same = {reading, reading.replace(f", {PLACES['R']}", "")}
        cells = [[one for one in judged[name] if one["reading"] in same] for name in MATRIX]
        rows.append((reading, *(tally(cell) if cell else "–" for cell in cells)))
    assert rows, "Baird's counterexample must have variants."
    return table(("variant", *MATRIX.values()), rows)


def pieces(verdicts: list[Verdict]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every part of the page."""
    by_source: dict[str, list[Verdict]] = {}
    for one in verdicts:
        by_source.setdefault(one["source"], []).append(one)
    yield "total", total(by_source["paper"])
    for source, some in by_source.items():
        yield source, table(HEAD, map(row, some))
    yield "baird", matrix(verdicts)


def rewrite(page: str, verdicts: list[Verdict]) -> str:
    """Return the page with all tables replaced."""
    for name, text in pieces(verdicts):
        before, begin, rest = page.partition(f"<!-- claims: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        assert begin, f"docs/evidence/paper.md must have a place for {name!r}."
        assert end, f"The place for {name!r} must end."
        page = f"{before}{begin}\n{text}\n\n{end}{after}"
    return page


def requoted(page: str, verdicts: list[Verdict]) -> str:
    """Return a page that quotes the total, or the counts of claims as in `walk-better` 2 / 4 / 0, with the numbers."""
    told = total([one for one in verdicts if one["source"] == "paper"])
    first = r"The paper makes \d+ testable statements.*? \*do not hold\*\.( Another \d+ are undecided\.)?"
    second = r" In total, \d+ comparisons [^.]*\."
    page = re.sub(first, told.partition(" In total")[0], page)
    page = re.sub(second, f" In total{told.partition(' In total')[2]}", page)
    for one in verdicts:
        page = re.sub(rf"`{one['claim']}` \d+ / \d+ / \d+", f"`{one['claim']}` {tally([one])}", page)
    return page


def main(folder: str) -> None:
    """Rewrite the page, and the numbers that other pages quote."""
    verdicts = json.loads((Path(folder) / "claims.json").read_text(encoding="utf-8"))
    file = ROOT / "docs/evidence/paper.md"
    file.write_text(rewrite(file.read_text(encoding="utf-8"), verdicts), encoding="utf-8")
    for name in QUOTING:
        text = (ROOT / name).read_text(encoding="utf-8")
        (ROOT / name).write_text(requoted(text, verdicts), encoding="utf-8")
    print(total([one for one in verdicts if one["source"] == "paper"]))


if __name__ == "__main__":
    main(sys.argv[1])
