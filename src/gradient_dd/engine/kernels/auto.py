"""Compiled loops of the update of `AutoLearner`.

Functions take arrays as separate arguments: creating a view or a tuple of arrays in every step costs more than the
step. Indices are unsigned, which saves a test for negative ones.
"""

import numba
import numpy as np

from gradient_dd.engine.auto import (
    AHEAD,
    AT,
    BLOCK,
    BURST,
    CLIP,
    COLUMNS,
    ETA,
    FAR,
    FIRST,
    FIRST_GTD2,
    RUNGS,
    SLOWER,
    UNIT,
    ZETA,
    D,
    U,
)
from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, INNER, kept
from gradient_dd.engine.kernels.stream import fetch


@numba.njit(**INNER)
def restart(state, k):
    """Restart a rung at the initial weights with a smaller step size, and clear its sums."""
    memory, A, S, vectors, _, rungs = state
    memory[:, D + k] = 0.0
    memory[:, U + k] = 0.0
    if k >= FIRST_GTD2:
        memory[:, ETA] = 0.0
    A[k] = 0.0
    A[:, k] = 0.0
    S[k] = 0.0
    S[:, k] = 0.0
    vectors[:, k] = 0.0
    rungs[0, k] *= SLOWER
    rungs[1, k] = 0.0


@numba.njit(**INNER)
def restart_far(state, here, there, z, ahead):
    """Restart every rung that has a number beyond FAR."""
    for k in range(RUNGS):
        eta = abs(here[ETA]) if k >= FIRST_GTD2 else 0.0
        if not abs(z[k]) + abs(ahead[k]) + abs(here[D + k]) + abs(there[D + k]) + eta <= FAR:
            restart(state, k)
            z[k] = ahead[k] = here[D + k] = there[D + k] = 0.0
            if k >= FIRST_GTD2:
                here[ETA] = 0.0


@numba.njit(**INNER)
def look_for_bursts(state):
    """Restart every rung whose errors diverged in the block that ends here."""
    _, _, _, _, numbers, rungs = state
    usual = numbers[AT.first_block] + BLOCK * numbers[AT.squares] / numbers[AT.steps]
    for k in range(RUNGS):
        if not rungs[1, k] <= BURST * usual:
            restart(state, k)
        rungs[1, k] = 0.0
    numbers[AT.first_block] = 0.0
    numbers[AT.block_end] = numbers[AT.age] + BLOCK


@numba.njit(**INLINE)
def span(begins, width, t):
    """Return the range of row t in the values."""
    if begins.size:
        return begins[t], begins[t + 1]
    return t * width, (t + 1) * width


@numba.njit(**INLINE)
def is_near(values, row):
    """Return whether all values of a row are within FAR."""
    largest = 0.0
    for j in range(row[0], row[1]):
        largest = max(largest, abs(values[np.uintp(j)]))
    return largest <= FAR


@numba.njit(**INLINE)
def fetch_row(memory, indices, row):
    """Prefetch the memory of the features of a sparse row."""
    if indices.size:
        for j in range(row[0], row[1]):
            fetch(memory, indices[np.uintp(j)] * COLUMNS)


@numba.njit(**INLINE)
def plain_features(indices, values, row, next_indices, next_values, next_row, discount, z, ahead, where):
    """Fill z with x and `ahead` with x − γx' at the first indices in `where`, and return their number.

    The indices of sparse rows are sorted and unique, so sums have the same bits as for dense rows.
    """
    (j, end), (m, next_end) = row, next_row
    if not indices.size and j < end:
        for i in range(z.size):
            z[i] = ahead[i] = values[np.uintp(j + i)]
        if m < next_end:
            for i in range(z.size):
                ahead[i] -= discount * next_values[np.uintp(m + i)]
        return z.size
    count = 0
    while True:
        while j < end and values[j] == 0.0:
            j += 1
        while m < next_end and next_values[m] == 0.0:
            m += 1
        if j == end and m == next_end:
            return count
        i = indices[j] if m == next_end or (j < end and indices[j] <= next_indices[m]) else next_indices[m]
        z[i] = ahead[i] = 0.0
        if j < end and indices[j] == i:
            z[i] = ahead[i] = values[j]
            j += 1
        if m < next_end and next_indices[m] == i:
            ahead[i] -= discount * next_values[m]
            m += 1
        where[count] = i
        count += 1


