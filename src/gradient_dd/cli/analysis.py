"""What `gradient-dd analyse` tells: facts of a task or of a log, and their text."""

from collections.abc import Callable
from math import isinf, log
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.cli.tables import table
from gradient_dd.engine.schedules import constant
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import Task
from gradient_dd.theory.advice import Candidate, candidates, candidates_of_log, doubt, recommended
from gradient_dd.theory.log import read_log
from gradient_dd.theory.recursion import check_assumptions

Facts = dict[str, Any]
HEAD = ("learner", "stable below", "safe below", "take alpha", "rate", "steps to halve")


def analyse_task(task: Task, sampling: str, said: Callable[[str], None]) -> Facts:
    """Return the limits and rates of every candidate on a task, the one to take, and the theorem's assumptions."""
    found = candidates(task, sampling, said)
    best = recommended(found)
    facts = {
        "task": str(task),
        "sampling": sampling,
        "TD": td_fact(float(np.linalg.eigvals(task.moments.A).real.min())),
        "candidates": [one._asdict() for one in found],
        "recommended": None if best is None else best._asdict(),
    }
    dd = next(one for one in found if one.name == "gradient_dd, kappa 1")
    setting = LEARNERS["gradient_dd"].setting(alpha=dd.alpha or 0.1)
    facts["assumptions"] = [one._asdict() for one in check_assumptions(task, setting, constant, sampling)]
    return facts


def analyse_log(path: str | Path) -> Facts:
    """Return the same from a log, estimated, and how far the estimate can be trusted."""
    sample = read_log(path)
    found = candidates_of_log(sample)
    best = recommended(found)
    return {
        "task": str(sample),
        "sampling": "independent draws from the log",
        "TD": td_fact(float(np.linalg.eigvals(sample.in_row_space().moments.A).real.min())),
        "candidates": [one._asdict() for one in found],
        "recommended": None if best is None else best._asdict(),
        "doubt": None if best is None else doubt(sample, best)._asdict(),
    }


def td_fact(smallest: float) -> str:
    """Return what the eigenvalues of A say of TD."""
    verdict = "stable in the mean for small step sizes" if smallest > 0 else "not stable in the mean at any step size"
    return (
        f"{verdict if abs(smallest) > 1e-12 else 'decided by the row space: A is singular'} (Re λ(A) ≥ {smallest:.3g})"
    )


def facts_page(facts: Facts) -> str:
    """Return the facts as text."""
    rows = [row(Candidate(**one)) for one in facts["candidates"]]
    lines = [f"{facts['task']}, sampling: {facts['sampling']}", f"TD is {facts['TD']}.", "", table(rows, HEAD)]
    lines += ["", advice(facts)]
    if facts.get("doubt"):
        stable, (low, high), td = facts["doubt"].values()
        lines += [
            f"On bootstrap samples of the log it is stable in {stable:.0%}, with a rate of {low:.2g} to {high:.2g} "
            f"(5 % to 95 %); TD is stable in {td:.0%} of them."
        ]
    if "assumptions" in facts:
        lines += ["", "The theorem's assumptions, for Gradient-DD with kappa 1 and a constant step size:"]
    for one in facts.get("assumptions", ()):
        lines += [f"({one['name']}) {'holds' if one['holds'] else 'fails'}: {one['statement']}. Here {one['why']}."]
        lines += [] if one["holds"] else [f"   so {one['consequence']}."]
    return "\n".join(lines)


def row(one: Candidate) -> tuple[str, ...]:
    """Return a candidate as a row of the table."""
    if one.rate <= 0:
        return one.name, number(one.stable), number(one.safe), "-", "-", "-"
    halved = f"{log(2) / one.rate:,.0f}"
    return one.name, number(one.stable), number(one.safe), f"{one.alpha:.3g}", f"{one.rate:.3g}", halved


def number(value: float | None) -> str:
    """Return a limit as it stands in the table."""
    return "?" if value is None else "never" if value == 0 else "any" if isinf(value) else f"{value:.3g}"


def advice(facts: Facts) -> str:
    """Return the recommendation in words."""
    if facts["recommended"] is None:
        return "No candidate is stable here: look at the features, or at the ratios."
    best = Candidate(**facts["recommended"])
    words = (
        f"Take {best.name} with alpha {best.alpha:.3g}: of all candidates its slowest mode is the fastest, at half of "
        "what is safe or less. Taper alpha once the error stops falling."
    )
    if any(one["safe"] is None for one in facts["candidates"]):
        words += " '?': too large to compute; only the mean was looked at."
    return (
        words if "doubt" not in facts else words + " This holds for transitions in random order, shuffled or replayed."
    )
