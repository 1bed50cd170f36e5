"""A study describes an experiment as data that can be printed, hashed, compared and stored.

    Study(
        "mine",
        tasks=(task("random_walk", n_states=20),),
        grids=(grid("td", alpha=(0.1, 0.3)), grid("gradient_dd", alpha=(0.1, 0.3), kappa=(1, 2))),
        schedule=tapered(1000),
        episodes=2000,
        runs=10,
    )

The unit of work is one task and one run: every setting of the study on the same trajectory.
"""

import json
import platform
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradient_dd.cards import card
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.engine.trajectories import SAMPLINGS
from gradient_dd.errors import Unquoted, bad_request, one_of, text, whole_number
from gradient_dd.fingerprint import code_of, digest, fingerprint, plain
from gradient_dd.learners import RHO_MODES, Rule, Setting, find
from gradient_dd.tasks import Task, build

MOST_SETTINGS = 2_000_000  # maximum per study, which takes half a gigabyte and a few seconds to check


@dataclass(frozen=True)
class TaskSpec:
    """A named task and its parameters, not yet built."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def build(self) -> Task:
        """Return the task."""
        return build(self.name, **dict(self.parameters))


def task(name: str, **parameters: Any) -> TaskSpec:
    """Return a named task for a study.

    >>> task("random_walk", n_states=5).build()
    <Task random_walk(n_states=5): 5 states, 5 features>
    """
    return TaskSpec(text("The name of a task", name), tuple(plain(parameters).items()))


@dataclass(frozen=True)
class Grid:
    """A learner with values for its parameters: every combination is a setting."""

    learner: str | Rule
    values: tuple[tuple[str, tuple[float, ...]], ...] = ()
    rho_mode: str = "R"

    @property
    def size(self) -> int:
        """The number of settings of the grid, including duplicates."""
        return prod(len(chosen) for _, chosen in self.values)

    def settings(self) -> Iterator[Setting]:
        """Yield every setting of the grid; raise for an invalid value."""
        rule, names = find(self.learner), [name for name, _ in self.values]
        for chosen in product(*(values for _, values in self.values)):
            yield rule.setting(rho_mode=self.rho_mode, **dict(zip(names, chosen, strict=True)))


def grid(learner: str | Rule, rho_mode: str = "R", **values: Any) -> Grid:
    """Return a grid; each value is a number, or a list, tuple, range or one-dimensional array of numbers.

    >>> grid("gradient_dd", alpha=[0.1, 0.2], kappa=(0.5, 1, 2)).size
    6
    """
    if not isinstance(learner, str | Rule):
        raise bad_request("The learner of a grid", "be a name or a Rule", learner)
    name = learner if isinstance(learner, str) else learner.name
    one_of(f"'rho_mode' of a grid of {name}", rho_mode, RHO_MODES)
    chosen = []
    for parameter, value in values.items():
        is_one = not isinstance(value, list | tuple | range) and getattr(value, "ndim", None) != 1
        several = (plain(value),) if is_one else tuple(map(plain, value))
        if not several:
            raise bad_request(f"{parameter!r} of a grid of {name}", "have at least one value", value)
        chosen.append((parameter, several))
    return Grid(learner, tuple(chosen), rho_mode)


def as_grid(setting: Setting) -> Grid:
    """Return a grid of one setting; a study runs equal settings once."""
    return Grid(setting.rule, tuple((name, (value,)) for name, value in setting.values.items()), setting.rho_mode)


ENGINE_VERSION = 4  # increase it whenever a change to the engine could change a result
BEYOND = 2**62  # limit of runs and seeds, so that a results file can store the sum of two
NS_PER_UPDATE = 0.9  # on one core, including sampling and errors; used for time estimates


@dataclass(frozen=True)
class Study:
    """An experiment: tasks × grids of learners, with a length, a number of runs and a seed.

    Tasks may be given by name, and the schedule as text ("tapered(1000)"). Give either `episodes`, or `steps` with an
    error recorded every `every` steps. Runs are numbered from `first_run`; the trajectory of a run depends on its
    number, so runs with other numbers are independent.

    >>> Study("mine", ["random_walk", "boyan_chain"], [grid("td", alpha=[0.1, 0.2])], episodes=100, runs=5)
    <Study 'mine': 2 settings x 2 tasks x 5 runs>
    """

    name: str
    tasks: tuple[TaskSpec | Task, ...]
    grids: tuple[Grid, ...]
    schedule: Schedule = constant
    episodes: int | None = None
    steps: int | None = None
    every: int = 1
    runs: int = 1
    first_run: int = 0
    seed: int = 0
    sampling: str = "trajectory"

    if TYPE_CHECKING:  # the accepted types; the fields have the stored types

        def __init__(
            self,
            name: str,
            tasks: Sequence[str | TaskSpec | Task],
            grids: Sequence[Grid],
            schedule: str | Schedule = constant,
            episodes: int | None = None,
            steps: int | None = None,
            every: int = 1,
            runs: int = 1,
            first_run: int = 0,
            seed: int = 0,
            sampling: str = "trajectory",
        ) -> None: ...

    def __str__(self) -> str:
        rows = ((name, line) for name, words in self.facts().items() for line in words)
        return "\n".join([f"study {self.name}", *(f"  {name:8} {line}" for name, line in rows)])

    def __repr__(self) -> str:
        return f"<Study {self.name!r}: {self.n_settings} settings x {len(self.tasks)} tasks x {self.runs} runs>"

    def _repr_html_(self) -> str:
        return card(f"study {self.name}", {name: "\n".join(words) for name, words in self.facts().items()})

    def facts(self) -> dict[str, list[str]]:
        """Return a description of the study: its tasks, learners, schedule, length and amount of work."""
        work, learners = self.estimate(), []
        for one in self.grids:
            values = ", ".join(f"{name} {shortened(chosen, 16)}" for name, chosen in one.values)
            mode = ", rho_mode T" if one.rho_mode == "T" else ""
            learners.append(f"{find(one.learner).name}: {values or 'defaults'}{mode}")
        return {
            "task": [str(one) for one in self.built_tasks],
            "learner": learners,
            "schedule": [f"{self.schedule}, sampling {self.sampling}, seed {self.seed}"],
            "length": [f"{f'{self.episodes} episodes' if self.episodes else f'{self.steps} steps'}, {self.runs} runs"],
            "work": [
                f"{work['settings']:,} settings x {work['tasks']} tasks x {work['runs']} runs, {work['updates']:.2g} "
                f"updates, about {work['core_seconds']:.2g} s on a core, {work['bytes'] / 1e6:.2g} MB"
            ],
        }

    def __post_init__(self) -> None:
        text("The name of a study", self.name)
        for name, least in (("runs", 1), ("first_run", 0), ("seed", 0)):
            whole = whole_number(f"{name!r} of study {self.name!r}", getattr(self, name), least)
            if whole >= BEYOND:
                raise bad_request(f"{name!r} of study {self.name!r}", "be less than 2⁶²", whole)
            object.__setattr__(self, name, whole)
        for name in ("episodes", "steps", "every"):
            object.__setattr__(self, name, getattr(self.horizon, name))
        self._check_several("tasks", TaskSpec | Task, "task('random_walk', n_states=20)")
        self._check_several("grids", Grid, "grid('td', alpha=0.1)")
        one_of("'sampling'", self.sampling, SAMPLINGS)
        object.__setattr__(self, "schedule", check_schedule(self.schedule))
        count = sum(one.size for one in self.grids)
        if count > MOST_SETTINGS:
            got = Unquoted(f"{count:,}")
            raise bad_request(
                f"Study {self.name!r}", f"have at most {MOST_SETTINGS:,} settings", got, "Use coarser grids."
            )
        for one in self.built_tasks:
            self.horizon.check(one)
        _ = self.n_settings  # checks every setting

    def _check_several(self, name: str, kind: Any, example: str) -> None:
        """Raise unless a field has one or more values of a type; store them as a tuple."""
        values = getattr(self, name)
        if not isinstance(values, tuple | list):
            raise bad_request(f"{name!r} of study {self.name!r}", f"be a tuple, e.g. ({example},)", values)
        if not values:
            raise bad_request(f"{name!r} of study {self.name!r}", "have at least one entry", values)
        made = tuple(task(one) if name == "tasks" and isinstance(one, str) else one for one in values)
        for one in made:
            if not isinstance(one, kind):
                raise bad_request(f"Each of the {name} of study {self.name!r}", f"be like {example}", one)
        object.__setattr__(self, name, made)

    @property
    def horizon(self) -> Horizon:
        """The length of a run."""
        return Horizon(self.episodes, self.steps, self.every)

    @property
    def run_numbers(self) -> range:
        """The run numbers."""
        return range(self.first_run, self.first_run + self.runs)

    @cached_property
    def built_tasks(self) -> tuple[Task, ...]:
        """The built tasks."""
        return tuple(one if isinstance(one, Task) else one.build() for one in self.tasks)

    def settings(self) -> Iterator[Setting]:
        """Yield every setting once, in the order of the grids."""
        seen = set()
        for one in self.grids:
            for setting in one.settings():
                key = setting.rule, setting.rho_mode, *setting.values.values()
                if key not in seen:
                    seen.add(key)
                    yield setting

    @cached_property
    def n_settings(self) -> int:
        """The number of settings of the grids, without duplicates."""
        return sum(1 for _ in self.settings())

    def fresh(self, runs: int, settings: list[Setting], tasks: tuple[Task, ...] = ()) -> "Study":
        """Return a study of these settings on later runs than this study's, for `tasks` or this study's tasks."""
        name, grids, first = f"{self.name}-fresh", tuple(map(as_grid, settings)), self.first_run + self.runs
        return replace(self, name=name, tasks=tasks or self.tasks, grids=grids, first_run=first, runs=runs)

    def lanes(self, task: Task) -> Iterator[tuple[str, Setting, dict[str, Any]]]:
        """Yield (key, setting, facts) of every lane of a task.

        The key identifies everything that a result depends on except the run, including definitions. The description,
        one of the facts, is a digest of the names and values that readers see. If two settings have equal
        descriptions and different keys, a definition has changed.
        """
        common = {
            "task": task.name,
            "size": task_size(task),
            "schedule": str(self.schedule),
            "episodes": self.episodes,
            "steps": self.steps,
            "every": self.every,
            "sampling": self.sampling,
            "seed": self.seed,
        }
        described_by = fingerprint(common, plain(dict(task.parameters)))
        schedule = fingerprint(code_of(self.schedule.function), self.schedule.per)
        made_by = fingerprint(described_by, task.key, schedule, ENGINE_VERSION)
        for setting in self.settings():
            lane = {"learner": setting.rule.name, "values": dict(setting.values), "rho_mode": setting.rho_mode}
            text = json.dumps(lane)
            seen = {"reading": reading(task, setting, self.sampling), "description": digest(described_by + text)}
            yield digest(made_by + setting.rule.key + text), setting, common | lane | seen

    def estimate(self) -> dict[str, float]:
        """Return the amount of work: tasks, settings, runs, updates, core-seconds, bytes on disk."""
        built, lanes = self.built_tasks, self.n_settings
        length = [self.steps or self.episodes * one.expected_length for one in built]  # type: ignore[operator]
        updates = sum(length) * lanes * self.runs
        rows = len(built) * lanes * self.runs
        return {
            "tasks": len(built),
            "settings": lanes,
            "runs": self.runs,
            "updates": updates,
            "core_seconds": updates * NS_PER_UPDATE * 1e-9,
            "bytes": rows * (8 * self.horizon.bins + 60.0),
        }


def shortened(values: Sequence[float], most: int) -> str:
    """Return numbers as text, or only the first, the last and the count if there are more than `most` numbers."""
    if len(values) <= most:
        return " ".join(f"{value:.4g}" for value in values)
    return f"{values[0]:.4g} … {values[-1]:.4g} ({len(values)} values)"


def task_size(task: Task) -> int:
    """Return the first parameter of a task (m of the walk, p of the Boyan chain), else its number of states."""
    first = plain(next(iter(task.parameters.values()), None))
    return first if isinstance(first, int) and not isinstance(first, bool) else task.n_states


def reading(task: Task, setting: Setting, sampling: str) -> str:
    """Return the variant of a task as text: its differences from the default."""
    parts = [f"{name}={plain(value)}" for name, value in list(task.parameters.items())[1:]]
    parts += ["iid"] if sampling == "iid" else []
    parts += ["rho_mode=T"] if setting.rho_mode == "T" else []
    return ", ".join(parts) or "default"


# The origin of a result ------------------------------------------------------------------------------------------


def provenance() -> dict[str, str | int]:
    """Return the versions, the commit of the source and the processor of this process.

    The commit is "" outside a Git checkout; a trailing "+" marks uncommitted changes.
    """
    call = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        commit = subprocess.run(call, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        commit = ""
    return {
        "gradient-dd": version("gradient-dd"),
        "engine": ENGINE_VERSION,
        "commit": commit,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "machine": platform.machine(),
        "processor": processor(),
    }


def processor() -> str:
    """Return the processor's name."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
