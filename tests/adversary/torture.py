"""`python -m tests.adversary.torture`: programs killed at random moments, and files with a flipped byte.

    flip   a results file and a saved learner give the true numbers, or our error
    kill   a sweep, an evaluation, `reproduce walk-constant` and `rank`: what was committed is kept, whole, and the
           finished work has the same numbers as work that was never killed
    dask   a sweep on a Dask cluster whose only worker is killed again and again has the same numbers

The clock of a kill starts when the work starts, after imports and kernels. Prints the seed, the counts, how many kills
hit work that was under way, and the time. Exit code 1 if a number was lost or a wrong one read.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from random import Random, SystemRandom
from traceback import print_exc
from typing import Any, NamedTuple

import gradient_dd as gdd
from gradient_dd import GradientDDError
from tests.adversary.checkpoints import saved_learner
from tests.adversary.killed_programs import PROGRAMS, Program, workers_killed
from tests.adversary.stores import READERS, scratch, whole_store

KILLS = {"sweep": 110, "evaluation": 40, "reproduce a figure": 20, "rank": 20}
WORKERS = 10  # killed in the sweep on a Dask cluster; 200 kills in all


# Flips ------------------------------------------------------------------------------------------------------------


class Flipped(NamedTuple):
    """A kind of file: its bytes, the ways to read it, and its share of all flips."""

    content: Callable[[], bytes]
    readers: dict[str, Callable[[Path], Any]]
    share: float


def saved_weights(file: Path) -> list[bytes]:
    """Return the weights of a saved learner."""
    agent = gdd.Learner.load(file)
    return [agent.w.tobytes(), agent.eta.tobytes()]


FLIPPED = {
    "results file": Flipped(lambda: whole_store()[0], READERS, 0.7),
    "learner": Flipped(lambda: saved_learner("Learner"), {"Learner.load": saved_weights}, 0.3),
}


def readings(kind: str, content: bytes) -> dict[str, Any]:
    """Return what every way of reading a file of some content gives; a refusal is None, another error its words."""
    file, found = scratch() / "flipped", dict[str, Any]()
    for name, read in FLIPPED[kind].readers.items():
        for path in file.parent.glob(f"{file.name}*"):
            path.unlink()
        file.write_bytes(content)
        try:
            with redirect_stdout(StringIO()):
                found[name] = repr(read(file))
        except GradientDDError:
            found[name] = None
        except Exception as error:
            found[name] = f"raised {type(error).__name__}: {error}"
    return found


def flip_bytes(kind: str, flips: int, rng: Random) -> list[str]:
    """Flip one bit of a file at a time and read it in every way; return the wrong readings."""
    begin, wrong, ended = time.perf_counter(), list[str](), Counter[str]()
    whole = FLIPPED[kind].content()
    truth = readings(kind, whole)
    for _ in range(flips):
        place, bit = rng.randrange(len(whole)), rng.randrange(8)
        content = whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :]
        found = readings(kind, content)
        bad = [name for name in truth if found.get(name, "") not in (None, truth[name])]
        wrong += [f"{kind}, bit {bit} of byte {place}: {name} {found.get(name, found)}"[:200] for name in bad]
        ended["wrong" if bad else "refused" if None in found.values() else "harmless"] += 1
    counts = f"{ended['refused']} refused, {ended['harmless']} harmless, {ended['wrong']} wrong"
    seconds = time.perf_counter() - begin
    print(f"{flips} flips in the {len(whole):,} bytes of a {kind}: {counts}, {seconds:.0f} s", flush=True)
    return wrong


# Kills ------------------------------------------------------------------------------------------------------------


def kill_program(name: str, kills: int, rng: Random) -> list[str]:
    """Kill a program at random moments, each time on what the one before left; return what was lost or is wrong."""
    program, folder = PROGRAMS[name], scratch() / name.replace(" ", "-")
    folder.mkdir()
    run_to_the_end(program, folder / "warm")  # compiles
    begin, length = time.perf_counter(), run_to_the_end(program, folder / "true")
    truth, place = program.held(folder / "true"), folder / "killed-0"
    wrong, landed, midway, finished, kept = list[str](), 0, 0, 0, 0
    for number in range(kills):
        child = start(program, place)
        time.sleep(rng.uniform(0, length))
        landed += os.waitpid(child, os.WNOHANG) == (0, 0)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        now = program.held(place)
        if len(now) < kept or not now.items() <= truth.items():
            wrong.append(f"{name}, kill {number}: {kept} numbers before, {len(now)} now, or other ones")
        midway += kept < len(now) < len(truth)
        kept = len(now)
        if kept == len(truth) or number == kills - 1:
            run_to_the_end(program, place)
            wrong += [] if program.held(place) == truth else [f"{name}: finished with other numbers after {number + 1}"]
            finished, kept = finished + 1, 0
            place = folder / f"killed-{finished}"
    words = f"{landed} hit work under way, {midway} left some numbers more, finished {finished} times"
    print(f"{kills} kills of {name}: {words}, {len(wrong)} losses, {time.perf_counter() - begin:.0f} s", flush=True)
    return wrong if truth else [f"{name}: a run that was never killed left no numbers"]


def start(program: Program, place: Path) -> int:
    """Start a program in a process of its own, and return when its work begins; what it prints is dropped."""
    begun, begins = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                program.run(place, lambda: os.write(begins, b"."))
        except BaseException:
            print_exc()
        os._exit(0)
    os.close(begins)
    with os.fdopen(begun, "rb") as pipe:
        pipe.read(1)
    return child


def run_to_the_end(program: Program, place: Path) -> float:
    """Run a program in a process of its own and wait for its end; return the seconds that its work took."""
    child, begin = start(program, place), time.perf_counter()
    os.waitpid(child, 0)
    return time.perf_counter() - begin


def main() -> int:
    """Kill and flip, and report."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.adversary.torture", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=sum(KILLS.values()) + WORKERS, help="how many, over all programs")
    parser.add_argument("--flips", type=int, default=500, help="how many, over all kinds of files")
    parser.add_argument("--only", choices=[*FLIPPED, *KILLS, "dask"], help="one kind alone")
    parser.add_argument("--seed", type=int, help="default a fresh one")
    options = parser.parse_args()
    seed = SystemRandom().randrange(10**9) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    rng, begin, wrong = Random(seed), time.perf_counter(), list[str]()
    for name, flipped in FLIPPED.items():
        if options.only in (None, name):
            wrong += flip_bytes(name, round(options.flips * flipped.share), rng)
    for name, count in KILLS.items():
        kills = round(count * options.kills / (sum(KILLS.values()) + WORKERS))
        if options.only in (None, name) and kills:
            wrong += kill_program(name, kills, rng)
    if options.only in (None, "dask"):
        wrong += workers_killed(scratch() / "dask", max(1, options.kills // (200 // WORKERS)), rng)
    for line in wrong[:20]:
        print(f"  {line}")
    print(f"{len(wrong)} lost or wrong, in {time.perf_counter() - begin:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
