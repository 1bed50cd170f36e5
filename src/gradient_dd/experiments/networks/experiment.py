"""Does the DD term help a network? Prediction, control, the spiral, and a ledger that was registered before."""

from functools import partial
from typing import Any

import numpy as np

from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.experiments.drawing import Picture
from gradient_dd.experiments.experiment import STEPS, Experiment, Job, PageContent, Scale, csv_text
from gradient_dd.experiments.networks import draw
from gradient_dd.experiments.networks.findings import answer
from gradient_dd.experiments.networks.ledger import LEDGER, NetworkEvidence
from gradient_dd.experiments.networks.problems import problems
from gradient_dd.experiments.networks.spiral import UPDATES as SPIRAL_UPDATES
from gradient_dd.experiments.networks.spiral import spiral_cell
from gradient_dd.experiments.networks.trial import (
    HIDDEN,
    WAYS,
    WORLDS,
    Size,
    control_cell,
    kept,
    prediction_cell,
)
from gradient_dd.experiments.verdicts import SIGNS, ClaimVerdict
from gradient_dd.networks.kernel import tangent_kernel
from gradient_dd.networks.network import Network

FULL = Size()
DRAWS = 10  # first weights over which the mechanism is averaged
FIGURES = {
    "networks-prediction": "Error with the DD term over error without it, by problem; bars are 95 % intervals. Left of "
    "1 the term helps. What lies beyond the axis, or has no number because runs diverged, stands at its edge.",
    "networks-control": "Cost of every agent: steps an episode (Mountain Car, Acrobot) or episodes in 1000 steps (Cart "
    "Pole), over that of Q. Bars are 95 % intervals; what lies beyond the axis stands at its edge.",
}


def size_at(scale: Scale) -> Size:
    """Return how large a trial is at a scale."""
    updates = min(FULL.updates, scale.steps or FULL.updates)
    return Size(FULL.tuned, scale.runs or FULL.shown, updates, FULL.steps * updates // FULL.updates)


def measure(job: Job) -> NetworkEvidence:
    """Run what the folder lacks, cell by cell, and return everything."""
    size = size_at(job.scale)
    return NetworkEvidence(
        {key: cell(job, "-".join(key), size, partial(prediction_cell, *key, size)) for key in prediction_keys()},
        {world: cell(job, f"control-{world}", size, partial(control_cell, world, size)) for world in WORLDS},
        cell(job, "spiral", size, partial(spiral_cell, SPIRAL_UPDATES * size.updates // FULL.updates)),
        cell(job, "mechanism", size, mechanism),
    )


def prediction_keys() -> list[tuple[str, str, str]]:
    """Return all cells of prediction."""
    return [(problem, *way) for problem in problems() for way in WAYS]


def cell(job: Job, name: str, size: Size, make: Any) -> dict[str, Any]:
    """Return one cell: from the folder, or run now; raise where nothing may run."""

    def run() -> dict[str, Any]:
        job.on_stage(f"  {name}")
        made: dict[str, Any] = make()
        return made

    found = kept(job.folder / "cells" / f"{name}.json", size, run, may_run=job.how is not None)
    if found is None:
        hint = "`gradient-dd reproduce networks` goes on."
        raise bad_request(f"The trial in {str(job.folder)!r}", "be complete", Unquoted(f"no cell {name}"), hint)
    return found


def mechanism() -> dict[str, Any]:
    """Return for each problem with a table the mean of k(s, s')/k(s', s') − γ over transitions of the target policy.

    On a table k(s, s') is 0 and this is −γ: the DD term takes back what the step before did to V(s').
    """
    found = {}
    for name, problem in problems().items():
        if problem.chain is None:
            continue
        X, P, discount = problem.chain()
        weights = P * (1 - np.eye(len(P)))
        network, sizes = Network(problem.inputs, HIDDEN), []
        for seed in range(DRAWS):
            k = tangent_kernel(network, network.first_w(seed), X)
            sizes.append((weights * (k / np.diag(k) - discount)).sum() / weights.sum())
        found[name] = float(np.mean(sizes))
    return found


def judge(job: Job, evidence: NetworkEvidence) -> list[ClaimVerdict]:
    """Return the verdicts on the ledger."""
    return [one.judge(evidence) for one in LEDGER]


HEAD = "kind where sampling optimiser learner rule alpha kappa period edge seeds mean sem median diverged never_ended"


def tables(job: Job, evidence: NetworkEvidence) -> dict[str, str]:
    """Return every learner of every cell: the setting that was selected, and its errors on fresh seeds."""
    cells = [("prediction", *key, one) for key, one in evidence.prediction.items()]
    cells += [("control", world, "replay", "adam", one) for world, one in evidence.control.items()]
    rows = ((*where, label, *table_row(where[0], facts)) for *where, one in cells for label, facts in one.items())
    mechanisms = ((name, f"{value:.4f}") for name, value in evidence.mechanism.items())
    return {"networks": csv_text(HEAD, rows), "networks-mechanism": csv_text("problem mechanism", mechanisms)}


def table_row(kind: str, facts: dict[str, Any]) -> tuple[Any, ...]:
    """Return the setting of a learner and its errors: means over finite runs, and how many are not finite.

    Of agents also in how many runs no episode ended of itself in the second half.
    """
    errors = np.array(facts["errors"], float)
    finite = errors[np.isfinite(errors)]
    sem = finite.std(ddof=1) / len(finite) ** 0.5 if len(finite) > 1 else np.nan
    mean = float(finite.mean()) if len(finite) else np.inf
    never = sum(count == 0 for count in facts["beside"]) if kind == "control" else ""
    setting = facts["rule"], facts["alpha"], facts.get("kappa", ""), facts["period"], facts["edge"], len(errors)
    return *setting, f"{mean:.5g}", f"{sem:.2g}", f"{np.median(errors):.5g}", len(errors) - len(finite), never


def late_pictures(job: Job, evidence: NetworkEvidence, verdicts: list[ClaimVerdict]) -> list[Picture]:
    """Return the two pictures."""
    made = partial(draw.draw_prediction, evidence.prediction), partial(draw.draw_control, evidence.control)
    return [Picture(name, one) for name, one in zip(FIGURES, made, strict=True)]


def content(job: Job, evidence: NetworkEvidence, verdicts: list[ClaimVerdict]) -> PageContent:
    """Return what the page shows."""
    ledger = [(one, prediction.own) for one, prediction in zip(verdicts, LEDGER, strict=True)]
    words = {name: one.words for name, one in problems().items()}
    facts = {"ledger": ledger, "figures": FIGURES, "size": size_at(job.scale), "problems": words}
    return PageContent(facts | {"mechanism": evidence.mechanism, "signs": SIGNS})


EXPERIMENT = Experiment(
    "networks",
    "Networks",
    "Does the DD term help a network?",
    Scale(None, FULL.updates // STEPS),  # without a number of runs there is no first look, whose seeds would be lost
    measure,
    judge,
    tables,
    content,
    answer=answer,
    late_pictures=late_pictures,
    columns={"prediction": "statement", "verdict": "counted"},
    folder="experiments/networks",
)
