"""What `gradient-dd analyse` finds: advice, exact limits beside it, and what speaks for or against TD."""

from collections.abc import Callable
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, constant
from gradient_dd.errors import bad_request
from gradient_dd.learners import LEARNERS, Rule, Setting, find
from gradient_dd.tasks import Task
from gradient_dd.theory.advice.advise import TRIED, Advice, TunedLearner, advise
from gradient_dd.theory.advice.from_log import LogDoubt, advise_from_log
from gradient_dd.theory.advice.search import BUDGET, SearchProgress
from gradient_dd.theory.limits import Growth, Limits, exact_limits, log_growth, task_growth
from gradient_dd.theory.log import Log, read_log
from gradient_dd.theory.recursion import Assumption, check_assumptions
from gradient_dd.theory.stability import SMALL

Facts = dict[str, Any]
EPISODES, STEPS = 10_000, 100_000  # of a run, unless the user says how long it is
SECONDS_FOR_LIMITS = 1.5  # of this thread
MOST_FEATURES = 500  # of a matrix whose eigenvalues are computed
SECONDS_TO_COMPILE = 4  # about: two kernels, and starting up


def no_progress(doing: str, share: float) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class AnalysisRequest:
    """What the user asks for; None stands for the default.

    `on_progress` is called with what is done next, and the share of the work that lies behind.
    """

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

    def report(self, progress: SearchProgress) -> None:
        """Pass on the progress of a search."""
        seconds = f", about {progress.core_seconds:.1f} s of a core" if progress.core_seconds >= 0.1 else ""
        self.on_progress(progress.doing + seconds, progress.share)


@dataclass(frozen=True)
class Analysis:
    """What was found.

    subject, sampling, schedule  what was analysed, in words
    advice       which learner to take, and all that were tried
    limits       of alpha, for each candidate of the advice
    growth       of each candidate's shadows; None where it was not to be measured
    td           what the eigenvalues of A say of TD, in words
    assumptions  of the theorem; None where the task is too large to judge them soon, or for a log
    doubt        of the advice for a log; None for a task
    of_log       whether a log was analysed
    """

    subject: str
    sampling: str
    schedule: str
    advice: Advice
    limits: list[Limits]
    growth: list[Growth | None] | None
    td: str
    assumptions: list[Assumption] | None = None
    doubt: LogDoubt | None = None
    of_log: bool = False

    def facts(self) -> Facts:
        """Return the analysis as plain data."""
        advice, rows = self.advice, []
        for place, (one, limits) in enumerate(zip(advice.candidates, self.limits, strict=True)):
            growth = {} if self.growth is None else {"shadow": growth_facts(self.growth[place])}
            errors = {**errors_of(one), "refined": one.refined}
            rows.append(setting_facts(one.setting) | errors | as_data(limits) | growth)
        last = (
            {"doubt": as_data(self.doubt)}
            if self.of_log
            else {"assumptions": self.assumptions and [as_data(one) for one in self.assumptions]}
        )
        return {
            "task": self.subject,
            "sampling": self.sampling,
            "schedule": self.schedule,
            "horizon": length(advice.horizon),
            "measure": advice.measure,
            "initial error": advice.initial_error,
            "advice": None if advice.best is None else best_facts(advice, advice.best),
            "candidates": rows,
            "left out": advice.left_out,
            "curve": None if advice.best is None else curve_facts(advice.pilot_horizon, advice.best),
            "TD": self.td,
            **last,
        }


def analyse_task(task: Task, request: AnalysisRequest) -> Analysis:
    """Return advice for a task, the exact limits of what was considered, and the theorem's assumptions."""
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
    settings = [one.setting for one in advice.candidates]
    return Analysis(
        str(task),
        sampling,
        str(request.schedule),
        advice,
        [exact_limits(task, setting, sampling, deadline) for setting in settings],
        measured(request, lambda: task_growth(task, settings, sampling)),
        td_sentence(task),
        assumptions(task, request.schedule, sampling),
    )


