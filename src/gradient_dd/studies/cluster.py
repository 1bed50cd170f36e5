"""Sweeps on a Dask cluster, through the same `concurrent.futures.Executor` interface as threads.

Workers return results, and only this process writes them. Dask reruns the units of a dead worker. User-defined rules,
tasks and schedules are sent to the workers.
"""

import asyncio
import logging
import re
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any

from gradient_dd.errors import GradientDDError, Unquoted, bad_request, extra

ADDRESS = re.compile(r"(?:(?:tcp|tls)://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")
PATIENCE = 10  # seconds to wait for a scheduler


class ClusterError(GradientDDError):
    """The connection to the cluster was lost; committed results are kept."""


class ClusterExecutor(Executor):
    """A Dask executor that also sends modules that workers cannot import."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        """Submit `function` with its unit and the modules of the unit's rules and schedule."""
        for unit in arguments:
            for rule in {setting.rule for setting in unit.settings}:
                parts = rule.step, rule.expected, *(one.step for one in rule.traces), *(p.grid for p in rule.parameters)
                for own in filter(callable, parts):
                    send_by_value(own)
            send_by_value(unit.schedule.function)
        return self.submit_pickled(function, *arguments, **keywords)

    def submit_pickled(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        """Submit a pickled call. Dask would try plain pickle first, which names modules instead of sending them."""
        import cloudpickle

        return self._executor.submit(call_pickled, cloudpickle.dumps((function, arguments, keywords)))


def call_pickled(call: bytes) -> Any:
    """Run a pickled call on a worker, and return its result."""
    import cloudpickle

    function, arguments, keywords = cloudpickle.loads(call)
    return function(*arguments, **keywords)


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Yield an executor on the Dask scheduler at `address`, or on a cluster of this machine's cores for "local"."""
    with extra("cluster"):
        import cloudpickle  # noqa: F401
        from distributed import KilledWorker, LocalCluster

    for name in list(logging.root.manager.loggerDict):  # Dask and Tornado also print errors that they raise here
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with ExitStack() as opened:
        if address == "local":
            place: Any = LocalCluster(threads_per_worker=1, dashboard_address=None)
            opened.callback(place.close)
        else:
            place = address
            check_address(address)
        client = connected(place)
        opened.callback(client.close)
        try:
            yield ClusterExecutor(client.get_executor(pure=False, retries=3))
        except (CancelledError, asyncio.CancelledError, KilledWorker, OSError) as error:
            if client.status == "running" and isinstance(error, OSError):
                raise
            raise ClusterError(
                f"Lost the connection to the Dask cluster at {address} ({type(error).__name__}). "
                "Committed results are kept; run the same command to resume."
            ) from None


def check_address(address: str) -> None:
    """Raise unless a server accepts connections at an address; this check is faster than waiting for Dask."""
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
        """A client that is not closed when garbage-collected if it never connected: closing would fail after 20 s."""

        def __del__(self) -> None:
            if self.status == "running":
                super().__del__()

    answer: Future[Any] = Future()

    def connect() -> None:
        try:
            answer.set_result(QuietClient(place, timeout=f"{PATIENCE}s", set_as_default=False))
        except Exception as error:  # e.g. a TypeError without TLS certificates, or an AssertionError
            answer.set_exception(error)

    Thread(target=connect, daemon=True).start()  # Dask waits forever for a server that connects but never answers
    try:
        return answer.result(timeout=PATIENCE + 5)
    except Exception as error:
        raise no_answer(str(place), error) from None


def no_answer(address: str, error: Exception) -> Exception:
    """Return the error for an address without a Dask scheduler."""
    got = Unquoted(f"{address} ({str(error) or f'no answer in {PATIENCE} seconds'})")
    return bad_request("'--dask'", "be the address of a Dask scheduler that answers, or 'local'", got)


def send_by_value(function: Callable[..., Any]) -> None:
    """Send the module of a function to the workers, unless it belongs to this package or is the main program.

    Only this function pickles user code, which goes from the user's process to the user's own workers.
    """
    import cloudpickle

    module = sys.modules.get(getattr(function, "__module__", ""))
    if module is not None and not module.__name__.startswith("gradient_dd.") and module.__name__ != "__main__":
        cloudpickle.register_pickle_by_value(module)
