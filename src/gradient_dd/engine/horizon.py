"""The horizon of a run: its length, the points at which its error is taken, and three summaries of the errors.

    last100      mean of the last 100 errors: of episodes, or of single steps in a run counted in steps
    mean_error   mean over all points
    curve        means over at most 200 bins of points

A point is the end of an episode, or every so many steps.
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
LONGEST = 10**15  # steps or episodes of a run: eleven days at a nanosecond a step
DIVERGED = 1e100  # an error above this bound, or NaN, is divergence


class Segments(NamedTuple):
    """A piece of a run, cut where the error is taken or the step size changes; each array (segments,).

    end      steps from the beginning of the piece to the end of the segment
    factor   of the schedule, during the segment
    point    bin of the curve for the error at the end; -1 if the end is not a point
    last     whether that error is one of the last 100
    step     steps of the run up to the end;  episode  number of the last step's episode, from 1
    """

    end: Integers
    factor: Array
    point: Integers
    last: Booleans
    step: Integers
    episode: Integers


@dataclass(frozen=True)
class Horizon:
    """Either `episodes`, with a point at the end of each, or `steps`, with a point every `every` steps."""

    episodes: int | None = None
    steps: int | None = None
    every: int = 1

    def __post_init__(self) -> None:
        if (self.episodes is None) == (self.steps is None):
            got = {"episodes": self.episodes, "steps": self.steps}
            raise bad_request("A run", "have either 'episodes' or 'steps'", got)
        for name, value in (("episodes", self.episodes), ("steps", self.steps), ("every", self.every)):
            if value is not None or name == "every":
                plain = whole_number(f"{name!r}", value)  # for keys and files
                if plain > LONGEST:
                    raise bad_request(f"{name!r}", f"be {LONGEST:.0e} or less", plain)
                object.__setattr__(self, name, plain)
        if self.episodes is not None and self.every != 1:
            raise bad_request("'every'", "be omitted if the run is counted in episodes", self.every)
        if self.steps is not None and self.steps % self.every:
            raise bad_request("'every'", f"divide the number of steps ({self.steps})", self.every)

    def check(self, task: Task) -> None:
        """Raise unless `task` is a Task, which has episodes if the run is counted in episodes."""
        if not isinstance(task, Task):
            raise bad_request("'task'", "be a Task, e.g. tasks.random_walk(20)", task)
        if self.episodes is not None and not task.episodic:
            got = Unquoted(f"episodes={self.episodes}")
            raise bad_request(f"A run of {task.name}", "be given in 'steps', because its episodes never end", got)

    @property
    def points(self) -> int:
        """The number of errors in the mean error and the curve."""
        return self.steps // self.every if self.episodes is None else self.episodes  # type: ignore[operator]

    @property
    def bins(self) -> int:
        """The number of points of the curve."""
        return min(BINS, self.points)

    @property
    def n_last(self) -> int:
        """The number of errors in last100: fewer than 100 in a short run."""
        return min(LAST, self.points if self.steps is None else self.steps)

    def bin_of(self, point: Any) -> Any:
        """Return the bin of the curve for a point, counted from 1."""
        return (point - 1) * self.bins // self.points

    def bin_sizes(self) -> Integers:
        """Return the number of points in each bin, (bins,)."""
        first = -(-np.arange(self.bins + 1) * self.points // self.bins)  # points before each bin
        return np.diff(first)

    def bin_middles(self) -> Array:
        """Return the middle of each bin of a learning curve, in episodes or steps, (bins,)."""
        sizes = self.bin_sizes() * self.every
        return np.cumsum(sizes) - sizes / 2

    def cut(self, ends: Integers, length: int, steps: int, episodes: int, schedule: Schedule) -> Segments:
        """Cut the next piece of a run, `length` steps long; `ends` counts the steps up to each end of an episode.

        The run has completed `steps` and `episodes` before. Segments end at the horizon.
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
        """Return where the step size changes or the error is taken, and the end of the piece."""
        if schedule.per == "step":
            return np.arange(1, length + 1)
        steady = self.steps is not None and isinstance(schedule.function, Constant)  # nothing changes with an episode
        cuts = [ends[:0] if steady else ends, np.array([length])]
        if self.steps is not None:
            cuts += [np.arange(self.every - steps % self.every, length + 1, self.every)]
            cuts += [np.arange(max(1, self.steps - LAST + 1 - steps), length + 1)]
        return np.unique(np.concatenate(cuts)).astype(np.int64)


@dataclass(frozen=True)
class LaneResults:
    """The folded errors of runs of the lane engine; settings in the order given.

    last100, mean_error              (runs, settings) means of errors; inf where the lane diverged
    curve                            (runs, settings, bins) means over bins of points
    diverged_step, diverged_episode  (runs, settings) where the error left the bound; 0 if it did not
    steps                            (runs,) the number of steps made
    """

    last100: Array
    mean_error: Array
    curve: Array
    diverged_step: Integers
    diverged_episode: Integers
    steps: Integers
