"""Many machines: a Dask cluster behind the same `concurrent.futures.Executor` as threads.

Workers return results, this process alone writes; a worker that dies has its units run again by Dask. Rules, tasks and
schedules of your own travel with the work.
"""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from gradient_dd.errors import BadRequestError, Words, must
from gradient_dd.studies import Study


@contextmanager
def dask_executor(address: str, studies: Sequence[Study]) -> Iterator[Executor]:
    """Yield an executor on the Dask scheduler at `address`, or on a cluster of this machine's cores for "local"."""
    if find_spec("distributed") is None:
        raise BadRequestError("--dask must have Dask. Got none installed. Try: pip install 'gradient-dd[cluster]'.")
    from distributed import Client, LocalCluster

    for study in studies:
        send_by_value(study)
    cluster: Any = None
    try:
        if address == "local":
            cluster = LocalCluster(threads_per_worker=1, dashboard_address=None)
        client = Client(cluster or address, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        got = Words(f"{address} ({error})")
        raise must("'--dask'", "be the address of a Dask scheduler that answers, or 'local'", got) from None
    try:
        yield client.get_executor(pure=False, retries=3)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def send_by_value(study: Study) -> None:
    """Let the modules of rules and schedules that workers cannot import travel whole."""
    import cloudpickle

    functions = [setting.rule.step for grid in study.grids for setting in [next(grid.settings())]]
    for function in (*functions, study.schedule.function):
        module = sys.modules.get(getattr(function, "__module__", ""))
        if module is not None and not module.__name__.startswith("gradient_dd.") and module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)
