"""What the parts of the learner that chooses are worth: it without some, or with other numbers.

    python -m trials.shadows_variants

Each variant is a fresh copy of the compiled form with other constants or another `choose`. The tasks are those of
`experiments/shadows/forms.py`; the measure and the tuning are those of `experiments/shadows/trial.py`, on fewer runs.
Ratios are to the learner as it is.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine import ladder
from gradient_dd.engine.choosing import run_shadow_learner
from gradient_dd.engine.kernels import shadows as kernel
from gradient_dd.experiments.shadows import trial
from gradient_dd.experiments.shadows.cases import Case, aimed_at_the_fixed_point, td_is_stable
from gradient_dd.experiments.tuning import tune_then_show
from tools.programs import parser_of
from trials.shadows_forms import FIRST, forms_cases

TUNED, TOTAL = 2, 5
FAR_AWAY = 1e100  # factor on the predicted error² of a rung that is not a neighbour of the choice
# The rungs that learn, in order: of the narrow ladder from safe to quick, of the wide one from small steps to large.
NARROW_ORDER = (4, 1, 0, 5, 2, 6, 3)
WIDE_ORDER = (15, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2)


class Variant(NamedTuple):
    """Constants that differ, a maker of another `choose`, other ladders, the first seed of random vectors."""

    constants: dict[str, float]
    choose: Callable[[Any], Any] | None = None
    ladders: Mapping[str, ladder.Ladder] = MappingProxyType({})
    vectors: int = 0


def starts(number: int) -> dict[str, float]:
    """Return the constants for so many bias shadows of every rung."""
    return {"STARTS": number, "COPIES": number + 3, "NOISE": number + 1, "GROWTH": number + 2}


def without_growth(choose: Any) -> Any:
    """Return a choice that does not heed growth shadows."""

    @numba.njit(nogil=True)
    def choose_without(w, eta, squares, bias, spread, risk, *more):
        risk[:] = 1.0
        return choose(w, eta, squares, bias, spread, risk, *more)

    return choose_without


def of_the_best_alone(choose: Any) -> Any:
    """Return a choice after which the best rung alone is read out."""

    @numba.njit(nogil=True)
    def choose_one(w, eta, squares, bias, spread, risk, sums, blocks, chosen, waits, copied, rules, shares):
        best = choose(w, eta, squares, bias, spread, risk, sums, blocks, chosen, waits, copied, rules, shares)
        shares[:] = 0.0
        shares[best] = 1.0
        return best

    return choose_one


def among_neighbours(choose: Any) -> Any:
    """Return a choice among the present rung and those next to it; all others are copies of the choice."""
    narrow, wide = np.argsort(NARROW_ORDER), np.argsort(WIDE_ORDER)

    @numba.njit(nogil=True)
    def choose_near(w, eta, squares, bias, spread, risk, sums, blocks, chosen, waits, copied, rules, shares):
        place = narrow if risk.size == narrow.size else wide
        for k in range(risk.size):
            if abs(place[k] - place[chosen]) > 1:
                risk[k], waits[k], copied[k] = FAR_AWAY, 0.0, 0.0
        return choose(w, eta, squares, bias, spread, risk, sums, blocks, chosen, waits, copied, rules, shares)

    return choose_near


def without_averages(whole: ladder.Ladder) -> ladder.Ladder:
    """Return a ladder without the rungs that average."""
    learning = tuple(rung for rung in whole.rungs if rung.averages < 0)
    return whole._replace(rungs=learning, first=learning.index(whole.rungs[whole.first]))


PLAIN = {"NARROW": without_averages(ladder.NARROW), "WIDE": without_averages(ladder.WIDE)}
VARIANTS = {
    "as it is": Variant({}),
    "as it is, other random vectors": Variant({}, vectors=1000),
    "best rung alone read out": Variant({}, of_the_best_alone),
    "no growth shadows": Variant({}, without_growth),
    "no averages": Variant({}, None, PLAIN),
    "no averages, three around the choice": Variant({}, among_neighbours, PLAIN),
    "1 bias shadow": Variant(starts(1)),
    "6 bias shadows": Variant(starts(6)),
    "no hysteresis": Variant({"STAY": 1.0}),
    "much hysteresis": Variant({"STAY": 0.5}),
    "rungs copied when 1.4 × as bad": Variant({"WORSE": 1.4}),
    "rungs copied when 4 × as bad": Variant({"WORSE": 4.0}),
}


def fresh_kernel(variant: Variant) -> ModuleType:
    """Return a fresh copy of the compiled form with the `choose` of a variant; the first call reads the constants."""
    spec = find_spec(kernel.__name__)
    assert spec is not None
    assert spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    if variant.choose is not None:
        fresh.choose = variant.choose(fresh.choose)  # type: ignore[attr-defined]
    return fresh


@contextmanager
def in_place(variant: Variant) -> Iterator[None]:
    """Let `run_shadow_learner` run a variant."""
    changes = [(kernel, "run", fresh_kernel(variant).run)]
    changes += [(ladder, name, value) for name, value in [*variant.constants.items(), *variant.ladders.items()]]
    kept = [(module, name, getattr(module, name)) for module, name, _ in changes]
    try:
        for change in changes:
            setattr(*change)
        yield
    finally:
        for change in kept:
            setattr(*change)


def measures(case: Case, alphas: Array, vectors: int, steps: int = trial.STEPS) -> tuple[float, float]:
    """Return the measure on a task with alpha tuned on the first runs, and with nothing tuned, on the others."""
    task = aimed_at_the_fixed_point(case.task)
    scale = trial.unit_of(task)
    common: dict[str, Any] = {"steps": steps, "every": trial.EVERY, "seed": FIRST}
    areas = np.array(
        [
            [
                run_shadow_learner(task, alpha, run=run, shadow_seed=vectors + run, **common).errors.mean()
                for alpha in (*(a * scale for a in alphas), None)
            ]
            for run in range(TOTAL)
        ]
    )
    areas = np.nan_to_num(areas, nan=np.inf, posinf=np.inf)
    _, tuned = tune_then_show(areas[:, :-1].T, TUNED)
    return float(tuned.mean()), float(areas[TUNED:, -1].mean())


def main(words: list[str] | None = None) -> None:
    """Print the geometric means of the ratios to the learner as it is, over all tasks and where TD is unstable."""
    parser_of(__doc__).parse_args(words)
    cases = forms_cases()
    unstable = np.array([not td_is_stable(case.task) for case in cases])
    plain = None
    for name, variant in VARIANTS.items():
        with in_place(variant):
            found = np.array([measures(case, trial.ALPHAS[1::3], variant.vectors) for case in cases])
        plain = found if plain is None else plain
        ratios = np.minimum(found / plain, trial.CAP)
        means = [np.exp(np.log(ratios[part]).mean(axis=0)) for part in (slice(None), unstable)]
        words = (f"{mean[0]:.3f} with alpha, {mean[1]:.3f} without" for mean in means)
        print(f"{name:40} all: {next(words)}; TD unstable: {next(words)}", flush=True)


if __name__ == "__main__":
    main()
