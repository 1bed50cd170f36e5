"""HTD(λ): hybrid TD, which is TD where the policies agree and a gradient learner where they differ.

    δ = r + γ x'·w − x·w
    z ← ρ (γ λ z + x),  b ← γ λ b + x
    η ← η + β (δ z − (b·η) (x − γ x'))
    w ← w + α (δ z + ((z − b)·η) (x − γ x'))

On average  Δη = β (b − A w − A_μᵀη),  Δw = α (b − A w + (A − A_μ)ᵀη)  with A_μ = E[b (x − γ x')ᵀ] of the behaviour
policy. On-policy z = b, and w follows TD(λ) for any η.
"""

from gradient_dd.learners.rule import ALPHA, LAM, ZETA, Rule
from gradient_dd.learners.trace import B, Z


def step(alpha, beta, discount, delta, z_eta, b_eta):
    w_x = alpha * (z_eta - b_eta)
    return alpha * delta, w_x, -discount * w_x, beta * delta, -beta * b_eta, beta * discount * b_eta


def expected(alpha, beta, A, A_mu, b, w, eta):
    return alpha * (b - A @ w + (A - A_mu).T @ eta), beta * (b - A @ w - A_mu.T @ eta)


HTD = Rule(
    name="htd",
    label="HTD",
    step=step,
    expected=expected,
    moves=("w_z", "w_x", "w_next", "eta_z", "eta_x", "eta_next"),
    parameters=(ALPHA, ZETA, LAM),
    traces=(Z, B),
    reference="White & White (2016), Investigating practical linear temporal difference learning. AAMAS.",
)
