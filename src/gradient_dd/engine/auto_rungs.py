"""The rungs of `AutoLearner`: TD at two step sizes and GTD2 at one, side by side, with averages over the run so far.

An average costs O(non-zeros) a step: with weights s for w_s it is w − u / (t(t + 1)/2), where u is the sum of all
changes of w, each times the weights before it. Plain Python, which `kernels/auto_step.py` compiles.
"""

from gradient_dd.engine.auto_state import (
    AGE,
    BLOCK,
    BLOCK_END,
    BURST,
    COLUMNS,
    ETA,
    FAR,
    FIRST_BLOCK,
    FIRST_GTD2,
    RUNGS,
    SLOWER,
    SQUARES,
    STEPS,
    ZETA,
    D,
    U,
)


def natural(i):
    """Return an index that is 0 or more. The compiled form makes it unsigned, which saves a test for negative ones."""
    return i


def products(memory, indices, values, row, made):
    """Fill `made` with the products of a row of features with the columns of the memory."""
    begin, end = row
    for k in range(COLUMNS):
        made[k] = 0.0
    for j in range(begin, end):
        i, value = natural(indices[natural(j)] if indices.size else j - begin), values[natural(j)]
        for k in range(COLUMNS):
            made[k] += value * memory[i, k]


def add_row(memory, indices, values, row, coefficients):
    """Add a row of features to the columns of the memory, times one coefficient for each column.

    All columns are written: a part of a cache line that was just written could be read only after a while.
    """
    begin, end = row
    for j in range(begin, end):
        i, value = natural(indices[natural(j)] if indices.size else j - begin), values[natural(j)]
        for k in range(COLUMNS):
            memory[i, k] += value * coefficients[k]


def rung_features(age, discount, here, there, z, ahead):
    """Fill z with the averages of rungs times x, and `ahead` with z − γz'; return the largest number of them.

    here, there  the products of x and of x' with the columns of the memory
    """
    before = age * (age + 1.0) / 2.0  # the sum of the weights 1, 2, … of the averages so far
    wide, largest = 1.0 / before if before > 0.0 else 0.0, abs(here[ETA])
    for k in range(RUNGS):
        z[k] = here[D + k] - wide * here[U + k]
        ahead[k] = z[k] - discount * (there[D + k] - wide * there[U + k])
        largest = max(largest, abs(z[k]) + abs(ahead[k]) + abs(here[D + k]) + abs(there[D + k]))
    return largest


def restart_far(state, here, there, z, ahead):
    """Let every rung start again that has a number beyond FAR."""
    for k in range(RUNGS):
        eta = abs(here[ETA]) if k >= FIRST_GTD2 else 0.0
        if not abs(z[k]) + abs(ahead[k]) + abs(here[D + k]) + abs(there[D + k]) + eta <= FAR:
            restart(state, k)
            z[k] = ahead[k] = here[D + k] = there[D + k] = 0.0
            if k >= FIRST_GTD2:
                here[ETA] = 0.0


def rung_steps(numbers, multiples, recent, unit, first, discount, rho, here, there, on_x, on_next):
    """Fill `on_x` and `on_next` with what a step adds to the columns of the memory along x, and along x'."""
    before = numbers[AGE] * (numbers[AGE] - 1.0) / 2.0
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


def look_for_bursts(state):
    """At the end of a block, let every rung start again whose errors have burst."""
    _, _, _, numbers, rungs = state
    usual = numbers[FIRST_BLOCK] + BLOCK * numbers[SQUARES] / numbers[STEPS]
    for k in range(RUNGS):
        if not rungs[1, k] <= BURST * usual:
            restart(state, k)
        rungs[1, k] = 0.0
    numbers[FIRST_BLOCK] = 0.0
    numbers[BLOCK_END] = numbers[AGE] + BLOCK


def restart(state, k):
    """Let a rung begin again at the first weights with a smaller step size; forget the sums that it has a part in."""
    memory, A, vectors, _, rungs = state
    memory[:, D + k] = 0.0
    memory[:, U + k] = 0.0
    if k >= FIRST_GTD2:
        memory[:, ETA] = 0.0
    A[k] = 0.0
    A[:, k] = 0.0
    vectors[:, k] = 0.0
    rungs[0, k] *= SLOWER
    rungs[1, k] = 0.0
