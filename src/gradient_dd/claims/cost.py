"""The cost of an update of Gradient-DD against one of GTD2, measured where the report is made.

The one claim whose numbers are times: they differ from machine to machine and from call to call.
"""

from itertools import islice
from time import perf_counter

from gradient_dd.claims.evidence import DD, GTD2, Evidence, Judged, short
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import MOST_LANES, LaneRun
from gradient_dd.studies.figures import Line

SAME_COST = 1.5
STEPS, ROUNDS = 50_000, 9


def costs_as_much(*all_evidence: Evidence) -> Judged:
    """An update of Gradient-DD takes at most 1.5 times one of GTD2, on the largest task of each study."""
    judged = []
    for evidence in all_evidence:
        task = evidence.tasks[-1]
        ours, theirs = (nanoseconds(evidence, task, line) for line in (DD, GTD2))
        told = (
            f"{short(task)}: {DD.label} {ours:.2f} ns an update, {GTD2.label} {theirs:.2f}, ratio {ours / theirs:.2f}"
        )
        judged.append((ours <= SAME_COST * theirs, f"{evidence.results.study.name} {told}"))
    return judged


def nanoseconds(evidence: Evidence, task: str, line: Line) -> float:
    """Return the least time of an update of one lane among several rounds; the sampling is in it, errors are not."""
    own = (setting for setting in evidence.results.study.settings() if setting.rule.name == line.learner)
    whole = Horizon(steps=STEPS * ROUNDS, every=STEPS)
    run = LaneRun(evidence.results.tasks[task], islice(own, MOST_LANES), whole)
    times = []
    for _ in range(ROUNDS):
        begin = perf_counter()
        run.advance(STEPS)
        times.append(perf_counter() - begin)
    return min(times) / STEPS / len(run.settings) * 1e9
