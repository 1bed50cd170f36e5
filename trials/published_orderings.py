"""Check which published orderings of learners are confirmed on Collision, Four Rooms and the problems of TDRC.

    python -m trials.published_orderings

The publications give orderings, and areas that were read off a figure. Learners that are tuned over λ have the errors
of the shipped standings. For a given λ, the same search tunes the other parameters. An ordering is confirmed if the
whole 95 % interval of the paired ratio lies on the published side.

Collision, Four Rooms   Ghiassian & Sutton (2021). The authors call TDC GTD.
TDRC                    Ghiassian et al. (2020), figure 1: area under the root of the mean squared projected Bellman
                        error, RMSPBE(w) = √((b − A w)ᵀ C⁺ (b − A w)), over TDRC's; α tuned, ζ = 1, no trace
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.ranking.standings import make_entry, read_standings
from gradient_dd.ranking.suites import SUITES, TEST
from gradient_dd.studies.intervals import Interval, ratio_interval, select
from gradient_dd.tasks import Task
from tools.programs import parser_of, print_table

BY_NAME = {one.name: one for one in SUITES["all"]}
FIRST, LAST = ("etd", "etd_beta"), ("tree_backup", "vtrace", "abtd")
MIDDLE = ("td", "tdc", "gtd2", "htd", "pgtd2", "tdrc")
SENSITIVE = 2.0  # error at λ = 0 relative to the error at λ = 0.9
TDRC_STEPS = {"walk-5-tabular": 3_000, "walk-5-inverted": 3_000, "walk-5-dependent": 3_000} | {
    "boyan-4": 10_000,
    "baird-7": 20_000,
}
TDRC_AREAS = {  # relative to TDRC's, in the order of TDRC_STEPS, read off a figure to about 0.05
    "gtd2": (1.62, 1.35, 1.55, 1.22, 1.48),
    "tdc": (1.30, 1.13, 1.28, 2.88, 0.82),
    "td": (0.96, 1.10, 0.90, 1.13, np.inf),
    "htd": (0.98, 1.03, 0.95),
}
READ_OFF = 0.05
TUNING, TESTED, POINTS = 20, 50, 100  # runs and errors of the projected comparison
ALPHAS = 2.0 ** -np.linspace(0, 12, 25)

MADE: dict[tuple[str, str, float], Array] = {}


class Outcome(NamedTuple):
    """A comparison: its subject, the ratio with its interval, and the published side and bound."""

    words: str
    ratio: Interval
    side: str
    bound: float = 1.0

    @property
    def comes_out(self) -> bool | None:
        """Whether the interval lies on the published side; None if it contains the bound."""
        below, above = self.ratio.high < self.bound, self.ratio.low > self.bound
        return None if not (below or above) else below == (self.side == "below")


def errors(problem: str, learner: str, lam: float | None = None, measure: int = 0) -> Array:
    """Return the test errors of a learner, (runs,), tuned over λ or with a given one."""
    if lam is None:
        return read_standings()[learner, problem].errors[measure].astype(float)
    key = problem, learner, lam
    if key not in MADE:
        name = "bootstrap" if learner == "abtd" else "lam"
        MADE[key] = make_entry(LEARNERS[learner], BY_NAME[problem], {name: (lam,)}).errors[0].astype(float)
    return MADE[key]


def compared(
    problem: str, ours: Sequence[str], rivals: Sequence[str], side: str, lam: float | None = None, measure: int = 0
) -> Iterator[Outcome]:
    """Yield the comparison of every learner with every rival."""
    for one in ours:
        for rival in rivals:
            pair = errors(problem, one, lam, measure), errors(problem, rival, lam, measure)
            yield Outcome(f"{problem}: {one} / {rival}", ratio_interval(pair), side)


def tiers() -> Iterator[Outcome]:
    """Yield the comparisons of the three tiers on Collision."""
    for lam in (None, 0.0):
        yield from compared("collision", FIRST, MIDDLE, "below", lam)
    for lam in (None, 0.9):
        yield from compared("collision", LAST, MIDDLE, "above", lam)


def sensitivity() -> Iterator[Outcome]:
    """Yield the growth of errors from λ = 0.9 to λ = 0 on Collision."""
    for learner in (*(one for one in MIDDLE if one != "pgtd2"), "etd"):
        ratio = ratio_interval((errors("collision", learner, 0.0), errors("collision", learner, 0.9)))
        yield Outcome(f"{learner}, λ = 0 / λ = 0.9", ratio, "below" if learner == "etd" else "above", SENSITIVE)


def high_variance() -> Iterator[Outcome]:
    """Yield the growth of errors from Rooms to High-Variance Rooms, relative to a rival's."""
    for ours in LAST:
        for rival in ("td", "gtd2", "tdc", "etd"):
            pairs = [(errors(where, ours), errors(where, rival)) for where in ("rooms-high", "rooms")]
            yield Outcome(f"growth of {ours} / of {rival}", ratio_interval(*pairs), "below")


