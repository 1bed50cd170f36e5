"""The programs that `torture` kills, and what each has kept: a sweep, an evaluation and two experiments."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd import GradientDDError, Results, evaluate, run
from gradient_dd.studies.cluster import dask_executor
from tests.adversary.checkpoints import REQUEST
from tests.adversary.environments import Walk
from tests.adversary.stores import STUDY, command

LONG = replace(STUDY, runs=60, episodes=3000)
Held = dict[Any, bytes]  # numbers by what they are of


@dataclass(frozen=True)
class Program:
    """A program that works in a folder, what the folder holds of its numbers, and after which share it is killed."""

    run: Callable[[Path], object]
    held: Callable[[Path], Held]
    share: float  # of the time that the whole work takes, within which a kill falls


def when_free(call: Callable[..., object], *arguments: Any, **words: Any) -> None:
    """Make a call; again where a process that a killed program had started still holds the lock of its file."""
    for _ in range(20):
        try:
            call(*arguments, **words)
            return
        except GradientDDError as error:
            if "free for a sweep" not in str(error):
                raise
            time.sleep(0.2)


def sweep(place: Path) -> None:
    """Run the long study."""
    place.mkdir(exist_ok=True)
    when_free(run, LONG, place / "results.db", workers=2)


def units_of(place: Path) -> Held:
    """Return the numbers of every (task, run) that is done; half a unit is marked as such."""
    results, units = Results(LONG, place / "results.db"), Held()
    for name in results.tasks:
        try:
            settings, last = results.errors(name)
            numbers = [last, results.errors(name, "mean_error")[1], results.curves(name, settings)]
        except GradientDDError:
            return {}  # no file yet, or nothing in it
        for number in range(LONG.runs):
            parts = [array[:, number] for array in numbers]
            lacking = {bool(one) for array in parts for one in np.isnan(array).ravel()}
            if lacking != {True}:
                units[name, number] = b"half" if True in lacking else b"".join(array.tobytes() for array in parts)
    return units


def evaluation(place: Path) -> None:
    """Evaluate a policy from forty rounds, each of which leaves a file, and write its weights."""
    place.mkdir(exist_ok=True)
    words = REQUEST | {"steps": 4000, "round_steps": 100, "out": place / "log"}
    weights = evaluate(Walk(), **words).w
    part = place / "part"
    part.write_bytes(weights.tobytes())
    part.replace(place / "weights")


def weights_of(place: Path) -> Held:
    """Return the weights, once the evaluation is done."""
    file = place / "weights"
    return {"weights": file.read_bytes()} if file.is_file() else {}


def experiment(name: str) -> Callable[[Path], None]:
    """Return a program that makes one experiment at a small scale."""
    return lambda place: when_free(command, "reproduce", name, "--runs", "2", "--episodes", "20", "--out", place)


def tables_of(place: Path) -> Held:
    """Return the tables and verdicts of an experiment, once its page, which is written last, is there; no times."""
    if not (place / "report.html").is_file():
        return {}
    files = [file for kind in ("*.csv", "*.json") for file in sorted(place.rglob(kind)) if "cost" not in file.name]
    return {str(file.relative_to(place)): file.read_bytes() for file in files}


PROGRAMS = {
    "sweep": Program(sweep, units_of, 1.0),
    "evaluation": Program(evaluation, weights_of, 1.0),
    "reproduce a figure": Program(experiment("walk-constant"), tables_of, 1 / 3),
}


# A Dask cluster ---------------------------------------------------------------------------------------------------


def worker_killed(folder: Path) -> list[str]:
    """Kill the only worker of a Dask cluster in the middle of a sweep and start another; return what is wrong."""
    folder.mkdir()
    sweep(folder / "true")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, quiet = f"tcp://127.0.0.1:{port}", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask"]

    def worker() -> "subprocess.Popen[bytes]":
        flags = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
        return subprocess.Popen([*dask, "worker", address, *flags], **quiet)

    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"], **quiet
    )
    workers, seen = [worker()], 0

    def on_progress(state: object) -> None:
        nonlocal seen
        seen += 1
        if seen == 5:
            workers[0].kill()
            workers.append(worker())

    begin = time.perf_counter()
    try:
        wait_for(port)
        with dask_executor(address) as executor:
            place = folder / "killed"
            place.mkdir()
            run(LONG, place / "results.db", executor=executor, workers=1, on_progress=on_progress)
    except GradientDDError as error:
        return [f"dask: {error}"]
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
    wrong = [] if units_of(folder / "killed") == units_of(folder / "true") else ["dask: other numbers"]
    print(f"a Dask worker killed after {seen and 5} units: {len(wrong)} losses, {time.perf_counter() - begin:.0f} s")
    return wrong


def wait_for(port: int) -> None:
    """Wait until something listens on a port of this machine, half a minute at most."""
    for _ in range(60):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.5)
