"""Checks of a user's transitions: feature vectors, rows of features, columns of numbers, whole batches.

`Learner`, `Questions` and evaluations all read their data here. Sparse indices are sorted, and the values of equal
indices are added up, so all learners compute with the same numbers in the same order.

One compiled pass checks a whole batch. If it finds an error, slower checks look for the first bad row.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import (
    Array,
    Booleans,
    Integers,
    as_floats,
    check_memory,
    dimensions,
    is_masked,
    numbers,
    sparse_numbers,
)
from gradient_dd.engine.single import (
    INDEX,
    NO_INDICES,
    OUTSIDE,
    UNORDERED,
    FeatureRows,
    FlatTransitions,
    columns_are_sound,
    largest_value,
    pairs_order,
    plain,
    sound_rows,
)
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, boolean, number
from gradient_dd.learners import Rule

INDEX_KINDS = (INDEX, np.dtype(np.int32))  # the compiled loops take these without a copy
RATIO_TOLERANCE = 1e-6  # largest difference between rho times mu and pi


class FeatureVector(NamedTuple):
    """The places of a feature vector that are not zero (ordered indices, or a slice for all), and their values."""

    where: Any
    values: Array


NONE = FeatureVector(slice(0), np.empty(0))


def checked_features(name: str, x: Any, p: int) -> FeatureVector:
    """Return `x`, a vector of length p or a pair (indices, values), or raise; `name` is the caller's name for it."""
    if x is None or sp.issparse(x):
        got = Unquoted("None" if x is None else "a SciPy matrix")
        hint = "It may be None only with discount=0." if x is None and name == "x_next" else ""
        raise bad_request(f"{name!r}", "be a vector, or a pair (indices, values)", got, hint)
    if isinstance(x, tuple):
        return checked_pair(name, x, p)
    values = numbers(f"{name!r}", x)
    if values.shape != (p,):
        raise bad_request(f"The shape of {name!r}", f"be ({p},)", values.shape)
    return FeatureVector(slice(None), values)


def checked_numbers(
    reward: Any, discount: Any, rho: Any, terminated: Any, truncated: Any
) -> tuple[float, float, float, bool]:
    """Return the checked reward, discount (0 at an end) and ratio of one transition, and whether it is truncated."""
    reward = number("'reward'", "be a finite number", reward)
    discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
    rho = number("'rho'", "be a number that is zero or more", rho, low=0.0)
    discount = 0.0 if boolean("'terminated'", terminated) else discount
    return reward, discount, rho, boolean("'truncated'", truncated)


