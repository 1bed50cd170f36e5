"""Measured growth: how quickly shadows of a learner grow, copies of it without rewards, from random starts.

A shadow of a learner that is linear forgets its start as quickly as the learner does, or diverges with it. So the
growth of shadows in a step says what nearly every run does, where `limits` says what means and mean squares do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradient_dd.errors import BadRequestError
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task, random_mdp
from gradient_dd.theory.log import Log
from gradient_dd.theory.sample_maps import SampleMaps

if TYPE_CHECKING:
    from gradient_dd.engine.shadows import Exponents

STEPS, STARTS, SEED = 20_000, 2, 20_261
MULTIPLES = 1.25 ** np.arange(-20, 31)  # of alpha, among which the measured limit is searched: 0.012 to 807


class Growth(NamedTuple):
    """How quickly the shadows of a setting grow: the exponent of a step, its 95 % interval, and what follows.

    says             "grows", "shrinks" or "too slow to tell"
    no_growth_up_to  the largest alpha below which shadows do not grow; inf where none was found that grows
    """

    growth: float
    low: float
    high: float
    says: str
    no_growth_up_to: float
    steps: int = STEPS


def task_growth(task: Task, settings: Sequence[Setting], sampling: str) -> list[Growth | None]:
    """Return the measured growth of every setting on a task."""
    from gradient_dd.engine.shadows import exponents  # here, so that importing this file loads no compiler

    def measure(several: list[Setting]) -> "Exponents":
        return exponents(task, several, steps=STEPS, starts=STARTS, sampling=sampling, seed=SEED)

    return [growth_of(setting, measure) for setting in settings]


def log_growth(log: Log, settings: Sequence[Setting]) -> list[Growth | None]:
    """Return the measured growth of every setting on transitions of a log, drawn at random."""
    from gradient_dd.engine.log_shadows import log_exponents  # here, so that importing this file loads no compiler

    part = log.part(np.random.default_rng(SEED).integers(len(log.reward), size=STEPS))

    def measure(several: list[Setting]) -> "Exponents":
        return log_exponents(part.x, part.discount, part.x_next, part.rho, several, starts=STARTS, seed=SEED)

    return [growth_of(setting, measure) for setting in settings]


def growth_of(setting: Setting, measure: Callable[[list[Setting]], "Exponents"]) -> Growth | None:
    """Return the growth at the setting's alpha, and up to which alpha there is none; None if the step is not linear."""
    if not is_linear(setting):
        return None
    alphas = setting.values["alpha"] * MULTIPLES
    found = measure([replace(setting, values={**setting.values, "alpha": alpha}) for alpha in alphas.tolist()])
    at = int(np.flatnonzero(MULTIPLES == 1)[0])
    growing = np.flatnonzero([says(*one) == "grows" for one in zip(found.mean, found.low, found.high, strict=True)])
    limit = inf if not growing.size else float(alphas[growing[0] - 1]) if growing[0] else 0.0
    mean, low, high = (float(array[at]) for array in (found.mean, found.low, found.high))
    return Growth(mean, low, high, says(mean, low, high), limit)


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
