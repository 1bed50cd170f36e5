"""The step of `AutoLearner`: rungs side by side, their held-out errors, and the mean of rungs with the least of them.

A rung k is TD or GTD2 at a step size of its own, or stands still. It has weights w_k, and their average a_k over the
run so far, in which the last steps count most. With δ_k = r + γ a_k·x' − a_k·x taken *before* a_k has seen the
transition, the running mean

    G_k = E[ρ δ_k x]

is the expected update of TD at a_k, on data that a_k was not made from. It is zero at the TD fixed point, and affine in
a_k. So for every weighted mean Σ c_k a_k, Σ c_k = 1, it is Σ c_k G_k, and its squared length is a quadratic form,

    cᵀ M c,   M_kl = Σ_i G_ki G_li / C_i,   C = E[x²],

to which the noise of G adds N = M + (4/t) S, S_kl = E[ρ² δ_k δ_l Σ_i x_i²/C_i]. The weights that are read out are those
whose c makes N, with a ridge on its diagonal, least.

Averages and means cost O(non-zeros) a step. With weights s for w_s the average is a = w − u / (t(t + 1)/2), where u is
the sum of all changes of w, each times the weights before it. A mean with weights s(s + 1)(s + 2) is a sum over theirs.

The functions are plain Python, one number at a time; `kernels/held_out.py` compiles the same ones, with the same bits.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array

# Multiples of the unit of step sizes: a rung that stands still, four of TD, three of GTD2.
MULTIPLES = np.array([0.0, 2.0, 0.6, 0.2, 0.04, 3.0, 0.6, 0.12])
STILL, FIRST_GTD2, RUNGS = 0, 5, len(MULTIPLES)
UNIT = 0.3  # of step sizes, over the mean of max(1, ρ) ‖x‖², where no alpha is given
ZETA = 0.25  # ratio of the two step sizes of GTD2, which stands a larger step than TD and then wants a slow η
NOISE = 4.0  # over t: weight of the noise of G, twice on the diagonal of a rung that moves
CHANCE = 16.0 / 7.0  # over t: the variance of a mean with weights s³ of independent numbers of variance 1
RIDGE = 0.1  # share of the diagonal of N that is added to it, but for the rung that stands still
WORSE = 16.0  # a rung whose N_kk is so many times the best one's starts again from the best
BURST = 16.0  # and one whose squared TD errors since the last reading are so many times those of standing still
BLOCK = 50  # steps between two readings at least, once as many have been made
WINDOW = 500  # steps over which the error of the read-out is compared with the usual one
JUMP = 4.0  # a window whose squared error is so many times the usual one: two in a row are a change of the stream
MOST = 2.0**40  # of the factor by which a rung that was brought back counts as worse
FAR = 1e100  # a rung with a TD error beyond it has diverged: it starts again from the one that stands still

# Columns of the memory: what one feature needs stands together.
W, U, ETA = 0, RUNGS, 2 * RUNGS
G = ETA + RUNGS - FIRST_GTD2
C = G + RUNGS
COLUMNS = C + 1

# Places of the numbers that change: steps since the last reset and in all, sums of max(1, ρ) ‖x‖² and of non-zeros, the
# age of the next reading; of the present window its steps and sum of errors²; the usual error² of a window, from how
# many windows, and whether the last one was high; resets; and the held-out error of what is read out.
AGE, STEPS, NORMS, NONZEROS, NEXT, SEEN, ERRORS, USUAL, WINDOWS, HIGH, RESETS, RESIDUAL = range(12)
NUMBERS = 12


class HeldOut(NamedTuple):
    """All that an `AutoLearner` knows. Changed in place.

    memory  (p, COLUMNS) of every feature w, u, η of GTD2, sums of ρ δ x and of x², with columns for every rung
    numbers  (NUMBERS,)   shares, penalties  (rungs,)   noise  (rungs, rungs) the sum that S is a mean of, lower half
    recent   (rungs,) sums of (ρδ)² of w since the last reading
    """

    memory: Array
    numbers: Array
    shares: Array
    penalties: Array
    noise: Array
    recent: Array

    @classmethod
    def begin(cls, w: Array) -> "HeldOut":
        """Return what a learner knows that begins at weights (p,)."""
        memory, numbers, shares = np.zeros((len(w), COLUMNS)), np.zeros(NUMBERS), np.zeros(RUNGS)
        memory[:, W : W + RUNGS] = w[:, None]
        numbers[NEXT] = shares[STILL] = 1.0
        return cls(memory, numbers, shares, np.ones(RUNGS), np.zeros((RUNGS, RUNGS)), np.zeros(RUNGS))

    def read_out(self, where: Any = slice(None)) -> Array:
        """Return the weights at these features, or at all: the averages of the rungs, each with its share."""
        age, memory = self.numbers[AGE], self.memory[where]
        averages = memory[:, W : W + RUNGS] - memory[:, U : U + RUNGS] / max(1.0, age * (age + 1.0) / 2.0)
        used = self.shares != 0.0
        return np.asarray(averages[:, used] @ self.shares[used])

    def advance(self, alpha: float, x: Any, x_next: Any, columns: tuple[Array, ...], deltas: Array) -> int:
        """Make a compiled step for every row; return how many were made, as `run` does."""
        from gradient_dd.engine.kernels.held_out import run as run_compiled

        return int(run_compiled(tuple(self), alpha, kernel_rows(x), kernel_rows(x_next), columns, deltas))


def kernel_rows(rows: Any) -> tuple[Any, ...]:
    """Return begin, width, indices and values of rows in the order of `FeatureRows`, as `run` takes them."""
    begin, width, indices, values, _ = rows
    return begin, int(width), indices.astype(np.int64, copy=False), values


def run(state, alpha, x, x_next, columns, deltas):
    """Make a step for every row, and return how many were made: all, unless an error leaves the finite numbers.

    state      memory (p, COLUMNS), numbers (NUMBERS,), shares, penalties, noise and recent, as in `HeldOut`: changed
    alpha      the unit of step sizes; 0 to take it from the data
    x, x_next  begin, width, indices and values of rows, as in `FeatureRows`
    columns    reward, discount and rho, (n,) each;  deltas  (n,) is filled with the TD errors of what is read out
    """
    reward, discount, rho = columns
    here, there, form = np.empty(G), np.empty(G), np.empty((RUNGS, RUNGS))
    for t in range(reward.size):
        row, next_row = row_of(x, t), row_of(x_next, t if discount[t] != 0.0 else -1)
        delta = step(state, alpha, row, next_row, reward[t], discount[t], rho[t], here, there)
        if not abs(delta) <= FAR:
            return t
        deltas[t] = delta
        watch(state, rho[t] * delta)
        if state[1][AGE] >= state[1][NEXT]:
            read(state, form)
    return reward.size


def row_of(rows, t):
    """Return indices and values of a row, and where in them it begins and ends; an empty one for t = −1."""
    begin, width, indices, values = rows
    if t < 0:
        return indices, values, 0, 0
    if begin.size:
        return indices, values, begin[t], begin[t + 1]
    return indices, values, t * width, (t + 1) * width


def products(memory, row, made, count):
    """Fill `made` with the products of a row of features with the first columns of the memory."""
    indices, values, begin, end = row
    for k in range(count):
        made[k] = 0.0
    for j in range(begin, end):
        i, value = indices[j] if indices.size else j - begin, values[j]
        for k in range(count):
            made[k] += value * memory[i, k]


def step(state, alpha, row, next_row, reward, discount, rho, here, there):
    """Make a step of all rungs; return the TD error of what is read out, or one beyond FAR if nothing was changed."""
    memory, numbers, shares, _, noise, recent = state
    products(memory, row, here, G)
    products(memory, next_row, there, U + RUNGS)
    age = numbers[AGE] + 1.0
    before = age * (age - 1.0) / 2.0  # the sum of the weights 1, 2, … of the averages so far
    wide = 1.0 / before if before > 0.0 else 0.0
    for k in range(RUNGS):  # from here on: `there` has δ of w, and `here` δ of a
        there[k] = reward + discount * there[k] - here[k]
        here[k] = there[k] - wide * (discount * there[U + k] - here[U + k])
    if not abs(here[STILL]) <= FAR:
        return np.inf
    delta = 0.0
    for k in range(RUNGS):
        second = ETA + max(0, k - FIRST_GTD2)
        if not (abs(there[k]) <= FAR and abs(here[k]) <= FAR and (k < FIRST_GTD2 or abs(here[second]) <= FAR)):
            restart(state, k, STILL)
            there[k], here[k] = there[STILL], here[STILL]
            here[second] = 0.0 if k >= FIRST_GTD2 else here[second]
        delta += shares[k] * here[k]
        recent[k] += (rho * there[k]) * (rho * there[k])
    indices, values, begin, end = row
    norm, count = 0.0, 0
    for j in range(begin, end):
        norm += values[j] * values[j]
        count += values[j] != 0.0
    numbers[AGE] = age
    numbers[STEPS] += 1.0
    numbers[NORMS] += max(1.0, rho) * norm
    numbers[NONZEROS] += count
    unit = alpha
    if alpha == 0.0 and numbers[NORMS] > 0.0:
        unit = UNIT * numbers[STEPS] / numbers[NORMS]
    weight = age * (age + 1.0) * (age + 2.0)
    for k in range(RUNGS):  # from here on: `there[U:]` says how far w moves along x
        x_eta = here[ETA + k - FIRST_GTD2] if k >= FIRST_GTD2 else 0.0
        there[U + k] = unit * MULTIPLES[k] * rho * (x_eta if k >= FIRST_GTD2 else there[k])
        if k >= FIRST_GTD2:
            there[ETA + k - FIRST_GTD2] = ZETA * unit * MULTIPLES[k] * (rho * there[k] - x_eta)
    spread = 0.0
    for j in range(begin, end):
        i, value = indices[j] if indices.size else j - begin, values[j]
        if value != 0.0:
            memory[i, C] += weight * value * value
            spread += value * value / memory[i, C]
            for k in range(RUNGS):
                by = value * there[U + k]
                memory[i, W + k] += by
                memory[i, U + k] += before * by
                memory[i, G + k] += value * (weight * rho * here[k])
            for k in range(G - ETA):
                memory[i, ETA + k] += value * there[ETA + k]
    indices, values, begin, end = next_row
    for j in range(begin, end):
        i, value = indices[j] if indices.size else j - begin, values[j]
        for k in range(FIRST_GTD2, RUNGS):
            by = -discount * value * there[U + k]
            memory[i, W + k] += by
            memory[i, U + k] += before * by
    spread *= weight * (weight * (age + 3.0) / 4.0) * rho * rho
    for k in range(RUNGS):
        for m in range(k + 1):
            noise[k, m] += spread * here[k] * here[m]
    return delta


def read(state, form):
    """Find the shares that make the held-out error least, and start rungs that are far worse again from the best."""
    memory, numbers, shares, penalties, noise, recent = state
    age = numbers[AGE]
    total = age * (age + 1.0) * (age + 2.0) * (age + 3.0) / 4.0
    measure(memory, noise, NOISE / age, total, form)
    doubt = noise[STILL, STILL] / total / age  # of G where it stands still
    first = form[STILL, STILL] - NOISE * doubt
    best, least = STILL, penalties[STILL] * form[STILL, STILL]
    for k in range(RUNGS):
        if penalties[k] * form[k, k] < least:
            best, least = k, penalties[k] * form[k, k]
    for k in range(STILL + 1, RUNGS):
        bursts = recent[k] > BURST * recent[STILL]
        if k != best and (bursts or not form[k, k] <= WORSE * form[best, best]):
            restart(state, k, best)
            own = form[best, best]
            for m in range(RUNGS):
                form[k, m] = form[m, k] = form[best, m]
            form[k, k] = own
    recent[:] = 0.0
    for k in range(STILL + 1, RUNGS):
        form[k, k] += NOISE * noise[k, k] / total / age
    share_out(form, penalties, best, shares)
    hold = 1.0 if not CHANCE * doubt < first else CHANCE * doubt / first
    error = 0.0
    for k in range(RUNGS):
        shares[k] *= 1.0 - hold
    shares[STILL] += hold
    for k in range(RUNGS):
        for m in range(RUNGS):
            error += shares[k] * shares[m] * form[k, m]
    numbers[RESIDUAL] = np.sqrt(max(0.0, error))
    between = len(memory) * numbers[STEPS] / max(1.0, numbers[NONZEROS])  # a reading then costs as much as steps do
    numbers[NEXT] = age + max(1.0, min(age, max(BLOCK, between)))


def measure(memory, noise, weight, total, form):
    """Fill the form with M and the noise of G, times a weight; sums are over `total`."""
    for k in range(RUNGS):
        for m in range(k + 1):
            form[k, m] = weight * noise[k, m]
    for i in range(len(memory)):
        if memory[i, C] > 0.0:
            for k in range(RUNGS):
                over = memory[i, G + k] / memory[i, C]
                for m in range(k + 1):
                    form[k, m] += over * memory[i, G + m]
    for k in range(RUNGS):
        for m in range(k + 1):
            form[k, m] /= total
            form[m, k] = form[k, m]


def share_out(form, penalties, best, shares):
    """Set the shares to the c that makes the form with its ridge least, Σ c = 1; or to the best rung alone.

    The form is scaled to a diagonal of 1 and factored into L Lᵀ; then c is in proportion to its inverse times 1.
    """
    for k in range(RUNGS):
        shares[k] = 1.0 if k == best else 0.0
    if not form[best, best] > 0.0:
        return
    lower, scale, solved = np.zeros((RUNGS, RUNGS)), np.empty(RUNGS), np.empty(RUNGS)
    for k in range(RUNGS):
        scale[k] = 1.0 / np.sqrt(form[k, k] * (1.0 + (RIDGE * penalties[k] if k != STILL else 0.0)))
        for m in range(k + 1):
            value = 1.0 if k == m else form[k, m] * scale[k] * scale[m]
            for n in range(m):
                value -= lower[k, n] * lower[m, n]
            if k == m and not value > 0.0:
                return
            lower[k, m] = np.sqrt(value) if k == m else value / lower[m, m]
    for k in range(RUNGS):
        value = scale[k]
        for n in range(k):
            value -= lower[k, n] * solved[n]
        solved[k] = value / lower[k, k]
    whole = 0.0
    for k in range(RUNGS - 1, -1, -1):
        value = solved[k]
        for n in range(k + 1, RUNGS):
            value -= lower[n, k] * solved[n]
        solved[k] = value / lower[k, k]
        whole += solved[k] * scale[k]
    for k in range(RUNGS):
        shares[k] = solved[k] * scale[k] / whole


def restart(state, k, source):
    """Let rung k begin again from another one: all that is known of that one is known of k, which counts as worse."""
    memory, _, _, penalties, noise, _ = state
    for i in range(len(memory)):
        for column in (W, U, G):
            memory[i, column + k] = memory[i, column + source]
        if k >= FIRST_GTD2:
            memory[i, ETA + k - FIRST_GTD2] = memory[i, ETA + source - FIRST_GTD2] if source >= FIRST_GTD2 else 0.0
    own = noise[source, source]
    for m in range(RUNGS):
        shared = noise[max(source, m), min(source, m)]
        noise[max(k, m), min(k, m)] = own if m == k else shared
    penalties[k] = min(2.0 * penalties[k], MOST)


def watch(state, error):
    """Note the error of what is read out; forget what was measured where it has jumped in two windows in a row."""
    numbers = state[1]
    numbers[SEEN] += 1.0
    numbers[ERRORS] += error * error
    if numbers[SEEN] < WINDOW:
        return
    mean = numbers[ERRORS] / numbers[SEEN]
    numbers[SEEN] = numbers[ERRORS] = 0.0
    high = numbers[WINDOWS] > 1.0 and mean > JUMP * numbers[USUAL]
    if high and numbers[HIGH] > 0.0:
        forget(state)
        return
    numbers[HIGH] = 1.0 if high else 0.0
    if not high:
        numbers[WINDOWS] += 1.0
        numbers[USUAL] += max(0.1, 1.0 / numbers[WINDOWS]) * (mean - numbers[USUAL])


def forget(state):
    """Forget all means and averages: every rung goes on from its present weights."""
    memory, numbers, _, penalties, noise, recent = state
    memory[:, U:ETA] = 0.0
    memory[:, G:] = 0.0
    noise[:] = 0.0
    recent[:] = 0.0
    penalties[:] = 1.0
    numbers[AGE] = numbers[SEEN] = numbers[ERRORS] = numbers[USUAL] = numbers[WINDOWS] = numbers[HIGH] = 0.0
    numbers[NEXT] = 1.0
    numbers[RESETS] += 1.0
