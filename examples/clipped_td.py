"""TD(λ) with a clipped TD error: an example of a rule with a trace and its own parameter.

    δ = r + γ x'·w − x·w
    z ← ρ (γ λ z + x)
    w ← w + α max(−clip, min(clip, δ)) z

Rank it among all learners, with values of `clip` from the command line:

gradient-dd rank examples/clipped_td.py:CLIPPED_TD --grid clip=0.1,1,10 --report clipped.html
"""

from gradient_dd.learners.rule import ALPHA, LAM, Parameter, Rule
from gradient_dd.learners.trace import Z


def step(alpha, clip, delta):
    return (alpha * max(-clip, min(clip, delta)),)


CLIPPED_TD = Rule(
    name="clipped_td",
    label="clipped TD",
    step=step,
    moves=("w_z",),
    parameters=(ALPHA, LAM, Parameter("clip", "bound of δ", default=1.0, positive=True)),
    traces=(Z,),
    reference="An example.",
    module=__name__,
    affine=False,
    td_fixed_point=False,
)
