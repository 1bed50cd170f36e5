"""What each learner chooses from: step sizes, λ, and parameters of its own; 144 settings each, fixed beforehand.

A learner with fewer parameters gets more step sizes, over the same range, so that none has more chances than another;
one with λ and two others has the twelve powers of 2 from 1 to 2⁻¹¹. The values of ζ, κ and the others span the ranges
that were published. A learner that is registered and not named here is put in by what it declares.
"""

from gradient_dd.errors import Words, must
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.studies import Grid, grid
from gradient_dd.tasks import Task

SETTINGS = 144
LAMBDAS = (0.0, 0.5, 0.9)
RANGE = 12  # step sizes go from 1 down to almost 2⁻¹²
FOUR_ZETAS = (1 / 64, 1 / 8, 1.0, 8.0)
TWO_ZETAS = (1 / 8, 1.0)
OWN = {  # two values of what a learner has besides ζ and λ, or as many as it has room for
    "kappa": (1.0, 8.0),
    "c": (0.5, 1.0),
    "decay": (0.2, 0.4, 0.6, 0.8),
    "momentum": (0.3, 0.6, 0.9),
}
TRACE_LENGTHS = ("lam", "bootstrap")  # what λ is called
WITH_DD = {"gradient_dd": "gtd2", "tdc_dd": "tdc", "tdrc_dd": "tdrc", "htd_dd": "htd", "pgtd2_dd": "pgtd2"}
FIXED = {"tdrc": ("zeta", "reg"), "tdrc_dd": ("zeta", "reg")}  # the authors' advice: ζ = 1, reg = 1


def step_sizes(count: int) -> tuple[float, ...]:
    """Return so many step sizes from 1 downwards, evenly spaced in their logarithm; powers of 2 are among them."""
    return tuple(2.0 ** (-RANGE * i / count) for i in range(count))


def grid_of(rule: Rule, example: Task) -> Grid:
    """Return the settings that a learner chooses from on a problem with tasks like `example`."""
    fixed = FIXED.get(rule.name, ())
    chosen: dict[str, tuple[float, ...]] = {}
    declared = [parameter.name for parameter in rule.parameters if parameter.name not in ("alpha", *fixed)]
    own = [name for name in declared if name in OWN]
    for name in declared:
        if name in TRACE_LENGTHS:
            chosen[name] = LAMBDAS
        elif name in OWN:
            chosen[name] = OWN[name]
        elif name == "zeta":
            few = own and any(one in TRACE_LENGTHS for one in declared)
            chosen[name] = TWO_ZETAS if few else FOUR_ZETAS
    if "psi_max" in declared:
        chosen |= psi_of(example)
    others = 1
    for values in chosen.values():
        others *= len(values)
    if SETTINGS % others:
        raise must(f"The values to try of {rule.name}", f"divide {SETTINGS}", Words(f"{others} of them"))
    placed = "T" if rule.has_rho_mode else "R"  # the placement of ρ that extends to traces, for every λ
    return grid(rule, placed, alpha=step_sizes(SETTINGS // others), **chosen)


def psi_of(task: Task) -> dict[str, tuple[float, ...]]:
    """Return ψ₀ and ψ_max of ABTD as its authors set them: from the larger of π and μ over all actions."""
    larger = [max(pi, mu) for pi, mu in zip(*task.action_probabilities, strict=True) if max(pi, mu) > 0]
    return {"psi_zero": (float(1 / max(larger)),), "psi_max": (float(1 / min(larger)),)}


def grids_of(names: tuple[str, ...], example: Task) -> tuple[Grid, ...]:
    """Return the grids of these learners, or of all."""
    return tuple(grid_of(LEARNERS[name], example) for name in names or LEARNERS)
