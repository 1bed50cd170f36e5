"""The problems of the comparison: a task, several tasks whose errors are averaged, or a task drawn anew in every run.

Every problem is counted in steps and has constant step sizes, as the field has them. Run number k of a problem that is
drawn anew has the task of seed k and the trajectory of run k, so that features and transitions are independent.
"""

from dataclasses import dataclass

from gradient_dd.experiments.experiment import STEPS, Scale
from gradient_dd.studies import Grid, Study, TaskSpec, task
from gradient_dd.tasks import Task

TUNING_RUNS, SHOWN_RUNS = 20, 50


@dataclass(frozen=True)
class Problem:
    """A problem: its tasks, how long a run is, and how often its error is taken.

    `drawn` marks a problem whose task is drawn from the seed of the run. `tuning_runs` is how many runs settings are
    selected on at the full scale.
    """

    name: str
    title: str
    tasks: tuple[TaskSpec, ...]
    steps: int
    points: int = 50
    drawn: bool = False
    tuning_runs: int = TUNING_RUNS

    def tasks_of(self, run: int) -> tuple[TaskSpec, ...]:
        """Return the tasks of a run."""
        if not self.drawn:
            return self.tasks
        return tuple(task(one.name, **dict(one.parameters) | {"seed": run}) for one in self.tasks)

    def length(self, most: int | None = None) -> tuple[int, int]:
        """Return how many steps a run has, about `most` of them at most, and how many lie between two errors."""
        steps = min(self.steps, most or self.steps)
        points = min(self.points, steps)
        every = -(-steps // points)
        return every * points, every

    def studies(self, grids: tuple[Grid, ...], runs: range, steps: int | None = None, name: str = "") -> list[Study]:
        """Return the studies that run these grids: one, or one for each run where tasks are drawn anew."""
        length, every = self.length(steps)
        named = f"family-{self.name}{name}"
        parts = [runs] if not self.drawn else [range(run, run + 1) for run in runs]
        return [
            Study(
                named, self.tasks_of(part.start), grids, steps=length, every=every, runs=len(part), first_run=part.start
            )
            for part in parts
        ]

    def runs_to_tune(self, scale: Scale) -> range:
        """Return the runs to select settings on; their share of the shown runs is that of the full scale."""
        return range(max(1, self.tuning_runs * (scale.runs or SHOWN_RUNS) // SHOWN_RUNS))

    def runs_to_show(self, scale: Scale) -> range:
        """Return the runs to show: others."""
        first = self.runs_to_tune(scale).stop
        return range(first, first + (scale.runs or SHOWN_RUNS))

    def example(self) -> Task:
        """Return one of its tasks, built."""
        return self.tasks_of(0)[0].build()


def questions(variance: str) -> tuple[TaskSpec, ...]:
    """Return the eight questions about one stream through the rooms."""
    return tuple(task("rooms", question=k, variance=variance) for k in range(8))


PROBLEMS = (
    Problem("collision", "Collision", (task("collision"),), 20_000, drawn=True),
    Problem("walk-tabular", "five-state walk, tabular", (task("five_state_walk", features="tabular"),), 3_000),
    Problem("walk-inverted", "five-state walk, inverted", (task("five_state_walk", features="inverted"),), 3_000),
    Problem("walk-dependent", "five-state walk, dependent", (task("five_state_walk", features="dependent"),), 3_000),
    Problem("boyan", "Boyan chain, p = 4", (task("boyan_chain", n_features=4),), 10_000),
    Problem("baird-7", "Baird, N = 7", (task("baird", n_states=7),), 20_000),
    Problem("walk-19", "19-state walk, on-policy", (task("nineteen_state_walk"),), 10_000),
    Problem("random-mdp", "random MDPs of Dann", (task("dann_mdp"),), 8_000, drawn=True),
    Problem("rooms", "Rooms, 8 questions", questions("low"), 50_000, tuning_runs=10),
    Problem("rooms-high", "High-Variance Rooms", questions("high"), 50_000, tuning_runs=10),
)
FULL = Scale(SHOWN_RUNS, max(one.steps for one in PROBLEMS) // STEPS)
