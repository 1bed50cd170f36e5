"""What `gradient-dd analyse` finds, as plain data: the advice, what it rests on, and exact facts beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

from gradient_dd.cli.measured import log_shadows, task_shadows
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, constant
from gradient_dd.errors import must
from gradient_dd.learners import LEARNERS, Rule, Setting, find
from gradient_dd.tasks import Task
from gradient_dd.theory.advice import BUDGET, TRIED, Advice, Candidate, Estimate, Progress, advise, advise_from_log
from gradient_dd.theory.limits import Limits, exact_limits
from gradient_dd.theory.log import Log, read_log
from gradient_dd.theory.recursion import check_assumptions
from gradient_dd.theory.stability import SMALL

Facts = dict[str, Any]
EPISODES, STEPS = 10_000, 100_000  # of a run, unless the user says how long it is
SECONDS_FOR_LIMITS = 1.5  # of this thread
MOST_FEATURES = 500  # of a matrix whose eigenvalues are computed
SECONDS_TO_COMPILE = 4  # about: two kernels, and starting up


def no_progress(doing: str, share: float) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Request:
    """What the user asks for; None stands for the default. `on_progress` gets what is done next, and a share of 1."""

    episodes: int | None = None
    steps: int | None = None
    schedule: Schedule = constant
    measure: str | None = None
    sampling: str | None = None
    learners: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    shadows: bool = False
    on_progress: Callable[[str, float], None] = no_progress

    @property
    def tried(self) -> list[Rule]:
        """The learners to try: those named or else the usual ones, and the user's own."""
        return [*map(find, self.learners or TRIED), *self.rules]

    def horizon(self, task: Task) -> Horizon:
        """Return how long a run is."""
        if self.episodes is None and self.steps is None:
            return Horizon(episodes=EPISODES) if task.episodic else Horizon(steps=STEPS)
        return Horizon(episodes=self.episodes, steps=self.steps)

    def report(self, progress: Progress) -> None:
        """Pass on the progress of a search."""
        seconds = f", about {progress.core_seconds:.1f} s of a core" if progress.core_seconds >= 0.1 else ""
        self.on_progress(progress.doing + seconds, progress.share)


def analyse_task(task: Task, request: Request) -> Facts:
    """Return advice for a task, the exact limits of what it considered, and the theorem's assumptions."""
    horizon, sampling = request.horizon(task), request.sampling or "trajectory"
    seconds = BUDGET / (cpu_count() or 1) + SECONDS_TO_COMPILE
    request.on_progress(f"a pilot on {task}: at most about {seconds:.0f} s", 0.0)
    advice = advise(
        task,
        horizon,
        request.schedule,
        sampling=sampling,
        measure=request.measure or "area",
        learners=request.tried,
        on_progress=request.report,
    )
    request.on_progress("exact limits, where they are quick", 1.0)
    deadline = thread_time() + SECONDS_FOR_LIMITS
    limits = [exact_limits(task, one.setting, sampling, deadline) for one in advice.candidates]
    about = {"task": str(task), "sampling": sampling, "schedule": str(request.schedule)}
    settings = [one.setting for one in advice.candidates]
    shadows = measured_shadows(request, lambda: task_shadows(task, settings, sampling))
    return (
        about | advice_facts(advice, limits, shadows) | {"TD": td_fact(task), "assumptions": assumptions(task, request)}
    )


def analyse_log(path: str | Path, request: Request, **reading: Any) -> Facts:
    """Return advice for a log, and how far it can be trusted; `reading` are the options of `read_log`."""
    for name in ("episodes", "sampling"):
        if getattr(request, name) is not None:
            raise must(
                f"'--{name}'", "be left out with a log, which is replayed in random order", getattr(request, name)
            )
    log = read_log(path, **reading)
    request.on_progress(f"a pilot on {log}: at most about {BUDGET:.0f} s", 0.0)
    advice, doubt = advise_from_log(
        log,
        request.steps,
        request.schedule,
        measure=request.measure or "last100",
        learners=request.tried,
        on_progress=request.report,
    )
    about = {"task": str(log), "sampling": "independent draws from the log", "schedule": str(request.schedule)}
    settings = [one.setting for one in advice.candidates]
    shadows = measured_shadows(request, lambda: log_shadows(log, settings))
    facts = about | advice_facts(advice, [Limits(None, None, None) for _ in advice.candidates], shadows)
    return facts | {"TD": td_fact(log.in_row_space()), "doubt": None if doubt is None else doubt._asdict()}


