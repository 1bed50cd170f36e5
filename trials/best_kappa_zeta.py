"""Compute the κ and ζ that small-step theory predicts to be best on walks and Boyan chains, without sampling.

    python -m trials.best_kappa_zeta             the tasks of the paper: five minutes
    python -m trials.best_kappa_zeta walk-10     the tasks whose names begin with this word

For the final error and the mean error, the program prints the best setting of Gradient-DD and of gtd2_to_td, and its
error relative to TD's, whose α is selected from the same grid; u = ακ‖x‖² of the first step. It also prints κ = ζ = 1.

The error of a run has two parts: the initial error that has not yet decayed, and noise. In units of time n α, the mean
of e = (η, w − w*) follows e' = F e, and its covariance P' = F P + P Fᵀ + α Q, with

    F = [ −ζ C     −ζ A ]     Q = [ ζ² E[ρ² δ² x xᵀ]   0 ]      at w*
        [ A_effᵀ     0  ]         [ 0                  0 ]

A_eff is A for GTD2. For `gtd2_to_td` Aᵀ becomes Aᵀ + c (C − Aᵀ), and Gradient-DD has `averaged_flow` at κα. For TD the
state is w alone, F = −A, and Q has no ζ². The theory is of first order: it omits products of successive steps, noise
that depends on η or w, and limits on α.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.schedules import Schedule, constant
from gradient_dd.errors import BadRequestError, Unquoted, bad_request
from gradient_dd.experiments.paper.studies import BOYAN, WALK
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task, boyan_chain, random_walk
from gradient_dd.theory.effective import averaged_flow
from tools.programs import parser_of, print_table

ALPHAS = tuple(2.0**i for i in range(-7, 3))
MOST = 0.7  # of α‖x‖², for TD and for a fast η: about where the mean square of GTD2 becomes infinite on a table
MOST_U = 2.0  # of u, beyond which the mean diverges on a table
ZETAS = tuple(4.0**i for i in range(-5, 1))
OWN = {"gradient_dd": ("kappa", tuple(4.0**i for i in range(-1, 5))), "gtd2_to_td": ("c", (0.25, 0.5, 0.75, 1.0))}
KNOWN = ("td", "gtd2", "gtd2_to_td", "gradient_dd")
PIECES = 16  # intervals of a run with constant α; their length grows along the run


class PredictedErrors(NamedTuple):
    """Final root mean squared error of a run, and its mean over all episodes; inf if it diverges."""

    end: float
    mean_error: float


class SmallSteps:
    """A task, a schedule and a number of episodes, for which the errors of settings are predicted."""

    def __init__(self, task: Task, schedule: Schedule, episodes: int) -> None:
        row, next_row, reward, discount, rho, _ = task.transitions
        rest, X = task.fixed_point, task.row_features.toarray()
        outcomes = task.outcomes
        likely = task.visits[row] * task.behaviour[outcomes.state, outcomes.action] * outcomes.probability
        delta = reward + discount * (X[next_row] @ rest) - X[row] @ rest
        self.A, _, self.C = task.moments
        self.noise = (X[row].T * (likely * (rho * delta) ** 2)) @ X[row]
        self.weighing = task.features.T @ (task.visits[:, None] * task.features)
        self.start, self.averaged = task.initial_weights - rest, averaged_flow(task)
        ends = np.unique(np.round(np.geomspace(1, episodes, PIECES)).astype(int))
        self.pieces = np.diff(ends, prepend=0)
        self.factors = schedule.factors(ends - (self.pieces - 1) // 2)
        self.length = float(task.expected_length)

    def flow(self, setting: Setting, alpha: float) -> Array:
        """Return F of a setting at the current step size α."""
        values, p = setting.values, len(self.A)
        if setting.rule.name == "td":
            return -self.A
        moved = self.A.T + values.get("c", 0.0) * (self.C - self.A.T)
        if setting.rule.name == "gradient_dd":
            moved = self.averaged(alpha * values["kappa"]).T
        zeta = values["zeta"]
        return np.block([[-zeta * self.C, -zeta * self.A], [moved, np.zeros((p, p))]])

    def errors(self, setting: Setting) -> PredictedErrors:
        """Return the predicted errors of a setting."""
        if setting.rule.name not in KNOWN:
            raise bad_request("The learner", f"be one of {', '.join(KNOWN)}", Unquoted(setting.rule.name))
        p, alone = len(self.A), setting.rule.name == "td"
        size = p if alone else 2 * p
        mean, covariance, noise = np.zeros(size, complex), np.zeros((size, size), complex), np.zeros((size, size))
        mean[-p:], noise[:p, :p] = self.start, self.noise * (1.0 if alone else setting.values["zeta"] ** 2)
        found = []
        for episodes, factor in zip(self.pieces, self.factors, strict=True):
            alpha = factor * setting.values["alpha"]
            rates, modes = np.linalg.eig(self.flow(setting, alpha))
            if rates.real.max() >= 0:
                return PredictedErrors(np.inf, np.inf)
            inverse, passed = np.linalg.inv(modes), alpha * episodes * self.length
            sums = rates[:, None] + rates.conj()
            kept = np.exp(sums * passed)
            mean = modes @ (np.exp(rates * passed) * (inverse @ mean))
            added = alpha * (inverse @ noise @ inverse.conj().T) * (kept - 1) / sums
            covariance = modes @ (kept * (inverse @ covariance @ inverse.conj().T) + added) @ modes.conj().T
            w, spread = mean[-p:].real, covariance[-p:, -p:].real
            found.append(np.sqrt(w @ self.weighing @ w + np.trace(self.weighing @ spread)))
        return PredictedErrors(float(found[-1]), float(np.average(found, weights=self.pieces)))


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
    """Return the errors of all settings that the theory covers."""
    found = []
    for setting in settings:
        try:
            found.append((setting, theory.errors(setting)))
        except BadRequestError:  # κα is so large that the changes of w do not settle
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
    parser.add_argument("names", nargs="*", help="only tasks whose names begin with this text")
    names = tuple(parser.parse_args(words).names)
    head = ("task", "measure", "learner", "α", "ζ", "κ or c", "u or c", "over TD", "with κ or c = ζ = 1")
    for case in cases():
        if not names or case.name.startswith(names):
            with np.errstate(over="ignore", invalid="ignore"):
                print_table(head, rows(case))


if __name__ == "__main__":
    main()
