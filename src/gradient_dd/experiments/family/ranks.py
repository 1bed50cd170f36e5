"""Mean ranks over problems, with intervals: how far the order of learners would change with other problems and runs.

A resample draws as many problems, with replacement, and in each as many of its shown runs; all learners keep their
errors of the same runs. A learner that exploded in a drawn run has the last rank there, beside all others that did.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.family.contest import Contest, Entrant
from gradient_dd.learners import LEARNERS
from gradient_dd.studies.intervals import TAILS, resample_counts

DRAWS = 2_000
BEYOND = 1e300  # stands for an infinite error, which a weight of 0 cannot multiply


class MeanRank(NamedTuple):
    """The mean rank of a learner over problems, its interval, and the share of resamples in which it is the lowest."""

    mean: float
    low: float
    high: float
    first: float


def mean_ranks(contest: Contest) -> dict[str, MeanRank]:
    """Return the mean rank of each learner over all problems, the lowest first."""
    rng = np.random.default_rng(0)
    exact, drawn = [], []
    for problem in contest.problems:
        errors = np.stack([contest.shown(problem.name, Entrant(name)) for name in contest.learners], axis=1)
        finite = np.where(np.isfinite(errors), errors, BEYOND)
        weights = resample_counts(rng, len(errors), DRAWS) / len(errors)
        exact.append(ranks_of(finite.mean(axis=0)[None])[0])
        drawn.append(ranks_of(weights @ finite))
    problems = resample_counts(rng, len(exact), DRAWS) / len(exact)
    again = np.einsum("dp,pdl->dl", problems, np.stack(drawn))
    low, high = np.quantile(again, TAILS, axis=0)
    first = (again == again.min(axis=1, keepdims=True)).mean(axis=0)
    found = zip(np.mean(exact, axis=0), low, high, first, strict=True)
    ranked = {name: MeanRank(*map(float, one)) for name, one in zip(contest.learners, found, strict=True)}
    return dict(sorted(ranked.items(), key=lambda pair: pair[1].mean))


def ranks_of(means: Array) -> Array:
    """Return the rank of each mean among those of its row, 1 for the lowest; means: (draws, learners)."""
    ranks: Array = 1.0 + (means[:, None, :] < means[:, :, None]).sum(axis=2)
    return ranks


def ranks_in_words(ranks: dict[str, MeanRank], count: int = 5) -> str:
    """Return the first of the learners with their mean ranks and intervals, in a sentence."""
    leaders = [
        f"{LEARNERS[name].label} {one.mean:.1f} [{one.low:.1f}, {one.high:.1f}]"
        for name, one in list(ranks.items())[:count]
    ]
    name, best = next(iter(ranks.items()))
    listed = f"Mean ranks over all problems, lowest first: {', '.join(leaders)}, of {len(ranks)} learners."
    return f"{listed} With other problems and runs {LEARNERS[name].label} is first in {100 * best.first:.0f} %."