def measured_shadows(request: Request, measure: Callable[[], list[Facts | None]]) -> list[Facts | None] | None:
    """Return what shadows say of the candidates, if the user asks for it."""
    if not request.shadows:
        return None
    request.on_progress("shadows: copies without rewards, whose growth is measured", 1.0)
    return measure()


def advice_facts(advice: Advice, limits: list[Limits], shadows: list[Facts | None] | None) -> Facts:
    """Return advice as plain data."""
    rows = [candidate_facts(one) | limit._asdict() for one, limit in zip(advice.candidates, limits, strict=True)]
    if shadows is not None:
        rows = [row | {"shadow": shadow} for row, shadow in zip(rows, shadows, strict=True)]
    return {
        "horizon": length(advice.horizon),
        "measure": advice.measure,
        "initial error": advice.initial_error,
        "advice": None if advice.best is None else best_facts(advice, advice.best),
        "candidates": rows,
        "left out": advice.left_out,
        "curve": None if advice.best is None else curve_facts(advice.pilot_horizon, advice.best),
    }


def best_facts(advice: Advice, best: Candidate) -> Facts:
    """Return the advice itself: the learner, its parameters, and the error that is predicted."""
    error: Estimate = getattr(best, advice.measure)
    whole = advice.pilot_horizon.points == advice.horizon.points
    return setting_facts(best.setting) | {
        "predicted error": error.mean,
        "doubt": error.doubt,
        "runs": error.runs,
        "area": best.area._asdict(),
        "last100": best.last100._asdict(),
        "beats standing still": advice.beats_standing_still,
        "extrapolated from": None if whole else length(advice.pilot_horizon),
    }


def setting_facts(setting: Setting) -> Facts:
    """Return a learner and its parameters."""
    mode = {"rho_mode": setting.rho_mode} if setting.rule.has_rho_mode else {}
    return {"learner": setting.rule.name, **setting.values, **mode}


def candidate_facts(one: Candidate) -> Facts:
    """Return a learner's best setting and its errors."""
    errors = {"area": one.area._asdict(), "last100": one.last100._asdict()}
    return setting_facts(one.setting) | errors | {"refined": one.refined}


def curve_facts(horizon: Horizon, best: Candidate) -> Facts:
    """Return the predicted error along a run: the mean, the least and the largest of the pilot runs, bin by bin."""
    ends = np.cumsum(horizon.bin_sizes()) * horizon.every
    runs = best.curve
    return {
        "unit": "steps" if horizon.episodes is None else "episodes",
        "at": ends.tolist(),
        "mean": runs.mean(axis=0).tolist(),
        "low": runs.min(axis=0).tolist(),
        "high": runs.max(axis=0).tolist(),
    }


def assumptions(task: Task, request: Request) -> list[Facts] | None:
    """Return the theorem's assumptions for Gradient-DD with kappa 1; None where the task is too large to do it soon."""
    if 3 * task.n_states * task.n_features > SMALL:
        return None
    setting = LEARNERS["gradient_dd"].setting()
    return [
        one._asdict() for one in check_assumptions(task, setting, request.schedule, request.sampling or "trajectory")
    ]


def td_fact(source: Task | Log) -> str:
    """Return what the eigenvalues of A say of TD."""
    if source.n_features > MOST_FEATURES:
        return "not judged: A is too large for its eigenvalues to be computed soon"
    smallest = float(np.linalg.eigvals(source.moments.A).real.min())
    if abs(smallest) <= 1e-12:
        verdict = "decided by the row space: A is singular"
    else:
        verdict = (
            "stable in the mean for small step sizes" if smallest > 0 else "not stable in the mean at any step size"
        )
    return f"{verdict} (Re λ(A) ≥ {smallest:.3g})"


def length(horizon: Horizon) -> str:
    """Return how long a horizon is, in words."""
    count, unit = (horizon.steps, "step") if horizon.episodes is None else (horizon.episodes, "episode")
    return f"{count:,} {unit}" + ("s" if count != 1 else "")
