"""`features="network"`: features that networks learn from a log, and what their disagreement adds to intervals.

The values are then those of one linear evaluation over the last layers of an ensemble, so that choice of learner,
findings and verdict are the same as for every other map. Each member has seen a random half of the episodes; what its
own solution differs from the mean of them is added to the copies that make the interval.
"""

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError
from gradient_dd.evaluation.choice import Spread
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.stream.features import Categories, Columns, Layers
from gradient_dd.stream.least_squares import solution
from gradient_dd.stream.log import LogReader
from gradient_dd.tasks.exact import Moments

MOST_ROWS = 50_000  # first rows that networks learn from
RIDGE = 1e-3  # of the solution of each member


def network_map(reader: LogReader, seed: int) -> tuple[Layers, str]:
    """Return the features that networks learn from the first rows of a log, and a sentence about them."""
    from gradient_dd.networks.learnt import Learnable, learn_layers

    scaled, _ = reader.feature_map("standard")
    if isinstance(scaled, Categories):
        raise BadRequestError("features='network' needs observations of numbers, and this log has text. Use 'table'.")
    assert isinstance(scaled, Columns)
    parts, rows = [], 0
    for x, x_next, table in reader.batches(scaled):
        parts.append((x.values[:, :-1], table.reward, table.discount, x_next.values[:, :-1], table.rho, table.episode))
        rows += len(table.reward)
        if rows >= MOST_ROWS:
            break
    data = Learnable(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    layers, choice = learn_layers(data, scaled.shift, scaled.scale, seed)
    size = " and ".join(map(str, choice.hidden))
    words = f"Features: {layers.n_features - 1} units of an ensemble that learnt from {rows:,} rows, and a constant; "
    return layers, f"{words}{size} units in its layers and {choice.updates:,} updates were best on held-out episodes."


def with_members(spread: Spread, sums: GroupSums, features: Layers) -> Spread:
    """Return the makings of an interval with the disagreement of the members of an ensemble in its copies."""
    found = member_solutions(sums, features)
    away = found - found.mean(axis=0)
    turns = np.arange(len(spread.copies)) % len(away)
    return spread._replace(copies=spread.copies + away[turns])


def member_solutions(sums: GroupSums, features: Layers) -> Array:
    """Return the weights (members, p) of each member alone, 0 for the features of the others."""
    A, b, C = sums.A.sum(axis=0), sums.b.sum(axis=0), sums.C.sum(axis=0)
    found = np.zeros((len(features.blocks), features.n_features))
    for place, block in enumerate(features.blocks):
        one = Moments(A[np.ix_(block, block)], b[block], C[np.ix_(block, block)])
        found[place, block] = solution(one, RIDGE, np.zeros(len(block)))
    return found
