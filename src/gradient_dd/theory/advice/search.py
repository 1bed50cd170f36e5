"""The search for good settings of several learners at once, under one budget.

    scout    every coarse point, on the whole horizon where that is cheap, else on a sixteenth of it. A short run favours
             large step sizes: the best alpha of a long one lies between a sixteenth of the best here and twice it
    full     the points that are left, on the whole horizon
    refine   the best points and their neighbours, half as far apart, then half of that, on more runs
    judge    the best point of each learner that can still win, on fresh runs. These give the errors that are predicted

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
HOPELESS = 3.0  # a line whose best error is so many times the best of all is not followed further
CLOSE = 1.5  # a learner whose best error is within this factor of the best of all can still win
ALIKE = 1.02  # of learners whose errors are within this factor, the one with the fewest parameters wins
LINES = 2  # of a learner are refined
DISTANCES = ((2, OCTAVE), (1, OCTAVE // 2))  # places to the neighbours along alpha and along the others, by refinement


class Progress(NamedTuple):
    """What is being done, and how much of the estimated work is behind it."""

    doing: str
    done: float
    total: float


OnProgress = Callable[[Progress], None]


class Row(NamedTuple):
    """The best point of a learner, with its errors in the last stage it took part in.

    area, last100  (runs,);  curve (runs, bins)
    """

    point: Point
    stage: str
    area: Array
    last100: Array
    curve: Array


class Search:
    """A search with a pilot and a measure. `rows` holds the best point of each learner found so far."""

    def __init__(self, pilot: Pilot, measure: str, budget: float, on_progress: OnProgress) -> None:
        self.pilot, self.measure, self.budget, self.on_progress = pilot, measure, budget, on_progress
        self.done, self.rows = 0.0, dict[str, Row]()

    def best(self) -> Row | None:
        """Search, and return the row to recommend; None where every point diverged."""
        followed = self.scout()
        for distances in DISTANCES:
            followed = self.refined(followed, *distances)
        if not followed:
            return None
        before = {point.learner: self.rows[point.learner] for point in followed}
        least = min(map(self.error, before.values()))
        self.run("judge", (row.point for row in before.values() if self.error(row) <= CLOSE * least))
        return self.winner({name: row for name, row in self.rows.items() if row.stage == "judge"}, before)

    def scout(self) -> list[Point]:
        """Return the points to refine, after a look at all coarse ones."""
        coarse = [point for space in self.pilot.spaces.values() for point in space.coarse()]
        if self.pilot.core_seconds(len(coarse)) <= SHARES["scout"] * self.budget:
            return self.to_refine(self.run("scout", coarse))
        lines = self.to_follow(self.run("scout", coarse, SHORT))
        octaves = range(-int(log2(SHORT)), 2)
        return self.to_refine(self.run("full", (line.moved(0, OCTAVE * octave) for line in lines for octave in octaves)))

    def refined(self, points: list[Point], along_alpha: int, along_others: int) -> list[Point]:
        """Return the best of some points and their neighbours."""
        near = [near for point in points for near in neighbours(point, along_alpha, along_others)]
        return self.to_refine(self.run("refine", near))

    def run(self, stage: str, points: Iterable[Point], share: int = 1) -> dict[Point, float]:
        """Run points on as many runs as the budget of the stage allows, and return the mean error of each."""
        chosen = [point for point in dict.fromkeys(points) if self.pilot.spaces[point.learner].is_legal(point)]
        if not chosen:
            return {}
        runs = self.affordable_runs(stage, len(chosen), share)
        self.on_progress(Progress(f"{stage}: {len(chosen)} settings, {runs} runs", self.done, self.budget))
        scores = self.pilot.run(chosen, runs, share)
        self.done += self.pilot.core_seconds(len(chosen), runs, share)
        means = dict(zip(chosen, getattr(scores, self.measure).mean(axis=0).tolist(), strict=True))
        for learner in dict.fromkeys(point.learner for point in chosen):
            self.note(stage, scores, next(point for point in by_error(means) if point.learner == learner))
        return means

    def affordable_runs(self, stage: str, settings: int, share: int) -> int:
        """Return how many runs the budget of a stage allows, within its bounds."""
        fewest, most = RUNS[stage]
        affordable = (
            runs
            for runs in range(most, fewest, -1)
            if self.pilot.core_seconds(settings, runs, share) <= SHARES[stage] * self.budget
        )
        return next(affordable, fewest)

    def note(self, stage: str, scores: Scores, point: Point) -> None:
        """Make a point the row of its learner, unless it diverged."""
        place = scores.points.index(point)
        row = Row(point, stage, *(array[:, place] for array in scores[1:]))
        if isfinite(self.error(row)):
            self.rows[point.learner] = row

    def error(self, row: Row) -> float:
        """Return the mean error of a row, in the measure of the search."""
        return float(getattr(row, self.measure).mean())

    def to_follow(self, means: dict[Point, float]) -> list[Point]:
        """Return the best point of every line that is not hopeless, and of the best lines of each learner."""
        lines = best_of_lines(means)
        return [
            point
            for place, point in enumerate(lines)
            if means[point] <= HOPELESS * means[lines[0]] or rank(lines[:place], point) < LINES
        ]

    def to_refine(self, means: dict[Point, float]) -> list[Point]:
        """Return the best point of the best lines of each learner that is not hopeless."""
        lines = best_of_lines(means)
        return [
            point
            for place, point in enumerate(lines)
            if means[point] <= HOPELESS * means[lines[0]] and rank(lines[:place], point) < LINES
        ]

    def winner(self, judged: dict[str, Row], before: dict[str, Row]) -> Row | None:
        """Return the row with the least error on all runs of the last two stages; of rows that are alike, the simplest.

        None where all diverged on the last runs.
        """
        if not judged:
            return None
        errors = {
            name: float(np.concatenate([getattr(row, self.measure) for row in (before[name], judged[name])]).mean())
            for name in judged
        }
        alike = [row for name, row in judged.items() if errors[name] <= ALIKE * min(errors.values())]
        return min(alike, key=lambda row: (len(row.point.places), errors[row.point.learner]))


def best_of_lines(means: dict[Point, float]) -> list[Point]:
    """Return the best point of each line, the best line first; lines whose points all diverged are left out."""
    lines: dict[Point, Point] = {}
    for point in by_error(means):
        if isfinite(means[point]):
            lines.setdefault(point.line, point)
    return list(lines.values())


def by_error(means: dict[Point, float]) -> list[Point]:
    """Return the points, the least error first; of equal errors the smaller alpha."""
    return sorted(means, key=lambda point: (means[point], point.places[0]))


def rank(lines: list[Point], point: Point) -> int:
    """Return how many of these lines belong to the learner of a point."""
    return sum(line.learner == point.learner for line in lines)


def neighbours(point: Point, along_alpha: int, along_others: int) -> Iterator[Point]:
    """Yield a point and those one step away, along one axis, or along another one and alpha in opposite directions.

    The products of alpha with the other parameters matter, ζα and κα, so a valley runs along these diagonals.
    """
    yield from (point.moved(0, step) for step in (-along_alpha, 0, along_alpha))
    for axis in range(1, len(point.places)):
        for sign in (-1, 1):
            beside = point.moved(axis, sign * along_others)
            yield from (beside, beside.moved(0, -sign * along_alpha))
