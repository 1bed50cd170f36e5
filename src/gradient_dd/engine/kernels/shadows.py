"""The compiled form of `ShadowLearner`, one setting on one trajectory: the same bits, a hundred times the speed.

Copies of all rungs stand side by side, w[i, copy], so that the loops over them become vector code.
"""

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler_options import COMPILE
from gradient_dd.engine.ladder import BLOCK, CAUTION, HUGE, MEMORY, STARTS, STAY, UNIT, WORSE

COPIES = 1 + STARTS + 1


@numba.njit(nogil=True, **COMPILE)
def choose(w, eta, squares, bias, spread, sums, blocks, chosen):
    """Make a choice as `ShadowLearner._choose` does and return it; `sums` are (Σ moved², Σ δ², B², mean ‖x‖²)."""
    rungs = bias.size
    for i in range(2):
        mean = sums[i] / BLOCK
        if mean < HUGE and mean > sums[2]:
            sums[2] = mean
    for k in range(rungs):
        level = 0.0
        for start in range(STARTS):
            level += squares[k * COPIES + 1 + start] / (STARTS * BLOCK)
        level = level / sums[3]
        level = level if level < HUGE else HUGE
        bias[k] += (level - bias[k]) / blocks
        level = squares[k * COPIES + COPIES - 1] / BLOCK
        level = level if level < HUGE else HUGE
        spread[k] += (level - spread[k]) / blocks
    predicted = CAUTION * sums[2] * bias + spread
    best, least = 0, np.inf
    for k in range(rungs):
        favoured = predicted[k] * STAY if k == chosen else predicted[k]
        if favoured < least:
            best, least = k, favoured
    for k in range(rungs):
        if predicted[k] > WORSE**2 * predicted[best]:
            for i in range(w.shape[0]):
                for copy in range(COPIES):
                    w[i, k * COPIES + copy] = w[i, best * COPIES + copy]
                    eta[i, k * COPIES + copy] = eta[i, best * COPIES + copy]
            bias[k], spread[k] = bias[best], spread[best]
    squares[:] = 0.0
    sums[0] = sums[1] = 0.0
    return best


@numba.njit(nogil=True, **COMPILE)
def run(column, factors, signs, outcomes, features, rungs, alpha, start, vectors, measure, every):
    """Run one setting; return the error after every so many steps, (points,), the choice then, and w at the end.

    column, factors, signs  (steps,) outcomes, factors on alpha, random signs ±1
    outcomes  row, next_row, reward, discount, rho of every outcome;  features  (indices, values, counts) of every row
    rungs     (multiple, zeta, c, direct) of every copy, (copies,) each;  alpha  0 for the wide ladder
    vectors   (p, STARTS) where the bias shadows start;  measure  (rows, targets): the error is ‖rows w − targets‖
    """
    row, next_row, reward, discount, rho = outcomes
    indices, values, counts = features
    multiple, zeta, c, direct = rungs
    p, size = start.size, multiple.size
    count = size // COPIES
    w, eta = np.zeros((p, size)), np.zeros((p, size))
    for i in range(p):
        for k in range(count):
            w[i, k * COPIES] = start[i]
            for j in range(STARTS):
                w[i, k * COPIES + 1 + j] = vectors[i, j]
    x_w, next_w, x_eta = np.empty(size), np.empty(size), np.empty(size)
    w_x, w_next, eta_x, rewards = np.empty(size), np.empty(size), np.empty(size), np.zeros(size)
    squares, bias, spread, sums = np.zeros(size), np.zeros(count), np.zeros(count), np.zeros(4)
    rows, targets = measure
    errors, choices = np.empty(column.size // every), np.empty(column.size // every, np.int64)
    norms, blocks, chosen = 0.0, 0, count - 1
    for t in range(column.size):
        o = column[t]
        here, there, gamma, ratio, factor = row[o], next_row[o], discount[o], rho[o], factors[t]
        x_w[:] = 0.0
        next_w[:] = 0.0
        x_eta[:] = 0.0
        began = 0.0
        for j in range(counts[here]):
            i, x = indices[here, j], values[here, j]
            began += x * start[i]
            for v in range(size):
                x_w[v] += x * w[i, v]
                x_eta[v] += x * eta[i, v]
        if gamma != 0.0:
            for j in range(counts[there]):
                i, x = indices[there, j], values[there, j]
                for v in range(size):
                    next_w[v] += x * w[i, v]
        own = chosen * COPIES
        surprise = reward[o] + gamma * next_w[own] - x_w[own]
        for v in range(size):
            squares[v] += x_w[v] * x_w[v]
        moved = x_w[own] - began
        sums[0] += moved * moved
        sums[1] += surprise * surprise
        for j in range(counts[here]):
            norms += values[here, j] * values[here, j]
        for k in range(count):
            rewards[k * COPIES] = reward[o]
            rewards[k * COPIES + COPIES - 1] = signs[t] * surprise
        unit = alpha
        if alpha == 0.0 and norms != 0.0:
            unit = UNIT * (t + 1) / norms
        for v in range(size):
            step = unit * factor * multiple[v]
            delta = rewards[v] + gamma * next_w[v] - x_w[v]
            w_x[v] = step * ratio * (delta if direct[v] != 0.0 else x_eta[v])
            w_next[v] = -step * ratio * ((1.0 - c[v]) * gamma) * x_eta[v]
            eta_x[v] = zeta[v] * step * (ratio * delta - x_eta[v])
        for j in range(counts[here]):
            i, x = indices[here, j], values[here, j]
            for v in range(size):
                w[i, v] += x * w_x[v]
                eta[i, v] += x * eta_x[v]
        if gamma != 0.0:
            for j in range(counts[there]):
                i, x = indices[there, j], values[there, j]
                for v in range(size):
                    w[i, v] += x * w_next[v]
        if (t + 1) % BLOCK == 0:
            blocks = min(blocks + 1, MEMORY)
            sums[3] = norms / (t + 1)
            chosen = choose(w, eta, squares, bias, spread, sums, blocks, chosen)
        if (t + 1) % every == 0:
            total = 0.0
            for m in range(targets.size):
                gap = -targets[m]
                for i in range(p):
                    gap += rows[m, i] * w[i, chosen * COPIES]
                total += gap * gap
            errors[(t + 1) // every - 1] = np.sqrt(total)
            choices[(t + 1) // every - 1] = chosen
    return errors, choices, w[:, chosen * COPIES].copy()
