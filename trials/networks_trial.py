"""Test whether the DD term helps a network: prediction, control, the spiral, and registered predictions.

    python -m trials.networks_trial [--runs 30] [--updates 1500] [--out networks_trial]

Every learner is tuned on 2 seeds and tested on others. Each cell of the trial is one file of the folder, so the same
command resumes a stopped trial. The folder also has networks.csv, networks-mechanism.csv and claims.json. The program
prints the answer and the verdicts on the predictions. It needs the extra `neural`.
"""

import csv
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from gradient_dd.experiments.running import write_claims
from gradient_dd.experiments.verdicts import ClaimVerdict
from gradient_dd.networks.network import Network
from tools.programs import parser_of
from trials.networks.cells import HIDDEN, WAYS, WORLDS, Size, control_cell, kept, prediction_cell
from trials.networks.findings import answer
from trials.networks.ledger import LEDGER, NetworkEvidence
from trials.networks.problems import problems
from trials.networks.spiral import UPDATES as SPIRAL_UPDATES
from trials.networks.spiral import spiral_cell

FULL = Size()
DRAWS = 10  # initial weights over which the mechanism is averaged
HEAD = "kind where sampling optimiser learner rule alpha kappa period edge seeds mean sem median diverged never_ended"


def size_of(runs: int, updates: int) -> Size:
    """Return the size of a trial with these test seeds; the steps of an agent are proportional to the updates."""
    return Size(FULL.tuned, runs, updates, FULL.steps * updates // FULL.updates)


def measure(folder: Path, size: Size) -> NetworkEvidence:
    """Run all cells missing from the folder, and return all cells."""

    def cell(name: str, make: Any) -> dict[str, Any]:
        return kept(folder / f"{name}.json", size, make)

    return NetworkEvidence(
        {key: cell("-".join(key), partial(prediction_cell, *key, size)) for key in prediction_keys()},
        {world: cell(f"control-{world}", partial(control_cell, world, size)) for world in WORLDS},
        cell("spiral", partial(spiral_cell, SPIRAL_UPDATES * size.updates // FULL.updates)),
        cell("mechanism", mechanism),
    )


def prediction_keys() -> list[tuple[str, str, str]]:
    """Return all cells of prediction."""
    return [(problem, *way) for problem in problems() for way in WAYS]


def mechanism() -> dict[str, Any]:
    """Return for each problem with a table the mean of k(s, s')/k(s', s') − γ over transitions of the target policy.

    On a table, k(s, s') is 0 and the mean is −γ: the DD term undoes the change of V(s') by the previous step.
    """
    found = {}
    for name, problem in problems().items():
        if problem.chain is None:
            continue
        X, P, discount = problem.chain()
        weights = P * (1 - np.eye(len(P)))
        network, sizes = Network(problem.inputs, HIDDEN), []
        slopes_of = jax.jit(jax.jacrev(lambda w, network=network, X=X: network.values(w, X)[:, 0]))
        for seed in range(DRAWS):
            slopes = slopes_of(network.first_w(seed))
            k = np.asarray(slopes @ slopes.T, float)
            sizes.append((weights * (k / np.diag(k) - discount)).sum() / weights.sum())
        found[name] = float(np.mean(sizes))
    return found


def table_rows(evidence: NetworkEvidence) -> Iterable[tuple[Any, ...]]:
    """Yield every learner of every cell: the selected setting, and its errors on test seeds."""
    cells = [("prediction", *key, one) for key, one in evidence.prediction.items()]
    cells += [("control", world, "replay", "adam", one) for world, one in evidence.control.items()]
    return ((*where, label, *learner_row(where[0], facts)) for *where, one in cells for label, facts in one.items())


def learner_row(kind: str, facts: dict[str, Any]) -> tuple[Any, ...]:
    """Return the setting of a learner and its errors: means over finite runs, and the number of other runs.

    Rows of agents also count the runs in which no episode terminated in the second half.
    """
    errors = np.array(facts["errors"], float)
    finite = errors[np.isfinite(errors)]
    sem = finite.std(ddof=1) / len(finite) ** 0.5 if len(finite) > 1 else np.nan
    mean = float(finite.mean()) if len(finite) else np.inf
    never = sum(count == 0 for count in facts["beside"]) if kind == "control" else ""
    setting = facts["rule"], facts["alpha"], facts.get("kappa", ""), facts["period"], facts["edge"], len(errors)
    return *setting, f"{mean:.5g}", f"{sem:.2g}", f"{np.median(errors):.5g}", len(errors) - len(finite), never


def write_table(file: Path, head: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV; `head` has the names of its columns, with spaces between them."""
    with file.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text).writerows([head.split(), *rows])


def write_findings(folder: Path, evidence: NetworkEvidence, verdicts: list[ClaimVerdict]) -> None:
    """Write the tables and the verdicts."""
    write_table(folder / "networks.csv", HEAD, table_rows(evidence))
    mechanisms = ((name, f"{value:.4f}") for name, value in evidence.mechanism.items())
    write_table(folder / "networks-mechanism.csv", "problem mechanism", mechanisms)
    write_claims(verdicts, folder / "claims.json")


def main(words: list[str] | None = None) -> None:
    """Run the trial and print the results."""
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int, default=FULL.shown, help="number of test seeds")
    parser.add_argument("--updates", type=int, default=FULL.updates, help="updates per prediction run")
    parser.add_argument("--out", type=Path, default=Path("networks_trial"))
    chosen = parser.parse_args(words)
    evidence = measure(chosen.out, size_of(chosen.runs, chosen.updates))
    verdicts = [one.judge(evidence) for one in LEDGER]
    write_findings(chosen.out, evidence, verdicts)
    print(*answer(evidence, verdicts), sep="\n")
    for one in verdicts:
        print(f"\n{one.claim}: {one.statement}\n  {one.verdict} ({one.tally})\n  {one.finding}")


if __name__ == "__main__":
    main()