def analyse_log(path: str | Path, request: AnalysisRequest, **reading: Any) -> Analysis:
    """Return advice for a log, and how far the advice can be trusted; `reading` are the options of `read_log`."""
    for name in ("episodes", "sampling"):
        if getattr(request, name) is not None:
            rule = "be left out with a log, which is replayed in random order"
            raise bad_request(f"'--{name}'", rule, getattr(request, name))
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
    settings = [one.setting for one in advice.candidates]
    return Analysis(
        str(log),
        "independent draws from the log",
        str(request.schedule),
        advice,
        [Limits(None, None, None) for _ in settings],
        measured(request, lambda: log_growth(log, settings)),
        td_sentence(log.in_row_space()),
        doubt=doubt,
        of_log=True,
    )


def measured(request: AnalysisRequest, measure: Callable[[], list[Growth | None]]) -> list[Growth | None] | None:
    """Return the measured growth of the candidates, if the user asks for it."""
    if not request.shadows:
        return None
    request.on_progress("shadows: copies without rewards, whose growth is measured", 1.0)
    return measure()


def assumptions(task: Task, schedule: Schedule, sampling: str) -> list[Assumption] | None:
    """Return the theorem's assumptions for Gradient-DD with kappa 1; None where the task is too large."""
    if 3 * task.n_states * task.n_features > SMALL:
        return None
    return check_assumptions(task, LEARNERS["gradient_dd"].setting(), schedule, sampling)


def td_sentence(source: Task | Log) -> str:
    """Return what the eigenvalues of A say of TD."""
    if source.n_features > MOST_FEATURES:
        return "not judged: A is too large for its eigenvalues to be computed soon"
    smallest = float(np.linalg.eigvals(source.moments.A).real.min())
    if abs(smallest) <= 1e-12:
        verdict = "decided by the row space: A is singular"
    elif smallest > 0:
        verdict = "stable in the mean for small step sizes"
    else:
        verdict = "not stable in the mean at any step size"
    return f"{verdict} (Re λ(A) ≥ {smallest:.3g})"


def length(horizon: Horizon) -> str:
    """Return how long a horizon is, in words."""
    count, unit = (horizon.steps, "step") if horizon.episodes is None else (horizon.episodes, "episode")
    return f"{count:,} {unit}" + ("s" if count != 1 else "")


# Plain data


def as_data(record: Any) -> Any:
    """Return a named tuple as a dictionary; None stays None."""
    return None if record is None else record._asdict()


def setting_facts(setting: Setting) -> Facts:
    """Return a learner and its parameters."""
    mode = {"rho_mode": setting.rho_mode} if setting.rule.has_rho_mode else {}
    return {"learner": setting.rule.name, **setting.values, **mode}


def errors_of(one: TunedLearner) -> Facts:
    """Return both predicted errors of a learner."""
    return {"area": as_data(one.area), "last100": as_data(one.last100)}


def growth_facts(growth: Growth | None) -> Facts | None:
    """Return measured growth with the words of its columns."""
    return growth and {name.replace("_", " "): value for name, value in growth._asdict().items()}


def best_facts(advice: Advice, best: TunedLearner) -> Facts:
    """Return the advice itself: the learner, its parameters, and the error that is predicted."""
    error = advice.error_of(best)
    return setting_facts(best.setting) | {
        "predicted error": error.mean,
        "doubt": error.doubt,
        "runs": error.runs,
        **errors_of(best),
        "beats standing still": advice.beats_standing_still,
        "extrapolated from": length(advice.pilot_horizon) if advice.is_extrapolated else None,
    }


def curve_facts(horizon: Horizon, best: TunedLearner) -> Facts:
    """Return the predicted error along a run: the mean, the least and the largest of the pilot runs, bin by bin."""
    runs = best.curve
    return {
        "unit": "steps" if horizon.episodes is None else "episodes",
        "at": (np.cumsum(horizon.bin_sizes()) * horizon.every).tolist(),
        "mean": runs.mean(axis=0).tolist(),
        "low": runs.min(axis=0).tolist(),
        "high": runs.max(axis=0).tolist(),
    }
