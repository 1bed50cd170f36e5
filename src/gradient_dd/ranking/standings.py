"""The shipped standings: the entries of every registered learner on every problem, in one file of the package.

The file holds numbers and a JSON header, no code. Its version is part of its name. `python -m trials.make_standings`
writes it again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import isnan
from pathlib import Path

import numpy as np

from gradient_dd.errors import BadRequestError, one_of
from gradient_dd.learners import LEARNERS
from gradient_dd.ranking.entry import Entry, entry_key, make_entry
from gradient_dd.ranking.suites import SUITES, Problem

VERSION = 1
FILE = Path(__file__).with_name(f"standings-{VERSION}.npz")
ARRAYS = ("errors", "curve", "diverged", "coarse")

Entries = Mapping[tuple[str, str], Entry]  # by learner and problem


@lru_cache(maxsize=1)
def read_standings(path: Path = FILE) -> Entries:
    """Return all entries of the shipped file."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    arrays["errors"] = np.ascontiguousarray(np.moveaxis(arrays["errors"], 0, -1)).view(np.float32)[..., 0]
    header, found = json.loads(str(arrays["header"])), {}
    for (i, learner), (j, problem) in product(enumerate(header["learners"]), enumerate(header["problems"])):
        values = dict(zip(header["parameters"], arrays["settings"][i, j].tolist(), strict=True))
        setting = {name: value for name, value in values.items() if not isnan(value)}
        errors, curve, diverged, coarse = (arrays[name][i, j] for name in ARRAYS)
        key, edges = header["keys"][i][j], tuple(header["edges"][i][j])
        found[learner, problem] = Entry(key, setting, errors, curve, int(diverged), int(coarse), edges)
    return found


def shipped_learners() -> list[str]:
    """Return the names of the learners that the shipped file has."""
    return list(dict.fromkeys(name for name, _ in read_standings()))


def shipped(learners: Iterable[str], problems: Sequence[Problem]) -> dict[tuple[str, str], Entry]:
    """Return the shipped entries of some learners; raise where a rule, a problem, the search or the engine differs."""
    known, found = read_standings(), {}
    for learner, problem in product(learners, problems):
        one_of("A learner of the standings", learner, shipped_learners())
        entry = known.get((learner, problem.name))
        if entry is None or entry.key != entry_key(LEARNERS[learner], problem):
            raise BadRequestError(
                f"The shipped standings have no entry of this {learner} on this {problem.name}: the learner, the "
                "problem, the search or the engine has changed. Recompute them: python -m trials.make_standings."
            )
        found[learner, problem.name] = entry
    return found


def verify(learner: str, problems: Sequence[Problem] = SUITES["all"]) -> list[str]:
    """Compute the entries of a shipped learner again, and return the problems on which any number differs."""
    before = shipped([learner], problems)
    return [one.name for one in problems if not same(before[learner, one.name], make_entry(LEARNERS[learner], one))]


def same(left: Entry, right: Entry) -> bool:
    """Return whether two entries agree in every bit of their settings and errors."""
    return left.setting == right.setting and left.errors.tobytes() == right.errors.tobytes()
