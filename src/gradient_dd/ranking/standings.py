"""Entries, the results of one rule on one problem, and the shipped standings: the entries of all learners.

A rule is tuned on the tuning runs of a problem and tested on the test runs. The shipped entries are in one file of
numbers with a JSON header and no code; the version of the file is part of its name. `python -m trials.make_standings`
writes this file.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import product
from math import isnan
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.errors import BadRequestError, one_of
from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.ranking.suites import SUITES, TEST, Problem
from gradient_dd.studies.intervals import EXPLODED
from gradient_dd.studies.search import FULL, QUICK, Found, SearchSpace, search, space_of
from gradient_dd.studies.study import ENGINE_VERSION

BUDGETS = {False: FULL, True: QUICK}  # budgets of the search, by `quick`
TEST_RUNS = {False: 40, True: 10}
OCTAVES = np.arange(-12, 1)  # step sizes of the curve, 2⁻¹² … 1
VERSION = 1
FILE = Path(__file__).with_name(f"standings-{VERSION}.npz")
ARRAYS = ("errors", "curve", "diverged", "coarse")

Grid = Mapping[str, Sequence[float]]


class Entry(NamedTuple):
    """The results of one rule on one problem.

    key       fingerprint of everything that the numbers depend on
    setting   the selected values by parameter
    errors    (measures, runs) of the test runs, in single precision
    curve     (octaves,) smallest mean error of the coarse grid near each step size / initial error, or nan
    diverged  number of settings of the coarse grid that diverged in some tuning run, out of `coarse` settings
    edges     parameters whose selected value is at an edge of the search
    """

    key: str
    setting: dict[str, float]
    errors: NDArray[np.float32]
    curve: NDArray[np.float16]
    diverged: int
    coarse: int
    edges: tuple[str, ...]


Entries = Mapping[tuple[str, str], Entry]  # by learner and problem


def entry_key(rule: Rule, problem: Problem, grid: Grid | None = None, quick: bool = False) -> str:
    """Return the fingerprint of an entry: rule, problem, search and engine."""
    forms, space = [form.key for form in rule.forms], space_of(rule, grid, problem.tasks(0)[0], BUDGETS[quick])
    how = [space.facts(), asdict(BUDGETS[quick]), TEST_RUNS[quick]]
    return fingerprint(forms, problem.key, how, ENGINE_VERSION)


def make_entry(rule: Rule, problem: Problem, grid: Grid | None = None, quick: bool = False) -> Entry:
    """Tune a rule on a problem, test the selected setting, and return the entry."""
    budget = BUDGETS[quick]
    space = space_of(rule, grid, problem.tasks(0)[0], budget)
    found = search(space, lambda settings, runs: problem.errors(settings, runs)[0], budget)
    errors = problem.errors([found.setting], range(TEST, TEST + TEST_RUNS[quick]))[:, 0]
    gone = [(one.errors[: budget.runs] >= EXPLODED * problem.initial_error).any() for one in found.coarse]
    return Entry(
        entry_key(rule, problem, grid, quick),
        dict(found.setting.values),
        errors.astype(np.float32),
        step_size_curve(found, budget.runs, problem.initial_error),
        sum(map(int, gone)),
        len(gone),
        tuple(edges(found, space)),
    )


def step_size_curve(found: Found, runs: int, first: float) -> NDArray[np.float16]:
    """Return the smallest mean error near each step size, divided by the initial error, (octaves,)."""
    curve = np.full(len(OCTAVES), np.nan)
    for one in found.coarse:
        place = int(np.rint(np.log2(one.setting.values["alpha"]))) - OCTAVES[0]
        if 0 <= place < len(curve):
            curve[place] = np.fmin(curve[place], one.errors[:runs].mean() / first)
    return curve.astype(np.float16)


def edges(found: Found, space: SearchSpace) -> list[str]:
    """Return the parameters whose selected value is the smallest or largest value tried, unless it is a legal limit."""
    at_edge = []
    for axis in space.axes:
        places = [axis.coordinate(one.setting.values.get(axis.name, 0.0)) for one in found.trail]
        ours = places[0]  # the trail starts with the selected setting
        ends = (min(places), -1.0), (max(places), 1.0)
        if not axis.is_fixed and any(ours == end and axis.moved(ours, step) != ours for end, step in ends):
            at_edge.append(axis.name)
    return at_edge


# The shipped file


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
    """Return the names of the learners in the shipped file."""
    return list(dict.fromkeys(name for name, _ in read_standings()))


def shipped(learners: Iterable[str], problems: Sequence[Problem]) -> dict[tuple[str, str], Entry]:
    """Return the shipped entries of some learners; raise if a rule, a problem, the search or the engine differs."""
    known, found = read_standings(), {}
    for learner, problem in product(learners, problems):
        one_of("A learner of the standings", learner, shipped_learners())
        entry = known.get((learner, problem.name))
        if entry is None or entry.key != entry_key(LEARNERS[learner], problem):
            raise BadRequestError(
                f"The shipped standings have no entry for this {learner} on this {problem.name}: the learner, the "
                "problem, the search or the engine has changed. Run: python -m trials.make_standings."
            )
        found[learner, problem.name] = entry
    return found


def verify(learner: str, problems: Sequence[Problem] = SUITES["all"]) -> list[str]:
    """Compute the entries of a shipped learner again, and return the problems on which any bit differs."""
    before = shipped([learner], problems)
    return [one.name for one in problems if not same(before[learner, one.name], make_entry(LEARNERS[learner], one))]


def same(left: Entry, right: Entry) -> bool:
    """Return whether two entries agree in every bit of their settings and errors."""
    return left.setting == right.setting and left.errors.tobytes() == right.errors.tobytes()
