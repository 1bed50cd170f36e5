"""What shadows say of the settings that `gradient-dd analyse` considers: measured exponents beside exact limits."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from gradient_dd.errors import BadRequestError
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task, random_mdp
from gradient_dd.theory.log import Log
from gradient_dd.theory.sample_maps import SampleMaps

if TYPE_CHECKING:
    from gradient_dd.engine.shadows import Exponents

Facts = dict[str, Any]
STEPS, STARTS, SEED = 20_000, 2, 20_261
MULTIPLES = 1.25 ** np.arange(-20, 31)  # of alpha, among which the measured limit is looked for: 0.012 to 807


def task_shadows(task: Task, settings: Sequence[Setting], sampling: str) -> list[Facts | None]:
    """Return what shadows say of every setting on a task."""
    from gradient_dd.engine.shadows import exponents  # here, so that importing this file loads no compiler

    def measure(several: list[Setting]) -> "Exponents":
        return exponents(task, several, steps=STEPS, starts=STARTS, sampling=sampling, seed=SEED)

    return [shadow_facts(setting, measure) for setting in settings]


def log_shadows(log: Log, settings: Sequence[Setting]) -> list[Facts | None]:
    """Return what shadows say of every setting on transitions of a log, drawn at random."""
    from gradient_dd.engine.log_shadows import (
        RewardlessRows,
        log_exponents,
    )  # here, so that importing this file loads no compiler

    drawn = np.random.default_rng(SEED).integers(len(log.reward), size=STEPS)
    part = log.part(drawn)
    rows = RewardlessRows(part.x, part.discount, part.x_next, part.rho)

    def measure(several: list[Setting]) -> "Exponents":
        return log_exponents(rows, several, starts=STARTS, seed=SEED)

    return [shadow_facts(setting, measure) for setting in settings]


def shadow_facts(setting: Setting, measure: Callable[[list[Setting]], "Exponents"]) -> Facts | None:
    """Return the exponent at the setting's alpha, and up to which alpha shadows do not grow; None if not linear."""
    if not is_linear(setting):
        return None
    alphas = setting.values["alpha"] * MULTIPLES
    found = measure([replace(setting, values={**setting.values, "alpha": alpha}) for alpha in alphas.tolist()])
    at = int(np.flatnonzero(MULTIPLES == 1)[0])
    growing = np.flatnonzero([says(*one) == "grows" for one in zip(found.mean, found.low, found.high, strict=True)])
    limit = inf if not growing.size else float(alphas[growing[0] - 1]) if growing[0] else 0.0
    mean, low, high = (float(array[at]) for array in (found.mean, found.low, found.high))
    return {
        "growth": mean,
        "low": low,
        "high": high,
        "says": says(mean, low, high),
        "no growth up to": limit,
        "steps": STEPS,
    }


def says(growth: float, low: float, high: float) -> str:
    """Return what an exponent and its interval say in words; a growth below tenfold in the steps seen is no growth."""
    if growth * STEPS > log(10) and low > 0:
        return "grows"
    return "shrinks" if high < 0 else "too slow to tell"


def is_linear(setting: Setting) -> bool:
    """Return whether a step is linear in the weights, rewards apart: else a copy without rewards is no difference."""
    try:
        found = SampleMaps(random_mdp(2, 2, 2), setting).coefficients()
    except BadRequestError:
        return False
    return not found.constants.any() and not setting.rule.natural
