"""The problems of the comparison, and what each learner chooses from.

A problem is a task, several tasks whose errors are averaged, or a task drawn anew in every run. Every problem is
counted in steps and has constant step sizes, as the field has them. Run number k of a problem that is drawn anew has
the task of seed k and the trajectory of run k, so that features and transitions are independent.

Every learner has 144 settings, fixed beforehand: step sizes, λ, and parameters of its own. A learner with fewer
parameters gets more step sizes, over the same range, so that none has more chances than another; one with λ and two
others has the twelve powers of 2 from 1 to 2⁻¹¹. The values of ζ, κ and the others span the ranges that were published.
A learner that is registered and not named here is put in by what it declares.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.experiments.experiment import STEPS, Scale
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.studies import Grid, Study, TaskSpec, grid, task
from gradient_dd.tasks import Task

TUNING_RUNS, SHOWN_RUNS = 20, 50
SETTINGS = 144
LAMBDAS = (0.0, 0.5, 0.9)
RANGE = 12  # step sizes go from 1 down to almost 2⁻¹²
FOUR_ZETAS = (1 / 64, 1 / 8, 1.0, 8.0)
TWO_ZETAS = (1 / 8, 1.0)
OWN = {  # two values of what a learner has besides ζ and λ, or as many as it has room for
    "kappa": (1.0, 8.0),
    "c": (0.5, 1.0),
    "decay": (0.2, 0.4, 0.6, 0.8),
    "momentum": (0.3, 0.6, 0.9),
}
TRACE_LENGTHS = ("lam", "bootstrap")  # what λ is called
WITH_DD = {"gradient_dd": "gtd2", "tdc_dd": "tdc", "tdrc_dd": "tdrc", "htd_dd": "htd", "pgtd2_dd": "pgtd2"}
FIXED = {"tdrc": ("zeta", "reg"), "tdrc_dd": ("zeta", "reg")}  # the authors' advice: ζ = 1, reg = 1


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
    Problem("walk-19", "19-state walk", (task("nineteen_state_walk"),), 10_000),
    Problem("random-mdp", "random MDPs of Dann", (task("dann_mdp"),), 8_000, drawn=True),
    Problem("rooms", "Rooms, 8 questions", questions("low"), 50_000, tuning_runs=10),
    Problem("rooms-high", "High-Variance Rooms", questions("high"), 50_000, tuning_runs=10),
)
FULL = Scale(SHOWN_RUNS, max(one.steps for one in PROBLEMS) // STEPS)


def step_sizes(count: int) -> tuple[float, ...]:
    """Return so many step sizes from 1 downwards, evenly spaced in their logarithm; powers of 2 are among them."""
    return tuple(2.0 ** (-RANGE * i / count) for i in range(count))


def grid_of(rule: Rule, example: Task) -> Grid:
    """Return the settings that a learner chooses from on a problem with tasks like `example`."""
    fixed = FIXED.get(rule.name, ())
    chosen: dict[str, tuple[float, ...]] = {}
    declared = [parameter.name for parameter in rule.parameters if parameter.name not in ("alpha", *fixed)]
    own = [name for name in declared if name in OWN]
    for name in declared:
        if name in TRACE_LENGTHS:
            chosen[name] = LAMBDAS
        elif name in OWN:
            chosen[name] = OWN[name]
        elif name == "zeta":
            few = own and any(one in TRACE_LENGTHS for one in declared)
            chosen[name] = TWO_ZETAS if few else FOUR_ZETAS
    if "psi_max" in declared:
        chosen |= psi_of(example)
    others = 1
    for values in chosen.values():
        others *= len(values)
    if SETTINGS % others:
        raise bad_request(f"The values to try of {rule.name}", f"divide {SETTINGS}", Unquoted(f"{others} of them"))
    placed = "T" if rule.has_rho_mode else "R"  # the placement of ρ that extends to traces, for every λ
    return grid(rule, placed, alpha=step_sizes(SETTINGS // others), **chosen)


def psi_of(task: Task) -> dict[str, tuple[float, ...]]:
    """Return ψ₀ and ψ_max of ABTD as its authors set them: from the larger of π and μ over all actions."""
    larger = [max(pi, mu) for pi, mu in zip(*task.action_probabilities, strict=True) if max(pi, mu) > 0]
    return {"psi_zero": (float(1 / max(larger)),), "psi_max": (float(1 / min(larger)),)}


def grids_of(names: Sequence[str], example: Task) -> tuple[Grid, ...]:
    """Return the grids of these learners, or of all."""
    return tuple(grid_of(LEARNERS[name], example) for name in names or LEARNERS)
