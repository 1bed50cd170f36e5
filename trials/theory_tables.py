"""Compute two tables of the theory page: the limit of the mean of each learner, and the largest stable step sizes.

    python -m trials.theory_tables

All results are exact. The limits in mean square take minutes.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task, baird, boyan_chain, random_walk
from gradient_dd.theory import largest_stable_alpha
from gradient_dd.theory.dynamics import MeanOperator
from gradient_dd.theory.stability import SPAN, SquareOperator, in_row_space, largest_stable, rate_of_alpha
from tools.programs import parser_of, print_table

RESTING = ("td", "tdc", "tdrc", "gtd2", "gradient_dd")
LIMITED = ("td", "gtd2", "gradient_dd")
COARSE, PRECISION = 2.0, 0.01  # of the search for the limits of the mean square


def steady_state_bias(task: Task, setting: Setting, sampling: str = "trajectory") -> float:
    """Return the RMSVE of E[w] in the steady state, which the mean reaches only if it is stable.

    The steady-state means by state solve m = T m + offset, with visits p. With independent draws E[w] is w* for every
    learner here. Along trajectories weights and state stay correlated, which leaves a bias of the order of alpha in
    E[w]. No number of runs averages that bias away; a smaller step size does.
    """
    reduced = in_row_space(task)
    operator = MeanOperator(reduced, setting, sampling)
    visits = np.ones(1) if sampling == "iid" else reduced.visits
    still = spsolve(sp.csc_matrix(-operator.generator()), operator.offsets() @ visits)
    return reduced.rmsve(still.reshape(operator.shape)[:, operator.maps.part("w")].sum(axis=0))


def largest_safe_alpha(task: Task, learner: str, sampling: str = "trajectory") -> float:
    """Return the smallest step size that is unstable in mean square, to a relative 1 %; 0 if none is stable.

    `exact_limits` gives the same for tasks on which it takes seconds.
    """
    _, scale = rate_of_alpha(task, learner, sampling, {})
    operator = SquareOperator(in_row_space(task), LEARNERS[learner].setting(alpha=1.0), sampling)
    low, high = (scale * end for end in SPAN)
    return largest_stable(operator.is_stable, low, high, COARSE, PRECISION)


def rests() -> Iterator[tuple[str, ...]]:
    """Yield a row of steady-state errors for each task and step size."""
    for task, alpha in ((random_walk(10), 0.1), (random_walk(10), 0.3), (boyan_chain(5), 0.3)):
        found = (steady_state_bias(task, LEARNERS[name].setting(alpha=alpha)) for name in RESTING)
        yield str(task), f"{alpha:g}", *(f"{bias:.2g}" for bias in found)


def limits() -> Iterator[tuple[str, ...]]:
    """Yield a row of limits, mean / mean square, for each task and sampling method."""
    for task in (random_walk(10), random_walk(20), boyan_chain(5), baird(7)):
        for sampling in ("iid", "trajectory"):
            pairs = (
                (largest_stable_alpha(task, name, sampling), largest_safe_alpha(task, name, sampling))
                for name in LIMITED
            )
            yield str(task), sampling, *(f"{stable:.3g} / {safe:.2g}" for stable, safe in pairs)


def main(words: list[str] | None = None) -> None:
    """Print both tables."""
    parser_of(__doc__).parse_args(words)
    print_table(("task", "α", *RESTING), rests())
    print_table(("task", "sampling", *LIMITED), limits())


if __name__ == "__main__":
    main()
