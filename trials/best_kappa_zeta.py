"""Which κ and ζ small-step theory expects to be best on walks and Boyan chains: nothing is sampled.

    python -m trials.best_kappa_zeta             the tasks of the paper: five minutes
    python -m trials.best_kappa_zeta walk-10     the tasks whose names begin so

Prints for the end of a run and for all episodes the best setting of Gradient-DD and of gtd2_to_td, and its error over
that of TD, whose α is chosen on the same grid; u = ακ‖x‖² of the first step. Beside it stands κ = ζ = 1.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from gradient_dd.engine.schedules import Schedule, constant
from gradient_dd.errors import BadRequestError
from gradient_dd.experiments.paper.studies import BOYAN, WALK
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task, boyan_chain, random_walk
from tools.programs import parser_of, print_table
from trials.small_steps import PredictedErrors, SmallSteps

ALPHAS = tuple(2.0**i for i in range(-7, 3))
MOST = 0.7  # of α‖x‖² where η is quick, and of TD: about where the mean square of GTD2 stops being finite on a table
MOST_U = 2.0  # of u, beyond which the mean diverges on a table
ZETAS = tuple(4.0**i for i in range(-5, 1))
OWN = {"gradient_dd": ("kappa", tuple(4.0**i for i in range(-1, 5))), "gtd2_to_td": ("c", (0.25, 0.5, 0.75, 1.0))}
MEASURES = PredictedErrors._fields


class Case(NamedTuple):
    """A task, its schedule and its length."""

    name: str
    task: Task
    schedule: Schedule
    episodes: int


def cases() -> Iterator[Case]:
    """Yield the walks and the Boyan chains."""
    walk, boyan = WALK.episodes or 0, BOYAN.episodes or 0
    for m in (10, 20, 40):
        yield Case(f"walk-{m}", random_walk(m), WALK.schedule, walk)
    yield Case("walk-20-constant", random_walk(20), constant, walk)
    yield Case("walk-20-linear", random_walk(20, features="linear"), WALK.schedule, walk)
    for p in (20, 50):
        yield Case(f"boyan-{p}", boyan_chain(p), BOYAN.schedule, boyan)


def predicted(theory: SmallSteps, settings: Sequence[Setting]) -> list[tuple[Setting, PredictedErrors]]:
    """Return the errors of all settings for which theory has one."""
    found = []
    for setting in settings:
        try:
            found.append((setting, theory.errors(setting)))
        except BadRequestError:  # κα so large that the changes of w do not settle
            continue
    return found


def rows(case: Case) -> Iterator[tuple[str, ...]]:
    """Yield the best settings of a case for each measure and learner."""
    theory = SmallSteps(case.task, case.schedule, case.episodes)
    td = predicted(theory, [LEARNERS["td"].setting(alpha=alpha) for alpha in ALPHAS if alpha <= MOST])
    longest = float((case.task.features**2).sum(axis=1).max())
    for learner, (own, values) in OWN.items():
        allowed = [(a, z) for a, z in product(ALPHAS, ZETAS) if a * min(1.0, (4 * z) ** 0.5) <= MOST]
        pairs = [(a, z, v) for a, z in allowed for v in values if own == "c" or a * v * longest <= MOST_U]
        settings = [LEARNERS[learner].setting(alpha=a, zeta=z, **{own: v}) for a, z, v in pairs]
        found = predicted(theory, settings)
        for place, measure in enumerate(MEASURES):
            rival = min(one[place] for _, one in td)
            best, errors = min(found, key=lambda pair, place=place: pair[1][place])
            plain = [one[place] for setting, one in found if setting.values["zeta"] == setting.values[own] == 1]
            u = best.values["alpha"] * best.values[own] * longest if own == "kappa" else best.values[own]
            numbers = best.values["alpha"], best.values["zeta"], best.values[own], u
            ratios = errors[place] / rival, min(plain) / rival
            yield case.name, measure, learner, *(f"{one:.3g}" for one in numbers), *(f"{one:.2f}" for one in ratios)


def main(words: list[str] | None = None) -> None:
    """Print the predictions."""
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", help="how the names of the tasks begin")
    names = tuple(parser.parse_args(words).names)
    head = ("task", "measure", "learner", "α", "ζ", "κ or c", "u or c", "over TD", "with κ or c = ζ = 1")
    for case in cases():
        if not names or case.name.startswith(names):
            with np.errstate(over="ignore", invalid="ignore"):
                print_table(head, rows(case))


if __name__ == "__main__":
    main()
