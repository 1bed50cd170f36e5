"""TD(0): temporal-difference learning, off-policy through ρ.

    δ = r + γ x'·w − x·w
    w ← w + α ρ δ x

Its fixed point solves A w = b. It is stable only where −A is: Baird's counterexample is a task where it is not.
"""

from gradient_dd.learners.rule import ALPHA, Rule


def step(alpha, rho, delta):
    w_x = alpha * rho * delta
    return (w_x,)


TD = Rule(
    name="td",
    label="TD",
    step=step,
    moves=("w_x",),
    parameters=(ALPHA,),
    reference="Sutton (1988), Learning to predict by the methods of temporal differences. Machine Learning 3.",
    module=__name__,
)
