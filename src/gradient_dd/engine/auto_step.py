"""The step of `AutoLearner`: sums over transitions from which the TD equations of few features are solved.

With δ₀ the TD error of the first weights, z features, and d = z − γz', z' being those of the next state, the sums are

    A = Σ ρ z dᵀ    b = Σ ρ δ₀ z    C = Σ z zᵀ    D = Σ ρ² d dᵀ    h = Σ ρ² δ₀ d    Σ ρ² δ₀²    Σ ρ⁴ δ₀⁴

`stream/shrinkage.py` makes v of them, every now and then: what is predicted is the value of the first weights plus z·v.

Least squares: z is x itself, so that a step costs O(non-zeros²). Rungs: with many features, z has three numbers. TD at
two step sizes and GTD2 at one run side by side; z_k is the average of rung k over the run so far, less the first
weights, times x. Nothing is judged on what it has learnt from, because the averages are those of before the step. They
move, so step s counts s times in all sums.

The functions are plain Python, one number at a time; `kernels/auto_step.py` compiles the same ones, with the same bits.
"""

import numpy as np

from gradient_dd.engine.auto_rungs import move, restart, rung_features
from gradient_dd.engine.auto_state import (
    AGE,
    AHEAD,
    BLOCK,
    BLOCK_BEGIN,
    BURST,
    CHANCE,
    CLIP,
    COLUMNS,
    DOUBT,
    ERRORS_BLOCK,
    ERRORS_SUM,
    ERRORS_WINDOW,
    ETA,
    FADE,
    FAR,
    FIRST,
    FIRST_BLOCK,
    FIRST_SUM,
    FIRST_WINDOW,
    FOURTHS,
    JUMP,
    LARGEST,
    LOOK,
    NEXT,
    RESETS,
    SQUARES,
    SQUARES_WINDOW,
    STEPS,
    WEIGHTS,
    WINDOW,
    WINDOW_BEGIN,
    D,
    U,
)


def run(state, alpha, x, x_next, columns, deltas, begin):
    """Make steps until a reading is due, and return how many; fewer too where a number is beyond FAR.

    state      the arrays of an `AutoState`: changed
    alpha      the unit of step sizes; 0 to take it from the data
    x, x_next  begin, width, indices and values of rows, and whether these are near, as `kernel_rows` returns them
    columns    reward, discount and rho, (n,) each;  deltas  (n,) is filled with the TD errors of what is read out
    begin      the row of the first step
    """
    memory, squares, vectors, numbers, rungs = state
    reward, discount, rho = columns
    k = vectors.shape[1]
    z, ahead, where, room = np.zeros(k), np.zeros(k), np.arange(k), np.zeros((4, COLUMNS))
    for t in range(begin, reward.size):
        if rungs.size and t + AHEAD < reward.size:
            fetch_row(memory, row_of(x, t + AHEAD))
            fetch_row(memory, row_of(x_next, t + AHEAD))
        row, next_row = row_of(x, t), row_of(x_next, t if discount[t] != 0.0 else -1)
        if not (rho[t] <= FAR and (x[4] or is_near(row)) and (x_next[4] or is_near(next_row))):
            return t - begin
        count = k
        if rungs.size:
            first = rung_features(state, row, next_row, reward[t], discount[t], z, ahead, room)
        else:
            count = plain_features(row, next_row, discount[t], z, ahead, where)
            first = reward[t]
            for n in range(count):
                i = where[n] if count < k else n
                first -= ahead[i] * memory[i, FIRST]
        if not abs(rho[t] * first) <= FAR:
            return t - begin
        numbers[AGE] += 1.0
        numbers[STEPS] += 1.0
        weight = numbers[AGE] if rungs.size else 1.0
        deltas[t] = learn(squares, vectors, numbers, weight, z, ahead, where, count, first, rho[t])
        if rungs.size:
            move(state, alpha, row, next_row, discount[t], rho[t], first, room)
        watch(state, abs(rho[t] * first), min(abs(rho[t] * deltas[t]), FAR))
        if numbers[AGE] >= numbers[NEXT]:
            return t + 1 - begin
    return reward.size - begin


def row_of(rows, t):
    """Return indices and values of a row, and where in them it begins and ends; an empty one for t = −1."""
    begin, width, indices, values, _ = rows
    if t < 0:
        return indices, values, 0, 0
    if begin.size:
        return indices, values, begin[t], begin[t + 1]
    return indices, values, t * width, (t + 1) * width


def is_near(row):
    """Return whether all values of a row are within FAR."""
    _, values, begin, end = row
    largest = 0.0
    for j in range(begin, end):
        largest = max(largest, abs(values[j]))
    return largest <= FAR


def fetch_row(memory, row):
    """Ask for the memory of the features of a sparse row."""
    indices, _, begin, end = row
    if indices.size:
        for j in range(begin, end):
            fetch(memory, indices[j])


def fetch(memory, i):
    """Ask for the memory of a feature ahead of time: compiled code does."""


def plain_features(row, next_row, discount, z, ahead, where):
    """Fill z with x, and `ahead` with x − γx', at the first places of `where`; return how many these are.

    The places of sparse rows are in order, each once, so that sums have the same bits as those of dense rows.
    """
    indices, values, j, end = row
    _, next_values, m, next_end = next_row
    if not indices.size:
        for i in range(z.size):
            z[i] = values[j + i]
            ahead[i] = z[i] - discount * next_values[m + i] if m < next_end else z[i]
        return z.size
    next_indices, count = next_row[0], 0
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