@numba.njit(**INLINE)
def product(w, ahead, where, count):
    """Return the product of weights and `ahead` over the first `count` indices in `where`."""
    found = 0.0
    for n in range(count):
        i = np.uintp(where[n] if count < ahead.size else n)
        found += ahead[i] * w[i]
    return found


@numba.njit(**INLINE)
def learn(A, S, b, c, v, window, e, numbers, z, ahead, where, count, first, rho):
    """Add a transition to the sums, and return the TD error of the current prediction."""
    weight, k, u = numbers[AT.age], z.size, product(v, ahead, where, count)
    wanted, solved = rho * first, rho * min(max(u, -FAR), FAR)
    numbers[AT.weights] += weight
    numbers[AT.first] += weight * wanted * wanted
    numbers[AT.squares] += wanted * wanted
    numbers[AT.fourths] += (wanted * wanted) * (wanted * wanted)
    error = wanted - numbers[AT.share] * solved
    numbers[AT.errors] += abs(error)
    most = CLIP * numbers[AT.errors] / numbers[AT.age]
    error = min(max(error, -most), most)
    numbers[AT.window_squares] += error * error
    for n in range(count):
        i = np.uintp(where[n] if count < k else n)
        pull, spread = weight * rho * z[i], weight * rho * rho * ahead[i]
        b[i] += pull * first
        e[i] += spread * first
        c[i] += weight * z[i] * z[i]
        window[i] += error * z[i]
        if count == k:
            for j in range(k):
                A[i, j] += pull * ahead[j]
                S[i, j] += spread * ahead[j]
        else:
            for m in range(count):
                place = np.uintp(where[m])
                A[i, place] += pull * ahead[place]
                S[i, place] += spread * ahead[place]
    return first - numbers[AT.share] * u


@numba.njit(**INLINE)
def squared_length(values, row):
    """Return the sum of the squares of a row."""
    found = 0.0
    for j in range(row[0], row[1]):
        found += values[np.uintp(j)] * values[np.uintp(j)]
    return found


@numba.njit(**INLINE)
def products(memory, indices, values, row, made):
    """Fill `made` with the products of a row of features and the columns of the memory."""
    begin, end = row
    for k in range(COLUMNS):
        made[k] = 0.0
    for j in range(begin, end):
        i, value = np.uintp(indices[np.uintp(j)] if indices.size else j - begin), values[np.uintp(j)]
        for k in range(COLUMNS):
            made[k] += value * memory[i, k]


@numba.njit(**INLINE)
def add_row(memory, indices, values, row, coefficients):
    """Add a row of features to the columns of the memory, times one coefficient per column.

    All columns are written, because a later read of a cache line stalls if only a part of the line was written.
    """
    begin, end = row
    for j in range(begin, end):
        i, value = np.uintp(indices[np.uintp(j)] if indices.size else j - begin), values[np.uintp(j)]
        for k in range(COLUMNS):
            memory[i, k] += value * coefficients[k]


@numba.njit(**INLINE)
def rung_features(age, discount, here, there, z, ahead):
    """Fill z with the averages of rungs times x, and `ahead` with z − γz'; return a bound on their size.

    here, there  the products of x and of x' with the columns of the memory
    """
    before = age * (age + 1.0) / 2.0  # the sum of the weights 1, 2, … of the averages so far
    wide, largest = 1.0 / before if before > 0.0 else 0.0, abs(here[ETA])
    for k in range(RUNGS):
        z[k] = here[D + k] - wide * here[U + k]
        ahead[k] = z[k] - discount * (there[D + k] - wide * there[U + k])
        largest = max(largest, abs(z[k]) + abs(ahead[k]) + abs(here[D + k]) + abs(there[D + k]))
    return largest


