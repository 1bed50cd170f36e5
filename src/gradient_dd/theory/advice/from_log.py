"""Advice for a log of transitions, and how far it can be trusted."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import Words, must
from gradient_dd.learners import Rule, find
from gradient_dd.studies.intervals import resample_counts
from gradient_dd.tasks.exact import Moments, fixed_point
from gradient_dd.theory.advice.advise import TRIED, Advice, TunedLearner, advise_with, coarser
from gradient_dd.theory.advice.log_pilot import LogPilot, blocks_of
from gradient_dd.theory.advice.pilot import SEED
from gradient_dd.theory.advice.search import BUDGET, OnProgress
from gradient_dd.theory.advice.space import spaces_of
from gradient_dd.theory.log import Log

RESAMPLES = 200
FEWEST = 10  # transitions of a log
REPLAYS = 8  # of the advice, for the interval
STILL = 1e-12  # eigenvalues of A below this belong to features that no transition shows


class LogDoubt(NamedTuple):
    """What bootstrap samples of the log say. They are made of blocks of successive transitions.

    error      5 % and 95 % of the held-out error of the advice at the end of a pilot
    improves   share of the samples in which the advice ends with a smaller error than the initial weights, w = 0
    td_stable  share of the samples in which TD is stable in the mean for small step sizes
    solution   the held-out error of the solution of A w = b on the replayed half, for comparison
    """

    error: tuple[float, float]
    improves: float
    td_stable: float
    solution: float


def advise_from_log(
    log: Log,
    steps: int | None = None,
    schedule: Schedule = constant,
    *,
    measure: str = "last100",
    learners: Iterable[str | Rule] = TRIED,
    budget: float = BUDGET,
    on_progress: OnProgress = lambda progress: None,
) -> tuple[Advice, LogDoubt | None]:
    """Return advice for so many updates on transitions of a log in random order, by default as many as it has.

    The doubt is None where there is no advice. A schedule counts updates.
    """
    check_schedule(schedule)
    if len(log.reward) < FEWEST:
        raise must("A log", f"have at least {FEWEST} transitions for advice", Words(str(len(log.reward))))
    rules = list(map(find, learners))
    if natural := [rule.name for rule in rules if rule.natural]:
        raise must("A learner for a log", "be one whose step takes linear time", ", ".join(natural))
    horizon = coarser(Horizon(steps=len(log.reward) if steps is None else steps))
    reduced = log.in_row_space()
    mean_square = float(np.trace(reduced.moments.C))
    spaces = spaces_of(rules, mean_square, float(horizon.steps or 1), bool(np.ptp(log.rho) > 0))
    pilot = LogPilot(reduced, horizon, schedule, spaces)
    still = float(pilot.error(np.zeros(reduced.n_features)))
    advice = advise_with(pilot, measure, budget, on_progress, still)
    if advice.best is None:
        return advice, None
    rule = advice.best.setting.rule
    return advice, doubt(reduced, pilot, next(one for one in advice.candidates if one.setting.rule == rule))


def doubt(log: Log, pilot: LogPilot, best: TunedLearner) -> LogDoubt:
    """Return how the advice fares on bootstrap samples of blocks: of the held-out half, and for TD of the whole log."""
    _, ends = pilot.replay([best.setting], pilot.horizon, pilot.order(pilot.horizon, REPLAYS))
    still, rng = np.zeros(log.n_features), np.random.default_rng(SEED)
    errors, better = [], []
    for moments in bootstrap(log, pilot.held_out_blocks, rng):
        errors.append(float(pilot.error(ends, moments).mean()))
        better.append(errors[-1] < pilot.error(still, moments))
    low, high = np.quantile(errors, [0.05, 0.95]).tolist()
    td = [is_td_stable(moments.A) for moments in bootstrap(log, blocks_of(log), rng)]
    A, b, _ = pilot.replayed.moments
    solution = float(pilot.error(fixed_point(A, b)))
    return LogDoubt((low, high), float(np.mean(better)), float(np.mean(td)), solution)


def bootstrap(log: Log, blocks: list[Integers], rng: np.random.Generator) -> Iterator[Moments]:
    """Yield A, b and C of bootstrap samples: as many blocks, drawn with replacement."""
    sizes = np.array([len(block) for block in blocks])
    sums = [np.array(one) for one in zip(*(log.part(block).moments for block in blocks), strict=True)]
    for counts in resample_counts(rng, len(blocks), RESAMPLES):
        weight = sizes * counts
        yield Moments(*(np.tensordot(weight / weight.sum(), one, axes=1) for one in sums))


def is_td_stable(A: Array) -> bool:
    """Return whether TD is stable in the mean for small step sizes; directions that never move are left out."""
    eigenvalues = np.linalg.eigvals(A)
    return bool(eigenvalues[np.abs(eigenvalues) > STILL].real.min(initial=np.inf) > 0)
