"""A log of transitions as a stand-in for a task: what the tables would say, estimated from a sample.

    A ≈ mean ρ x (x − γx')ᵀ      b ≈ mean ρ r x      C ≈ mean x xᵀ

Transitions are taken as independent draws: their order is ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, Array, check_memory, numbers
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.stream.least_squares import moment_sums
from gradient_dd.stream.log import LogReader
from gradient_dd.tasks.exact import Moments

ARRAYS = ("x", "reward", "discount", "x_next")  # rho, 1 where it is left out, is the fifth


@dataclass(frozen=True, eq=False)
class Log:
    """Transitions of some policy: x and x_next (n, p), reward, discount and rho (n,)."""

    x: Array
    reward: Array
    discount: Array
    x_next: Array
    rho: Array

    def __str__(self) -> str:
        return f"a log of {len(self.reward):,} transitions with {self.n_features} features"

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.x.shape[1]

    @cached_property
    def moments(self) -> Moments:
        """A, b and C, estimated."""
        ahead, n = self.x - self.discount[:, None] * self.x_next, len(self.reward)
        return Moments(*(one / n for one in moment_sums(self.x, ahead, self.reward, self.rho)))

    def part(self, chosen: Any) -> "Log":
        """Return the transitions with these numbers."""
        return Log(*(getattr(self, name)[chosen] for name in (*ARRAYS, "rho")))

    def in_row_space(self) -> "Log":
        """Return the log in coordinates of the space that x spans: other directions of x_next are never learnt."""
        rank = np.linalg.matrix_rank(self.x)
        if rank == self.n_features:
            return self
        basis = np.linalg.svd(self.x, full_matrices=False)[2][:rank].T
        return replace(self, x=self.x @ basis, x_next=self.x_next @ basis)


def log_of(x: Any, reward: Any, discount: Any, x_next: Any, rho: Any = 1.0) -> Log:
    """Return a log of these transitions, checked; x_next may hold any finite numbers where the episode ended."""
    x, x_next = numbers("'x'", x, LARGEST), numbers("'x_next'", x_next, LARGEST)
    if x.ndim != 2 or x.size == 0 or x.shape != x_next.shape:
        got = Unquoted(f"{x.shape} and {x_next.shape}")
        raise bad_request("'x' and 'x_next'", "have one row for each transition and one column for each feature", got)
    n = len(x)
    columns = {"reward": reward, "discount": discount, "rho": rho}
    for name, values in columns.items():
        given = numbers(f"{name!r}", values, LARGEST)
        if given.shape not in ((), (1,), (n,)):
            raise bad_request(f"{name!r}", f"have one number for each of {n} transitions", given.shape)
        columns[name] = np.broadcast_to(given, n)
    for name, least, most in (("discount", 0.0, 1.0), ("rho", 0.0, np.inf)):
        values = columns[name]
        if values.min() < least or values.max() > most:
            raise bad_request(
                f"{name!r}", f"be between {least:g} and {most:g}", Unquoted(f"{values.min():g} to {values.max():g}")
            )
    if not x.any():
        raise bad_request("'x'", "have a feature that is not zero", Unquoted("zeros"))
    x_next = np.where(columns["discount"][:, None] == 0, 0.0, x_next)  # the episode ended: there is no next state
    return Log(x, columns["reward"], columns["discount"], x_next, columns["rho"])


def read_log(
    source: Any,
    *,
    discount: float | None = None,
    target: Any = None,
    features: Any = None,
    columns: Mapping[str, Any] | None = None,
    skip_bad_rows: bool = False,
) -> Log:
    """Return the transitions of a log, read as `evaluate_log` reads it; the arguments are those of `evaluate_log`.

    Columns called x… or feature… are the features as they are, a single one too.
    """
    reader = LogReader(source, columns, discount, target, skip_bad_rows)
    mapping, _ = reader.feature_map("raw" if features is None and reader.columns.are_features else features)
    parts: list[tuple[Array, ...]] = []
    for x, x_next, rows in reader.batches(mapping):
        size = 16.0 * (rows.row[-1] + 1) * mapping.n_features
        check_memory("The features of a log", size, "Use fewer rows or features.")
        both = x.dense(mapping.n_features), x_next.dense(mapping.n_features)
        parts.append((both[0], rows.reward, rows.discount, both[1], rows.rho))
    return log_of(*(np.concatenate(column) for column in zip(*parts, strict=True)))
