"""The cost of an update of Gradient-DD against one of GTD2, as the study's own runs took it.

The one claim whose numbers are times: they differ from machine to machine and from call to call.
"""

from gradient_dd.paper.claims.evidence import DD, GTD2, Evidence, Judged, short
from gradient_dd.studies.checked import checked_costs
from gradient_dd.studies.store import Store

SAME_COST = 1.5


def costs_as_much(*all_evidence: Evidence) -> Judged:
    """An update of Gradient-DD takes at most 1.5 times one of GTD2, on the largest task of each study."""
    judged = []
    for evidence in all_evidence:
        task = evidence.tasks[-1]
        where, times = f"{evidence.results.study.name} {short(task)}", nanoseconds(evidence, task)
        if DD.learner not in times or GTD2.learner not in times:
            return []  # an older version made these runs
        ours, theirs = times[DD.learner], times[GTD2.learner]
        told = f"{where}: Gradient-DD {ours:.2f} ns an update, GTD2 {theirs:.2f} ns"
        judged.append((ours <= SAME_COST * theirs, f"{told}, ratio {ours / theirs:.2f}"))
    return judged


def nanoseconds(evidence: Evidence, task: str) -> dict[str, float]:
    """Return what an update of each learner took, over all runs of a study on a task, errors included."""
    with Store(evidence.results.path) as store:
        costs = checked_costs(store, task, evidence.results.study.run_numbers)
    return {learner: seconds / updates * 1e9 for learner, (seconds, updates) in costs.items()}
