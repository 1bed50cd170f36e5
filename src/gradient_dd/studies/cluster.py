"""Many machines: a Dask cluster behind the same `concurrent.futures.Executor` as threads.

Workers return results, and this process alone writes. Dask runs the units of a worker that dies again. Rules, tasks and
schedules of your own travel with the work.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from gradient_dd.errors import Words, extra, must


class ClusterExecutor(Executor):
    """A Dask executor that sends along the modules that workers cannot import."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        """Submit `function` with its unit; the modules of the unit's rules and schedule travel whole."""
        for unit in arguments:
            for step in (*(setting.rule.step for setting in unit.settings), unit.schedule.function):
                send_by_value(step)
        return self._executor.submit(function, *arguments, **keywords)


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Yield an executor on the Dask scheduler at `address`, or on a cluster of this machine's cores for "local"."""
    with extra("cluster"):
        from distributed import Client, LocalCluster

    cluster: Any = None
    try:
        if address == "local":
            cluster = LocalCluster(threads_per_worker=1, dashboard_address=None)
        client = Client(cluster or address, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        got = Words(f"{address} ({error})")
        raise must("'--dask'", "be the address of a Dask scheduler that answers, or 'local'", got) from None
    try:
        yield ClusterExecutor(client.get_executor(pure=False, retries=3))
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def send_by_value(function: Callable[..., Any]) -> None:
    """Let the module of a function travel whole, unless workers have it: this package, or the program itself."""
    with extra("cluster"):
        import cloudpickle

    module = sys.modules.get(getattr(function, "__module__", ""))
    if module is not None and not module.__name__.startswith("gradient_dd.") and module.__name__ != "__main__":
        cloudpickle.register_pickle_by_value(module)
