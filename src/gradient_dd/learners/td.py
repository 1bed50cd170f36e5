"""TD(λ): temporal-difference learning, off-policy through ρ.

    δ = r + γ x'·w − x·w
    w ← w + α ρ δ x
    with λ > 0:  z ← ρ (γ λ z + x)
    w ← w + α δ z

On average  Δw = α (b − A w).  The fixed point solves A w = b. TD is stable only if −A is stable, which is
not the case on Baird's counterexample.
"""

from gradient_dd.learners.rule import ALPHA, LAM, Rule
from gradient_dd.learners.trace import AlongTrace, Z


def step(alpha, rho, delta):
    w_x = alpha * rho * delta
    return (w_x,)


def traced_step(alpha, delta):
    return (alpha * delta,)


def expected(alpha, A, b, w):
    return (alpha * (b - A @ w),)


TD = Rule(
    name="td",
    label="TD",
    step=step,
    expected=expected,
    moves=("w_x",),
    parameters=(ALPHA, LAM),
    along_trace=AlongTrace(traced_step, ("w_z",), (Z,)),
    reference="Sutton (1988), Learning to predict by the methods of temporal differences. Machine Learning 3.",
)