@numba.njit(**INLINE)
def rung_steps(numbers, multiples, recent, unit, first, discount, rho, here, there, on_x, on_next):
    """Fill `on_x` and `on_next` with the changes of the memory columns along x and along x'."""
    before = numbers[AT.age] * (numbers[AT.age] - 1.0) / 2.0
    for k in range(RUNGS):
        error = rho * (first - (here[D + k] - discount * there[D + k]))
        recent[k] += error * error
        step = unit * multiples[k]
        if k < FIRST_GTD2:
            on_x[D + k] = step * error
        else:
            on_x[D + k] = step * rho * here[ETA]
            on_x[ETA] = ZETA * step * (error - here[ETA])
            on_next[D + k] = -discount * on_x[D + k]
            on_next[U + k] = before * on_next[D + k]
        on_x[U + k] = before * on_x[D + k]


@kept(nogil=True, **COMPILE)
def steps(state, alpha, x, x_next, columns, deltas, begin):
    """Run steps and return their number; arguments as in `AutoState.advance`, with rows from `kernel_rows`."""
    memory, A, S, vectors, numbers, rungs = state
    b, c, v, window, e = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    first_weights, multiples, recent = memory[:, FIRST], rungs[0], rungs[1]
    begins, width, indices, values, near = x
    next_begins, next_width, next_indices, next_values, next_near = x_next
    reward, discount, rho = columns
    k, rung_count = vectors.shape[1], rungs.shape[1]
    z, ahead, where = np.zeros(k), np.zeros(k), np.arange(k)
    here, there, on_x, on_next = np.zeros(COLUMNS), np.zeros(COLUMNS), np.zeros(COLUMNS), np.zeros(COLUMNS)
    for t in range(begin, reward.size):
        if rung_count and t + AHEAD < reward.size:
            fetch_row(memory, indices, span(begins, width, t + AHEAD))
            fetch_row(memory, next_indices, span(next_begins, next_width, t + AHEAD))
        row, next_row = span(begins, width, t), (0, 0)
        if discount[t] != 0.0:
            next_row = span(next_begins, next_width, t)
        if not (rho[t] <= FAR and (near or is_near(values, row)) and (next_near or is_near(next_values, next_row))):
            return t - begin
        if rung_count:
            count = k
            products(memory, indices, values, row, here)
            products(memory, next_indices, next_values, next_row, there)
            if not rung_features(numbers[AT.age], discount[t], here, there, z, ahead) <= FAR:
                restart_far(state, here, there, z, ahead)
            first = reward[t] + discount[t] * there[FIRST] - here[FIRST]
        else:
            count = plain_features(
                indices, values, row, next_indices, next_values, next_row, discount[t], z, ahead, where
            )
            first = reward[t] - product(first_weights, ahead, where, count)
        if not abs(rho[t] * first) <= FAR:
            return t - begin
        numbers[AT.age] += 1.0
        numbers[AT.steps] += 1.0
        deltas[t] = learn(A, S, b, c, v, window, e, numbers, z, ahead, where, count, first, rho[t])
        if rung_count:
            numbers[AT.norms] += max(1.0, rho[t]) * squared_length(values, row)
            unit = alpha if alpha > 0.0 or numbers[AT.norms] == 0.0 else UNIT * numbers[AT.steps] / numbers[AT.norms]
            rung_steps(numbers, multiples, recent, unit, first, discount[t], rho[t], here, there, on_x, on_next)
            add_row(memory, indices, values, row, on_x)
            add_row(memory, next_indices, next_values, next_row, on_next)
            numbers[AT.first_block] += (rho[t] * first) * (rho[t] * first)
            if numbers[AT.age] >= numbers[AT.block_end]:
                look_for_bursts(state)
        if numbers[AT.age] >= numbers[AT.stop]:
            return t + 1 - begin
    return reward.size - begin
