"""The mean of a rule's step over the transitions of a task, its traces standing at their mean."""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.mean_traces import mean_traces, outcome_weights
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task

PRODUCTS = ("x_x", "x_next", "next_next", "x_z", "z_z")
KNOWN_SIGNALS = (
    *("alpha", "beta", "rho", "rho_x", "discount", "delta", "x_eta", "x_change"),
    *("z_eta", "b_eta", *PRODUCTS),
)
KNOWN_MOVES = ("w_x", "w_next", "w_z", "w_change", "eta_x", "eta_next", "eta_z", "eta_eta")


class Sample(NamedTuple):
    """One transition, with the traces as they are after its x; those of a rule without traces are ρ x and x."""

    x: Array
    reward: float
    discount: float
    x_next: Array
    rho: float
    z: Array
    b: Array


def sample_move(setting: Setting, sample: Sample, w: Array, eta: Array, w_prev: Array) -> tuple[Array, Array]:
    """Return by how much one transition moves w and η, (p,) each; the M⁻¹ of a natural rule is left out."""
    x, reward, discount, x_next, rho, z, b = sample
    setting.rule.check_known("The mean update", KNOWN_SIGNALS, KNOWN_MOVES)
    products = (x @ x, x @ x_next, x_next @ x_next, x @ z, z @ z)
    signals = setting.signals(1.0, rho) | {
        "discount": discount,
        "delta": float(reward + discount * x_next @ w - x @ w),
        "x_eta": float(x @ eta),
        "x_change": float(x @ (w - w_prev)),
        "z_eta": float(z @ eta),
        "b_eta": float(b @ eta),
        **dict(zip(PRODUCTS, map(float, products), strict=True)),
    }
    move = setting.rule.coefficients(signals)
    w_move = move["w_x"] * x + move["w_next"] * x_next + move["w_z"] * z + move["w_change"] * (w - w_prev)
    return w_move, move["eta_x"] * x + move["eta_next"] * x_next + move["eta_z"] * z + move["eta_eta"] * eta


def samples(task: Task, setting: Setting) -> list[tuple[float, Sample]]:
    """Return every transition of a task with how often it happens, its traces at their mean."""
    row, next_row, reward, discount, rho, _ = task.transitions
    X, weight = task.row_features.toarray(), outcome_weights(task)
    x, x_next = X[row], X[next_row]
    traces = {"z": rho[:, None] * x, "b": x} | (mean_traces(task, setting) if setting.rule.traces else {})
    return [
        (weight[o], Sample(x[o], reward[o], discount[o], x_next[o], rho[o], traces["z"][o], traces["b"][o]))
        for o in np.flatnonzero(weight)
    ]


def mean_move(
    setting: Setting, weighted: list[tuple[float, Sample]], w: Array, eta: Array, w_prev: Array
) -> tuple[Array, Array]:
    """Return the weighted sum of the moves of samples."""
    w_move, eta_move = np.zeros_like(w), np.zeros_like(w)
    for weight, sample in weighted:
        on_w, on_eta = sample_move(setting, sample, w, eta, w_prev)
        w_move += weight * on_w
        eta_move += weight * on_eta
    return w_move, eta_move
