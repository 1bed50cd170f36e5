"""The quality of answers without true values: projected error, effective sample size, and prediction of returns."""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.questions import MEASURED_EVERY, QUALITY, QuestionData, QuestionMemory
from gradient_dd.engine.single import FeatureRows
from gradient_dd.errors import one_of
from gradient_dd.stream.question import AskedQuestions

LARGEST_FIRST = ("effective_rows", "rows", "returns", "explained")
PIECE = 512  # features that are summed at a time
SORTED_BY = ("rupee", "return_error", *LARGEST_FIRST)


class StreamEvidence:
    """Statistics of the stream of each question, in addition to its weights.

    ratios   (3, groups) rows seen, Σρ and Σρ²
    squares  (views, p) the sum of t x² over the steps t at which δz is measured;  weights  (views,) the sum of t
    widest   the largest number of nonzero features in a measured row
    """

    saved = ("ratios", "squares", "weights")

    def __init__(self, asked: AskedQuestions, p: int) -> None:
        self.asked, self.steps, self.widest = asked, 0, 1
        self.ratios = np.zeros((3, len(asked.groups)))
        self.squares, self.weights = np.zeros((len(asked.views), p)), np.zeros(len(asked.views))

    def add(self, x: FeatureRows, data: QuestionData) -> None:
        """Add n transitions."""
        seen, n = data.seen[:, self.asked.view], len(data.factor)
        more = np.stack([seen, data.rho * seen, data.rho**2 * seen], axis=1)  # (n, 3, groups)
        self.ratios = np.add.accumulate(np.concatenate([self.ratios[None], more]))[-1]  # in order, as for single rows
        for t in range(-self.steps % MEASURED_EVERY, n, MEASURED_EVERY):
            cut, number = slice(x.begin[t], x.begin[t + 1]), float(1 + self.steps + t)
            there = np.flatnonzero(x.values[cut])
            values, where = x.values[cut][there], there if x.dense else x.indices[cut][there]
            self.widest = max(self.widest, len(there))
            views = np.flatnonzero(data.seen[t])
            self.squares[views[:, None], where] += number * values**2
            self.weights[views] += number
        self.steps += n


def rupee(memory: QuestionMemory, evidence: StreamEvidence) -> Array:
    """Return the root of the estimated projected Bellman error of each lane, (lanes,).

    With η it is √|η·E[δz]|: η estimates C⁻¹E[δz]. A learner without η gets a lower bound, √(Σ E[δz]² / k C_ii):
    C = E[x xᵀ] is at most k times its diagonal if no row has more than k features; one-hot features give equality.
    """
    diagonal = evidence.widest * evidence.squares / np.maximum(evidence.weights, 1.0)[:, None]  # (views, p)
    total, views = np.zeros(memory.slots), np.repeat(memory.range_view, np.diff(memory.begin))
    weight = np.maximum(memory.quality[QUALITY.index("blame_weight")], 1.0)
    for begin in range(0, len(memory.blame), PIECE):
        part = slice(begin, begin + PIECE)
        mean = memory.blame[part, 0] / weight
        if memory.rule.has_eta:
            total += (memory.memory[part, 1] * memory.scale * mean).sum(axis=0)
        else:
            squares = diagonal.T[part][:, views]
            total += np.divide(mean**2, squares, out=np.zeros_like(mean), where=squares > 0).sum(axis=0)
    return np.sqrt(np.abs(total))[memory.slot]


def frame_of(
    names: list[str], evidence: StreamEvidence, memory: QuestionMemory, diverged: dict[str, int], by: str
) -> Any:
    """Return a sorted frame with a row for each question; diverged questions are last."""
    import pandas as pd

    one_of("'by'", by, SORTED_BY)
    known = dict(zip(QUALITY, memory.quality[:, memory.slot], strict=True))
    group, count, error = evidence.asked.group, known["count"], known["error"]
    rows, total, squares = evidence.ratios[:, group]
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "name": names,
            "rupee": rupee(memory, evidence),
            "effective_rows": np.where(squares > 0, total**2 / squares, 0.0),
            "rows": rows.astype(int),
            "returns": count.astype(int),
            "return_error": np.where(count > 0, np.sqrt(error), np.nan),
            "explained": np.where(known["variance"] > 0, 1.0 - error / known["variance"], np.nan),
            "diverged": [diverged.get(name, 0) for name in names],
        }
    frame = pd.DataFrame(columns)
    frame = frame.sort_values(by, ascending=by not in LARGEST_FIRST, kind="stable")
    return frame.sort_values("diverged", key=lambda at: at > 0, kind="stable", ignore_index=True)