def rows_of_step(x: Any, x_next: Any, discount: float, p: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return each feature vector of a transition as a single row with the fields of `FeatureRows`, or raise."""
    rows: Any = sound_rows(x, x if discount == 0 else x_next, p)
    if rows is None:
        here = checked_features("x", x, p)
        there = here if discount == 0 else checked_features("x_next", x_next, p)
        if isinstance(here.where, slice) != isinstance(there.where, slice):
            here, there = dense_vector(here, p), dense_vector(there, p)
        rows = arrays_of(here), arrays_of(there)
    row, next_row = ((NO_INDICES, values.size, indices, values, np.inf) for indices, values in rows)
    return row, next_row


def dense_vector(features: FeatureVector, p: int) -> FeatureVector:
    """Return the same features as a dense `FeatureVector`, with all p numbers."""
    values = np.zeros(p)
    values[features.where] = features.values
    return FeatureVector(slice(None), values)


def arrays_of(features: FeatureVector) -> tuple[Integers, Array]:
    """Return indices, NO_INDICES for a dense vector, and values as kernels take them."""
    where, values = features
    return NO_INDICES if isinstance(where, slice) else plain(where, INDEX), plain(values)


def checked_pair(name: str, x: tuple[Any, ...], p: int) -> FeatureVector:
    """Return sparse features sorted, with values of equal indices added up; raise unless indices are in 0 to p − 1."""
    where, values = pair_of(name, x)
    if where.shape == (0,):
        where = where.astype(int)
    if where.dtype.kind not in "iu" or where.ndim != 1 or where.shape != values.shape or is_masked(x[0]):
        raise bad_request(f"Sparse {name!r}", "have as many whole indices as values", x)
    numbers(f"The values of {name!r}", values)
    if where.size and not (where.min() >= 0 and where.max() < p):
        raise bad_request(f"The indices of {name!r}", f"be from 0 to {p - 1}", where)
    order = np.argsort(where, kind="stable")
    ordered, values = where[order], values[order]  # copies: the next update reads them
    first = np.diff(ordered, prepend=-1) != 0
    if not first.all():
        ordered, values = ordered[first], np.asarray(np.bincount(np.cumsum(first) - 1, values), float)
        numbers(f"The sums of equal indices of {name!r}", values)
    return FeatureVector(ordered, values)


def pair_of(name: str, x: tuple[Any, ...]) -> tuple[Any, Array]:
    """Return the two arrays of a pair (indices, values); ragged indices become an array of objects."""
    if len(x) != 2:
        raise bad_request(f"Sparse {name!r}", "be a pair (indices, values)", x)
    values = as_floats(f"The values of {name!r}", x[1])
    try:
        return np.asarray(x[0]), values
    except (OverflowError, TypeError, ValueError):  # ragged
        return np.empty(0, object), values


def predicted(x: Any, p: int, weights_at: Callable[[Any], Array]) -> Any:
    """Return x·w: a number for one feature vector, (n,) for n rows; `weights_at` returns w at given places."""
    if isinstance(x, tuple) and len(x) == 2 and dimensions(x[1]) == 2:
        rows = checked_rows("X", x, p)
        begin, _, indices, values, _ = rows.with_begins()
        dense = rows.layout == "dense"
        x = values.reshape(-1, p) if dense else sp.csr_matrix((values, indices, begin), shape=(rows.n, p))
    if isinstance(x, tuple):
        where, given = checked_features("x", x, p)
    else:
        where, given = slice(None), sparse_numbers("'X'", x) if sp.issparse(x) else numbers("'X'", x)
        if given.ndim not in (1, 2) or given.shape[-1] != p:
            raise bad_request("The shape of 'X'", f"be ({p},) or (n, {p})", given.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        values = given @ weights_at(where)
    checked_predictions("X", values)
    return float(values) if np.ndim(values) == 0 else values


def checked_predictions(name: str, values: Array) -> Array:
    """Return predictions, or raise an error that names the first infinite or NaN prediction."""
    if not np.isfinite(values).all():
        raise bad_request(f"The predictions for {name!r}", "be finite", values[~np.isfinite(values)][0])
    return values


def start_weights(initial_w: Any, p: int) -> Array:
    """Return the initial weights (p,) from p numbers or one number."""
    check_memory(f"The weights of {p} features", 8 * p, "Use fewer features.")
    weights = numbers("'initial_w'", initial_w)
    if weights.shape not in ((), (p,)):
        raise bad_request("The shape of 'initial_w'", f"be () or ({p},)", weights.shape)
    return np.array(np.broadcast_to(weights, p))


class GivenRows(NamedTuple):
    """n checked rows of features, with the layouts of `FlatTransitions`."""

    n: int
    layout: str
    flat: FeatureRows

    def with_begins(self) -> FeatureRows:
        """Return the rows in order with the place at which each begins, as in the layout "rows"."""
        if self.layout == "rows":
            return self.flat
        flat = self.flat.in_order() if self.layout == "unordered" else self.flat
        begin, indices = np.arange(self.n + 1) * flat.width, flat.indices.astype(np.int64, copy=False)
        return flat._replace(begin=begin, indices=indices)


def checked_rows(name: str, x: Any, p: int, used: Array | None = None) -> GivenRows:
    """Return rows of features: dense (n, p), pairs (indices, values) of (n, k), or SciPy rows.

    Rows where `used` is 0 may have any content. A pair whose indices are None is dense, as feature maps return it.
    """
    if sp.issparse(x):
        rows = sparse_numbers(f"{name!r}", x)
        if rows.shape[1] != p:
            raise bad_request(f"The shape of {name!r}", f"be (n, {p})", rows.shape)
        rows = rows if rows.has_canonical_format else rows.copy()
        rows.sum_duplicates()
        values = plain(numbers(f"The sums of equal indices of {name!r}", rows.data))
        begin, indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
        return GivenRows(rows.shape[0], "rows", FeatureRows(begin, 0, indices, values, largest_value(values)))
    pair = x if isinstance(x, tuple) else (None, x)
    if len(pair) == 2 and pair[0] is None:
        values = plain(as_floats(f"{name!r}", pair[1]))
        if values.ndim != 2 or values.shape[1] != p:
            raise bad_request(f"The shape of {name!r}", f"be (n, {p})", values.shape)
        if np.isnan(largest := largest_value(values)):
            largest = largest_value(numbers(f"{name!r}", values[used_rows(used, len(values))]))
        return GivenRows(len(values), "dense", FeatureRows(NO_INDICES, p, NO_INDICES, values.ravel(), largest))
    return given_pairs(name, pair, p, used)


def given_pairs(name: str, x: tuple[Any, ...], p: int, used: Array | None) -> GivenRows:
    """Return the rows of a pair (indices, values), (n, k) each; values of equal indices in a row will be added up."""
    indices, values = pair_of(name, x)
    if indices.dtype.kind not in "iu" or indices.ndim != 2 or indices.shape != values.shape or is_masked(x[0]):
        got = Unquoted(f"{indices.shape} of {indices.dtype} and {values.shape}")
        raise bad_request(f"Sparse {name!r}", "be whole indices and values of the same shape (n, k)", got)
    n, k = indices.shape
    whole = plain(indices, indices.dtype if indices.dtype in INDEX_KINDS else INDEX)
    values = plain(values)
    largest, order = largest_value(values), pairs_order(whole, p)
    if np.isnan(largest) or order == OUTSIDE:
        rows = used_rows(used, n)
        largest, order = largest_value(values[rows]), pairs_order(whole[rows], p)
        outside = ((indices < 0) | (indices >= p)).any(axis=1) & rows
        if outside.any():
            row = int(np.argmax(outside))
            raise bad_request(f"The indices in row {row} of {name!r}", f"be from 0 to {p - 1}", indices[row])
        if np.isnan(largest):
            row = int(np.argmax(~np.isfinite(values).all(axis=1) & rows))
            raise bad_request(f"The values in row {row} of {name!r}", "be finite", values[row])
    if not largest * k < np.inf:
        raise bad_request(f"The largest value of {name!r} times the length of a row", "be finite", largest)
    layout = "single" if k == 1 else "pairs"
    if order == UNORDERED:
        layout, largest = "unordered", largest * k  # no sum of values is larger
    return GivenRows(n, layout, FeatureRows(NO_INDICES, k, whole.ravel(), values.ravel(), largest))


def used_rows(used: Array | None, n: int) -> Booleans:
    """Return which of n rows are used: all of them, unless `used` has n numbers, 0 for unused rows."""
    return np.ones(n, bool) if used is None or len(used) != n else used != 0


def column(name: str, value: Any, n: int) -> Array:
    """Return (n,) numbers from one number, or from one number for each transition."""
    array = as_floats(f"{name!r}", value)
    if array.shape not in ((), (n,)):
        raise bad_request(f"The shape of {name!r}", f"be ({n},): one number for each transition", array.shape)
    if array.shape == (n,) and array.flags.carray:  # the usual case, four times as fast
        return array
    return plain(np.broadcast_to(array, n))


def checked_columns(
    reward: Any, discount: Any, rho: Any, terminated: Any, truncated: Any, n: int
) -> tuple[Array, Array, Array, Booleans]:
    """Return checked rewards, discounts (0 at an end) and ratios of n transitions, and where they are truncated."""
    given = {"reward": reward, "discount": discount, "rho": rho}
    reward, discount, rho = (column(name, value, n) for name, value in given.items())
    if not columns_are_sound(reward, discount, rho):
        for name, values in zip(given, (reward, discount, rho), strict=True):
            numbers(f"{name!r}", values)
        check_each("discount", (discount < 0) | (discount > 1), discount, "be in [0, 1]")
        check_each("rho", rho < 0, rho, "be a number that is zero or more")
    if terminated is not False:
        discount = np.where(flags("terminated", terminated, n), 0.0, discount)
    return reward, discount, rho, flags("truncated", truncated, n)


def check_each(name: str, wrong: Booleans, values: Array, rule: str) -> None:
    """Raise an error that names the first invalid value and its row; (n,) or (n, lanes) values."""
    if wrong.any():
        raise bad_request(f"{name!r} in row {int(np.argwhere(wrong)[0, 0])}", rule, float(values[wrong][0]))


def checked_next_rows(x_next: Any, here: GivenRows, discount: Array, p: int) -> GivenRows:
    """Return the rows of x_next; where all discounts are 0, x_next may be None or have any content."""
    if x_next is None:
        check_each("discount", discount != 0, discount, "be 0 where 'x_next' is None")
        return here
    used = discount if discount.ndim == 1 else (discount != 0).any(axis=1)
    there = checked_rows("x_next", x_next, p, used)
    if there.n != here.n or (there.layout == "dense") != (here.layout == "dense"):
        raise bad_request("'x_next'", f"have the form of 'x', with {here.n} rows", Unquoted(f"{there.n} rows"))
    return there


def flags(name: str, value: Any, n: int) -> Booleans:
    """Return (n,) booleans from one boolean, or from one boolean for each transition; 0 and 1 count as booleans."""
    if value is False:  # the usual case
        return np.zeros(n, bool)
    array = column(name, value, n)
    check_each(name, (array != 0) & (array != 1), array, "be True or False")
    return array != 0


def flat_transitions(
    x: Any, reward: Any, discount: Any, x_next: Any, rho: Any, p: int, terminated: Any = False, truncated: Any = False
) -> tuple[FlatTransitions, Booleans]:
    """Return transitions as compiled loops read them, and where an episode was cut, (n,), or raise.

    A terminated transition has discount 0.
    """
    here = checked_rows("x", x, p)
    reward, discount, rho, cut = checked_columns(reward, discount, rho, terminated, truncated, here.n)
    there = checked_next_rows(x_next, here, discount, p)
    layouts = {here.layout, there.layout}
    if layouts == {"pairs", "unordered"}:
        layouts = {"unordered"}
    if len(layouts) > 1:
        return FlatTransitions(here.with_begins(), there.with_begins(), reward, discount, rho, "rows"), cut
    return FlatTransitions(here.flat, there.flat, reward, discount, rho, layouts.pop()), cut


def checked_probabilities(rule: Rule, rho: float, pi: Any, mu: Any) -> tuple[float, float]:
    """Return π and μ of an action, or raise if a trace needs a missing probability or if ρ is not their ratio."""
    check_given(rule, pi, mu)
    if pi is not None:
        pi = number("'pi'", "be a probability", pi, low=0.0, high=1.0)
    if mu is not None:
        mu = number("'mu'", "be a probability above 0", mu, low=0.0, high=1.0, positive=True)
    if pi is not None and mu is not None and abs(rho * mu - pi) > RATIO_TOLERANCE:
        raise bad_request("'rho'", f"be pi / mu, which is {pi / mu:.6g}", rho)
    return 0.0 if pi is None else pi, 0.0 if mu is None else mu


def checked_probability_columns(rule: Rule, rho: Array, pi: Any, mu: Any) -> tuple[Array | None, Array | None]:
    """Return π and μ of every action, (n,) or None each, or raise as `checked_probabilities` does."""
    check_given(rule, pi, mu)
    if pi is not None:
        pi = column("pi", pi, len(rho))
        check_each("pi", ~((pi >= 0) & (pi <= 1)), pi, "be a probability")
    if mu is not None:
        mu = column("mu", mu, len(rho))
        check_each("mu", ~((mu > 0) & (mu <= 1)), mu, "be a probability above 0")
    if pi is not None and mu is not None:
        wrong = np.abs(rho * mu - pi) > RATIO_TOLERANCE
        check_each("rho", wrong, rho, f"be pi / mu, which is {(pi / mu)[np.argmax(wrong)]:.6g}" if wrong.any() else "")
    return pi, mu


def check_given(rule: Rule, pi: Any, mu: Any) -> None:
    """Raise if a trace of the rule needs a probability that is missing."""
    for name, value, policy in (("pi", pi, "target"), ("mu", mu, "behaviour")):
        if value is None and f"{name}_before" in rule.trace_arguments:
            what = f"{rule.name} needs {name!r}, the probability of the action under the {policy} policy"
            raise BadRequestError(f"{what}. Pass it to every update.")
