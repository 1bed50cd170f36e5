"""`AutoLearner`: what it knows, and its step: sums over transitions from which the TD equations are solved.

With δ₀ the TD error of the initial weights, z features, and d = z − γz', z' being those of the next state, the sums are

    A = Σ ρ z dᵀ    b = Σ ρ δ₀ z    c = Σ z²

in which step s counts s times, so that what is old and may have changed counts less. `stream/shrinkage.py` makes v and
a share k of them, every now and then: what is predicted is the value of the initial weights plus k z·v.

Least squares: z is x itself, so that a step costs O(non-zeros²). Rungs: with many features, z has three numbers. TD at
two step sizes and GTD2 at one run side by side; z_k is the average of rung k over the run so far, less the initial
weights, times x. Nothing is judged on what it has learnt from, because the averages are those of before the step.

The functions are plain Python, one number at a time; `kernels/auto.py` compiles the same ones, with the same bits.
They take arrays one by one: a view or a tuple of arrays that is made in every step costs more than the step.

An average over the run so far costs O(non-zeros) a step: with weights s for w_s it is w − u / (t(t + 1)/2), where u is
the sum of all changes of w, each times the weights before it.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.single import aligned

# Multiples of the unit of step sizes: two rungs of TD, one of GTD2. What a feature needs for them is one cache line.
MULTIPLES = np.array([1.5, 0.25, 0.4])
RUNGS, FIRST_GTD2 = len(MULTIPLES), 2
UNIT = 0.3  # of step sizes, over the mean of max(1, ρ) ‖x‖², where no alpha is given
ZETA = 0.25  # ratio of the two step sizes of GTD2, which stands a larger step than TD and then wants a slow η
BURST, BLOCK = 16.0, 50  # a rung has diverged if its squared TD errors in a block exceed BURST × the initial ones
SLOWER = 0.25  # times the step size of a rung that starts again
CLIP = 5.0  # in a window |ρδ| counts up to so many times its mean since the last reset: one large reward is no change
AHEAD = 6  # rows by which the memory of sparse features is fetched ahead
FAR = 1e60  # no number beyond it is learnt from: squares of such numbers and sums of these are still finite

# Columns of the memory of a feature: its first weight; of every rung the difference of w from it, and u; η of GTD2.
FIRST, D, U, ETA = 0, 1, 1 + RUNGS, 1 + 2 * RUNGS
COLUMNS = ETA + 1


class NumberPlaces(NamedTuple):
    """Where each of the numbers stands that change with every step."""

    age: int  # steps since the last reset
    steps: int  # steps in all
    stop: int  # age at which steps stop
    next: int  # age of the next reading
    resets: int  # how many there were
    share: int  # of the last solution
    residual: int  # of the last solution
    weights: int  # sum of the weights in A, b and c
    norms: int  # Σ max(1, ρ) ‖x‖²
    squares: int  # Σ (ρδ₀)²
    fourths: int  # Σ (ρδ₀)⁴
    block_end: int  # age at which the block of rungs ends
    first_block: int  # Σ (ρδ₀)² in that block
    later: int  # number of transitions after the last solution was made; with u = (z − γz')·v of them
    later_first: int  # Σ ρ²δ₀²
    later_mixed: int  # Σ ρ²δ₀u
    later_solved: int  # Σ ρ²u²
    errors: int  # Σ |ρδ| of what is read out
    window_begin: int  # age at which the window began
    window_squares: int  # Σ (ρδ)² in it, clipped
    windows: int  # how many windows have ended
    windows_sum: int  # sum of their Σ (ρδ)²
    windows_squares: int  # sum of the squares of these


AT = NumberPlaces(*range(len(NumberPlaces._fields)))


class AutoState(NamedTuple):
    """All that an `AutoLearner` knows. Changed in place.

    memory   (p, COLUMNS) of every feature, for rungs; (p, 1), the initial weights, for least squares
    A        (k, k) the sum; k is p, or how many rungs
    vectors  (4, k) the sums b and c, v that they were solved to last, and Σ ρδz of the present window
    numbers  (23,) see NumberPlaces
    rungs    (2, rungs) multiples of the unit of step sizes, and Σ (ρδ)² of the present block; (2, 0) for least squares
    """

    memory: Array
    A: Array
    vectors: Array
    numbers: Array
    rungs: Array

    @classmethod
    def begin(cls, first: Array, quadratic: bool) -> "AutoState":
        """Return what a learner knows that begins at weights (p,)."""
        memory, k = aligned((len(first), 1 if quadratic else COLUMNS)), len(first) if quadratic else RUNGS
        numbers, rungs = np.zeros(len(AT)), np.zeros((2, 0 if quadratic else RUNGS))
        memory[:, FIRST] = first
        numbers[[AT.next, AT.stop]] = 1.0
        if not quadratic:
            rungs[0] = MULTIPLES
        return cls(memory, np.zeros((k, k)), np.zeros((4, k)), numbers, rungs)

    def forget(self) -> None:
        """Forget all sums and averages. The initial weights stay, and so do the weights and step sizes of rungs."""
        lasting = self.numbers[[AT.steps, AT.norms, AT.squares, AT.fourths]]
        resets = self.numbers[AT.resets] + 1.0
        for array in (self.A, self.vectors, self.numbers, self.rungs[1], self.memory[:, U:ETA]):
            array[...] = 0.0
        self.numbers[[AT.steps, AT.norms, AT.squares, AT.fourths]] = lasting
        self.numbers[[AT.resets, AT.next, AT.stop]] = resets, 1.0, 1.0

    def read_out(self, where: Any = slice(None)) -> Array:
        """Return the weights at these features, or at all."""
        memory, part = self.memory[where], self.numbers[AT.share] * self.vectors[2]
        if not self.rungs.size:
            return np.asarray(memory[:, FIRST] + part[where])
        age = self.numbers[AT.age]
        averages = memory[:, D:U] - memory[:, U:ETA] / max(1.0, age * (age + 1.0) / 2.0)
        return np.asarray(memory[:, FIRST] + averages @ part)

    def advance(self, alpha: float, x: Any, x_next: Any, columns: tuple[Array, ...], deltas: Array, begin: int) -> int:
        """Make compiled steps from row `begin` on; return how many, as `steps` does."""
        from gradient_dd.engine.kernels.auto import steps as compiled_steps

        return int(compiled_steps(tuple(self), alpha, kernel_rows(x), kernel_rows(x_next), columns, deltas, begin))


def kernel_rows(rows: Any) -> tuple[Any, ...]:
    """Return begin, width, indices and values of rows as in `FeatureRows`, and whether all are known to be near."""
    begin, width, indices, values, largest = rows
    return begin, int(width), indices.astype(np.int64, copy=False), values, bool(largest <= FAR)


def steps(state, alpha, x, x_next, columns, deltas, begin):
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
        deltas[t] = learn(A, b, c, v, window, numbers, z, ahead, where, count, first, rho[t])
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


def span(begins, width, t):
    """Return where row t begins and ends."""
    if begins.size:
        return begins[t], begins[t + 1]
    return t * width, (t + 1) * width


def is_near(values, row):
    """Return whether all values of a row are within FAR."""
    largest = 0.0
    for j in range(row[0], row[1]):
        largest = max(largest, abs(values[unsigned(j)]))
    return largest <= FAR


def squared_length(values, row):
    """Return the sum of the squares of a row."""
    found = 0.0
    for j in range(row[0], row[1]):
        found += values[unsigned(j)] * values[unsigned(j)]
    return found


def fetch_row(memory, indices, row):
    """Ask for the memory of the features of a sparse row."""
    if indices.size:
        for j in range(row[0], row[1]):
            fetch(memory, indices[unsigned(j)])


def fetch(memory, i):
    """Ask for the memory of a feature ahead of time: compiled code does."""


def plain_features(indices, values, row, next_indices, next_values, next_row, discount, z, ahead, where):
    """Fill z with x, and `ahead` with x − γx', at the first places of `where`; return how many these are.

    The places of sparse rows are in order, each once, so that sums have the same bits as those of dense rows.
    """
    (j, end), (m, next_end) = row, next_row
    if not indices.size and j < end:
        for i in range(z.size):
            z[i] = ahead[i] = values[unsigned(j + i)]
        if m < next_end:
            for i in range(z.size):
                ahead[i] -= discount * next_values[unsigned(m + i)]
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
        i = unsigned(where[n] if count < ahead.size else n)
        found += ahead[i] * w[i]
    return found


def learn(A, b, c, v, window, numbers, z, ahead, where, count, first, rho):
    """Take a transition into the sums; return the TD error of what is read out, from before."""
    weight, k, u = numbers[AT.age], z.size, product(v, ahead, where, count)
    wanted, solved = rho * first, rho * min(max(u, -FAR), FAR)
    numbers[AT.weights] += weight
    numbers[AT.later] += 1.0
    numbers[AT.later_first] += wanted * wanted
    numbers[AT.later_mixed] += wanted * solved
    numbers[AT.later_solved] += solved * solved
    numbers[AT.squares] += wanted * wanted
    numbers[AT.fourths] += (wanted * wanted) * (wanted * wanted)
    error = wanted - numbers[AT.share] * solved
    numbers[AT.errors] += abs(error)
    most = CLIP * numbers[AT.errors] / numbers[AT.age]
    error = min(max(error, -most), most)
    numbers[AT.window_squares] += error * error
    for n in range(count):
        i = unsigned(where[n] if count < k else n)
        pull = weight * rho * z[i]
        b[i] += pull * first
        c[i] += weight * z[i] * z[i]
        window[i] += error * z[i]
        if count == k:
            for j in range(k):
                A[i, j] += pull * ahead[j]
        else:
            for m in range(count):
                j = unsigned(where[m])
                A[i, j] += pull * ahead[j]
    return first - numbers[AT.share] * u


def unsigned(i):
    """Return an index that is 0 or more. Compiled code makes it unsigned, which saves a test for a negative one."""
    return i


def products(memory, indices, values, row, made):
    """Fill `made` with the products of a row of features with the columns of the memory."""
    begin, end = row
    for k in range(COLUMNS):
        made[k] = 0.0
    for j in range(begin, end):
        i, value = unsigned(indices[unsigned(j)] if indices.size else j - begin), values[unsigned(j)]
        for k in range(COLUMNS):
            made[k] += value * memory[i, k]


def add_row(memory, indices, values, row, coefficients):
    """Add a row of features to the columns of the memory, times one coefficient for each column.

    All columns are written: a part of a cache line that was just written could be read only after a while.
    """
    begin, end = row
    for j in range(begin, end):
        i, value = unsigned(indices[unsigned(j)] if indices.size else j - begin), values[unsigned(j)]
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


def look_for_bursts(state):
    """At the end of a block, let every rung start again whose errors have diverged."""
    _, _, _, numbers, rungs = state
    usual = numbers[AT.first_block] + BLOCK * numbers[AT.squares] / numbers[AT.steps]
    for k in range(RUNGS):
        if not rungs[1, k] <= BURST * usual:
            restart(state, k)
        rungs[1, k] = 0.0
    numbers[AT.first_block] = 0.0
    numbers[AT.block_end] = numbers[AT.age] + BLOCK


def restart(state, k):
    """Let a rung begin again at the initial weights with a smaller step size; forget the sums that it has a part in."""
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
