"""The search for good settings of several learners at once, under one budget.

    scout    every coarse point, on the whole horizon where that is cheap, else on a sixteenth of it. A short run
             favours large step sizes: the best alpha of a long one is between a sixteenth of the best here and twice it
    full     the points that are left, on the whole horizon
    refine   the best points and their neighbours, half as far apart, then half of that, on more runs
    judge    the best point of each learner that can still win, on fresh runs. These give the errors that are predicted

Beyond some alpha rare runs go wrong, too rare to be seen in every pilot. So the judge also runs each point with larger
and smaller step sizes, and steps back from an alpha beside which the error is much larger, if that costs little.

All points of a stage see the same runs, and no two stages share a run. The budget counts estimated seconds of one core,
not the clock, so the same call gives the same advice on every machine.
"""

from collections.abc import Callable, Iterable, Iterator
from math import isfinite, log2
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.theory.advice.pilot import Pilot, Scores
from gradient_dd.theory.advice.space import OCTAVE, Point

BUDGET = 6.5  # core seconds
SHORT = 16  # the part of the horizon that a scout runs where the whole is too long
SHARES = {"scout": 0.2, "full": 0.2, "refine": 0.25, "judge": 0.25}  # of the budget, for a stage
RUNS = {"scout": (1, 4), "full": (1, 4), "refine": (2, 32), "judge": (4, 64)}  # the fewest and the most
LINES = 2  # of a learner are refined
DISTANCES = ((2, OCTAVE), (1, OCTAVE // 2))  # places to the neighbours along alpha and along the others, by refinement
HOPELESS = 3.0  # a line whose best error is so many times the best of all is not followed further
CLOSE = 1.5  # a learner whose best error is within this factor of the best of all can still win
ALIKE = 1.02  # of learners whose errors are within this factor, the one with the fewest parameters wins
BESIDE = OCTAVE // 2  # places along alpha to the points beside one that is judged
STEEP = 2.0  # the error beside a point is much larger if it is larger by this factor
LITTLE = 1.15  # and stepping back costs little if it multiplies the error by no more than this


class SearchProgress(NamedTuple):
    """What is done next, about how many seconds of a core that takes, and the share of all stages that is done."""

    doing: str
    core_seconds: float
    share: float


OnProgress = Callable[[SearchProgress], None]


class Row(NamedTuple):
    """A point with its errors in a stage.

    area, last100  (runs,);  curve (runs, bins)
    """

    point: Point
    stage: str
    area: Array
    last100: Array
    curve: Array


class Stage(NamedTuple):
    """What a stage found: the mean error of each point in the measure of the search, and all its errors."""

    name: str
    means: dict[Point, float]
    scores: Scores

    def row(self, point: Point) -> Row:
        """Return a point with its errors."""
        place = self.scores.points.index(point)
        return Row(point, self.name, *(array[:, place] for array in self.scores[1:]))

    def by_error(self) -> list[Point]:
        """Return the points that did not diverge, the least error first; of equal errors the smaller alpha."""
        finite = [point for point in self.means if isfinite(self.means[point])]
        return sorted(finite, key=lambda point: (self.means[point], point.places[0]))

    def best_of_lines(self) -> list[Point]:
        """Return the best point of each line, the best line first."""
        lines: dict[Point, Point] = {}
        for point in self.by_error():
            lines.setdefault(point.line, point)
        return list(lines.values())

    def to_follow(self) -> list[Point]:
        """Return the best point of every line that is not hopeless, and of the best lines of each learner."""
        lines = self.best_of_lines()
        return [point for point in lines if self.is_near(point, lines[0]) or rank(lines, point) < LINES]

    def to_refine(self) -> list[Point]:
        """Return the best point of the best lines of each learner, hopeless lines left out."""
        lines = self.best_of_lines()
        return [point for point in lines if self.is_near(point, lines[0]) and rank(lines, point) < LINES]

    def is_near(self, point: Point, best: Point) -> bool:
        """Return whether a point is not hopeless beside the best one."""
        return self.means[point] <= HOPELESS * self.means[best]

    def stepped_back(self, point: Point) -> Point:
        """Return the point or, where that is prudent, its neighbour with a smaller alpha."""
        here, above, below = (self.means[point.moved(0, step)] for step in (0, BESIDE, -BESIDE))
        prudent = above > STEEP * here and below <= LITTLE * here
        return point.moved(0, -BESIDE) if prudent or not isfinite(here) else point


class Search:
    """A search with a pilot and a measure. `rows` holds the best point of each learner found so far."""

    def __init__(self, pilot: Pilot, measure: str, budget: float, on_progress: OnProgress) -> None:
        self.pilot, self.measure, self.budget, self.on_progress = pilot, measure, budget, on_progress
        self.rows, self.stages, self.stages_done = dict[str, Row](), 4, 0

    def best(self) -> Row | None:
        """Search, and return the row to recommend; None where every point diverged."""
        points = self.scout()
        for distances in DISTANCES:
            near = (near for point in points for near in neighbours(point, *distances))
            points = self.run("refine", near).to_refine()
        if not points:
            return None
        refined = [self.rows[learner] for learner in dict.fromkeys(point.learner for point in points)]
        least = self.error(self.rows[points[0].learner])
        return self.judge([row for row in refined if self.error(row) <= CLOSE * least])

    def scout(self) -> list[Point]:
        """Return the points to refine, after running all coarse points."""
        coarse = [point for space in self.pilot.spaces.values() for point in space.coarse()]
        if self.pilot.core_seconds(len(coarse)) <= SHARES["scout"] * self.budget:
            return self.run("scout", coarse).to_refine()
        self.stages = 5
        lines = self.run("scout", coarse, SHORT).to_follow()
        octaves = range(-int(log2(SHORT)), 2)
        return self.run("full", (point.moved(0, OCTAVE * k) for point in lines for k in octaves)).to_refine()

    def judge(self, finalists: list[Row]) -> Row:
        """Return the best finalist on its runs so far and on fresh runs; of finalists that are alike, the simplest."""
        beside = (row.point.moved(0, step) for row in finalists for step in (0, BESIDE, -BESIDE))
        stage = self.run("judge", beside)
        errors = {}
        for old in finalists:
            new = stage.row(stage.stepped_back(old.point))
            rows = [new, old] if new.point == old.point else [new]
            errors[new.point.learner] = float(np.concatenate([self.errors(row) for row in rows]).mean())
            self.rows[new.point.learner] = new
        least = min(errors.values())
        if not isfinite(least):  # rare runs went wrong at all of these step sizes
            none = np.empty(0)
            smaller = [Row(row.point.moved(0, -OCTAVE), row.stage, none, none, none) for row in finalists]
            return self.judge(smaller)
        alike = [self.rows[name] for name in errors if errors[name] <= ALIKE * least]
        return min(alike, key=lambda row: (len(row.point.places), errors[row.point.learner]))

    def run(self, name: str, points: Iterable[Point], share: int = 1) -> Stage:
        """Run points on as many runs as the budget of the stage allows, and note the best point of each learner."""
        chosen = [point for point in dict.fromkeys(points) if self.pilot.spaces[point.learner].is_legal(point)]
        if not chosen:
            return Stage(name, {}, Scores([], *np.zeros((3, 0, 0))))
        runs = self.affordable_runs(name, len(chosen), share)
        self.report(f"{name}: {len(chosen)} settings, {runs} runs", self.pilot.core_seconds(len(chosen), runs, share))
        scores = self.pilot.run(chosen, runs, share)
        means = getattr(scores, self.measure).mean(axis=0).tolist()
        stage = Stage(name, dict(zip(chosen, means, strict=True)), scores)
        best = {point.learner: point for point in reversed(stage.by_error())}
        self.rows |= {learner: stage.row(point) for learner, point in best.items()}
        return stage

    def report(self, doing: str, core_seconds: float) -> None:
        """Report what is done next."""
        self.on_progress(SearchProgress(doing, core_seconds, min(self.stages_done / self.stages, 1.0)))
        self.stages_done += 1

    def affordable_runs(self, stage: str, settings: int, share: int) -> int:
        """Return how many runs the budget of a stage allows, within its bounds."""
        (fewest, most), budget = RUNS[stage], SHARES[stage] * self.budget
        counts = range(most, fewest, -1)
        return next((runs for runs in counts if self.pilot.core_seconds(settings, runs, share) <= budget), fewest)

    def errors(self, row: Row) -> Array:
        """Return the errors of a row in the measure of the search, (runs,)."""
        return np.asarray(getattr(row, self.measure))

    def error(self, row: Row) -> float:
        """Return the mean error of a row in the measure of the search."""
        return float(self.errors(row).mean())


def rank(lines: list[Point], point: Point) -> int:
    """Return how many lines of the same learner stand before a point in the list."""
    return sum(line.learner == point.learner for line in lines[: lines.index(point)])


def neighbours(point: Point, along_alpha: int, along_others: int) -> Iterator[Point]:
    """Yield a point and its neighbours along one axis, or along two: alpha and, in the opposite direction, another.

    The products of alpha with the other parameters matter, ζα and κα, so a valley runs along these diagonals.
    """
    yield from (point.moved(0, step) for step in (-along_alpha, 0, along_alpha))
    for axis in range(1, len(point.places)):
        for sign in (-1, 1):
            beside = point.moved(axis, sign * along_others)
            yield from (beside, beside.moved(0, -sign * along_alpha))
