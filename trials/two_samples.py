"""Test whether PGTD2 is best on Collision at λ = 0 because it uses its sample twice.

    python -m trials.two_samples

PGTD2 without a trace, with an independent second sample in its second half step, is

    η_m = η + β (ρ δ − x·η) x,              w_m = w + α ((x·η) x − ρ γ (x·η) x')
    η ← η + β (ρ₂ δ_m − x₂·η_m) x₂,         w ← w + α ((x₂·η_m) x₂ − ρ₂ γ₂ (x₂·η_m) x₂')

The published learner uses the same sample twice, and then does not converge to the TD fixed point. Here the second
sample comes from a separate stream. With `reuse` the learner is `pgtd2`. Both are tuned on 20 runs and tested on 50.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.studies.intervals import ratio_interval, select
from gradient_dd.tasks import Task, collision
from tools.programs import parser_of, print_table

HORIZON = Horizon(steps=20_000, every=400)
GRID = np.array([(2.0**-k, zeta) for k in range(12) for zeta in (1 / 64, 1 / 8, 1.0, 8.0)])  # α and ζ
TUNING, TESTED = range(20), range(20, 70)
OTHER_SEED = 1  # of the stream of second samples; first samples have seed 0


def main(words: list[str] | None = None) -> None:
    """Print the errors of both, and of the TD fixed point."""
    parser_of(__doc__).parse_args(words)
    shown = {}
    for name, reuse in (("one sample", True), ("two samples", False)):
        best = GRID
        for runs in (TUNING, TESTED):
            tasks = [collision(seed=run) for run in runs]
            errors = mean_error_of_pgtd2(tasks, runs, best, HORIZON, reuse)
            best = best[[select(errors)]]
        shown[name] = errors[0]
    shown["TD fixed point"] = np.array([task.rmsve(task.fixed_point) for task in tasks])
    pairs = (("two samples", "one sample"), ("one sample", "TD fixed point"), ("two samples", "TD fixed point"))
    rows = [(f"{a} / {b}", "{:.2f} [{:.2f}, {:.2f}]".format(*ratio_interval((shown[a], shown[b])))) for a, b in pairs]
    print_table(("ratio of errors", ""), rows)


class Samples(NamedTuple):
    """The transitions of one step in every run: x and x' (runs, p); reward, discount and ρ (runs,)."""

    x: Array
    x_next: Array
    reward: Array
    discount: Array
    rho: Array


def mean_error_of_pgtd2(
    tasks: Sequence[Task], runs: Sequence[int], settings: Array, horizon: Horizon, reuse: bool = False
) -> Array:
    """Return the mean error over a run, (settings, runs).

    Tasks and runs come in pairs; settings: (settings, 2), α and ζ of each.
    """
    (alphas, zetas), steps, every = settings.T, horizon.steps or 0, horizon.every
    first = columns(tasks, runs, 0, steps)
    second = first if reuse else columns(tasks, runs, OTHER_SEED, steps)
    features = np.stack([task.row_features.toarray() for task in tasks])
    visits, values = (np.stack([getattr(task, name) for task in tasks]) for name in ("visits", "true_values"))
    w = np.tile(np.stack([task.initial_weights for task in tasks]), (len(alphas), 1, 1))
    eta, total = np.zeros_like(w), np.zeros(w.shape[:2])
    alpha, beta = alphas[:, None], (alphas * zetas)[:, None]
    with np.errstate(all="ignore"):  # a diverged run is a result
        for step in range(steps):
            sample = samples(tasks, features, first[:, step])
            other = sample if reuse else samples(tasks, features, second[:, step])
            dw, deta = gtd2_step(sample, w, eta, alpha, beta)
            dw, deta = gtd2_step(other, w + dw, eta + deta, alpha, beta)
            w, eta = w + dw, eta + deta
            if (step + 1) % every == 0:
                gap = np.einsum("srp,rnp->srn", w, features[:, :-1]) - values
                total += np.sqrt(np.einsum("srn,rn->sr", gap**2, visits))
    mean_error = total / (steps // every)
    return np.where(np.isfinite(mean_error), mean_error, np.inf)


def gtd2_step(sample: Samples, w: Array, eta: Array, alpha: Array, beta: Array) -> tuple[Array, Array]:
    """Return the changes of w and η by GTD2, (settings, runs, p) each."""
    x, x_next, reward, discount, rho = sample
    x_w, next_w, x_eta = (np.einsum("srp,rp->sr", v, y) for v, y in ((w, x), (w, x_next), (eta, x)))
    delta = reward + discount * next_w - x_w
    along = (alpha * x_eta)[..., None]
    dw = along * x - (along[..., 0] * (rho * discount))[..., None] * x_next
    return dw, (beta * (rho * delta - x_eta))[..., None] * x


def columns(tasks: Sequence[Task], runs: Sequence[int], seed: int, steps: int) -> NDArray[np.int32]:
    """Return the outcomes of every run, (runs, steps)."""
    return np.stack([OutcomeSampler(task, seed, run).take(steps) for task, run in zip(tasks, runs, strict=True)])


def samples(tasks: Sequence[Task], features: Array, outcome: NDArray[np.int32]) -> Samples:
    """Return the transitions of the outcomes of one step; tasks differ only in their features."""
    table, run = tasks[0].transitions, np.arange(len(outcome))
    return Samples(
        features[run, table.row[outcome]],
        features[run, table.next_row[outcome]],
        *(column[outcome] for column in (table.reward, table.discount, table.rho)),
    )


if __name__ == "__main__":
    main()
