"""Compiled folding of errors: one RMSVE per lane, summed into last100, area and curve where it is taken."""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import DIVERGED
from gradient_dd.engine.kernels.compiler_options import INLINE, INNER
from gradient_dd.engine.kernels.intrinsics import aligned, disjoint
from gradient_dd.engine.kernels.keep import named
from gradient_dd.engine.kernels.vectors import use_widest_vectors


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


def term_source(k: int) -> str:
    """Return the source of `add_term`: now += (row_m·w − target_m)² for all lanes."""
    gap = " + ".join(f"load_w(w, r{j} + lane) * v{j}" for j in range(k))
    lines = [
        "def add_term(w, now, rows, values, target, first, B):",
        "    use_widest_vectors()",
        *(f"    r{j} = rows[first + S{j}] * B" for j in range(k)),
        *(f"    v{j} = values[first + S{j}]" for j in range(k)),
        "    for lane in range(B):",
        f"        gap = {gap} - target",
        "        store_now(now, lane, load_now(now, lane) + gap * gap)",
    ]
    return "\n".join(lines)


@numba.njit(**INLINE)
def fold(errors, B, segments, s):
    """Turn the sums of squares of all lanes into errors, and add them to what they belong to."""
    use_widest_vectors()
    now, diverged = errors.now, errors.diverged
    for lane in range(B):
        error = np.sqrt(now[lane])
        if not error <= DIVERGED and diverged[lane] == 0:  # written so that NaN counts as divergence
            diverged[lane] = segments.step[s]
            diverged[B + lane] = segments.episode[s]
        now[lane] = error if diverged[lane] == 0 else np.inf
    if segments.point[s] >= 0:
        first = np.uintp(segments.point[s]) * B
        for lane in range(B):
            errors.total[lane] += now[lane]
            errors.curve[first + lane] += now[lane]
    if segments.last[s]:
        for lane in range(B):
            errors.last[lane] += now[lane]


@numba.njit(**INNER)
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
    names: dict[str, Any] = {"use_widest_vectors": use_widest_vectors} | {f"S{j}": np.uintp(j) for j in range(k)}
    for scope in ("w", "now"):
        names[f"load_{scope}"], names[f"store_{scope}"] = disjoint(scope, ["w", "now"])
    exec(term_source(k), names)
    add_term = numba.njit(names["add_term"], **INLINE)
    K = np.uintp(k)

    @numba.njit(**INNER)
    @named(f"measures of {k}")
    def take_errors(w, measure, errors, B, segments, s):
        use_widest_vectors()
        now = errors.now
        for lane in range(B):
            now[lane] = measure.rest
        for m in range(np.uintp(measure.targets.size)):
            add_term(w, now, measure.rows, measure.values, measure.targets[m], m * K, B)
        fold(errors, B, segments, s)

    return take_errors
