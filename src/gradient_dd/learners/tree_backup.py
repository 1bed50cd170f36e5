"""Tree Backup(λ) for prediction: a trace that decays with the target policy's probability and never grows with ρ.

    δ = r + γ x'·w − x·w
    z ← γ λ π_before z + x
    w ← w + α ρ δ z

On average  Δw = α (E[ρ r z] − E[ρ z (x − γ x')ᵀ] w).  π_before is the target policy's probability of the previous
action. λ = 0 is TD. The fixed point depends on λ, but not in the same way as that of TD(λ).
"""

from gradient_dd.learners.rule import ALPHA, LAM, Rule
from gradient_dd.learners.trace import Trace
from gradient_dd.learners.vtrace import VTRACE


def backup_trace(lam, discount_before, pi_before):
    return discount_before * lam * pi_before, 1.0


TREE_BACKUP = Rule(
    name="tree_backup",
    label="Tree Backup",
    step=VTRACE.step,
    expected=VTRACE.expected,
    moves=VTRACE.moves,
    parameters=(ALPHA, LAM),
    traces=(Trace("z", backup_trace),),
    reference="Precup, Sutton & Singh (2000), Eligibility traces for off-policy policy evaluation. ICML.",
    module=__name__,
)
