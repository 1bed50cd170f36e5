"""The analysis of `gradient-dd analyse`: advice, exact limits of alpha, and the stability of TD."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, isinf, log
from os import cpu_count
from time import thread_time
from typing import Any

import numpy as np

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, constant
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.tasks import Task
from gradient_dd.theory import advice as search
from gradient_dd.theory.advice import Advice, PredictedError, TunedLearner, advise
from gradient_dd.theory.recursion import Assumption, check_assumptions
from gradient_dd.theory.stability import SMALL, Complex, Limits, exact_limits, in_row_space

Facts = dict[str, Any]
Row = tuple[str, ...]
Line = str | tuple[list[Row], Row]  # a sentence, or the rows and the head of a table
EPISODES, STEPS = 10_000, 100_000  # length of a run, unless the user gives it
SECONDS_FOR_LIMITS = 1.5  # limit on the CPU time of this thread
MOST_FEATURES = 500  # maximum size of a matrix whose eigenvalues are computed
SECONDS_TO_COMPILE = 4  # approximate time for two kernels and startup
HEAD = ("learner", "its best setting", "over the run", "at the end", "stable below", "safe below")
WHEN = {"mean_error": "over the whole run", "last100": "at the end"}
BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 40  # number of bars that show the curve
SHARES = (0.01, 0.1, 0.5, 1.0)  # fractions of a run at which the error is printed


@dataclass(frozen=True)
class Analysis:
    """The analysis of a task.

    limits       of alpha, for each candidate of the advice
    eigenvalues  of A in the row space of X, sorted by real part; None if A is too large
    assumptions  of the theorem; None if the task is too large to check them quickly
    """

    subject: str
    sampling: str
    schedule: str
    advice: Advice
    limits: list[Limits]
    eigenvalues: Complex | None
    assumptions: list[Assumption] | None = None

    def facts(self) -> Facts:
        """Return the analysis as plain data."""
        advice, best, modes, recommended = self.advice, self.advice.best, self.eigenvalues, None
        if best is not None:
            error = advice.error_of(best)
            predicted = {"predicted error": error.mean, "standard_error": error.standard_error, "runs": error.runs}
            recommended = facts_of(best, **predicted) | {
                "beats standing still": advice.beats_standing_still,
                "pilot horizon": length(advice.pilot_horizon) if advice.is_cut else None,
            }
        return {
            "task": self.subject,
            "sampling": self.sampling,
            "schedule": self.schedule,
            "horizon": length(advice.horizon),
            "measure": advice.measure,
            "initial error": advice.initial_error,
            "advice": recommended,
            "candidates": [
                facts_of(one) | {"refined": one.refined} | limits._asdict()
                for one, limits in zip(advice.candidates, self.limits, strict=True)
            ],
            "left out": advice.left_out,
            "curve": None if best is None else curve_facts(advice.pilot_horizon, best),
            "TD": td_sentence(modes),
            "eigenvalues of A": None if modes is None else [[mode.real, mode.imag] for mode in modes.tolist()],
            "assumptions": self.assumptions and [one._asdict() for one in self.assumptions],
        }


def analyse_task(
    task: Task,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    schedule: Schedule = constant,
    measure: str = "mean_error",
    sampling: str = "trajectory",
    learners: Sequence[str] = (),
    rules: Sequence[Rule] = (),
    on_progress: Callable[[str, float], None] = lambda doing, share: None,
) -> Analysis:
    """Return advice for a task, the exact limits of alpha for each candidate, and the theorem's assumptions.

    The search tries `learners` (the default learners if empty) and `rules`. `on_progress` is called with the next stage
    and the completed share of the work.
    """
    if episodes is None and steps is None:
        episodes, steps = (EPISODES, None) if task.episodic else (None, STEPS)
    horizon = Horizon(episodes=episodes, steps=steps)
    tried: list[str | Rule] = [*(learners or search.TRIED), *rules]
    seconds = search.BUDGET / (cpu_count() or 1) + SECONDS_TO_COMPILE
    on_progress(f"pilot runs on {task}: at most about {seconds:.0f} s", 0.0)
    how: dict[str, Any] = {"sampling": sampling, "measure": measure, "learners": tried}
    advice = advise(task, horizon, schedule, **how, on_progress=on_progress)
    on_progress("exact limits, if they are quick to compute", 1.0)
    deadline = thread_time() + SECONDS_FOR_LIMITS
    is_small = 3 * task.n_states * task.n_features <= SMALL
    limits = [exact_limits(task, one.setting, sampling, deadline) for one in advice.candidates]
    gradient_dd, assumptions = LEARNERS["gradient_dd"].setting(), None
    if is_small:
        assumptions = check_assumptions(task, gradient_dd, schedule, sampling)
    return Analysis(str(task), sampling, str(schedule), advice, limits, eigenvalues_of_A(task), assumptions)


def eigenvalues_of_A(task: Task) -> Complex | None:
    """Return the eigenvalues of A = E[ρ x (x − γx')ᵀ] in the row space of X, by real part; None if A is too large.

    The mean of TD's error follows e' = −A e per unit of n α, so each mode grows or shrinks at the rate −Re λ.
    """
    if task.n_features > MOST_FEATURES:
        return None
    return np.sort(np.linalg.eigvals(in_row_space(task).moments.A).astype(complex))


def td_sentence(modes: Complex | None) -> str:
    """Return the stability of TD in the mean as text, from the eigenvalues of A."""
    if modes is None:
        return "not analysed: the eigenvalues of A would take too long to compute"
    smallest = float(modes[0].real)
    if abs(smallest) <= 1e-12 * np.abs(modes).max():
        verdict = "of undecided stability: an eigenvalue of A is zero"
    elif smallest > 0:
        verdict = "stable in the mean for small step sizes"
    else:
        verdict = "not stable in the mean at any step size"
    return f"{verdict} (Re λ(A) ≥ {smallest:.3g})"


def length(horizon: Horizon) -> str:
    """Return the length of a horizon as text."""
    count, unit = (horizon.steps, "step") if horizon.episodes is None else (horizon.episodes, "episode")
    return f"{count:,} {unit}" + ("s" if count != 1 else "")


# Plain data


def facts_of(one: TunedLearner, **more: Any) -> Facts:
    """Return a learner, its parameters, further facts, and both predicted errors."""
    setting = one.setting
    mode = {"rho_mode": setting.rho_mode} if setting.rule.has_rho_mode else {}
    errors = {"mean_error": one.mean_error._asdict(), "last100": one.last100._asdict()}
    return {"learner": setting.rule.name, **setting.values, **mode, **more, **errors}


def curve_facts(horizon: Horizon, best: TunedLearner) -> Facts:
    """Return the error along a run, by bin: mean, minimum and maximum of the pilot runs."""
    runs = best.curve
    return {
        "unit": "steps" if horizon.episodes is None else "episodes",
        "at": (np.cumsum(horizon.bin_sizes()) * horizon.every).tolist(),
        "mean": runs.mean(axis=0).tolist(),
        "low": runs.min(axis=0).tolist(),
        "high": runs.max(axis=0).tolist(),
    }


# The page


def page_lines(found: Analysis, details: bool = True) -> list[Line]:
    """Return the lines of the page; without `details` only the advice and its limits."""
    advice = found.advice
    lines: list[Line] = [
        f"{found.subject}, {length(advice.horizon)}, step size {found.schedule}, sampling: {found.sampling}",
        f"Settings are chosen to minimise the error {WHEN[advice.measure]}.",
        "",
        *advice_lines(found),
        "",
    ]
    if details:
        rows = []
        for one, limits in zip(advice.candidates, found.limits, strict=True):
            errors = (error_words(error) + " *" * (not one.refined) for error in (one.mean_error, one.last100))
            setting = one.setting.rule.name, parameters(one.setting)
            rows.append((*setting, *errors, limit(limits.stable), limit(limits.safe)))
        lines += [(rows, HEAD), *notes(found), ""]
    lines += [f"TD is {td_sentence(found.eigenvalues)}."]
    if details and found.assumptions:
        lines += ["", "The theorem's assumptions, for Gradient-DD with alpha 0.1 and kappa 1:"]
        for each in found.assumptions:
            lines += [f"({each.name}) {'holds' if each.holds else 'fails'}: {each.statement}. Here {each.why}."]
            lines += [] if each.holds else [f"   so {each.consequence}."]
    return lines if details else [*lines, "--details shows the other learners, their limits and the assumptions."]


def advice_lines(found: Analysis) -> list[str]:
    """Return the advice, its predicted errors, and the error of the initial weights."""
    advice, best = found.advice, found.advice.best
    if best is None:
        return ["Every setting that was tried diverged, so there is no advice. Check the features and the ratios."]
    words = f"{best.setting.rule.name} with {parameters(best.setting)}"
    lines = [f"Use {words}."]
    if not advice.beats_standing_still:
        lines = [
            "No setting has a lower error than the initial weights: do not learn, or change the features.",
            f"The best setting is {words}.",
        ]
    lines += [
        f"  predicted error  {error_words(best.mean_error)} {WHEN['mean_error']}, {error_words(best.last100)} "
        f"{WHEN['last100']}, on {best.mean_error.runs} pilot runs",
        f"  initial weights  {advice.initial_error:.4g}",
        *curve_lines(curve_facts(advice.pilot_horizon, best)),
    ]
    safe = found.limits[[one.setting for one in advice.candidates].index(best.setting)].safe
    if safe is not None and best.setting.values["alpha"] > safe:
        lines += [
            f"This alpha is above {safe:.3g}, where the mean square stops converging: rare runs can do much worse "
            "than the runs of the pilot. A smaller alpha is safer."
        ]
    if advice.is_cut:
        lines += [
            f"The pilot ran {length(advice.pilot_horizon)} instead of {length(advice.horizon)}, and all errors are for "
            "that length. With a constant step size a longer run needs a smaller alpha."
        ]
    return lines


def parameters(setting: Setting) -> str:
    """Return the parameters of a setting as text; rho_mode only if it is T."""
    words = ", ".join(f"{name} {value:.3g}" for name, value in setting.values.items())
    return words + (", rho_mode T" if setting.rule.has_rho_mode and setting.rho_mode == "T" else "")


def error_words(error: PredictedError) -> str:
    """Return a predicted error with its uncertainty."""
    return f"{error.mean:.4g}" + (f" ± {error.standard_error:.1g}" if isfinite(error.standard_error) else "")


def curve_lines(curve: Facts) -> list[str]:
    """Return the curve as bars with a logarithmic scale, and its value at a few points."""
    mean, at = curve["mean"], curve["at"]
    if not all(isfinite(value) and value > 0 for value in mean):
        return []
    chosen = [mean[i * len(mean) // COLUMNS] for i in range(COLUMNS)] if len(mean) > COLUMNS else mean
    low, high = log(min(chosen)), log(max(chosen))
    heights = [round((log(value) - low) / (high - low) * (len(BARS) - 1)) if high > low else 0 for value in chosen]
    places = dict.fromkeys(max(0, round(share * len(mean)) - 1) for share in SHARES)
    points = ", ".join(f"{mean[place]:.3g} at {at[place]:,}" for place in places)
    return [f"  error by {curve['unit']}  {''.join(BARS[height] for height in heights)}  {points}"]


def limit(value: float | None) -> str:
    """Return a limit of alpha as text for the table."""
    return "?" if value is None else "never" if value == 0 else "any" if isinf(value) else f"{value:.3g}"


def notes(found: Analysis) -> list[str]:
    """Return the legend of the table, and the reason for each learner that is not in it."""
    limits = [value for one in found.limits for value in (one.stable, one.safe)]
    lines = []
    if not all(one.refined for one in found.advice.candidates):
        lines += ["*: error far above the best in the first stages, so the setting was not refined."]
    if any(value is not None for value in limits):
        lines += ["stable, safe: below this alpha the mean, and the mean square, converge with a constant step size."]
    if any(value is None for value in limits):
        lines += [
            "?: not computed, because it would take too long or the rule is not linear. The pilot does not need it."
        ]
    left_out = found.advice.left_out
    for reason in dict.fromkeys(left_out.values()):
        names = ", ".join(name for name, why in left_out.items() if why == reason)
        lines += [f"{names}: {reason}." + (" Add --learner NAME to try one." if reason == search.NOT_TRIED else "")]
    return lines
