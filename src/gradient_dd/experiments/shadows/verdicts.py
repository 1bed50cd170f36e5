"""What the numbers of the shadows report say: each statement with what was measured."""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.experiments.shadows.measure import StabilityMap
from gradient_dd.experiments.shadows.trial import CHOOSERS

TUNED, FREE = CHOOSERS


class Verdict(NamedTuple):
    """A statement, whether it holds here, and the numbers."""

    statement: str
    verdict: str
    numbers: str


def verdict(statement: str, holds: bool, numbers: str) -> Verdict:
    """Return a verdict."""
    return Verdict(statement, "holds" if holds else "does not hold", numbers)


def trial_verdicts(tables: dict[str, dict[str, Any]]) -> list[Verdict]:
    """Return the verdicts on the goals of the trial."""
    whole, stable, unstable = (tables[name] for name in ("all tasks", "TD stable", "TD unstable"))
    mean, tail = whole[TUNED]["geometric_mean"], whole[TUNED]["percentile_95"]
    low, high = whole[TUNED]["interval"]
    to_tdrc = stable[TUNED]["geometric_mean"] / stable["TDRC"]["geometric_mean"]
    to_gtd2 = unstable[TUNED]["geometric_mean"] / unstable["GTD2"]["geometric_mean"]
    rivals = {name: row["geometric_mean"] for name, row in whole.items() if name not in CHOOSERS}
    best = min(rivals, key=lambda name: rivals[name])
    free = whole[FREE]["geometric_mean"]
    return [
        verdict(
            "Geometric mean of the ratio to the best rival ≤ 1.10", mean <= 1.1, f"{mean:.3f} [{low:.3f}, {high:.3f}]"
        ),
        verdict("95th percentile of that ratio ≤ 1.5", tail <= 1.5, f"{tail:.2f}"),
        verdict("Within 1.1 of TDRC where TD is stable", to_tdrc <= 1.1, f"{to_tdrc:.2f} × TDRC"),
        verdict("Within 1.1 of GTD2 where TD is unstable", to_gtd2 <= 1.1, f"{to_gtd2:.2f} × GTD2"),
        verdict("More even than every rival with 60 settings", mean < rivals[best], f"{best}: {rivals[best]:.3f}"),
        verdict("With nothing tuned within 1.5 of the best tuned rival", free <= 1.5, f"{free:.2f}"),
    ]


def map_verdicts(maps: list[StabilityMap]) -> list[Verdict]:
    """Return the verdicts on the signs of measured exponents against exact ones."""
    made = []
    for one in maps:
        safe, grows = one.square < 0, one.low > 0
        wrong = int((safe & grows).sum())
        made.append(
            verdict(
                f"{one.name}: no shadow grows clearly where the mean square converges",
                wrong == 0,
                f"{wrong} of {int(safe.sum())} such settings",
            )
        )
        steady = (one.mean < 0) & ~safe
        shrinking = int((steady & (one.high < 0)).sum())
        numbers = f"{shrinking} of {int(steady.sum())} such settings"
        made.append(
            Verdict(
                f"{one.name}: shadows that shrink where the mean converges and its square does not", "seen", numbers
            )
        )
    return made


def agreement(one: StabilityMap) -> float:
    """Return in which share of the settings the sign of the measured exponent is that of the mean square's."""
    return float(np.mean((one.measured < 0) == (one.square < 0)))
