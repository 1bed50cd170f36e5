"""`python -m adversary.torture`: sweeps killed at random moments, and results files with a flipped byte.

    kill   what was committed is kept, whole, and the finished file has the same numbers as one that was never killed
    flip   `export --per-run`, `export`, `Results.errors`, `curves` and `frame` give the true numbers, or our error

Prints the seed and the counts. Exit code 1 if a number was lost or a wrong one read.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random, SystemRandom

import numpy as np

from gradient_dd.errors import GradientDDError
from gradient_dd.studies.results import Results
from gradient_dd.studies.sweep import run
from tests.adversary.stores import READERS, STUDY, scratch, whole_store

LONG = replace(STUDY, runs=60, episodes=3000)
Units = dict[tuple[str, int], bytes]  # the numbers of each unit, a task and a run


def units_of(file: Path) -> Units:
    """Return what a file holds of the long study; a unit that is not done is left out, half a one is marked as such."""
    results, units = Results(LONG, file), Units()
    for name in results.tasks:
        try:
            settings, last = results.errors(name)
            numbers = [last, results.errors(name, "area")[1], results.curves(name, settings)]
        except GradientDDError:
            return {}  # no file yet, or nothing in it
        for number in range(LONG.runs):
            parts = [array[:, number] for array in numbers]
            lacking = {bool(one) for array in parts for one in np.isnan(array).ravel()}
            if lacking != {True}:
                units[name, number] = b"half" if True in lacking else b"".join(array.tobytes() for array in parts)
    return units


def timed(file: Path) -> float:
    """Run the long study, and return how long it took."""
    begin = time.perf_counter()
    run(LONG, file, workers=2)
    return time.perf_counter() - begin


def kill_sweeps(kills: int, rng: Random) -> list[str]:
    """Kill sweeps at random moments, each on what the one before left; return what was lost or is wrong."""
    folder = scratch()
    run(replace(LONG, runs=1), folder / "warm.db", workers=2)  # compiles
    length, idle = timed(folder / "true.db"), timed(folder / "true.db")
    truth, file = units_of(folder / "true.db"), folder / "killed.db"
    wrong, midway, kept = [], 0, 0
    for number in range(kills):
        child = os.fork()
        if child == 0:
            run(LONG, file, workers=2)
            os._exit(0)
        time.sleep(rng.uniform(0, idle + length / 6))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        now = units_of(file)
        if len(now) < kept or not now.items() <= truth.items():
            wrong.append(f"kill {number}: {kept} units before, {len(now)} now, or other numbers")
        midway += kept < len(now) < len(truth)
        kept = len(now)
        if kept == len(truth):  # begin again
            wrong += complete(file, truth)
            kept = 0
    wrong += complete(file, truth)
    print(f"{kills} kills, {midway} of them in the middle of work, {len(wrong)} losses")
    return wrong


def complete(file: Path, truth: Units) -> list[str]:
    """Finish a killed sweep, compare all its numbers, and take the file away."""
    run(LONG, file, workers=2)
    wrong = [] if units_of(file) == truth else ["the finished file differs from one that was never killed"]
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()
    return wrong


def flip_bytes(flips: int, rng: Random) -> list[str]:
    """Flip one bit of a results file at a time and read it in every way; return the wrong readings."""
    whole, truth = whole_store()
    file, wrong, ended = scratch() / "flipped.db", [], Counter[str]()
    for _ in range(flips):
        place, bit = rng.randrange(len(whole)), rng.randrange(8)
        file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
        seen = set()
        for name, read in READERS.items():
            try:
                with redirect_stdout(StringIO()):
                    equal = read(file) == truth[name]
                seen.add("equal" if equal else "wrong")
                wrong += [] if equal else [f"bit {bit} of byte {place}: {name} read other numbers"]
            except GradientDDError:
                seen.add("refused")
            except Exception as error:
                seen.add("wrong")
                wrong.append(f"bit {bit} of byte {place}: {name} raised {type(error).__name__}: {error}")
        ended["wrong" if "wrong" in seen else "refused" if "refused" in seen else "harmless"] += 1
        for path in file.parent.glob(f"{file.name}*"):
            path.unlink()
    counts = f"{ended['refused']} refused, {ended['harmless']} harmless, {ended['wrong']} wrong"
    print(f"{flips} flips in {len(whole):,} bytes: {counts}")
    return wrong


def main() -> int:
    """Kill and flip, and report."""
    parser = argparse.ArgumentParser(prog="python -m adversary.torture")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = SystemRandom().randrange(10**9) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    rng = Random(seed)
    wrong = flip_bytes(options.flips, rng)
    wrong += kill_sweeps(options.kills, rng) if options.kills else []
    for line in wrong[:20]:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
