"""The compiled form of `ShadowLearner`, one setting on one trajectory: the same bits, a hundred times the speed.

Copies of all rungs stand side by side, w[i, copy], so that the loops over them become vector code.
"""

import numba
import numpy as np

from gradient_dd.engine import ladder
from gradient_dd.engine.kernels.compiler import COMPILE


@numba.njit(nogil=True, **COMPILE)
def average(w, eta, averages, age):
    """Move every rung that averages towards its source: all its copies."""
    share = min(1.0, ladder.AVERAGE / age)
    for k in range(averages.size):
        if averages[k] >= 0:
            for i in range(w.shape[0]):
                for copy in range(ladder.COPIES):
                    here, there = k * ladder.COPIES + copy, averages[k] * ladder.COPIES + copy
                    w[i, here] += share * (w[i, there] - w[i, here])
                    eta[i, here] += share * (eta[i, there] - eta[i, here])


@numba.njit(nogil=True, **COMPILE)
def averaged(level, value, blocks, sudden):
    """Return a level after one more block; a rise counts at once if it is `sudden`."""
    value = value if value < ladder.HUGE else ladder.HUGE
    return value if sudden != 0.0 and value > level else level + (value - level) / blocks


@numba.njit(nogil=True, **COMPILE)
def measure_growth(w, eta, averages, age, sizes, risk):
    """Set the factor on every rung's predicted error², as `ShadowCopies.measure_growth` does."""
    for k in range(averages.size):
        if averages[k] >= 0:
            risk[k] = risk[averages[k]]
            continue
        copy = k * ladder.COPIES + ladder.GROWTH
        size = 0.0
        for i in range(w.shape[0]):
            size += w[i, copy] * w[i, copy] + eta[i, copy] * eta[i, copy]
        size = np.sqrt(size)
        if not size < ladder.HUGE:
            w[:, copy], eta[:, copy], sizes[:, k] = 1.0, 0.0, 0.0
            size = np.sqrt(float(w.shape[0]))
        elif size > ladder.FAR or 0.0 < size < 1 / ladder.FAR:
            for i in range(w.shape[0]):
                w[i, copy] /= size
                eta[i, copy] /= size
            sizes[0, k] /= size
            sizes[1, k] /= size
            size = 1.0
        if age == 1:
            sizes[0, k] = sizes[1, k] = size
        steepest = 0.0 if size == 0.0 else ladder.STEEPEST
        grown = min(size / sizes[0, k], ladder.STEEPEST) if sizes[0, k] > 0.0 else steepest
        risk[k] = max(1.0, grown * grown)
        if age & (age - 1) == 0 or age % ladder.WINDOW == 0:
            sizes[0, k], sizes[1, k] = sizes[1, k], size


@numba.njit(nogil=True, **COMPILE)
def choose(w, eta, squares, bias, spread, risk, sums, blocks, chosen, waits, copied, rules, shares):
    """Make a choice as `ShadowCopies.choose` does and return it; `sums` are those of `ShadowCopies` and mean ‖x‖²."""
    caution, largest, sudden, _, wait = rules
    rungs = bias.size
    for i in range(2):
        mean = sums[i] / ladder.BLOCK
        mean = mean if mean < ladder.HUGE else ladder.HUGE
        sums[2 + i] += (mean - sums[2 + i]) / blocks
        if largest != 0.0 and mean < ladder.HUGE and mean > sums[4]:
            sums[4] = mean
    if largest == 0.0:
        sums[4] = sums[2] + sums[3]
    for k in range(rungs):
        level = 0.0
        for start in range(ladder.STARTS):
            level += squares[k * ladder.COPIES + 1 + start] / (ladder.STARTS * ladder.BLOCK)
        bias[k] = averaged(bias[k], level / sums[5] if sums[5] > 0.0 else 0.0, blocks, sudden)
        spread[k] = averaged(spread[k], squares[k * ladder.COPIES + ladder.NOISE] / ladder.BLOCK, blocks, sudden)
    predicted = (caution * sums[4] * bias + spread) * risk
    best, least = chosen, np.inf
    for k in range(rungs):
        if waits[k] > 0.0 and k != chosen:
            waits[k] -= 1.0
            continue
        favoured = predicted[k] * ladder.STAY if k == chosen else predicted[k]
        if favoured < least:
            best, least = k, favoured
    for k in range(rungs):
        if predicted[k] > ladder.WORSE**2 * predicted[best]:
            for i in range(w.shape[0]):
                for copy in range(ladder.GROWTH):
                    w[i, k * ladder.COPIES + copy] = w[i, best * ladder.COPIES + copy]
                    eta[i, k * ladder.COPIES + copy] = eta[i, best * ladder.COPIES + copy]
            bias[k], spread[k] = bias[best], spread[best]
            copied[k] += 1.0
            waits[k] = wait * 2.0 ** min(copied[k] - 1.0, 50.0)
    squares[:] = 0.0
    sums[0] = sums[1] = 0.0
    share_out((caution * sums[4] * bias + spread) * risk, waits, best, shares)
    return best


