"""A log of transitions as a stand-in for a task: what the tables would say, estimated from a sample.

    A ≈ mean ρ x (x − γx')ᵀ      b ≈ mean ρ r x      C ≈ mean x xᵀ

Transitions are taken as independent draws: how successive ones hang together is not looked at.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import Words, must
from gradient_dd.exact import Array, Moments
from gradient_dd.tasks.task import Transitions

ARRAYS = ("x", "reward", "discount", "x_next")  # rho, 1 where it is left out, is the fifth


@dataclass(frozen=True, eq=False)
class Log:
    """Transitions of some policy: x and x_next (n, p), reward, discount and rho (n,), a weight for each (n,)."""

    x: Array
    reward: Array
    discount: Array
    x_next: Array
    rho: Array
    weight: Array

    def __str__(self) -> str:
        return f"a log of {len(self.reward):,} transitions with {self.n_features} features"

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.x.shape[1]

    @property
    def initial_weights(self) -> Array:
        """Zero: a log does not say."""
        return np.zeros(self.n_features)

    @cached_property
    def sparse_features(self) -> sp.csr_matrix:
        """All x, then all x_next."""
        return sp.csr_matrix(np.vstack([self.x, self.x_next]))

    @cached_property
    def transitions(self) -> Transitions:
        """What each transition means to a learner."""
        n = len(self.reward)
        rows = np.arange(n)
        return Transitions(rows, rows + n, self.reward, self.discount, self.rho, self.discount == 0)

    @cached_property
    def moments(self) -> Moments:
        """A, b and C, estimated."""
        ahead = self.x - self.discount[:, None] * self.x_next
        weighted = (self.weight[:, None] * self.x).T
        A, C = weighted @ (self.rho[:, None] * ahead), weighted @ self.x
        return Moments(A, weighted @ (self.rho * self.reward), C)

    def resampled(self, rng: np.random.Generator) -> "Log":
        """Return a bootstrap sample: the same transitions with other weights."""
        n = len(self.weight)
        return replace(self, weight=rng.multinomial(n, np.full(n, 1 / n)) / n)

    def in_row_space(self) -> "Log":
        """Return the log in coordinates of the space its features span."""
        both = np.vstack([self.x, self.x_next])
        rank = np.linalg.matrix_rank(both)
        if rank == self.n_features:
            return self
        basis = np.linalg.svd(both, full_matrices=False)[2][:rank].T
        return replace(self, x=self.x @ basis, x_next=self.x_next @ basis)


def log_of(x: Any, reward: Any, discount: Any, x_next: Any, rho: Any = 1.0) -> Log:
    """Return a log of these transitions, checked; rows of x_next where the episode ended may be anything finite."""
    x, x_next = (np.atleast_2d(np.asarray(one, float)) for one in (x, x_next))
    n = len(x)
    if n == 0 or x.shape != x_next.shape:
        raise must("'x' and 'x_next'", "have one row for each transition, as wide", Words(f"{x.shape}, {x_next.shape}"))
    columns = {"reward": reward, "discount": discount, "rho": rho}
    for name, values in columns.items():
        try:
            columns[name] = np.broadcast_to(np.asarray(values, float), n)
        except ValueError:
            raise must(f"{name!r}", f"have one number for each of {n} transitions", np.shape(values)) from None
    for name, values in (("x", x), ("x_next", x_next), *columns.items()):
        if not np.isfinite(values).all():
            raise must(f"{name!r}", "be finite", Words("numbers that are not"))
    for name, least, most in (("discount", 0.0, 1.0), ("rho", 0.0, np.inf)):
        values = columns[name]
        if values.min() < least or values.max() > most:
            raise must(
                f"{name!r}", f"be between {least:g} and {most:g}", Words(f"{values.min():g} to {values.max():g}")
            )
    return Log(x, columns["reward"], columns["discount"], x_next, columns["rho"], np.full(n, 1 / n))


def read_log(path: str | Path) -> Log:
    """Read a log from a file.

    .npz  arrays x and x_next (n, p), reward, discount and, if they are not all 1, rho (n,)
    .csv  columns x0, x1, …, next0, next1, …, reward, discount and rho
    """
    file = Path(path)
    if not file.is_file():
        raise must("A log", "be a file", str(file))
    if file.suffix == ".npz":
        with np.load(file) as arrays:
            found = {name: arrays[name] for name in (*ARRAYS, "rho") if name in arrays}
    elif file.suffix == ".csv":
        import pandas as pd

        frame = pd.read_csv(file)
        wide = {"x": "x", "x_next": "next"}
        found = {name: frame[name].to_numpy() for name in ("reward", "discount", "rho") if name in frame}
        for name, prefix in wide.items():
            columns = [f"{prefix}{i}" for i in range(len(frame.columns)) if f"{prefix}{i}" in frame]
            found |= {name: frame[columns].to_numpy()} if columns else {}
    else:
        raise must("A log", "be a .npz or a .csv file", file.name)
    missing = [name for name in ARRAYS if name not in found]
    if missing:
        raise must(f"The log {file.name}", f"have {', '.join(ARRAYS)}", Words(f"none called {', '.join(missing)}"))
    return log_of(**found)
