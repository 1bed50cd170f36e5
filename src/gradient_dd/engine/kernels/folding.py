"""Compiled folding of errors: one RMSVE per lane, summed into last100, area and curve where it is taken."""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import DIVERGED
from gradient_dd.engine.kernels.compiler_options import INLINE
from gradient_dd.engine.kernels.intrinsics import aligned, disjoint
from gradient_dd.engine.kernels.keep import named
from gradient_dd.engine.kernels.vectors import use_widest_vectors

AT_ONCE = 4  # terms of the error that are added in one pass over the lanes


class Errors(NamedTuple):
    """Sums of the errors of a block of lanes; every array flat, lanes contiguous.

    now       (lanes,) the error just taken
    total     (lanes,) over all points;  last (lanes,) over the last 100;  curve (bins, lanes) over each bin
    diverged  (2, lanes) the step and the episode after which the error left the bound; 0 if it did not
    """

    now: Array
    total: Array
    last: Array
    curve: Array
    diverged: NDArray[np.int64]


def no_errors(lanes: int, bins: int) -> Errors:
    """Return sums of nothing."""
    now, total, last, curve = (aligned(rows, lanes) for rows in (1, 1, 1, bins))
    return Errors(now, total, last, curve, np.zeros(2 * lanes, np.int64))


def terms_source(k: int, count: int) -> str:
    """Return the source of `add_terms`: now += (row_m·w − target_m)² for all lanes, for `count` terms from m on."""
    terms = [(i, j) for i in range(count) for j in range(k)]
    lines = [
        "def add_terms(w, now, measure, m, B):",
        "    use_widest_vectors()",
        f"    first = m * np.uintp({k})",
        *(f"    r{i}{j} = measure.rows[first + np.uintp({i * k + j})] * B" for i, j in terms),
        *(f"    v{i}{j} = measure.values[first + np.uintp({i * k + j})]" for i, j in terms),
        *(f"    t{i} = measure.targets[m + np.uintp({i})]" for i in range(count)),
        "    for lane in range(B):",
        "        error = load_now(now, lane)",
    ]
    for i in range(count):
        lines.append(f"        gap = {' + '.join(f'load_w(w, r{i}{j} + lane) * v{i}{j}' for j in range(k))} - t{i}")
        lines.append("        error += gap * gap")
    return "\n".join([*lines, "        store_now(now, lane, error)"])


def make_add_terms(k: int, count: int) -> Any:
    """Compile `terms_source`."""
    names: dict[str, Any] = {"use_widest_vectors": use_widest_vectors, "np": np}
    for scope in ("w", "now"):
        names[f"load_{scope}"], names[f"store_{scope}"] = disjoint(scope, ["w", "now"])
    exec(terms_source(k, count), names)
    return numba.njit(names["add_terms"], **INLINE)


@numba.njit(**INLINE)
def fold(errors, B, segments, s):
    """Turn the sums of squares of all lanes into errors, and add them to what they belong to."""
    use_widest_vectors()
    now, diverged, lost = errors.now, errors.diverged, 0
    for lane in range(B):
        error = np.sqrt(now[lane])
        now[lane] = error if diverged[lane] == 0 else np.inf
        lost += 0 if now[lane] <= DIVERGED else 1  # written so that NaN counts as divergence
    if lost:  # apart, because a loop with it would not become vector code
        for lane in range(B):
            if not now[lane] <= DIVERGED:
                if diverged[lane] == 0:
                    diverged[lane] = segments.step[s]
                    diverged[B + lane] = segments.episode[s]
                now[lane] = np.inf
    if segments.point[s] >= 0:
        first = np.uintp(segments.point[s]) * B
        for lane in range(B):
            errors.total[lane] += now[lane]
            errors.curve[first + lane] += now[lane]
    if segments.last[s]:
        for lane in range(B):
            errors.last[lane] += now[lane]


@numba.njit(**INLINE)
def take_any_errors(w, measure, errors, gap, B, segments, s):
    """Take the errors of all lanes, whatever the number of non-zeros of a row; `gap` (B,) is scratch."""
    use_widest_vectors()
    now, terms = errors.now, np.uintp(measure.targets.size)
    K = np.uintp(measure.rows.size) // terms
    for lane in range(B):
        now[lane] = measure.rest
    for m in range(terms):
        for lane in range(B):
            gap[lane] = 0.0
        for j in range(m * K, (m + np.uintp(1)) * K):
            begin, value = measure.rows[j] * B, measure.values[j]
            for lane in range(B):
                gap[lane] += w[begin + lane] * value
        for lane in range(B):
            off = gap[lane] - measure.targets[m]
            now[lane] += off * off
    fold(errors, B, segments, s)


@cache
def make_take_errors(k: int) -> Any:
    """Compile `take_errors` for measures with k non-zeros a row."""
    add_some, add_one = make_add_terms(k, AT_ONCE), make_add_terms(k, 1)
    step = np.uintp(AT_ONCE)

    @numba.njit(**INLINE)
    @named(f"measures of {k}")
    def take_errors(w, measure, errors, B, segments, s):
        use_widest_vectors()
        now = errors.now
        for lane in range(B):
            now[lane] = measure.rest
        terms = np.uintp(measure.targets.size)
        whole = terms - terms % step
        for m in range(np.uintp(0), whole, step):
            add_some(w, now, measure, m, B)
        for m in range(whole, terms):
            add_one(w, now, measure, m, B)
        fold(errors, B, segments, s)

    return take_errors
