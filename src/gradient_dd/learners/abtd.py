"""ABTD(ζ): action-dependent bootstrapping, which bootstraps more where importance ratios would inflate the trace.

    δ = r + γ x'·w − x·w
    ψ = 2 ζ ψ₀ + max(0, 2 ζ − 1) (ψ_max − 2 ψ₀),  ν_before = min(ψ, 1 / max(π_before, μ_before))
    z ← γ ν_before π_before z + x
    w ← w + α ρ δ z

On average  Δw = α (E[ρ r z] − E[ρ z (x − γ x')ᵀ] w).  `bootstrap` is ζ and replaces λ; ζ = 0 is TD. The
authors set ψ₀ = 1 / max max(π, μ) and ψ_max = 1 / min max(π, μ) over all states and actions.
"""

from gradient_dd.learners.rule import ALPHA, LAMBDAS, Parameter, Rule
from gradient_dd.learners.trace import Trace
from gradient_dd.learners.vtrace import VTRACE

BOOTSTRAP = Parameter(
    "bootstrap", "ζ: how far TD errors reach back, from 0 (one step) to 1", default=0.0, high=1.0, grid=LAMBDAS
)

SMALLEST = 1e-30  # avoids 0/0 at the start of an episode, where both probabilities are 0


def larger(task):
    """Return the larger of π and μ for every action that can be taken."""
    return [max(pi, mu) for pi, mu in zip(*task.action_probabilities, strict=True) if max(pi, mu) > 0]


def action_dependent_trace(bootstrap, psi_zero, psi_max, discount_before, pi_before, mu_before):
    psi = 2.0 * bootstrap * psi_zero + max(0.0, 2.0 * bootstrap - 1.0) * (psi_max - 2.0 * psi_zero)
    share = pi_before / max(pi_before, mu_before, SMALLEST)
    return discount_before * min(psi * pi_before, share), 1.0


ABTD = Rule(
    name="abtd",
    label="ABTD",
    step=VTRACE.step,
    expected=VTRACE.expected,
    moves=VTRACE.moves,
    parameters=(
        *(ALPHA, BOOTSTRAP),
        Parameter("psi_zero", "ψ₀: ψ = 2ζψ₀ for ζ up to ½", 1.0, grid=lambda task: (1 / max(larger(task)),)),
        Parameter("psi_max", "ψ at ζ = 1", 2.0, grid=lambda task: (1 / min(larger(task)),)),
    ),
    traces=(Trace("z", action_dependent_trace),),
    reference="Mahmood, Yu & Sutton (2017), Multi-step off-policy learning without importance sampling ratios.",
    module=__name__,
)
