"""The recursion of the convergence theorem: Gradient-DD and GTD2 in one vector ρ = (η; w) of 2p entries. [update-2n]

    ρ_{n+1} = ρ_n − κ α H_n (ρ_n − ρ_{n−1}) + α (g_{n+1} − G_n ρ_n)

    G_n = [  ζ x xᵀ                ζ ρ x (x − γx')ᵀ ]      H_n = [ 0    0   ]      g_{n+1} = [ ζ ρ r x ]
          [ −ρ (x − γx') xᵀ        0                ]            [ 0   x xᵀ ]                [    0    ]

The paper prints + G_n ρ_n, which is another algorithm; with the minus sign the steps are the learner's steps, and the
fixed point solves G ρ = g. The paper omits the ratio ρ (its data are on-policy) and ζ = β/α (it assumes 1).
With rho_mode "T" the lower left block is −(x − ργx') xᵀ.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import bad_request
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task
from gradient_dd.theory.dynamics import MeanOperator, checked
from gradient_dd.theory.stability import Complex, in_row_space, rate

FAR = 2.0**40  # the step at which the decay of a schedule is measured
NEAR = 1000  # number of initial factors that are checked


class Assumption(NamedTuple):
    """An assumption of the theorem: its statement, whether and why it holds here, and the consequence."""

    name: str
    statement: str
    holds: bool
    why: str
    consequence: str


@checked
def recursion_eigenvalues(task: Task, setting: Setting) -> Complex:
    """Return the eigenvalues of G in the row space of X; ρ' = g − G ρ is stable if their real parts are positive.

    G, H and g are means over i.i.d. transitions of the task. With κ = 0, which is GTD2, the mean step is α (g − G ρ).
    """
    check_learner(setting)
    gtd2 = LEARNERS["gtd2"].setting(alpha=1.0, zeta=setting.values["zeta"], rho_mode=setting.rho_mode)
    G = -MeanOperator(in_row_space(task), gtd2, "iid").moves().toarray()
    return np.linalg.eigvals(G).astype(complex)


@checked
def check_assumptions(
    task: Task, setting: Setting, schedule: Schedule = constant, sampling: str = "trajectory"
) -> list[Assumption]:
    """Return the assumptions (A0) to (A4) of the theorem, checked for a setting on a task."""
    check_learner(setting)
    schedule = check_schedule(schedule)
    (A, _, C), p = task.moments, task.n_features
    ranks = {name: int(np.linalg.matrix_rank(matrix)) for name, matrix in (("A", A), ("C", C))}
    kappa = setting.values.get("kappa", 0.0)  # GTD2 has no κ
    largest = kappa * float((task.features**2).sum(axis=1).max())
    a1, a2, bound = sampling == "iid", min(ranks.values()) == p, "the proof's bound on H_n holds"
    return [
        step_sizes(task, setting, schedule),
        Assumption(
            "A1",
            "(x_n, r_n, x_{n+1}) is i.i.d. with bounded second moments",
            a1,
            "transitions are drawn independently from a finite table"
            if a1
            else "along a trajectory x_{n+1} of one transition is x_n of the next",
            "the mean step follows G and H"
            if a1
            else "H_n (ρ_n − ρ_{n−1}) is correlated with the previous step: the mean step does not follow G and H, and "
            "Gradient-DD is another learner, between GTD2 and TD",
        ),
        Assumption(
            "A2",
            "E[(x − γx') xᵀ] and E[x xᵀ] are non-singular",
            a2,
            ", ".join(f"rank {rank} of {p} for {name}" for name, rank in ranks.items()),
            "w* is unique"
            if a2
            else "w* is not unique: w converges at most in the row space of X, which determines the values",
        ),
        bounded_steps(task, setting, schedule, sampling),
        Assumption(  # the proof also needs ‖x‖² ≤ 1/κ, which the paper assumes as ‖x‖ ≤ 1/κ
            "A4",
            "κ in [0, ∞)",
            True,
            f"κ = {kappa:g}; the proof also needs κ ‖x‖² ≤ 1, and its largest is {largest:.3g}",
            bound if largest <= 1 else f"{bound} only once κ α_n ‖x‖² < 1",
        ),
    ]


def step_sizes(task: Task, setting: Setting, schedule: Schedule) -> Assumption:
    """Return (A0), checked: the sums behave as required if the schedule decays like n⁻ᵉ with ½ < e ≤ 1 at FAR."""
    alphas = setting.values["alpha"] * np.array([schedule.factor(n) for n in range(1, NEAR + 1)])
    decay = decay_of(task, schedule)
    least, largest, falls = alphas.min(), alphas.max(), f"falls like n^-{decay:.2g}"
    faults = [f"alpha_n is between {least:.3g} and {largest:.3g}"] if not (least > 0 and largest < 1) else []
    if decay <= 0.5:
        faults.append(f"the sum of squares diverges, because alpha_n {falls}")
    if decay > 1.01:
        faults.append(f"the sum converges, because alpha_n {falls}")
    why = "; ".join(faults) or f"{schedule}: alpha_n is at most {largest:.3g} and {falls}"
    moving = "w keeps moving around w* with a variance of the order of alpha, or stops before it, or diverges"
    holds = not faults
    statement = "α_n in (0, 1), Σ α_n = ∞, Σ α_n² < ∞"
    return Assumption("A0", statement, holds, why, "noise averages out" if holds else moving)


def decay_of(task: Task, schedule: Schedule) -> float:
    """Return the exponent e of a step size that decays like n⁻ᵉ; 0 for a schedule per episode on a continuing task."""
    if schedule.per == "episode" and not task.episodic:
        return 0.0
    near, far = schedule.factor(int(FAR)), schedule.factor(int(2 * FAR))
    return round(float(np.log2(near / far)), 6) + 0.0 if near > 0 and far > 0 else np.inf


def bounded_steps(task: Task, setting: Setting, schedule: Schedule, sampling: str) -> Assumption:
    """Return (A3), checked for the mean only: the tables of a task cannot decide it for the random process."""
    if decay_of(task, schedule) > 0:
        slowest = float(recursion_eigenvalues(task, setting).real.min())
        holds = slowest > 0
        why = f"judged by the mean for vanishing alpha_n: Re λ(G) ≥ {slowest:.3g}"
    else:
        radius = 1 - rate(task, setting, sampling)
        holds = radius < 1
        why = f"judged by the mean with constant alpha: its spectral radius is {radius:.9g}"
    consequence = "the mean of the steps is bounded" if holds else "the mean of ρ diverges, and its steps with it"
    return Assumption("A3", "sup_n ‖ρ_{n+1} − ρ_n‖ is bounded in probability", holds, why, consequence)


def check_learner(setting: Setting) -> None:
    """Raise unless the recursion describes the learner of the setting."""
    if setting.rule.name not in ("gradient_dd", "gtd2"):
        raise bad_request("The learner of the recursion", "be gradient_dd or gtd2", setting.rule.name)
