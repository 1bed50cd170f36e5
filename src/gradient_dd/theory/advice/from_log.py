"""Advice for a log of transitions, and how far it can be trusted."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import Words, must
from gradient_dd.learners import Rule, find
from gradient_dd.tasks.exact import fixed_point
from gradient_dd.theory.advice.advise import TRIED, Advice, advise_with, coarser
from gradient_dd.theory.advice.log_pilot import LogPilot
from gradient_dd.theory.advice.pilot import SEED
from gradient_dd.theory.advice.search import BUDGET, OnProgress
from gradient_dd.theory.advice.space import spaces_of
from gradient_dd.theory.log import Log

RESAMPLES = 200
FEWEST = 10  # transitions of a log
REPLAYS = 8  # of the advice, for the interval
STILL = 1e-12  # eigenvalues of A below this belong to features that no transition shows


class LogDoubt(NamedTuple):
    """What bootstrap samples of the log's transitions say.

    error      5 % and 95 % of the held-out error of the advice at the end of a replay
    improves   share of the samples in which the advice ends with a smaller error than the initial weights, w = 0
    td_stable  share of the samples in which TD is stable in the mean for small step sizes
    solution   the held-out error of the solution of A w = b on the replayed half: no learner can do much better
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
    return advice, None if advice.best is None else doubt(reduced, pilot, advice)


def doubt(log: Log, pilot: LogPilot, advice: Advice) -> LogDoubt:
    """Return how the advice fares where the held-out half, and for TD the log, is resampled."""
    assert advice.best is not None
    rng = np.random.default_rng(SEED)
    _, ends = pilot.replay([advice.best.setting], pilot.horizon, pilot.order(pilot.horizon, REPLAYS))
    errors, better, td = [], [], []
    for _ in range(RESAMPLES):
        moments = pilot.held_out.resampled(rng).moments
        errors.append(float(pilot.error(ends, moments).mean()))
        better.append(errors[-1] < pilot.error(np.zeros(log.n_features), moments))
        eigenvalues = np.linalg.eigvals(log.resampled(rng).moments.A)
        td.append(eigenvalues[np.abs(eigenvalues) > STILL].real.min(initial=np.inf) > 0)
    A, b, _ = pilot.replayed.moments
    return LogDoubt(
        error=tuple(np.quantile(errors, [0.05, 0.95]).tolist()),
        improves=float(np.mean(better)),
        td_stable=float(np.mean(td)),
        solution=float(pilot.error(fixed_point(A, b))),
    )
