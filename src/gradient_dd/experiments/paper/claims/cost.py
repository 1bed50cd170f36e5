"""The cost of an update of Gradient-DD against one of GTD2, as the study's own runs took it.

The one claim whose numbers are times: they differ from machine to machine and from call to call.
"""

import numpy as np

from gradient_dd.experiments.paper.claims.evidence import Evidence
from gradient_dd.experiments.paper.claims.verdict import Ask, Question
from gradient_dd.studies.intervals import Interval, ratio_interval
from gradient_dd.studies.store import Store

NEGLIGIBLE = 1.1  # times the cost of GTD2


def costs_as_much(*studies: str) -> Ask:
    """Ask whether an update of Gradient-DD takes at most a tenth more than one of GTD2, on the largest task of each."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        questions = [cost(evidence[study]) for study in studies]
        return [one for one in questions if one is not None]

    return ask


def cost(found: Evidence) -> Question | None:
    """Return the question for one study, or None where an older version made its runs and took no times."""
    case = max(found.cases, key=found.size)
    times = nanoseconds(found, case)
    common = sorted(set(times.get("gradient_dd", {})) & set(times.get("gtd2", {})))  # what ran at the same time
    if not common:
        return None
    ours, theirs = (np.array([times[learner][unit] for unit in common]) for learner in ("gradient_dd", "gtd2"))

    def answer(level: float) -> Interval:
        return ratio_interval((ours, theirs), level=level)

    facts = {
        "study": found.study.name,
        "task": case,
        "size": found.size(case),
        "measure": "nanoseconds",
        "runs": len(common),
        "ours": {"label": "Gradient-DD", "learner": "gradient_dd", "mean": float(ours.mean())},
        "rival": {"label": "GTD2", "learner": "gtd2", "mean": float(theirs.mean())},
        "text": f"time of an update over GTD2's, {found.study.name}",
    }
    found.times[case, "gradient_dd"], found.times[case, "gtd2"] = ours, theirs  # for the tables
    return Question("time", (), "below", NEGLIGIBLE, tuned_for="", answer=answer, facts=facts)


def nanoseconds(found: Evidence, case: str) -> dict[str, dict[int, float]]:
    """Return what an update of each learner took in each unit of a study on a task, errors included."""
    times: dict[str, dict[int, float]] = {}
    with Store(found.results.path) as store:
        for unit in store.units([found.results.tasks[case]], found.study.run_numbers):
            for learner, (seconds, updates) in unit.facts["costs"].items():
                times.setdefault(learner, {})[unit.id] = seconds / updates * 1e9
    return times
