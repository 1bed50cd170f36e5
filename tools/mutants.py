"""Plant small errors in the source, one at a time, and count how many the tests catch, package by package.

    python -m tools.mutants --count 400 --seed 1              a sample, as many from each package
    python -m tools.mutants --package studies --count 60      a sample of one package
    python -m tools.mutants --only studies/intervals.py --tests tests/studies      every mutant of one file

A mutant is one change of the source (tools/mutations.py). All tests first run once without a change, which tells the
lines that each test executes and the time that it takes (tools/recorder.py); the record is kept in .pytest_cache until
the source or a test changes. A test that fails then is left out, by name. A mutant gets the tests that execute its
line, quick ones first, until one fails; a line that no test executes is a survivor at once. A mutant that survives
shows a missing test, or is equivalent: it does the same as the original. Mutants that were looked at and found
equivalent are listed in tools/equivalent_mutants.txt, each below a comment with the reason, and do not count.
"""

import argparse
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterator

from tools import mutations
from tools.mutant_runs import Job, Outcome, Workers
from tools.mutations import ROOT, Mutant, mutants_of
from tools.watchers import Record, recorded

EQUIVALENT = ROOT / "tools" / "equivalent_mutants.txt"
EVERY = 20  # mutants between two lines of progress


def known_equivalents() -> set[str]:
    """Return the names of the mutants that are known to be equivalent."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def sampled(every: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return a sample with as many mutants from each package, as far as a package has them; in a random order."""
    rng, packages = random.Random(seed), defaultdict(list)
    for mutant in every:
        packages[mutant.package].append(mutant)
    for mutants in packages.values():
        rng.shuffle(mutants)
    turns = [
        mutants[turn]
        for turn in range(max(map(len, packages.values())))
        for mutants in packages.values()
        if turn < len(mutants)
    ]
    chosen = turns[:count]
    rng.shuffle(chosen)
    return chosen


def judged(chosen: list[Mutant], record: Record, workers: Workers) -> Iterator[tuple[Mutant, Outcome]]:
    """Yield every mutant with its outcome, as they come: first those whose line no test executes."""
    watched = {mutant: record.watchers(mutant) for mutant in chosen}
    yield from ((mutant, Outcome()) for mutant, tests in watched.items() if not tests)
    jobs = [
        Job(tests, mutant.file, mutations.source_of(mutant), record.limits(tests, mutant))
        for mutant, tests in watched.items()
        if tests
    ]
    mutants = [mutant for mutant, tests in watched.items() if tests]
    for number, outcome in workers.outcomes(jobs):
        yield mutants[number], outcome


def verified(chosen: list[Mutant], record: Record, workers: Workers) -> dict[Mutant, Outcome]:
    """Return the outcome of every mutant; prints survivors and progress.

    The tests that caught mutants run once more without a change. Should one fail, its mutants are judged without it.
    """
    found: dict[Mutant, Outcome] = {}
    again, begin = chosen, time.monotonic()
    while again:
        for mutant, outcome in judged(again, record, workers):
            found[mutant] = outcome
            if not outcome.caught:
                words = "survived" if outcome.ran else "not executed by any test"
                print(f"{words}, line {mutant.line}: {mutant.name}", flush=True)
            if len(found) % EVERY == 0 and len(again) == len(chosen):
                left = (time.monotonic() - begin) / len(found) * (len(chosen) - len(found))
                caught = sum(one.caught for one in found.values())
                print(f"{len(found)} of {len(chosen)} tried, {caught} caught, {left / 60:.0f} min left", flush=True)
        spurious = record.leave_out_failing(sorted({one.test for one in found.values() if one.test}), workers)
        again = [mutant for mutant, outcome in found.items() if outcome.test in spurious]
    return found


def print_scores(found: dict[Mutant, Outcome]) -> None:
    """Print how many mutants of each package were caught, and of all."""
    packages: dict[str, list[bool]] = defaultdict(list)
    for mutant, outcome in found.items():
        packages[mutant.package].append(outcome.caught)
        packages["~all"].append(outcome.caught)
    print("\npackage       caught   of")
    for package, caught in sorted(packages.items()):
        print(f"{package.lstrip('~'):12} {sum(caught):7} {len(caught):4}  {sum(caught) / len(caught):.0%}")


def main() -> None:
    """Try a sample of mutants and print the survivors and the score of every package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400, help="how many mutants, as many from each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", help="mutants of one package only")
    parser.add_argument("--only", metavar="FILE", help="all mutants of one file, e.g. studies/intervals.py")
    parser.add_argument("--tests", nargs="+", default=["tests"], metavar="PLACE", help="these folders or files alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    files = [mutations.SOURCE / given.only] if given.only else sorted(mutations.SOURCE.rglob("*.py"))
    known = known_equivalents()
    every = [mutant for path in files for mutant in mutants_of(path) if mutant.name not in known]
    every = [mutant for mutant in every if given.package in (None, mutant.package)]
    if not every:
        raise SystemExit("There is nothing to change there.")
    chosen = every if given.only else sampled(every, given.count, given.seed)
    begin = time.monotonic()
    with Workers(given.workers) as workers:
        record = recorded(workers, given.tests)
        print(f"{len(chosen)} of {len(every):,} mutants, seed {given.seed}", flush=True)
        print_scores(verified(chosen, record, workers))
    for test in record.left_out:
        print(f"left out, as it fails without any change: {test}")
    print(f"{(time.monotonic() - begin) / 60:.0f} min")


if __name__ == "__main__":
    main()
