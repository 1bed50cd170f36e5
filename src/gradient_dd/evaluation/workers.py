"""Where sums are computed: in this process with one BLAS thread, or by workers of a Dask cluster.

A log on a cluster is a folder of Parquet files that workers can read too. A worker reads the files of a part, and
returns sums. The process that asked adds them in the order of the parts, so the bits of a result do not depend on the
workers.

Matrices of an evaluation are small. Threads of OpenBLAS wait for each other by spinning, so on a busy machine two of
them took six times the processor time of one (`python -m trials.policy_speed`). The number of threads also
changes the bits of products.
"""

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy

from gradient_dd.errors import bad_request
from gradient_dd.evaluation.rows import EvaluationRows, Work
from gradient_dd.stream.log.sources import Source
from gradient_dd.studies.cluster import ClusterExecutor, dask_executor, send_by_value

NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_")
MOST_WAITING = 64  # parts that are computed or wait for their turn: their sums are in memory


class Workers:
    """The workers of a cluster."""

    def __init__(self, executor: ClusterExecutor) -> None:
        self.executor = executor

    def each(self, rows: EvaluationRows, work: Work, most: int) -> Iterator[Any]:
        """Yield what `work` returns for the pieces of each part, in order."""
        waiting = deque[Future[Any]]()
        for part in range(rows.parts):
            arguments = rows, rows.reader.files(part), work, most, part
            waiting.append(self.executor.submit_pickled(sums_of_part, *arguments))
            if len(waiting) > MOST_WAITING:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def sums_of_part(rows: EvaluationRows, files: list[Source], work: Work, most: int, part: int) -> Any:
    """Return what `work` returns for the pieces of a part, on a worker."""
    rows.reader.take(part, files)
    with one_thread():
        return work(rows, rows.pieces(most, part))


@contextmanager
def workers_at(address: str | None, log: Any, functions: Iterable[Any]) -> Iterator[Workers | None]:
    """Yield the workers at an address, None without one; the modules of the user's functions are sent to them."""
    if address is None:
        yield None
        return
    if not isinstance(log, str | PathLike) or not Path(log).is_dir():
        rule = "be omitted unless the log is a folder of Parquet files, which workers can read"
        raise bad_request("'dask'", rule, address)
    with dask_executor(address) as executor:
        for one in functions:
            send_by_value(one)
        yield Workers(cast(ClusterExecutor, executor))


@cache
def libraries() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    """Return functions that get and set the number of threads of each OpenBLAS of NumPy and SciPy; [] without one."""
    found = []
    for package in (np, scipy):
        root = Path(str(package.__file__)).parent
        for file in [*root.parent.glob(f"{root.name}.libs/*openblas*"), *root.glob(".dylibs/*openblas*")]:
            library = ctypes.CDLL(str(file))
            for name in NAMES:
                if hasattr(library, name.format("set")):
                    found.append((getattr(library, name.format("get")), getattr(library, name.format("set"))))
                    break
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread; without a known BLAS this does nothing."""
    before = [(get(), put) for get, put in libraries()]
    for _, put in before:
        put(1)
    try:
        yield
    finally:
        for count, put in before:
            put(count)
