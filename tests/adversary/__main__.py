"""`python -m tests.adversary`: thousands of odd inputs with a fresh seed, in processes that may crash.

Prints the seed, how the inputs ended, and for each defect its smallest input. Exit code 1 if there is any.
"""

import argparse
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import SystemRandom
from typing import Any

LIMIT = 3 * 2**30  # bytes of data a process may have; more is a crash
LARGEST = 10**9  # bytes that a process may need at its peak
PIECE = 500  # inputs of one process
PATIENCE = 200  # seconds without an answer after which a process is ended


def work(seed: int, first: int, last: int) -> None:
    """Run inputs and write a line for each."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is printed is no answer
    from tests.adversary.plan import run_input

    for number in range(first, last):
        outcome, finding = run_input(seed, number)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        facts = {"outcome": outcome, "peak": peak, **(finding.__dict__ if finding else {})}
        print(json.dumps(facts), file=answers, flush=True)


def lines_of(process: "subprocess.Popen[str]") -> Iterator[str]:
    """Yield the lines of a process as they come; end it if it is silent for too long."""
    assert process.stdout is not None
    while select.select([process.stdout], [], [], PATIENCE)[0]:
        line = process.stdout.readline()
        if not line:
            return
        yield line
    process.kill()


def answers_of(seed: int, numbers: range) -> Iterator[dict[str, Any]]:
    """Yield an answer for each input; one that ends its process is answered for, and the next process goes on."""
    number = numbers.start
    while number < numbers.stop:
        words = ["-m", "tests.adversary", "--seed", str(seed), "--worker", str(number), str(numbers.stop)]
        with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, bufsize=1) as process:
            for line in lines_of(process):
                yield json.loads(line)
                number += 1
        if number < numbers.stop:
            from tests.adversary.plan import attack_of

            kind, name = f"ended its process with {process.returncode}", attack_of(seed, number)
            found = {"attack": name, "number": number, "kind": kind, "words": "?", "detail": ""}
            yield {"outcome": "broken", "peak": 0} | found
            number += 1


def all_answers(seed: int, count: int, workers: int) -> Iterator[dict[str, Any]]:
    """Yield the answers to all inputs, from several processes at a time; each works through pieces of the inputs."""
    pieces = [range(begin, min(begin + PIECE, count)) for begin in range(0, count, PIECE)]
    with ThreadPoolExecutor(workers) as pool:
        for answers in pool.map(lambda piece: list(answers_of(seed, piece)), pieces):
            yield from answers


def main() -> int:
    """Run the inputs and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--count", type=int, default=25_000, help="how many inputs")
    parser.add_argument("--seed", type=int, help="of the inputs; default a fresh one")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--only", type=int, help="run one input, and show its traceback if it has one")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    seed = SystemRandom().randrange(10**9) if options.seed is None else options.seed
    if options.worker:
        work(seed, *options.worker)
        return 0
    if options.only is not None:
        from tests.adversary.plan import run_input

        print(run_input(seed, options.only))
        return 0
    print(f"seed {seed}, {options.count:,} inputs", flush=True)
    begin, ended, peak = time.perf_counter(), Counter[str](), 0
    defects: dict[tuple[str, str], dict[str, Any]] = {}
    for answer in all_answers(seed, options.count, options.workers):
        ended[answer["outcome"]] += 1
        peak = max(peak, answer["peak"])
        if answer["outcome"] == "broken":
            key = answer["attack"], answer["kind"]
            if key not in defects or len(answer["words"]) < len(defects[key]["words"]):
                defects[key] = answer
    seconds = time.perf_counter() - begin
    print(
        f"{ended['refused']:,} refused, {ended['done']:,} done, {ended['broken']:,} broke the rule, in {seconds:.0f} s"
    )
    print(f"at most {peak / 1e6:.0f} MB")
    for (attack, kind), answer in sorted(defects.items()):
        print(f"\n{attack}: {kind}\n  {answer['words'][:500]}\n  {answer['detail']}")
        print(f"  again: --seed {seed} --only {answer['number']}")
    return 1 if defects or peak > LARGEST else 0


if __name__ == "__main__":
    sys.exit(main())
