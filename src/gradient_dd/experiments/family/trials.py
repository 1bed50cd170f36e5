"""Trials beside the studies: what a study does not measure, made from the same tasks, tuned and shown alike.

fixed points  where TD(λ) and ETD(λ) rest on Collision, exactly, for many draws of the features
two samples   PGTD2 on Collision at λ = 0, with one sample and with two in its half steps
projected     the five problems of the TDRC paper, ζ = 1, tuned for the area under the root of the mean squared
              projected Bellman error, RMSPBE(w) = √((b − A w)ᵀ C⁺ (b − A w)); a study keeps value errors only

PGTD2 without a trace, with an independent second sample in its second half step, is

    η_m = η + β (ρ δ − x·η) x,              w_m = w + α ((x·η) x − ρ γ (x·η) x')
    η ← η + β (ρ₂ δ_m − x₂·η_m) x₂,         w ← w + α ((x₂·η_m) x₂ − ρ₂ γ₂ (x₂·η_m) x₂')

The published learner takes the same sample twice, and then rests off the TD fixed point. Here the second sample comes
from a stream of its own, so the mean of the update is that of the mean equations. With `reuse` it is `pgtd2` itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.experiments.experiment import Scale, csv_rows, csv_text
from gradient_dd.experiments.family.independent_run import FIXED_POINTS
from gradient_dd.experiments.family.problems import FOUR_ZETAS, PROBLEMS, Problem, step_sizes
from gradient_dd.experiments.family.published import TDRC_AREAS, TDRC_PROBLEMS
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies.intervals import select
from gradient_dd.tasks import Task, exact

DRAWS = 200  # of the features, for fixed points
ALPHAS = 24  # step sizes of the projected trial
POINTS = 100  # errors of a run of the projected trial
BY_NAME = {one.name: one for one in PROBLEMS}
OTHER_SEED = 1  # of the stream of second samples; first samples have seed 0, as in a study


@dataclass(frozen=True)
class Trial:
    """Errors on shown runs by name, (runs,) each, of settings selected on the tuning runs."""

    name: str
    problem: str
    shown: dict[str, Array]


def all_trials(problems: Sequence[Problem], learners: Sequence[str], scale: Scale) -> list[Trial]:
    """Return every trial whose problem and learners take part."""
    names = [one.name for one in problems]
    found = []
    if "collision" in names:
        found.append(fixed_points(BY_NAME["collision"]))
    if "collision" in names and "pgtd2" in learners:
        found.append(two_samples(BY_NAME["collision"], scale))
    if {"tdrc", *TDRC_AREAS} <= set(learners):
        found += [projected(BY_NAME[name], steps, scale) for name, steps in TDRC_PROBLEMS.items() if name in names]
    return found


def fixed_points(problem: Problem) -> Trial:
    """Return the exact errors of the fixed points, one for each draw of the features."""
    tasks = [problem.tasks_of(run)[0].build() for run in range(DRAWS)]
    shown = {
        fixed_point_name(learner, lam): np.array([task.rmsve(rest(task, lam, learner == "etd")) for task in tasks])
        for learner, lam in FIXED_POINTS
    }
    return Trial("fixed points", problem.name, shown)


def fixed_point_name(learner: str, lam: float) -> str:
    """Return how the fixed point of a learner is called."""
    return f"fixed point of {LEARNERS[learner].label}, λ = {lam:g}"


def rest(task: Task, lam: float, emphatic: bool) -> Array:
    """Return the weights at which TD(λ), or ETD(λ), rests."""
    discount = task.discount[task.states]
    emphasis = exact.emphatic_weights(task.visits, task.P, discount, lam) if emphatic else None
    A, b = exact.trace_moments(task.features, task.visits, task.P, task.r, discount, lam, emphasis)
    return exact.fixed_point(A, b)


def two_samples(problem: Problem, scale: Scale) -> Trial:
    """Return PGTD2 with one sample and with two, λ = 0, tuned over step sizes and ζ, beside the TD fixed point."""
    grid = np.array([(alpha, zeta) for alpha in step_sizes(12) for zeta in FOUR_ZETAS])
    steps, every = problem.length(scale.steps)
    shown = {}
    for name, reuse in (("one", True), ("two", False)):
        best = grid
        for runs in (problem.runs_to_tune(scale), problem.runs_to_show(scale)):
            tasks = [problem.tasks_of(run)[0].build() for run in runs]
            errors = area_of_pgtd2(tasks, runs, best, Horizon(steps=steps, every=every), reuse)
            best = best[[select(errors)]]
        shown[name] = errors[0]
    shown["rest"] = np.array([task.rmsve(rest(task, 0.0, emphatic=False)) for task in tasks])
    return Trial("two samples", problem.name, shown)


def projected(problem: Problem, steps: int, scale: Scale) -> Trial:
    """Return the learners of the TDRC paper on one of its problems."""
    task, length = problem.example(), min(steps, scale.steps or steps)
    settings = [LEARNERS[name].setting(alpha=alpha) for name in ("tdrc", *TDRC_AREAS) for alpha in step_sizes(ALPHAS)]
    errors = projected_area(task, settings, length, problem.runs_to_tune(scale))
    best: list[Setting] = []
    for first in range(0, len(settings), ALPHAS):
        best.append(settings[first + select(errors[first : first + ALPHAS])])
    shown = projected_area(task, best, length, problem.runs_to_show(scale))
    return Trial("projected", problem.name, dict(zip(("tdrc", *TDRC_AREAS), shown, strict=True)))


def projected_errors(task: Task, weights: Array) -> Array:
    """Return the RMSPBE of each row of weights, (settings,)."""
    A, b, C = task.moments.A, task.moments.b, task.moments.C
    with np.errstate(all="ignore"):
        rest = b - weights @ A.T
        squared = np.einsum("sp,pq,sq->s", rest, np.linalg.pinv(C), rest)
    return np.where(np.isfinite(squared), np.sqrt(np.maximum(squared, 0.0)), np.inf)


def projected_area(task: Task, settings: Sequence[Setting], steps: int, runs: Sequence[int]) -> Array:
    """Return the mean RMSPBE over a run, (settings, runs)."""
    every = -(-steps // POINTS)
    areas = []
    for run in runs:
        lanes = LaneRun(task, settings, Horizon(steps=every * POINTS, every=every), run=run)
        total = np.zeros(len(settings))
        while not lanes.done:
            lanes.advance(every)
            total += projected_errors(task, lanes.weights()[0])
        areas.append(total / POINTS)
    return np.stack(areas, axis=1)


def trials_text(trials: Sequence[Trial]) -> str:
    """Return the numbers of trials as CSV, each with all its digits."""
    rows = ((t.name, t.problem, name, repr(float(v))) for t in trials for name, some in t.shown.items() for v in some)
    return csv_text("trial problem name error", rows)


def read_trials(text: str) -> list[Trial]:
    """Return the trials that were written."""
    shown: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in csv_rows(text):
        parts = shown.setdefault((row["trial"], row["problem"]), {})
        parts.setdefault(row["name"], []).append(float(row["error"]))
    return [Trial(*key, {name: np.array(some) for name, some in parts.items()}) for key, parts in shown.items()]


class Samples(NamedTuple):
    """What happens at one step in every run: x and x' (runs, p); reward, discount and ρ (runs,)."""

    x: Array
    x_next: Array
    reward: Array
    discount: Array
    rho: Array


def area_of_pgtd2(
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
    with np.errstate(all="ignore"):  # a run that diverges is data
        for step in range(steps):
            sample = samples(tasks, features, first[:, step])
            other = sample if reuse else samples(tasks, features, second[:, step])
            dw, deta = gtd2_step(sample, w, eta, alpha, beta)
            dw, deta = gtd2_step(other, w + dw, eta + deta, alpha, beta)
            w, eta = w + dw, eta + deta
            if (step + 1) % every == 0:
                gap = np.einsum("srp,rnp->srn", w, features[:, :-1]) - values
                total += np.sqrt(np.einsum("srn,rn->sr", gap**2, visits))
    area = total / (steps // every)
    return np.where(np.isfinite(area), area, np.inf)


def gtd2_step(sample: Samples, w: Array, eta: Array, alpha: Array, beta: Array) -> tuple[Array, Array]:
    """Return how GTD2 moves w and η, (settings, runs, p) each."""
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
    """Return what the outcomes of one step mean; tasks differ in their features alone."""
    table, run = tasks[0].transitions, np.arange(len(outcome))
    return Samples(
        features[run, table.row[outcome]],
        features[run, table.next_row[outcome]],
        *(column[outcome] for column in (table.reward, table.discount, table.rho)),
    )
