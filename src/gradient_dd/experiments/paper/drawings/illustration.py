"""The paper's first figure, drawn from a real problem: contours of the MSPBE, the trust region, two types of step."""

from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.report.canvas import drawn
from gradient_dd.report.figure import BLACK, BLUE, RED
from gradient_dd.tasks import exact
from gradient_dd.theory.trust_region import constrained_step, kappa_of_mu, penalised_step

PREVIOUS = np.array([-1.2, 1.6])  # w_{n-1}, away from the optimum
SHARE = 0.1  # largest squared change of the values in one step, over the squared distance to the optimum
ALPHA = 4.0  # step size of the plain step


def draw(folder: Path) -> None:
    """Draw folder/illustration.svg and .png."""
    task = tasks.random_mdp(n_states=6, n_features=2, seed=4)
    A, b, C = task.moments
    best = task.fixed_point
    v = best + PREVIOUS
    mu = SHARE * float((best - v) @ C @ (best - v))
    inside = constrained_step(task, v, mu)
    plain = v - ALPHA * exact.mspbe_gradient(v, A, b, C) / 2
    kappa = kappa_of_mu(task, v, mu)
    path = np.array([best, *(penalised_step(task, v, k) for k in np.geomspace(1e-3, 1e3, 200)), v])
    words = f"contours of √MSPBE; μ = {SHARE:g} of the squared distance to w*; plain step with α = {ALPHA:g}"
    texts = DRAWINGS["illustration"].title, f"{task}\n{words}"
    with drawn(folder, "illustration", texts, columns=1, heights=(4.6,), width=6.2) as sheet:
        axes = sheet.axes(0, 0)
        reach = 1.5 * np.abs(v - best).max()
        x, y = (np.linspace(one - reach, one + reach, 80) for one in best)
        levels = np.array([[exact.mspbe(np.array([i, j]), A, b, C) for i in x] for j in y])
        axes.contour(x, y, np.sqrt(levels), 14, cmap="Greys_r", linewidths=0.7)
        axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
        angle = np.linspace(0, 2 * np.pi, 200)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        ring = v + np.sqrt(mu) * np.linalg.solve(np.linalg.cholesky(C).T, circle).T  # (w − v)ᵀ C (w − v) = μ
        axes.fill(*ring.T, color=BLUE, alpha=0.15, linewidth=0)
        axes.plot(*ring.T, color=BLUE, linewidth=1.2, label="trust region: values within μ of those at wₙ₋₁")
        axes.plot(*path.T, "--", color=RED, linewidth=1, label="penalised optimum as κ goes from 0 to ∞")
        step(axes, v, plain, BLACK, "plain gradient step")
        step(axes, v, inside, RED, f"constrained step, κ = {kappa:.2f}")
        axes.plot(*v, "o", color=BLACK, markersize=5)
        axes.annotate("wₙ₋₁", v, xytext=(-22, 6), textcoords="offset points")
        axes.plot(*best, "*", color=BLACK, markersize=11)
        axes.annotate("w*", best, xytext=(8, -4), textcoords="offset points")
        axes.set(xlabel="w₁", ylabel="w₂", aspect="equal")
        axes.legend(loc="lower left")


def step(axes: Any, begin: np.ndarray, end: np.ndarray, colour: str, label: str) -> None:
    """Draw a step as an arrow, with an entry in the legend."""
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, begin, arrowprops=look)
    axes.plot([], [], color=colour, linewidth=1.8, label=label)
