"""Record the numbers that users see, and compare two records: a change that should change nothing is checked with it.

    python tools/frozen.py record before.json --results results    bits of all learners, `analyse`, a reproduction
    python tools/frozen.py compare before.json after.json          what is equal, what differs, what only one has

A record is a flat JSON object. Bits are recorded as digests, verdicts and advice as they are. Run the first line with
the code before the change, the second one with the code after it.
"""

import argparse
import csv
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd import LEARNERS, BadRequestError, Learner, tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.schedules import constant, tapered

STEPS, SEED = 300, 5
TASKS = {
    "walk": lambda: tasks.random_walk(10),
    "walk-linear": lambda: tasks.random_walk(20, features="linear"),
    "boyan": lambda: tasks.boyan_chain(20),
    "baird": tasks.baird,
    "collision": tasks.collision,
    "rooms": tasks.rooms,
    "five-state": tasks.five_state_walk,
    "nineteen-state": tasks.nineteen_state_walk,
    "random-mdp": tasks.random_mdp,
    "dann-mdp": tasks.dann_mdp,
}
ADVISED = (["random_walk", "--episodes", "200"], ["boyan_chain", "--episodes", "200"], ["baird", "--steps", "5000"])


def digest(*arrays: Any) -> str:
    """Return a digest of the bits of arrays; -0 and 0 are one, and so are all NaN."""
    found = hashlib.sha256()
    for array in arrays:
        values = np.asarray(array, float) + 0.0
        found.update(np.where(np.isnan(values), np.nan, values).tobytes())
    return found.hexdigest()[:16]


def lane_bits() -> Iterator[tuple[str, str]]:
    """Yield the digests of errors and weights of every learner on every task, with and without a trace."""
    for task_name, make in TASKS.items():
        task = make()
        for name, rule in LEARNERS.items():
            for lam, mode, schedule in product((None, 0.9), (None, "T"), (constant, tapered(50))):
                more = {name: value for name, value in (("lam", lam), ("rho_mode", mode)) if value is not None}
                try:
                    settings = [rule.setting(alpha=alpha, **more) for alpha in (0.01, 0.1, 0.5)]
                    run = LaneRun(task, settings, Horizon(steps=STEPS, every=10), schedule, seed=SEED)
                except BadRequestError:  # a learner without a trace, or without a place of the ratio
                    continue
                run.advance()
                bits = digest(*vars(run.results()).values(), *run.weights())
                yield f"lanes/{task_name}/{name}/{lam}/{mode}/{schedule}", bits


def stream_bits() -> Iterator[tuple[str, str]]:
    """Yield the digests of the weights of every learner after a stream of its own."""
    rng = np.random.default_rng(SEED)
    x, reward, (pi, mu) = rng.normal(size=(STEPS + 1, 6)), rng.normal(size=STEPS), rng.uniform(0.2, 0.9, (2, STEPS))
    discount = np.where(np.arange(STEPS) % 40 == 39, 0.0, 0.9)
    for name in LEARNERS:
        agent = Learner(name, n_features=6, alpha=0.01)
        agent.update_many(x[:-1], reward, discount, x[1:], rho=pi / mu, pi=pi, mu=mu)
        yield f"stream/{name}", digest(agent.w, agent.eta)


def advice() -> Iterator[tuple[str, Any]]:
    """Yield what `analyse --json` says of some tasks, value by value, without its seconds."""
    for words in ADVISED:
        command = [sys.executable, "-m", "gradient_dd.cli", "analyse", *words, "--json"]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        yield from ((key, value) for key, value in flat(f"analyse/{words[0]}", found) if "seconds" not in key)


def reproduction(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the claims and the digest of every column of every table that `reproduce` left in a folder."""
    yield from flat("claims", json.loads((folder / "claims.json").read_text(encoding="utf-8")))
    for file in sorted((folder / "tables").glob("*.csv")):
        if file.stem == "times":
            continue
        with file.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
        for column in rows[0] if rows else ():
            text = "\n".join(row[column] for row in rows)
            yield f"tables/{file.stem}/{column}", hashlib.sha256(text.encode()).hexdigest()[:16]


def flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested data with their paths."""
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flat(f"{name}/{key}", inner)
    else:
        yield name, value


def compare(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Print, by part, how many entries are equal, differ, or stand in one record alone; return 1 if any differs."""
    counts = Counter[tuple[str, str]]()
    for key in sorted(before.keys() | after.keys()):
        here, there = key in before, key in after
        said = "only before" if not there else "only after" if not here else "equal"
        if here and there and before[key] != after[key]:
            said = "differ"
            print(f"{key}: {before[key]} -> {after[key]}")
        counts[key.partition("/")[0], said] += 1
    for (part, said), count in sorted(counts.items()):
        print(f"{part:10} {said:12} {count:7,}")
    return int(any(said == "differ" for _, said in counts))


def main() -> int:
    """Record or compare, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    record = actions.add_parser("record")
    record.add_argument("out", type=Path)
    record.add_argument("--results", type=Path, help="a folder that `gradient-dd reproduce` wrote")
    both = actions.add_parser("compare")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.action == "compare":
        return compare(*(json.loads(file.read_text(encoding="utf-8")) for file in (given.before, given.after)))
    found = dict([*lane_bits(), *stream_bits(), *advice()])
    found |= dict(reproduction(given.results)) if given.results else {}
    given.out.write_text(json.dumps(found, indent=0), encoding="utf-8")
    print(f"{len(found):,} entries")
    return 0


if __name__ == "__main__":
    sys.exit(main())
