"""Advice for a log of transitions: pilots that replay it in random order, and how far the advice can be trusted.

The log is cut into blocks of successive transitions. A random half of the blocks is replayed: their transitions are
drawn at random, with replacement. The other half is held out: it gives A and b, the whole log gives C, and the error of
weights is the root of their MSPBE,

    √ (b − A w)ᵀ C⁺ (b − A w)

True values are not known, so the error of the values is not either. This error does not fall to zero: the two halves
differ, and so do their solutions.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.horizon import DIVERGED, Horizon
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Rule, Setting, find
from gradient_dd.studies.intervals import resample_counts
from gradient_dd.tasks.exact import Moments, fixed_point, inverse
from gradient_dd.theory.advice.advise import TRIED, Advice, TunedLearner, advise_with, coarser
from gradient_dd.theory.advice.pilot import SEED, Scores, part_of, sum_of_factors
from gradient_dd.theory.advice.search import BUDGET, OnProgress
from gradient_dd.theory.advice.space import Point, Space, spaces_of
from gradient_dd.theory.log import Log

BLOCKS = 200
SECONDS_PER_STEP, SECONDS_PER_WEIGHT = 120e-6, 12e-9  # for each step, and for each weight of each setting and run in it


class LogPilot:
    """A pilot on a log, with a horizon in steps."""

    def __init__(self, log: Log, horizon: Horizon, schedule: Schedule, spaces: dict[str, Space]) -> None:
        self.horizon, self.schedule, self.spaces = horizon, schedule, spaces
        blocks = blocks_of(log)
        order = np.random.default_rng(SEED).permutation(len(blocks))
        self.replayed = log.part(np.concatenate([blocks[k] for k in order[::2]]))
        self.held_out_blocks = [blocks[k] for k in order[1::2]]
        self.held_out = log.part(np.concatenate(self.held_out_blocks))
        self.C = log.moments.C
        self.root = root_of_inverse(self.C)
        self.calls = 0

    def run(self, points: list[Point], runs: int, share: float = 1.0) -> Scores:
        """Replay points for the first 1/share of the horizon, all in the same random orders, which are new ones."""
        horizon = part_of(self.horizon, share)
        order = self.order(horizon, runs)
        settings = [self.spaces[point.learner].pilot_setting(point) for point in points]
        errors = np.empty((runs, len(points), horizon.points))
        for rule in dict.fromkeys(setting.rule for setting in settings):
            lanes = [lane for lane, setting in enumerate(settings) if setting.rule == rule]
            errors[:, lanes], _ = self.replay([settings[lane] for lane in lanes], horizon, order)
        last = errors[:, :, -max(1, horizon.n_last // horizon.every) :].mean(axis=2)
        bins = horizon.bin_of(np.arange(1, horizon.points + 1))
        curve = np.stack([errors[:, :, bins == one].mean(axis=2) for one in range(horizon.bins)], axis=2)
        return Scores(points, errors.mean(axis=2), last, curve)

    def core_seconds(self, settings: int, runs: int = 1, share: float = 1.0) -> float:
        """Return about how long so many settings and runs take on one core."""
        weights = runs * settings * self.C.shape[0]
        return int(self.horizon.steps or 0) / share * (SECONDS_PER_STEP + SECONDS_PER_WEIGHT * weights)

    def scheduled_length(self, horizon: Horizon) -> float:
        """Return how long a run is in units of the schedule, which counts updates here."""
        return sum_of_factors(self.schedule, float(horizon.steps or 1))

    def order(self, horizon: Horizon, runs: int) -> Integers:
        """Return which transition each step of each run replays, (steps, runs): at random, and new in every call."""
        self.calls += 1
        shape = int(horizon.steps or 0), runs
        return np.random.default_rng([SEED, self.calls]).integers(len(self.replayed.reward), size=shape)

    def replay(self, settings: list[Setting], horizon: Horizon, order: Integers) -> tuple[Array, Array]:
        """Return errors (runs, settings, points) and the last w (runs, settings, p) of settings of one rule."""
        rule, log = settings[0].rule, self.replayed
        runs = order.shape[1]
        w, eta, change = np.zeros((3, runs, len(settings), self.C.shape[0]))
        errors = np.empty((runs, len(settings), horizon.points))
        constants = {name: np.array([one.values[name] for one in settings]) for name in rule.defaults}
        with_ratio = np.array([one.rho_mode == "R" for one in settings])
        with np.errstate(all="ignore"):
            for step, drawn in enumerate(order, start=1):
                x, ahead = (array[drawn][:, :, None] for array in (log.x, log.x_next))
                reward, discount, rho = (array[drawn][:, None] for array in (log.reward, log.discount, log.rho))
                here, there = (w @ x)[..., 0], (w @ ahead)[..., 0]
                alpha = constants["alpha"] * self.schedule.factor(step)
                moves = self.moves(
                    rule,
                    constants
                    | {
                        "alpha": alpha,
                        "beta": alpha * constants.get("zeta", 0.0),
                        "rho": rho,
                        "rho_x": np.where(with_ratio, rho, 1.0),
                        "discount": discount,
                        "delta": reward + discount * there - here,
                        "x_eta": (eta @ x)[..., 0],
                        "x_change": (change @ x)[..., 0],
                    },
                )
                x, ahead = x[..., 0][:, None, :], ahead[..., 0][:, None, :]
                change = moves["w_x"] * x + moves["w_next"] * ahead
                eta = eta + moves["eta_x"] * x + moves["eta_eta"] * eta
                w = w + change
                if step % horizon.every == 0:
                    errors[:, :, step // horizon.every - 1] = self.error(w)
        return errors, w

    def moves(self, rule: Rule, signals: dict[str, Any]) -> dict[str, Array]:
        """Return every move of a rule, (runs, settings, 1), from signals of all lanes at once."""
        try:
            made = rule.coefficients(signals)
        except ValueError:
            what = f"The step of the rule {rule.name!r}"
            raise bad_request(
                what, "be arithmetic without branches, for a pilot on a log", Unquoted("a branch")
            ) from None
        return {name: np.asarray(move)[..., None] for name, move in made.items()}

    def error(self, w: Array, held_out: Moments | None = None) -> Array:
        """Return the error of weights (..., p), by A and b of the held-out half or by others; inf where too large."""
        A, b, _ = self.held_out.moments if held_out is None else held_out
        errors = np.sqrt((((b - w @ A.T) @ self.root) ** 2).sum(axis=-1))
        return np.where(errors < DIVERGED, errors, np.inf)


def blocks_of(log: Log) -> list[Integers]:
    """Return the numbers of the transitions, cut into blocks of neighbours."""
    n = len(log.reward)
    return np.array_split(np.arange(n), min(n, BLOCKS))


def root_of_inverse(C: Array) -> Array:
    """Return R with C⁺ = R Rᵀ."""
    values, vectors = np.linalg.eigh(inverse(C))
    return vectors * np.sqrt(np.maximum(values, 0.0))


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
        raise bad_request("A log", f"have at least {FEWEST} transitions for advice", Unquoted(str(len(log.reward))))
    rules = list(map(find, learners))
    if natural := [rule.name for rule in rules if rule.natural]:
        raise bad_request("A learner for a log", "be one whose step takes linear time", ", ".join(natural))
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
