"""A log of transitions as a stand-in for a task: what the tables would say, estimated from a sample.

    A ≈ mean ρ x (x − γx')ᵀ      b ≈ mean ρ r x      C ≈ mean x xᵀ

Transitions are taken as independent draws: their order is ignored.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, Array, numbers
from gradient_dd.errors import GradientDDError, Words, extra, file_path, must
from gradient_dd.files import DamagedFileError, read_arrays
from gradient_dd.stream.least_squares import moment_sums
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
        sums = moment_sums(self.x, self.x - self.discount[:, None] * self.x_next, self.reward, self.rho)
        return Moments(*(one / len(self.reward) for one in sums))

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
        got = Words(f"{x.shape} and {x_next.shape}")
        raise must("'x' and 'x_next'", "have one row for each transition and one column for each feature", got)
    n = len(x)
    columns = {"reward": reward, "discount": discount, "rho": rho}
    for name, values in columns.items():
        given = numbers(f"{name!r}", values, LARGEST)
        if given.shape not in ((), (1,), (n,)):
            raise must(f"{name!r}", f"have one number for each of {n} transitions", given.shape)
        columns[name] = np.broadcast_to(given, n)
    for name, least, most in (("discount", 0.0, 1.0), ("rho", 0.0, np.inf)):
        values = columns[name]
        if values.min() < least or values.max() > most:
            raise must(
                f"{name!r}", f"be between {least:g} and {most:g}", Words(f"{values.min():g} to {values.max():g}")
            )
    if not x.any():
        raise must("'x'", "have a feature that is not zero", Words("zeros"))
    x_next = np.where(columns["discount"][:, None] == 0, 0.0, x_next)  # the episode ended: there is no next state
    return Log(x, columns["reward"], columns["discount"], x_next, columns["rho"])


def arrays_of_npz(file: Path) -> dict[str, Any]:
    """Return the arrays of a .npz file."""
    arrays = read_arrays(file)
    return {name: arrays[name] for name in (*ARRAYS, "rho") if name in arrays}


def arrays_of_csv(file: Path) -> dict[str, Any]:
    """Return the columns of a .csv file, those of x and x_next as one array each."""
    with extra("frames"):
        import pandas as pd

    frame = pd.read_csv(file)
    found = {name: frame[name].to_numpy() for name in ("reward", "discount", "rho") if name in frame}
    for name, prefix in (("x", "x"), ("x_next", "next")):
        count = sum(bool(re.fullmatch(rf"{prefix}\d+", str(column))) for column in frame.columns)
        columns = [f"{prefix}{i}" for i in range(count)]
        if missing := [column for column in columns if column not in frame]:
            raise DamagedFileError(f"{count} columns {prefix}0, {prefix}1, …, but none called {missing[0]}")
        found |= {name: frame[columns].to_numpy()} if columns else {}
    return found


READERS = {".npz": arrays_of_npz, ".csv": arrays_of_csv}


def read_log(path: str | Path) -> Log:
    """Read a log from a file.

    .npz  arrays x and x_next (n, p), reward, discount and, if they are not all 1, rho (n,)
    .csv  columns x0, x1, …, next0, next1, …, reward, discount and rho
    """
    file = file_path("A log", path)
    try:
        if not file.is_file():
            raise must("A log", "be a file", str(file))
        if file.suffix not in READERS:
            raise must("A log", "be a .npz or a .csv file", file.name)
        found = READERS[file.suffix](file)
    except GradientDDError:
        raise
    except OSError as error:
        raise must(f"The log {file.name}", "be a file that can be read", Words(error.strerror or "an error")) from None
    except ValueError as error:
        raise must(f"The log {file.name}", "be readable", Words(error)) from None
    missing = [name for name in ARRAYS if name not in found]
    if missing:
        raise must(f"The log {file.name}", f"have {', '.join(ARRAYS)}", Words(f"none called {', '.join(missing)}"))
    return log_of(**found)
