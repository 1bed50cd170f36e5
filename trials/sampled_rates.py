"""Compare predicted rates with measured rates: the decay of the slowest mode in sampled runs.

    python -m trials.sampled_rates

Runs of the lane engine start far from w*, along the slowest mode of the mean dynamics, so that noise is negligible. The
remaining part, averaged over independent runs,

    a_n = v·(mean w_n − w*) / v·v ≈ a_0 (1 − rate)ⁿ

is fitted by a straight line in its logarithm, after the faster modes have decayed. The average needs a finite variance:
if a step size is not stable in mean square (`SquareOperator`), no number of runs shows the mean.

First-order theory is α times the slowest rate of the mean flow. It fails for large α, because weights and states are
correlated to order α along trajectories. On the walk it misses the exact rate by 5 % (TD) and 10 % (GTD2, Gradient-DD)
at α = 0.1, by a third for the latter two at 0.3, and by more than half for Gradient-DD at 0.5 and for TD at 0.9.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from os import cpu_count
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, splu

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.errors import Unquoted, bad_request, whole_number
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task, random_walk
from gradient_dd.theory.dynamics import MeanOperator
from gradient_dd.theory.effective import effective_matrix, flow_rate
from gradient_dd.theory.stability import COUNT, SMALL, contraction, eigenvalues, rate
from tools.programs import parser_of

FAR = 1e8  # initial length of w − w*, in units of the mode
POINTS = 20  # points of a run at which the weights are read
FADED = 6  # initial points omitted from the fit
DECAY = 3.0  # length of the runs of the table, in units of 1 / rate
STEPS = 8_000_000  # total of all runs of a row, within the limits on their number
RUNS = (4, 300)
SIZES = (10, 20, 40)
# Step sizes of the table, up to near the largest that are stable in mean square: 1.05, 0.39 and 0.55.
ALPHAS = {"td": (0.1, 0.3, 0.9), "gtd2": (0.1, 0.2, 0.3), "gradient_dd": (0.1, 0.3, 0.5)}


class Measured(NamedTuple):
    """The rate of the slowest mode of sampled runs, and its standard error over runs (jackknife)."""

    rate: float
    error: float


class RateRow(NamedTuple):
    """One row of `rates_table`. A rate is the fraction that the slowest mode loses in one step.

    iid_first_order         α times the slowest rate of the mean flow with A: independent draws, α → 0
    trajectory_first_order  the same with A_eff of `effective`
    exact                   of the exact mean dynamics along trajectories
    measured, error         in sampled runs, and its standard error
    gap                     exact / measured − 1
    """

    n_states: int
    learner: str
    alpha: float
    iid_first_order: float
    trajectory_first_order: float
    exact: float
    measured: float
    error: float
    gap: float


def measured_rate(task: Task, setting: Setting, steps: int, runs: int, seed: int = 0) -> Measured:
    """Return the rate of the slowest mode along trajectories, fitted to `runs` runs of `steps` steps each."""
    whole_number("'steps'", steps, at_least=POINTS)
    whole_number("'runs'", runs, at_least=2)
    mode = slowest_mode(task, setting)
    piece = steps // POINTS
    far = replace(task, initial_weights=task.fixed_point + FAR * mode)

    def amplitudes(run: int) -> Array:
        lane = LaneRun(far, [setting], Horizon(steps=piece * POINTS, every=piece), seed=seed, run=run)
        left = np.empty(POINTS)
        for point in range(POINTS):
            lane.advance(piece)
            left[point] = (lane.weights()[0][0] - task.fixed_point) @ mode
        return left

    with ThreadPoolExecutor(cpu_count()) as pool:
        left = np.array(list(pool.map(amplitudes, range(runs))))
    total = left.sum(axis=0)
    each = np.array([slope(total - one, piece) for one in left])
    error = np.sqrt((runs - 1) * each.var())
    return Measured(float(-np.expm1(slope(total, piece))), float(error))


def slope(amplitude: Array, piece: int) -> float:
    """Return the slope per step of the logarithm of an amplitude, seen every `piece` steps; NaN if it changes sign."""
    later = amplitude[FADED:]
    if not (later > 0).all():
        return float("nan")
    return float(np.polyfit(piece * np.arange(len(later)), np.log(later), 1)[0])


def slowest_mode(task: Task, setting: Setting) -> Array:
    """Return the w part, of length 1, of the slowest mode of the mean along trajectories.

    In a large operator, the search is limited to the modes with eigenvalues nearest to 1.
    """
    operator = MeanOperator(task, setting)
    generator = sp.csc_matrix(operator.generator())
    if generator.shape[0] <= SMALL:
        values, vectors = np.linalg.eig(generator.toarray())
    else:
        inverse = LinearOperator(generator.shape, splu(generator).solve, dtype=float)
        inverses, vectors = eigenvalues(inverse, COUNT, tolerance=0)
        values = 1 / inverses
    slowest = int(np.argmin(contraction(values)))
    if abs(values[slowest].imag) > 1e-6 * abs(values[slowest]):
        raise bad_request(
            f"The slowest mode of {setting.rule.name} on {task}", "be real", Unquoted("one that oscillates")
        )
    vector = vectors[:, slowest].reshape(operator.shape)[:, operator.maps.part("w")].sum(axis=0)
    mode = (vector / vector[np.argmax(np.abs(vector))]).real
    return mode / np.linalg.norm(mode)


def predicted_rates(task: Task, setting: Setting) -> tuple[float, float]:
    """Return the first-order rates of TD, GTD2 or Gradient-DD: for independent draws, and along trajectories."""
    if setting.rule.name not in ALPHAS:
        raise bad_request("The learner", f"be one of {', '.join(ALPHAS)}", setting.rule.name)
    alpha, A = setting.values["alpha"], task.moments.A
    if setting.rule.name == "td":
        same = alpha * float(np.linalg.eigvals(A).real.min())
        return same, same
    zeta, effective = setting.values["zeta"], effective_matrix(task, alpha, setting.values.get("kappa", 0.0))
    return alpha * flow_rate(task, A, zeta), alpha * flow_rate(task, effective, zeta)


def rates_table(sizes: Iterable[int] = SIZES) -> list[RateRow]:
    """Return predicted and measured rates on random walks, of TD, GTD2 and Gradient-DD with κ = 1."""
    settings = [LEARNERS[name].setting(alpha=alpha) for name, alphas in ALPHAS.items() for alpha in alphas]
    return [rate_row(m, setting) for m in sizes for setting in settings]


def rate_row(n_states: int, setting: Setting) -> RateRow:
    """Return the rates of one setting on a random walk."""
    task = random_walk(n_states)
    exact = rate(task, setting)
    steps = int(DECAY / exact)
    found = measured_rate(task, setting, steps, runs=int(np.clip(STEPS // steps, *RUNS)))
    gap = exact / found.rate - 1
    return RateRow(
        n_states, setting.rule.name, setting.values["alpha"], *predicted_rates(task, setting), exact, *found, gap
    )


def main(words: list[str] | None = None) -> None:
    """Print the table, row by row, in about a minute."""
    parser_of(__doc__).parse_args(words)
    print("| m | learner | α | first order, i.i.d. | first order, trajectory | exact | measured | its error | gap |")
    print("|---|---|---|---|---|---|---|---|---|")
    for m in SIZES:
        for row in rates_table([m]):
            numbers = " | ".join(f"{value:.3e}" for value in row[3:7])
            print(
                f"| {m} | {row.learner} | {row.alpha:g} | {numbers} | {row.error / row.measured:.1%} | {row.gap:+.1%} |"
            )


if __name__ == "__main__":
    main()
