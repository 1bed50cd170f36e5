"""Recompute the shipped standings: every registered learner on every problem of both suites.

    python -m trials.make_standings [--work standings.jsonl] [--copy] [--double] [--learner NAME ...]

Every finished (learner, problem) is appended to the work file, so the program can be stopped and continued. An entry
whose fingerprint has changed is computed again. When nothing is missing, the standings are written into the package.

With `--copy` the random suite is drawn from other seeds and with `--double` the search has twice the budget; both are
written to the work file only, for `python -m trials.predictivity`.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.ranking.standings import ARRAYS, BUDGETS, FILE, Entries, Entry, entry_key, make_entry
from gradient_dd.ranking.suites import FAMILIES, SUITES, Family, Problem, RandomTask, random_problems
from gradient_dd.studies.search import FULL
from gradient_dd.tasks import Task
from tools.programs import parser_of

COPY = 1_000_000  # the first seed of the copy of the random suite
UNSTABLE = -0.02  # real part of an eigenvalue of A below which TD is unstable, relative to the largest one
EACH = 8  # problems of a family
DOUBLE = replace(FULL, coarse=480, refined=640, finals=((64, 20), (24, 44), (8, 92)))


def acceptable(family: Family, task: Task) -> bool:
    """Return whether a task meets the condition of its family."""
    weight = task.visits[:, None] * task.behaviour[task.states]
    low, high = family.ratios
    values = np.linalg.eigvals(task.moments.A)
    is_stable = values.real.min() > UNSTABLE * np.abs(values).max()
    return low <= (weight * task.rho[task.states] ** 2).sum() <= high and is_stable == family.stable


def draw_seeds(family: Family, first: int, how_many: int = EACH) -> Iterator[int]:
    """Yield the first seeds, from `first` on, whose tasks meet the condition of a family."""
    seeds = count(first)
    for place in range(how_many):
        for seed in seeds:
            try:
                accepted = acceptable(family, RandomTask(family, place, seed).build())
            except BadRequestError:  # some state cannot be reached
                continue
            if accepted:
                yield seed
                break


def write_standings(entries: Entries, path: Path = FILE) -> None:
    """Write the entries of some learners, each on the same problems."""
    learners, problems = (list(dict.fromkeys(pair[place] for pair in entries)) for place in (0, 1))
    ordered = [[entries[learner, problem] for problem in problems] for learner in learners]
    header = {
        "learners": learners,
        "problems": problems,
        "keys": [[one.key for one in row] for row in ordered],
        "edges": [[list(one.edges) for one in row] for row in ordered],
    }
    names = list(dict.fromkeys(name for one in entries.values() for name in one.setting))
    settings = np.array([[[one.setting.get(name, np.nan) for name in names] for one in row] for row in ordered])
    arrays: dict[str, Any] = {
        name: np.array([[getattr(one, name) for one in row] for row in ordered]) for name in ARRAYS
    }
    arrays["errors"] = np.moveaxis(arrays["errors"][..., None].view(np.uint8), -1, 0)  # bytes by place: 16 % less
    np.savez_compressed(path, header=json.dumps(header | {"parameters": names}), settings=settings, **arrays)


def as_line(learner: str, problem: str, one: Entry) -> str:
    """Return an entry as a line of the work file."""
    arrays = {"errors": one.errors.astype(float).tolist(), "curve": one.curve.astype(float).tolist()}
    return json.dumps({"learner": learner, "problem": problem} | one._asdict() | arrays)


def read_work(path: Path) -> dict[tuple[str, str], Entry]:
    """Return the entries of a work file by learner and problem; the last one if there are several."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        facts: dict[str, Any] = json.loads(line)
        where = facts.pop("learner"), facts.pop("problem")
        facts |= {"errors": np.array(facts["errors"], np.float32), "curve": np.array(facts["curve"], np.float16)}
        found[where] = Entry(**facts | {"edges": tuple(facts["edges"])})
    return found


def missing(
    done: dict[tuple[str, str], Entry], rules: list[Rule], problems: tuple[Problem, ...]
) -> Iterator[tuple[Rule, Problem]]:
    """Yield the missing entries of the work file, one problem after another."""
    for problem in problems:
        for rule in rules:
            before = done.get((rule.name, problem.name))
            if before is None or before.key != entry_key(rule, problem):
                yield rule, problem


def main(words: list[str] | None = None) -> None:
    """Compute missing entries, then write the standings."""
    parser = parser_of(__doc__)
    parser.add_argument("--work", type=Path, default=Path("standings.jsonl"), help="the work file")
    parser.add_argument("--copy", action="store_true", help="draw the random suite from other seeds")
    parser.add_argument("--double", action="store_true", help="search with twice the budget")
    parser.add_argument("--learner", action="append", choices=LEARNERS, help="only these learners")
    parser.add_argument("--problem", action="append", help="only these problems")
    chosen = parser.parse_args(words)
    problems = SUITES["all"]
    if chosen.copy:
        problems = random_problems({name: tuple(draw_seeds(one, COPY)) for name, one in FAMILIES.items()})
    if chosen.double:
        BUDGETS[False] = DOUBLE
    problems = tuple(one for one in problems if not chosen.problem or one.name in chosen.problem)
    rules = [LEARNERS[name] for name in chosen.learner or LEARNERS]
    done = read_work(chosen.work)
    todo = list(missing(done, rules, problems))
    spent = process_time()
    with chosen.work.open("a", encoding="utf-8") as file:
        for number, (rule, problem) in enumerate(todo, start=1):
            one = done[rule.name, problem.name] = make_entry(rule, problem)
            file.write(as_line(rule.name, problem.name, one) + "\n")
            file.flush()
            took = f"{process_time() - spent:.0f} s of processor time"
            print(f"{number}/{len(todo)} {rule.name} on {problem.name}, {took}", flush=True)
    if not (chosen.copy or chosen.double or chosen.learner or chosen.problem):
        write_standings({(rule.name, one.name): done[rule.name, one.name] for rule in rules for one in problems})
        print(f"{FILE}: {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