def learn(squares, vectors, numbers, weight, z, ahead, where, count, first, rho):
    """Take a transition into the sums; return the TD error of what is read out, from before."""
    A, C, D = squares[0], squares[1], squares[2]
    b, h, v, window = vectors[0], vectors[1], vectors[2], vectors[3]
    k, delta = z.size, first
    for n in range(count):
        i = where[n] if count < k else n
        delta -= ahead[i] * v[i]
    error, size = min(max(rho * delta, -FAR), FAR), weight * (rho * rho)
    numbers[WEIGHTS] += weight
    numbers[SQUARES] += size * (first * first)
    numbers[FOURTHS] += weight * (rho * first) ** 4
    for n in range(count):
        i = where[n] if count < k else n
        along, square, noise = weight * rho * z[i], weight * z[i], size * ahead[i]
        b[i] += along * first
        h[i] += noise * first
        window[i] += error * z[i]
        if count == k:  # three loops: each becomes vector code
            for j in range(k):
                A[i, j] += along * ahead[j]
            for j in range(k):
                C[i, j] += square * z[j]
            for j in range(k):
                D[i, j] += noise * ahead[j]
        else:
            for m in range(count):
                j = where[m]
                A[i, j] += along * ahead[j]
                C[i, j] += square * z[j]
                D[i, j] += noise * ahead[j]
    return delta


def watch(state, first, error):
    """Note |ρδ| of the first weights and of what is read out, and look at sums of them now and then.

    A rung whose errors burst starts again. Where what is read out is worse than the first weights, a reading is due at
    once. Where its errors jump in a window and pull in one direction, the stream has changed, and all is forgotten.
    """
    _, squares, vectors, numbers, rungs = state
    Q, window = squares[3], vectors[3]
    age = numbers[AGE]
    numbers[FIRST_SUM] += first * first
    numbers[FIRST_BLOCK] += first * first
    numbers[FIRST_WINDOW] += first
    numbers[ERRORS_SUM] += error
    numbers[ERRORS_BLOCK] += error * error
    clipped = min(error, CLIP * numbers[ERRORS_SUM] / age)
    numbers[ERRORS_WINDOW] += clipped
    numbers[SQUARES_WINDOW] += clipped * clipped
    if age >= numbers[LOOK]:
        usual = numbers[FIRST_BLOCK] + numbers[FIRST_SUM] * (age - numbers[BLOCK_BEGIN]) / age
        for k in range(rungs.shape[1]):
            if not rungs[1, k] <= BURST * usual:
                restart(state, k)
            rungs[1, k] = 0.0
        if numbers[ERRORS_BLOCK] > usual:
            numbers[NEXT] = age
        numbers[BLOCK_BEGIN], numbers[LOOK] = age, age + min(age, BLOCK)
        numbers[FIRST_BLOCK] = numbers[ERRORS_BLOCK] = 0.0
    if age >= numbers[WINDOW_BEGIN] + WINDOW:
        pull = 0.0
        for i in range(window.size):
            for j in range(window.size):
                pull += window[i] * Q[i, j] * window[j]
        most = JUMP * numbers[LARGEST] + DOUBT * np.sqrt(numbers[SQUARES_WINDOW])
        changed = numbers[LARGEST] > 0.0 and numbers[ERRORS_WINDOW] > most and pull > CHANCE * WINDOW * window.size
        numbers[LARGEST] = max(FADE * numbers[LARGEST], numbers[ERRORS_WINDOW])
        if changed:
            forget(state)
            return
        numbers[WINDOW_BEGIN] = age
        numbers[FIRST_WINDOW] = numbers[ERRORS_WINDOW] = numbers[SQUARES_WINDOW] = 0.0
        window[:] = 0.0


def forget(state):
    """Forget all sums and averages. The first weights become those that are read out, if these were the better ones."""
    memory, squares, vectors, numbers, rungs = state
    moving, wide = rungs.shape[1], 2.0 / (numbers[AGE] * (numbers[AGE] + 1.0))
    if numbers[ERRORS_WINDOW] < numbers[FIRST_WINDOW]:
        for i in range(len(memory)):
            by = 0.0 if moving else vectors[2, i]
            for k in range(moving):
                by += vectors[2, k] * (memory[i, D + k] - wide * memory[i, U + k])
            memory[i, FIRST] += by
            for k in range(moving):
                memory[i, D + k] -= by
    if moving:
        memory[:, U:ETA] = 0.0
    squares[:] = 0.0
    vectors[:] = 0.0
    rungs[1] = 0.0
    for place in (AGE, WEIGHTS, SQUARES, FOURTHS, BLOCK_BEGIN, WINDOW_BEGIN, FIRST_SUM, FIRST_BLOCK, FIRST_WINDOW):
        numbers[place] = 0.0
    for place in (ERRORS_SUM, ERRORS_BLOCK, ERRORS_WINDOW, SQUARES_WINDOW):
        numbers[place] = 0.0
    numbers[NEXT] = numbers[LOOK] = 1.0
    numbers[RESETS] += 1.0