@numba.njit(nogil=True, **COMPILE)
def share_out(predicted, waits, best, shares):
    """Set the shares of the rungs in the weights that are read out, as `ShadowCopies.share_out` does."""
    least, total = np.inf, 0.0
    for k in range(shares.size):
        if waits[k] == 0.0 or k == best:
            least = min(least, predicted[k])
    for k in range(shares.size):
        shares[k] = 1.0 if k == best else 0.0
        if 0.0 < least < np.inf and (waits[k] == 0.0 or k == best):
            shares[k] = (least / predicted[k]) * (least / predicted[k])
        total += shares[k]
    shares /= total


@numba.njit(nogil=True, **COMPILE)
def read_out(w, shares, chosen, w_read):
    """Set w_read to the weights of all rungs, each with its share, as `ShadowCopies.read_out` does."""
    w_read[:] = 0.0
    for k in range(shares.size):
        if shares[k] > 0.0:
            for i in range(w_read.size):
                w_read[i] += shares[k] * w[i, k * ladder.COPIES]
    if not np.isfinite(w_read).all():
        w_read[:] = w[:, chosen * ladder.COPIES]


@numba.njit(nogil=True, **COMPILE)
def run(column, factors, signs, outcomes, features, rungs, rules, first, alpha, start, vectors, measure, every):
    """Run one setting; return the error after every so many steps, (points,), the choice then, and w at the end.

    column, factors, signs  (steps,) outcomes, factors on alpha, random signs ±1
    outcomes  row, next_row, reward, discount, rho of every outcome;  features  (indices, values, counts) of every row
    rungs     (multiple, zeta, c, direct) of every copy, (copies,) each, and `averages` of every rung
    rules     (caution, largest, sudden, centre, wait) of the ladder;  alpha  0 for the wide ladder
    vectors   (p, STARTS) where the bias shadows start;  measure  (rows, targets): the error is ‖rows w − targets‖
    """
    row, next_row, reward, discount, rho = outcomes
    indices, values, counts = features
    multiple, zeta, c, direct, averages = rungs
    p, size, count = start.size, multiple.size, averages.size
    w, eta, foretold = np.zeros((p, size)), np.zeros((p, size)), np.zeros(p)
    for i in range(p):
        for k in range(count):
            w[i, k * ladder.COPIES] = start[i]
            for j in range(ladder.STARTS):
                w[i, k * ladder.COPIES + 1 + j] = vectors[i, j]
            w[i, k * ladder.COPIES + ladder.GROWTH] = vectors[i, 0]
    x_w, next_w, x_eta = np.empty(size), np.empty(size), np.empty(size)
    w_x, w_next, eta_x, rewards = np.empty(size), np.empty(size), np.empty(size), np.zeros(size)
    squares, bias, spread, sums = np.zeros(size), np.zeros(count), np.zeros(count), np.zeros(6)
    waits, copied, centre = np.zeros(count), np.zeros(count), rules[3]
    sizes, risk, shares, w_read = np.zeros((2, count)), np.ones(count), np.zeros(count), np.empty(p)
    shares[first] = 1.0
    rows, targets = measure
    errors, choices = np.empty(column.size // every), np.empty(column.size // every, np.int64)
    norms, blocks, age, chosen = 0.0, 0, 0, first
    learning = 0  # copies before this one can move by a step; averages and the rung that stands still come after them
    for v in range(size):
        if multiple[v] > 0.0:
            learning = v + 1
    for t in range(column.size):
        o = column[t]
        here, there, gamma, ratio, factor = row[o], next_row[o], discount[o], rho[o], factors[t]
        x_w[:] = 0.0
        next_w[:] = 0.0
        x_eta[:] = 0.0
        began, guess, norm = 0.0, 0.0, 0.0
        for j in range(counts[here]):
            i, x = indices[here, j], values[here, j]
            began += x * start[i]
            guess += x * foretold[i]
            norm += x * x
            for v in range(size):
                x_w[v] += x * w[i, v]
            for v in range(learning):
                x_eta[v] += x * eta[i, v]
        if gamma != 0.0:
            for j in range(counts[there]):
                i, x = indices[there, j], values[there, j]
                for v in range(size):
                    next_w[v] += x * w[i, v]
        own = chosen * ladder.COPIES
        surprise = reward[o] + gamma * next_w[own] - x_w[own]
        for v in range(size):
            squares[v] += x_w[v] * x_w[v]
        moved = x_w[own] - began
        sums[0] += moved * moved
        sums[1] += surprise * surprise
        norms += norm
        if centre > 0.0 and norms > 0.0:
            share = centre * (t + 1) / norms * ratio
            share = share / max(1.0, share * norm) * (surprise - guess)
            for j in range(counts[here]):
                foretold[indices[here, j]] += values[here, j] * share
        for k in range(count):
            rewards[k * ladder.COPIES] = reward[o]
            rewards[k * ladder.COPIES + ladder.NOISE] = signs[t] * (surprise - guess)
        unit = alpha
        if alpha == 0.0 and norms > 0.0:
            unit = ladder.UNIT * (t + 1) / norms
        for v in range(learning):
            step = unit * factor * multiple[v]
            delta = rewards[v] + gamma * next_w[v] - x_w[v]
            w_x[v] = step * ratio * (delta if direct[v] != 0.0 else x_eta[v])
            w_next[v] = -step * ratio * ((1.0 - c[v]) * gamma) * x_eta[v]
            eta_x[v] = zeta[v] * step * (ratio * delta - x_eta[v])
        for j in range(counts[here]):
            i, x = indices[here, j], values[here, j]
            for v in range(learning):
                w[i, v] += x * w_x[v]
                eta[i, v] += x * eta_x[v]
        if gamma != 0.0:
            for j in range(counts[there]):
                i, x = indices[there, j], values[there, j]
                for v in range(learning):
                    w[i, v] += x * w_next[v]
        if (t + 1) % ladder.BLOCK == 0:
            age += 1
            blocks = min(blocks + 1, ladder.MEMORY)
            sums[5] = norms / (t + 1)
            average(w, eta, averages, age)
            measure_growth(w, eta, averages, age, sizes, risk)
            chosen = choose(w, eta, squares, bias, spread, risk, sums, blocks, chosen, waits, copied, rules, shares)
        if (t + 1) % every == 0:
            read_out(w, shares, chosen, w_read)
            total = 0.0
            for m in range(targets.size):
                gap = -targets[m]
                for i in range(p):
                    gap += rows[m, i] * w_read[i]
                total += gap * gap
            errors[(t + 1) // every - 1] = np.sqrt(total)
            choices[(t + 1) // every - 1] = chosen
    read_out(w, shares, chosen, w_read)
    return errors, choices, w_read
