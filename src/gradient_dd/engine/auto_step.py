"""The step of `AutoLearner`: sums over transitions from which the TD equations of few features are solved.

With δ₀ the TD error of the first weights, z features, and d = z − γz', z' being those of the next state, the sums are

    A = Σ ρ z dᵀ    b = Σ ρ δ₀ z    c = Σ z²

in which step s counts s times, so that what is old and may have changed counts less. `stream/shrinkage.py` makes v and
a share k of them, every now and then: what is predicted is the value of the first weights plus k z·v.

Least squares: z is x itself, so that a step costs O(non-zeros²). Rungs: with many features, z has three numbers. TD at
two step sizes and GTD2 at one run side by side; z_k is the average of rung k over the run so far, less the first
weights, times x. Nothing is judged on what it has learnt from, because the averages are those of before the step.

The functions are plain Python, one number at a time; `kernels/auto_step.py` compiles the same ones, with the same bits.
They take arrays one by one: a view or a tuple of arrays that is made in every step costs more than the step.
"""

import numpy as np

from gradient_dd.engine.auto_rungs import (
    add_row,
    look_for_bursts,
    natural,
    products,
    restart_far,
    rung_features,
    rung_steps,
)
from gradient_dd.engine.auto_state import (
    AGE,
    AHEAD,
    BLOCK_END,
    CLIP,
    COLUMNS,
    ERRORS,
    FAR,
    FIRST,
    FIRST_BLOCK,
    FOURTHS,
    LATER,
    LATER_FIRST,
    LATER_MIXED,
    LATER_SOLVED,
    NORMS,
    SHARE,
    SQUARES,
    STEPS,
    STOP,
    UNIT,
    WEIGHTS,
    WINDOW_SQUARES,
)


def run(state, alpha, x, x_next, columns, deltas, begin):
    """Make steps until it is time to look at the sums, and return how many; fewer too where a number is beyond FAR.

    state      the arrays of an `AutoState`: changed
    alpha      the unit of step sizes; 0 to take it from the data
    x, x_next  begin, width, indices and values of rows, and whether these are near, as `kernel_rows` returns them
    columns    reward, discount and rho, (n,) each;  deltas  (n,) is filled with the TD errors of what is read out
    begin      the row of the first step
    """
    memory, A, vectors, numbers, rungs = state
    b, c, v, window = vectors[0], vectors[1], vectors[2], vectors[3]
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
            if not rung_features(numbers[AGE], discount[t], here, there, z, ahead) <= FAR:
                restart_far(state, here, there, z, ahead)
            first = reward[t] + discount[t] * there[FIRST] - here[FIRST]
        else:
            count = plain_features(
                indices, values, row, next_indices, next_values, next_row, discount[t], z, ahead, where
            )
            first = reward[t] - product(first_weights, ahead, where, count)
        if not abs(rho[t] * first) <= FAR:
            return t - begin
        numbers[AGE] += 1.0
        numbers[STEPS] += 1.0
        deltas[t] = learn(A, b, c, v, window, numbers, z, ahead, where, count, first, rho[t])
        if rung_count:
            numbers[NORMS] += max(1.0, rho[t]) * squared_length(values, row)
            unit = alpha if alpha > 0.0 or numbers[NORMS] == 0.0 else UNIT * numbers[STEPS] / numbers[NORMS]
            rung_steps(numbers, multiples, recent, unit, first, discount[t], rho[t], here, there, on_x, on_next)
            add_row(memory, indices, values, row, on_x)
            add_row(memory, next_indices, next_values, next_row, on_next)
            numbers[FIRST_BLOCK] += (rho[t] * first) * (rho[t] * first)
            if numbers[AGE] >= numbers[BLOCK_END]:
                look_for_bursts(state)
        if numbers[AGE] >= numbers[STOP]:
            return t + 1 - begin
    return reward.size - begin


def span(begins, width, t):
    """Return where row t begins and ends."""
    if begins.size:
        return begins[t], begins[t + 1]
    return t * width, (t + 1) * width


def is_near(values, row):
    """Return whether all values of a row are within FAR."""
    largest = 0.0
    for j in range(row[0], row[1]):
        largest = max(largest, abs(values[natural(j)]))
    return largest <= FAR


def squared_length(values, row):
    """Return the sum of the squares of a row."""
    found = 0.0
    for j in range(row[0], row[1]):
        found += values[natural(j)] * values[natural(j)]
    return found


def fetch_row(memory, indices, row):
    """Ask for the memory of the features of a sparse row."""
    if indices.size:
        for j in range(row[0], row[1]):
            fetch(memory, indices[natural(j)])


def fetch(memory, i):
    """Ask for the memory of a feature ahead of time: compiled code does."""


def plain_features(indices, values, row, next_indices, next_values, next_row, discount, z, ahead, where):
    """Fill z with x, and `ahead` with x − γx', at the first places of `where`; return how many these are.

    The places of sparse rows are in order, each once, so that sums have the same bits as those of dense rows.
    """
    (j, end), (m, next_end) = row, next_row
    if not indices.size and j < end:
        for i in range(z.size):
            z[i] = ahead[i] = values[natural(j + i)]
        if m < next_end:
            for i in range(z.size):
                ahead[i] -= discount * next_values[natural(m + i)]
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


def product(w, ahead, where, count):
    """Return the product of weights with `ahead`, at the first places of `where`."""
    found = 0.0
    for n in range(count):
        i = natural(where[n] if count < ahead.size else n)
        found += ahead[i] * w[i]
    return found


def learn(A, b, c, v, window, numbers, z, ahead, where, count, first, rho):
    """Take a transition into the sums; return the TD error of what is read out, from before."""
    weight, k, u = numbers[AGE], z.size, product(v, ahead, where, count)
    wanted, solved = rho * first, rho * min(max(u, -FAR), FAR)
    numbers[WEIGHTS] += weight
    numbers[LATER] += 1.0
    numbers[LATER_FIRST] += wanted * wanted
    numbers[LATER_MIXED] += wanted * solved
    numbers[LATER_SOLVED] += solved * solved
    numbers[SQUARES] += wanted * wanted
    numbers[FOURTHS] += (wanted * wanted) * (wanted * wanted)
    error = wanted - numbers[SHARE] * solved
    numbers[ERRORS] += abs(error)
    most = CLIP * numbers[ERRORS] / numbers[AGE]
    error = min(max(error, -most), most)
    numbers[WINDOW_SQUARES] += error * error
    for n in range(count):
        i = natural(where[n] if count < k else n)
        pull = weight * rho * z[i]
        b[i] += pull * first
        c[i] += weight * z[i] * z[i]
        window[i] += error * z[i]
        if count == k:
            for j in range(k):
                A[i, j] += pull * ahead[j]
        else:
            for m in range(count):
                j = natural(where[m])
                A[i, j] += pull * ahead[j]
    return first - numbers[SHARE] * u
