"""The programs that `torture` kills, and what each has kept: a sweep, an evaluation, a reproduction and a ranking."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from gradient_dd import LEARNERS, GradientDDError, Results, evaluate, rank, run
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.studies.cluster import dask_executor
from tests.adversary.checkpoints import REQUEST
from tests.adversary.environments import Walk
from tests.adversary.stores import STUDY, command

LONG = replace(STUDY, runs=60, episodes=3000)
Held = dict[Any, bytes]  # numbers by what they are of
Begin = Callable[[], object]
TWIN = replace(LEARNERS["td"], name="td_again", label="TD again")


@dataclass(frozen=True)
class Program:
    """A program that works in a folder and says when its work begins, and what the folder holds of its numbers."""

    run: Callable[[Path, Begin], object]
    held: Callable[[Path], Held]


@contextmanager
def announced(begin: Begin) -> Iterator[None]:
    """Call `begin` when lanes advance for the first time: after imports, and with all kernels."""
    advance, calls = LaneRun.advance, list[int]()

    def first(self: LaneRun, *given: Any) -> None:
        if not calls:
            calls.append(1)
            begin()
        advance(self, *given)

    with patch.object(LaneRun, "advance", first):
        yield


def when_free(call: Callable[..., object], *arguments: Any, **words: Any) -> None:
    """Make a call; again where a process that a killed program had started still holds the lock of its file."""
    for _ in range(20):
        try:
            call(*arguments, **words)
            return
        except GradientDDError as error:
            if "in use by another sweep" not in str(error):
                raise
            time.sleep(0.2)


def sweep(place: Path, begin: Begin = lambda: None) -> None:
    """Run the long study."""
    place.mkdir(exist_ok=True)
    with announced(begin):
        when_free(run, LONG, place / "results.db", workers=2)


def units_of(place: Path) -> Held:
    """Return the numbers of every (task, run) that is done; half a unit is marked as such."""
    results, units = Results(LONG, place / "results.db"), Held()
    for name in results.tasks:
        try:
            settings, last = results.errors(name)
            numbers = [last, results.errors(name, "mean_error")[1], results.curves(name, settings)[1]]
        except GradientDDError:
            return {}  # no file yet, or nothing in it
        for number in range(LONG.runs):
            parts = [array[:, number] for array in numbers]
            lacking = {bool(one) for array in parts for one in np.isnan(array).ravel()}
            if lacking != {True}:
                units[name, number] = b"half" if True in lacking else b"".join(array.tobytes() for array in parts)
    return units


def evaluation(place: Path, begin: Begin) -> None:
    """Evaluate a policy from forty rounds, each of which leaves a file, and write its weights."""
    place.mkdir(exist_ok=True)
    words, steps = REQUEST | {"steps": 4000, "round_steps": 100, "out": place / "log"}, list[int]()

    def first(step: Any) -> Any:
        if not steps:
            begin()
        steps.append(1)
        return step

    weights = evaluate(Walk(first), **words).w
    part = place / "part"
    part.write_bytes(weights.tobytes())
    part.replace(place / "weights")


def weights_of(place: Path) -> Held:
    """Return the weights, once the evaluation is done."""
    file = place / "weights"
    return {"weights": file.read_bytes()} if file.is_file() else {}


def reproduction(place: Path, begin: Begin) -> None:
    """Reproduce a figure at a small scale."""
    with announced(begin):
        when_free(command, "reproduce", "walk-constant", "--runs", "2", "--episodes", "20", "--out", place)


def ranking(place: Path, begin: Begin) -> None:
    """Rank a rule and write the report."""
    place.mkdir(exist_ok=True)
    with announced(begin):
        rank(TWIN, against=["td"], quick=True, workers=2).report(place / "report.html")


def tables_of(place: Path) -> Held:
    """Return the tables and verdicts beside a page, once the page, which is written last, is there; no times."""
    if not (place / "report.html").is_file():
        return {}
    timed = re.compile("cost|scale.json")
    files = [one for kind in ("*.csv", "*.json") for one in sorted(place.rglob(kind)) if not timed.search(one.name)]
    return {str(file.relative_to(place)): file.read_bytes() for file in files}


PROGRAMS = {
    "sweep": Program(sweep, units_of),
    "evaluation": Program(evaluation, weights_of),
    "reproduce a figure": Program(reproduction, tables_of),
    "rank": Program(ranking, tables_of),
}


# A Dask cluster ---------------------------------------------------------------------------------------------------


def workers_killed(folder: Path, kills: int, rng: Random) -> list[str]:
    """Kill the only worker of a Dask cluster at random moments of a sweep and start others; return what is wrong."""
    folder.mkdir()
    sweep(folder / "true")
    units = len(LONG.tasks) * LONG.runs
    moments, landed = set(rng.sample(range(1, units - 5), kills)), list[int]()
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
    workers, seen = [worker()], list[int]()

    def on_progress(state: object) -> None:
        seen.append(1)
        if len(seen) in moments:
            landed.append(len(seen))
            workers[-1].kill()
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
    words = f"{len(landed)} with units left, {len(wrong)} losses, {time.perf_counter() - begin:.0f} s"
    print(f"{kills} kills of the worker of a Dask cluster with {units} units: {words}", flush=True)
    return wrong


def wait_for(port: int) -> None:
    """Wait until something listens on a port of this machine, half a minute at most."""
    for _ in range(60):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.5)
