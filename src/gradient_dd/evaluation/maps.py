"""Default features of a log: a table, or the best of five maps by held-out returns.

Whole numbers, or at most 64 distinct observations, become a table unless there are fewer than ten rows per state. For
other logs, every candidate predicts the returns of the logging policy by LSTD-Q, solved without the group of episodes
to be predicted. The choice is the widest map with 20 or more rows per weight whose error is within two standard errors
of the best; the next two candidates show how much the value depends on the features.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import BadRequestError
from gradient_dd.evaluation.design import (
    BLOCKS,
    SUM,
    TABLE,
    Design,
    SortedFeatures,
    no_equations,
    ridge_of,
    solved,
    sparse_matrix,
)
from gradient_dd.evaluation.pieces import Piece, joined
from gradient_dd.evaluation.rows import EvaluationRows
from gradient_dd.stream.features import Categories, Columns, Features, Layers, Rows, Table
from gradient_dd.stream.features.kind import matrix
from gradient_dd.stream.features.sparse import MOST_STATES, spread_out
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.columns import Actions

GIVEN = "given"  # name of the user's map
MOST_FEATURES = 3000  # largest number of state-action features, for dense equations
MOST_CELLS = 20_000  # largest number of state-action features of a table, whose equations are sparse
TABLE_RIDGE, MAP_RIDGE = 1e-6, 1e-4
CANDIDATES = {  # degree of the polynomial, and number of radial functions
    "linear": (1, 0),
    "quadratic": (2, 0),
    "40 radial functions": (0, 40),
    "120 radial functions": (0, 120),
    "quadratic, with 60 radial functions": (2, 60),
}
RUNNERS_UP = 2
CHOICE_ROWS, NETWORK_ROWS = 60_000, 50_000  # first rows used for the choice, and to train networks


class StandardMap(Features):
    """A constant, scaled columns or their products, columns of 0s and 1s, and radial functions.

    shift, scale  (d,) of the columns;  plain  (d,) columns of 0s and 1s, which are not scaled
    degree        0, 1 or 2 of the polynomial in the scaled columns;  centres  (k, d') of radial functions
    exp(−|z − centre|² / width) of the scaled columns
    """

    kind = "standard map"

    def __init__(self, shift: Array, scale: Array, plain: Any, degree: int, centres: Array, width: float) -> None:
        self.shift, self.scale, self.plain, self.degree = shift, scale, np.asarray(plain, bool), degree
        self.centres, self.width = centres, width
        d = int((~self.plain).sum())
        products = d * (d + 1) // 2 if degree > 1 else 0
        self.n_features = self.nonzeros = 1 + d * (degree > 0) + products + int(self.plain.sum()) + len(centres)
        self.bound = np.inf

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, dense."""
        X = matrix(observations, len(self.shift))
        Z = ((X - self.shift) / self.scale)[:, ~self.plain]
        parts = [np.ones((len(X), 1))]
        if self.degree > 0:
            parts.append(Z)
        if self.degree > 1:
            first, second = np.triu_indices(Z.shape[1])
            parts.append(Z[:, first] * Z[:, second])
        parts.append(X[:, self.plain])
        if len(self.centres):
            distance = (Z**2).sum(axis=1)[:, None] - 2 * Z @ self.centres.T + (self.centres**2).sum(axis=1)
            parts.append(np.exp(-np.maximum(distance, 0.0) / self.width))
        return Rows(None, np.concatenate(parts, axis=1))


class FeatureMap(NamedTuple):
    """A map with its form for states and actions, and its ridge.

    name  of a candidate, or "given";  words  a sentence about the map
    """

    name: str
    features: Features
    table: bool
    ridge: float
    words: str

    @property
    def p(self) -> int:
        """Number of features of a state, including the constant of a table."""
        return self.features.n_features + self.table

    def design(self, actions: Actions | None, rows: int) -> Design:
        """Return the form of state-action features: SUM if blocks per action are too many for the rows."""
        count = 1 if actions is None else actions.n_features
        if self.table:
            return Design(TABLE, self.p, count)
        wide = actions is not None and actions.named and self.p * count > min(rows / 2, MOST_FEATURES)
        return Design(SUM if wide and self.p + count <= MOST_FEATURES else BLOCKS, self.p, count)

    def matrix(self, seen: Array) -> Any:
        """Return the features of observations of a log, (n, p), sparse for a table."""
        of_numbers = isinstance(self.features, Categories)
        rows = self.features.of_numbers(seen) if of_numbers else self.features.rows(seen)  # type: ignore[attr-defined]
        return self.of_rows(rows)

    def of_rows(self, rows: Rows) -> Any:
        """Return feature rows as a matrix (n, p), sparse for a table and for many features."""
        if not self.table and (rows.indices is None or self.p <= MOST_FEATURES):
            return rows.dense(self.p)
        assert rows.indices is not None
        n, constant = len(rows.values), int(self.table)
        indices = np.column_stack([rows.indices, np.full((n, constant), self.p - 1)])
        return sparse_matrix(indices, np.column_stack([rows.values, np.ones((n, constant))]), self.p)


def too_wide(design: Design) -> bool:
    """Return whether there are too many features to solve the equations."""
    return design.q > (MOST_CELLS if design.form == TABLE else MOST_FEATURES)


def given_map(reader: LogReader, features: Any, seed: int) -> FeatureMap:
    """Return the user's map."""
    if isinstance(features, str) and features == "network":
        layers, words = network_map(reader, seed)
        return FeatureMap(GIVEN, layers, False, MAP_RIDGE, words)
    mapping, words = reader.feature_map(features)
    first = reader.first_rows()[:100]
    rows = mapping.of_numbers(first) if isinstance(mapping, Categories) else mapping.rows(first)
    hot = rows.indices is not None and rows.values.shape[1] == 1 and bool(np.isin(rows.values, (0.0, 1.0)).all())
    return FeatureMap(GIVEN, mapping, hot, TABLE_RIDGE if hot else 1e-6 * mapping.n_features, words)


def table_map(reader: LogReader, rows: EvaluationRows, sample: Array) -> FeatureMap | None:
    """Return a table if the observations of a log are discrete states, else None."""
    states = np.unique(sample, axis=0)
    whole = bool((states == np.round(states)).all())
    if not (whole or len(states) <= 64) or len(states) * 10 > len(sample):
        return None
    for piece in rows.counted():
        states = np.unique(np.concatenate([states, piece.seen, piece.after[~piece.ended]]), axis=0)
        if len(states) > MOST_STATES:
            return None
    inner: Features = Categories(reader.texts, Table(states), False) if reader.words else Table(states)
    why = "text" if len(reader.words) == sample.shape[1] else "whole numbers" if whole else "few"
    words = f"Features: a table of {len(states):,} distinct states, because observations are {why}."
    return FeatureMap("table", inner, True, TABLE_RIDGE, words)


def default_maps(reader: LogReader, rows: EvaluationRows, actions: Actions | None) -> list[FeatureMap]:
    """Return the default maps of a log, the preferred map first."""
    sample = np.concatenate([piece.seen for piece in rows.sample])
    table = table_map(reader, rows, sample)
    if table is not None:
        return [table]
    texts, spread, mask = reader.texts, sample, np.zeros(sample.shape[1], bool)
    if reader.words:
        spread = spread_out(sample, texts)
        mask = np.concatenate([[False] if one is None else np.ones(len(one), bool) for one in texts])
    n_actions, found = 1 if actions is None else actions.n_features, []
    for name, (degree, count) in CANDIDATES.items():
        mapping = fitted_map(spread, mask, degree, count)
        if name == "linear" or mapping.n_features * n_actions <= min(rows.n / 2, MOST_FEATURES):
            features: Features = Categories(texts, mapping, True) if reader.words else mapping
            words = f"Features: {name}, scaled by the first {len(sample):,} rows"
            words += "; text is one-hot." if reader.words else "."
            found.append(FeatureMap(name, features, False, MAP_RIDGE, words))
    return found if len(found) == 1 else ordered(found, rows, actions)


def fitted_map(sample: Array, plain: Any, degree: int, count: int) -> StandardMap:
    """Return a map scaled by a sample; each centre is the farthest of ten random rows from all earlier centres."""
    shift, scale = sample.mean(axis=0), sample.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    Z = ((sample - shift) / scale)[:, ~plain]
    if not count or not Z.shape[1]:
        return StandardMap(shift, scale, plain, degree, np.empty((0, Z.shape[1])), 1.0)
    rng = np.random.default_rng([0, 7])
    among = np.unique(Z[rng.choice(len(Z), min(len(Z), 4000), replace=False)], axis=0)
    chosen = [int(rng.integers(len(among)))]
    distance = ((among - among[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(min(count, len(among)) - 1):
        some = rng.choice(len(among), min(len(among), 10), replace=False)
        chosen.append(int(some[np.argmax(distance[some])]))
        distance = np.minimum(distance, ((among - among[chosen[-1]]) ** 2).sum(axis=1))
    centres = among[chosen]
    apart = ((centres[:, None] - centres[None]) ** 2).sum(axis=2) + 1e9 * np.eye(len(centres))
    near = max(1, min(Z.shape[1], len(centres) - 1))
    width = 2 * float(np.sort(apart, axis=1)[:, :near].mean())
    return StandardMap(shift, scale, plain, degree, centres, width if 0 < width < 1e8 else 1.0)


def ordered(found: list[FeatureMap], rows: EvaluationRows, actions: Actions | None) -> list[FeatureMap]:
    """Return maps in order of preference: the choice, then the next best predictors of returns."""
    piece = joined(rows.sample).part(slice(CHOICE_ROWS))
    base = found[-1 if len(found) > 3 else 0]  # its LSTD values replace the unknown rest of cut returns
    X, X2 = base.matrix(piece.seen), base.matrix(piece.legal_after)
    A = X.T @ (X - piece.discount[:, None] * X2)
    A[np.diag_indices_from(A)] += base.ridge * np.maximum((X**2).sum(axis=0), 1e-300)
    beyond = np.asarray(X2 @ np.linalg.lstsq(A, X.T @ piece.signals[:, 0], rcond=1e-12)[0])
    returns, weight = returns_of(piece, beyond)
    known = weight <= 0.3
    if known.mean() < 0.1:
        known = np.ones(len(piece), bool)
    errors = {one.name: held_out_errors(one, piece, rows, actions, returns)[known] for one in found}
    episode = piece.episode[known] - piece.episode[0]
    scored = sorted(found, key=lambda one: float(errors[one.name].mean()))
    best, n_actions = scored[0], 1 if actions is None else actions.n_features

    def near(one: FeatureMap) -> bool:
        mine, least = (np.bincount(episode, errors[each.name]).astype(float) for each in (one, best))
        excess, enough = mine - least, one.p * n_actions * 20 <= rows.n
        return one is best or (enough and bool(excess.sum() <= 2.0 * excess.std() * np.sqrt(len(excess))))

    first = max(filter(near, scored), key=lambda one: one.p)
    rest = [one for one in scored if one is not first and one.name != "linear"]
    return [first, *rest[:RUNNERS_UP]]


def returns_of(piece: Piece, beyond: Array) -> tuple[Array, Array]:
    """Return the discounted return from each row, with the value `beyond` (n,) after a cut, and that value's weight."""
    found, weight = np.empty(len(piece)), np.empty(len(piece))
    ahead = share = 0.0
    columns = [one.tolist() for one in (piece.signals[:, 0], piece.discount, piece.follows, beyond)]
    for i, (reward, discount, goes_on, value) in reversed(list(enumerate(zip(*columns, strict=True)))):
        if not goes_on:
            ahead, share = (0.0, 0.0) if discount == 0 else (value, 1.0)
        ahead, share = reward + discount * ahead, discount * share
        found[i], weight[i] = ahead, share
    return found, weight


def held_out_errors(
    one: FeatureMap, piece: Piece, rows: EvaluationRows, actions: Actions | None, returns: Array
) -> Array:
    """Return squared errors (n,) of the logging policy's values, solved without the group of each row."""
    design, U = one.design(actions, rows.n), actions_of(actions, piece)
    X, after = one.matrix(piece.seen), np.minimum(np.arange(len(piece)) + 1, len(piece) - 1)
    found = SortedFeatures(X, X[after], piece.group, U, named_actions(actions, piece))
    ahead = (np.where(piece.follows, piece.discount, 0.0)[:, None] * U[after])[found.order]
    used = (piece.follows | piece.ended).astype(float)[found.order]
    A = found.outer(no_equations(design, rows.groups), design, found.U, None, used)
    A = found.outer(A, design, found.U, ahead, used)
    right = used[:, None] * piece.signals[found.order, :1]
    squares = design.total(found.X**2, found.U**2, np.ones(len(piece)))
    solution = solved(A, found.totals(design, found.U, right, rows.groups), ridge_of(design, squares, one.ridge))
    values = found.unsorted(found.by_group(design, found.X, found.U, solution.without))[:, 0]
    return np.asarray((returns - np.clip(values, *rows.bounds(0))) ** 2)


def actions_of(actions: Actions | None, piece: Piece) -> Array:
    """Return the features of the actions taken, (n, features of an action); 1 if there is a single action."""
    return np.ones((len(piece), 1)) if actions is None else actions.features(piece.action)


def named_actions(actions: Actions | None, piece: Piece) -> Integers | None:
    """Return the indices of the actions taken, (n,), None unless actions have names."""
    return piece.taken if actions is not None and actions.named else None


def network_map(reader: LogReader, seed: int) -> tuple[Layers, str]:
    """Return features that networks learn from the first rows of a log, and a sentence about them."""
    from gradient_dd.networks.learnt import Learnable, learn_layers

    scaled, _ = reader.feature_map("standard")
    if isinstance(scaled, Categories):
        raise BadRequestError("features='network' needs numeric observations, but the log contains text. Use 'table'.")
    assert isinstance(scaled, Columns)
    parts, rows = [], 0
    for table in reader.tables():
        seen, after = reader.observed(table.observation), reader.observed(table.following)
        ended = (table.discount == 0)[:, None]
        x, there = (scaled.rows(one).values[:, :-1] for one in (seen, np.where(ended, seen, after)))
        ahead = np.where(ended, 0.0, there)
        parts.append((x, table.reward, table.discount, ahead, table.rho, table.episode))
        rows += len(table)
        if rows >= NETWORK_ROWS:
            break
    data = Learnable(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    layers, choice = learn_layers(data, scaled.shift, scaled.scale, seed)
    size = " and ".join(map(str, choice.hidden))
    words = f"Features: {layers.n_features - 1} units of an ensemble that learnt from {rows:,} rows, and a constant; "
    return layers, f"{words}{size} units in its layers and {choice.updates:,} updates were best on held-out episodes."
