"""The rungs of `AutoLearner`: TD at two step sizes and GTD2 at one, side by side, with averages over the run so far.

An average costs O(non-zeros) a step: with weights s for w_s it is w − u / (t(t + 1)/2), where u is the sum of all
changes of w, each times the weights before it. Plain Python, which `kernels/auto_step.py` compiles.
"""

from gradient_dd.engine.auto_state import (
    AGE,
    COLUMNS,
    ETA,
    FAR,
    FIRST,
    FIRST_GTD2,
    NORMS,
    RUNGS,
    SLOWER,
    STEPS,
    UNIT,
    ZETA,
    D,
    U,
)


def rung_features(state, row, next_row, reward, discount, z, ahead, room):
    """Fill z with the averages of rungs times x, and `ahead` with z − γz'; return δ of the first weights.

    `room` then has products of x and of x' with the memory, and δ of every rung. A rung beyond FAR starts again.
    """
    memory, _, _, numbers, _ = state
    here, there, own, _ = room
    products(memory, row, here, COLUMNS)
    products(memory, next_row, there, ETA)
    first = reward + discount * there[FIRST] - here[FIRST]
    before = numbers[AGE] * (numbers[AGE] + 1.0) / 2.0  # the sum of the weights 1, 2, … of the averages so far
    wide = 1.0 / before if before > 0.0 else 0.0
    for k in range(RUNGS):
        own[k] = first - (here[D + k] - discount * there[D + k])
        z[k] = here[D + k] - wide * here[U + k]
        ahead[k] = z[k] - discount * (there[D + k] - wide * there[U + k])
        eta = here[ETA + k - FIRST_GTD2] if k >= FIRST_GTD2 else 0.0
        if not abs(own[k]) + abs(z[k]) + abs(ahead[k]) + abs(eta) <= FAR:
            restart(state, k)
            own[k], z[k], ahead[k] = first, 0.0, 0.0
            if k >= FIRST_GTD2:
                here[ETA + k - FIRST_GTD2] = 0.0
    return first


def products(memory, row, made, count):
    """Fill `made` with the products of a row of features with the first columns of the memory."""
    indices, values, begin, end = row
    for k in range(count):
        made[k] = 0.0
    for j in range(begin, end):
        i, value = indices[j] if indices.size else j - begin, values[j]
        for k in range(count):
            made[k] += value * memory[i, k]


def move(state, alpha, row, next_row, discount, rho, first, room):
    """Make a step of all rungs; `room` is as `rung_features` left it."""
    memory, _, _, numbers, rungs = state
    multiples, recent = rungs[0], rungs[1]
    here, along, own, second = room
    indices, values, begin, end = row
    for j in range(begin, end):
        numbers[NORMS] += max(1.0, rho) * (values[j] * values[j])
    unit = alpha
    if alpha == 0.0 and numbers[NORMS] > 0.0:
        unit = UNIT * numbers[STEPS] / numbers[NORMS]
    for k in range(RUNGS):
        recent[k] += (rho * own[k]) * (rho * own[k])
        along[k] = unit * multiples[k] * rho * own[k]
        if k >= FIRST_GTD2:
            x_eta = here[ETA + k - FIRST_GTD2]
            along[k] = unit * multiples[k] * rho * x_eta
            second[k - FIRST_GTD2] = ZETA * unit * multiples[k] * (rho * own[k] - x_eta)
    before = numbers[AGE] * (numbers[AGE] - 1.0) / 2.0
    for j in range(begin, end):
        i, value = indices[j] if indices.size else j - begin, values[j]
        for k in range(RUNGS):
            by = value * along[k]
            memory[i, D + k] += by
            memory[i, U + k] += before * by
        for k in range(RUNGS - FIRST_GTD2):
            memory[i, ETA + k] += value * second[k]
    indices, values, begin, end = next_row
    for j in range(begin, end):
        i, value = indices[j] if indices.size else j - begin, values[j]
        for k in range(FIRST_GTD2, RUNGS):
            by = -discount * value * along[k]
            memory[i, D + k] += by
            memory[i, U + k] += before * by


def restart(state, k):
    """Let a rung begin again at the first weights with a smaller step size; forget the sums that it has a part in."""
    memory, squares, vectors, _, rungs = state
    memory[:, D + k] = 0.0
    memory[:, U + k] = 0.0
    if k >= FIRST_GTD2:
        memory[:, ETA + k - FIRST_GTD2] = 0.0
    squares[:, k] = 0.0
    squares[:, :, k] = 0.0
    vectors[:, k] = 0.0
    rungs[0, k] *= SLOWER
    rungs[1, k] = 0.0
