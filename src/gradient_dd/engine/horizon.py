"""The horizon of a run: its length, the points at which its error is measured, and three summaries of the errors.

    last100      mean of the last 100 errors: one per episode, or one per step if the run is counted in steps
    mean_error   mean error over all points
    curve        mean errors in at most 200 bins of consecutive points

A point is the end of an episode or, in a run counted in steps, every `every`-th step.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.engine.schedules import Constant, Schedule
from gradient_dd.errors import Unquoted, bad_request, whole_number
from gradient_dd.tasks import Task

LAST = 100
BINS = 200
LONGEST = 10**15  # maximum number of steps or episodes: eleven days at a nanosecond per step
DIVERGED = 1e100  # a run whose error exceeds this bound, or is NaN, has diverged


class Segments(NamedTuple):
    """A piece of a run, divided where the error is measured or the step size changes; each array is (segments,).

    end      number of steps from the beginning of the piece to the end of the segment
    factor   factor of the schedule during the segment
    point    bin of the curve for the error after the segment; -1 if its end is not a point
    last     whether the error after the segment is one of the last 100
    step     number of steps of the run up to the end;  episode  episode of the last step, counted from 1
    """

    end: Integers
    factor: Array
    point: Integers
    last: Booleans
    step: Integers
    episode: Integers


@dataclass(frozen=True)
class Horizon:
    """The length of a run: `episodes` with a point at the end of each, or `steps` with a point every `every` steps."""

    episodes: int | None = None
    steps: int | None = None
    every: int = 1

    def __post_init__(self) -> None:
        if (self.episodes is None) == (self.steps is None):
            got = {"episodes": self.episodes, "steps": self.steps}
            raise bad_request("A run", "have either 'episodes' or 'steps'", got)
        for name, value in (("episodes", self.episodes), ("steps", self.steps), ("every", self.every)):
            if value is not None or name == "every":
                plain = whole_number(f"{name!r}", value)  # a plain int, for keys and files
                if plain > LONGEST:
                    raise bad_request(f"{name!r}", f"be {LONGEST:.0e} or less", plain)
                object.__setattr__(self, name, plain)
        if self.episodes is not None and self.every != 1:
            raise bad_request("'every'", "be omitted if the run is counted in episodes", self.every)
        if self.steps is not None and self.steps % self.every:
            raise bad_request("'every'", f"divide the number of steps ({self.steps})", self.every)

    def check(self, task: Task) -> None:
        """Raise unless `task` is a Task and, if the run is counted in episodes, an episodic task."""
        if not isinstance(task, Task):
            raise bad_request("'task'", "be a Task, e.g. tasks.random_walk(20)", task)
        if self.episodes is not None and not task.episodic:
            got = Unquoted(f"episodes={self.episodes}")
            raise bad_request(f"A run of {task.name}", "be given in 'steps', because its episodes never end", got)

    @property
    def points(self) -> int:
        """The number of errors that the mean error and the curve summarise."""
        return self.steps // self.every if self.episodes is None else self.episodes  # type: ignore[operator]

    @property
    def bins(self) -> int:
        """The number of bins of the curve."""
        return min(BINS, self.points)

    @property
    def n_last(self) -> int:
        """The number of errors that last100 averages: 100, or fewer in a short run."""
        return min(LAST, self.points if self.steps is None else self.steps)

    def bin_of(self, point: Any) -> Any:
        """Return the bin of the curve that contains a point; points are counted from 1."""
        return (point - 1) * self.bins // self.points

    def bin_sizes(self) -> Integers:
        """Return the number of points in each bin, (bins,)."""
        first = -(-np.arange(self.bins + 1) * self.points // self.bins)  # number of points before each bin
        return np.diff(first)

    def bin_middles(self) -> Array:
        """Return the middle of each bin of a learning curve, in episodes or steps, (bins,)."""
        sizes = self.bin_sizes() * self.every
        return np.cumsum(sizes) - sizes / 2

    def cut(self, ends: Integers, length: int, steps: int, episodes: int, schedule: Schedule) -> Segments:
        """Return the segments of the next piece of a run, which is `length` steps long or ends at the horizon.

        `ends` counts the steps up to each end of an episode. The run has already completed `steps` and `episodes`.
        """
        if self.steps is not None:
            length = min(length, self.steps - steps)
        elif len(ends) >= self.points - episodes:
            length = int(ends[self.points - episodes - 1])
        end = self._cuts(ends[ends <= length], length, steps, schedule)
        begin = np.concatenate([[0], end[:-1]])
        ended_before, ended = (np.searchsorted(ends, place, side="right") for place in (begin, end))
        step, episode = steps + end, episodes + np.searchsorted(ends, end - 1, side="right") + 1
        if self.steps is None:
            number, point = episodes + ended, ended > ended_before
            last = point & (number > self.points - LAST)
        else:
            number, point, last = step // self.every, step % self.every == 0, step > self.steps - LAST
        return Segments(
            end=end,
            factor=schedule.factors(episode if schedule.per == "episode" else steps + begin + 1),
            point=np.where(point, self.bin_of(number), -1),
            last=last,
            step=step,
            episode=episode,
        )

    def _cuts(self, ends: Integers, length: int, steps: int, schedule: Schedule) -> Integers:
        """Return the steps after which the step size changes or the error is measured, and the end of the piece."""
        if schedule.per == "step":
            return np.arange(1, length + 1)
        steady = self.steps is not None and isinstance(schedule.function, Constant)  # an episode's end has no effect
        cuts = [ends[:0] if steady else ends, np.array([length])]
        if self.steps is not None:
            cuts += [np.arange(self.every - steps % self.every, length + 1, self.every)]
            cuts += [np.arange(max(1, self.steps - LAST + 1 - steps), length + 1)]
        return np.unique(np.concatenate(cuts)).astype(np.int64)


@dataclass(frozen=True)
class LaneResults:
    """The summarised errors of runs of the lane engine; settings are in the given order.

    last100, mean_error              (runs, settings) mean errors; inf where the lane diverged
    curve                            (runs, settings, bins) mean errors in bins of points
    diverged_step, diverged_episode  (runs, settings) when the error exceeded the bound; 0 if it never did
    steps                            (runs,) the number of steps made
    """

    last100: Array
    mean_error: Array
    curve: Array
    diverged_step: Integers
    diverged_episode: Integers
    steps: Integers
