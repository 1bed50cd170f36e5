"""Many machines: a Dask cluster behind the same `concurrent.futures.Executor` as threads.

Workers return results, and this process alone writes. Dask runs the units of a worker that dies again. Rules, tasks and
schedules of your own travel with the work.
"""

import asyncio
import logging
import re
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from threading import Thread
from typing import Any

from gradient_dd.errors import GradientDDError, Unquoted, bad_request, extra

ADDRESS = re.compile(r"(?:(?:tcp|tls)://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")
PATIENCE = 10  # seconds for a scheduler to answer


class ClusterError(GradientDDError):
    """The cluster went away; what was committed is kept."""


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
        from distributed import KilledWorker, LocalCluster

    silence_dask()
    cluster: Any = None
    if address == "local":
        cluster = LocalCluster(threads_per_worker=1, dashboard_address=None)
    else:
        check_address(address)
    try:
        client = connected(cluster or address)
    except BaseException:
        if cluster is not None:
            cluster.close()
        raise
    try:
        yield ClusterExecutor(client.get_executor(pure=False, retries=3))
    except (CancelledError, asyncio.CancelledError, KilledWorker, OSError) as error:
        if client.status == "running" and isinstance(error, OSError):
            raise
        raise ClusterError(
            f"The Dask cluster at {address} must stay up while it works. Got one that was lost, with "
            f"{type(error).__name__}. What was committed is kept; run the same command to resume."
        ) from None
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def silence_dask() -> None:
    """Let Dask, and Tornado below it, print no tracebacks of their own: their errors reach us as exceptions."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def check_address(address: str) -> None:
    """Raise unless something listens at an address; connecting to it shows that sooner than Dask does."""
    found = ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) < 2**16:
        raise bad_request("'--dask'", "be an address like tcp://HOST:8786, or 'local'", address)
    try:
        socket.create_connection((found["host"].strip("[]"), int(found["port"])), timeout=PATIENCE).close()
    except (OSError, UnicodeError) as error:
        raise no_answer(address, error) from None


def connected(place: Any) -> Any:
    """Return a client of a cluster, or of the scheduler at an address."""
    from distributed import Client

    class QuietClient(Client):
        """A client that could not connect is not closed when it is forgotten: that would fail, 20 seconds later."""

        def __del__(self) -> None:
            if self.status == "running":
                super().__del__()

    answer: Future[Any] = Future()

    def connect() -> None:
        try:
            answer.set_result(QuietClient(place, timeout=f"{PATIENCE}s", set_as_default=False))
        except Exception as error:  # a TypeError where TLS has no certificates, an AssertionError elsewhere
            answer.set_exception(error)

    Thread(target=connect, daemon=True).start()  # Dask waits for ever for a server that accepts and says nothing
    try:
        return answer.result(timeout=PATIENCE + 5)
    except Exception as error:
        raise no_answer(str(place), error) from None


def no_answer(address: str, error: Exception) -> Exception:
    """Return the error for an address where no scheduler answers."""
    got = Unquoted(f"{address} ({str(error) or f'no answer in {PATIENCE} seconds'})")
    return bad_request("'--dask'", "be the address of a Dask scheduler that answers, or 'local'", got)


def send_by_value(function: Callable[..., Any]) -> None:
    """Let the module of a function travel whole, unless workers have it: this package, or the program itself.

    Only here does the package pickle what is a user's: it goes from his process to workers that he started himself.
    """
    with extra("cluster"):
        import cloudpickle

    module = sys.modules.get(getattr(function, "__module__", ""))
    if module is not None and not module.__name__.startswith("gradient_dd.") and module.__name__ != "__main__":
        cloudpickle.register_pickle_by_value(module)