def final_errors() -> Iterator[Outcome]:
    """Yield the final error of ETD relative to others in both Rooms."""
    for problem in ("rooms", "rooms-high"):
        yield from compared(problem, ["etd"], ("td", "tdc", "gtd2", "vtrace"), "below", measure=1)


def projected() -> Iterator[Outcome]:
    """Yield the areas under the RMSPBE relative to TDRC's, if the published ratio is clearly not 1."""
    for place, (problem, steps) in enumerate(TDRC_STEPS.items()):
        task = BY_NAME[problem].tasks(0)[0]
        areas = {name: tuned_area(task, name, steps) for name in ("tdrc", *TDRC_AREAS)}
        for learner, known in TDRC_AREAS.items():
            if place < len(known) and abs(known[place] - 1) > READ_OFF + 1e-9:
                words = f"{problem}: {learner} / tdrc, published {known[place]:g}"
                ratio = ratio_interval((areas[learner], areas["tdrc"]))
                yield Outcome(words, ratio, "above" if known[place] > 1 else "below")


def tuned_area(task: Task, learner: str, steps: int) -> Array:
    """Return the areas of the best step size on test runs, (runs,)."""
    settings = [LEARNERS[learner].setting(alpha=alpha) for alpha in ALPHAS]
    best = select(projected_area(task, settings, steps, range(TUNING)))
    return projected_area(task, [settings[best]], steps, range(TEST, TEST + TESTED))[0]


def projected_area(task: Task, settings: Sequence[Setting], steps: int, runs: Sequence[int]) -> Array:
    """Return the mean RMSPBE over a run, (settings, runs)."""
    every, areas = steps // POINTS, []
    for run in runs:
        lanes = LaneRun(task, settings, Horizon(steps=steps, every=every), run=run)
        total = np.zeros(len(settings))
        while not lanes.done:
            lanes.advance(every)
            total += projected_errors(task, lanes.weights()[0])
        areas.append(total / POINTS)
    return np.stack(areas, axis=1)


def projected_errors(task: Task, weights: Array) -> Array:
    """Return the RMSPBE of each row of weights, (settings,)."""
    A, b, C = task.moments.A, task.moments.b, task.moments.C
    with np.errstate(all="ignore"):
        rest = b - weights @ A.T
        squared = np.einsum("sp,pq,sq->s", rest, np.linalg.pinv(C), rest)
    return np.where(np.isfinite(squared), np.sqrt(np.maximum(squared, 0.0)), np.inf)


STATEMENTS = {
    "Collision: ETD and ETD(β) first; V-trace, Tree Backup and ABTD last": tiers,
    "Collision: TD and the gradient learners are sensitive to λ, ETD is not": sensitivity,
    "Rooms: Tree Backup, V-trace and ABTD suffer less from high variance": high_variance,
    "Rooms: they bootstrap too much where variance is not high": lambda: compared("rooms", LAST, MIDDLE, "above"),
    "Rooms: ETD ends with a lower error than others": final_errors,
    "TDRC is ahead of GTD2, TDC and sometimes TD, as published": projected,
}


def main(words: list[str] | None = None) -> None:
    """Print the counts for every statement, and each comparison that is not confirmed."""
    parser_of(__doc__).parse_args(words)
    for statement, make in STATEMENTS.items():
        found = list(make())
        held = sum(one.comes_out is True for one in found)
        print(f"{statement}: {held} of {len(found)} confirmed, {sum(one.comes_out is False for one in found)} reversed")
        rows = [(one.words, "{:.2f} [{:.2f}, {:.2f}]".format(*one.ratio)) for one in found]
        print_table(("  ratio of errors", ""), [(f"  {words}", ratio) for words, ratio in rows])


if __name__ == "__main__":
    main()
