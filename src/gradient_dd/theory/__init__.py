"""Theory you can run: what the equations say of a learner on a task, exactly, and advice that follows from trying.

Everything is exact but for `advice` and `analysis`, which run learners on a task to find good parameters. The compiler
is loaded when they run something.
"""

from inspect import isfunction

from gradient_dd.theory.advice import Advice, advise, advise_from_log
from gradient_dd.theory.arguments import checked
from gradient_dd.theory.dynamics import ExpectedRun, MeanOperator, Means, expected_run
from gradient_dd.theory.effective import (
    Interpolation,
    averaged_matrix,
    diverging_mdps,
    effective_matrix,
    flow_rate,
    interpolation,
)
from gradient_dd.theory.limits import Limits, exact_limits
from gradient_dd.theory.log import Log, log_of, read_log
from gradient_dd.theory.mean_square import SquareOperator, largest_safe_alpha, mean_square_radius
from gradient_dd.theory.recursion import (
    Assumption,
    Recursion,
    check_assumptions,
    expected_recursion,
    recursion_eigenvalues,
    rest_point,
)
from gradient_dd.theory.sample_maps import SampleMaps
from gradient_dd.theory.stability import (
    BestAlpha,
    Stability,
    best_alpha,
    largest_stable_alpha,
    rate,
    spectral_radius,
    stability_table,
    steady_state_bias,
)
from gradient_dd.theory.trust_region import (
    KKT,
    NaturalRelation,
    angle,
    constrained_step,
    contraction_factors,
    generalised_eigenvalues,
    kappa_of_mu,
    kkt,
    mu_of_kappa,
    natural_direction,
    natural_relation,
    penalised_step,
    plain_direction,
    prox_run,
    settled_direction,
)

__all__ = [
    "KKT",
    "Advice",
    "Assumption",
    "BestAlpha",
    "ExpectedRun",
    "Interpolation",
    "Limits",
    "Log",
    "MeanOperator",
    "Means",
    "NaturalRelation",
    "Recursion",
    "SampleMaps",
    "SquareOperator",
    "Stability",
    "advise",
    "advise_from_log",
    "angle",
    "averaged_matrix",
    "best_alpha",
    "check_assumptions",
    "constrained_step",
    "contraction_factors",
    "diverging_mdps",
    "effective_matrix",
    "exact_limits",
    "expected_recursion",
    "expected_run",
    "flow_rate",
    "generalised_eigenvalues",
    "interpolation",
    "kappa_of_mu",
    "kkt",
    "largest_safe_alpha",
    "largest_stable_alpha",
    "log_of",
    "mean_square_radius",
    "mu_of_kappa",
    "natural_direction",
    "natural_relation",
    "penalised_step",
    "plain_direction",
    "prox_run",
    "rate",
    "read_log",
    "recursion_eigenvalues",
    "rest_point",
    "settled_direction",
    "spectral_radius",
    "stability_table",
    "steady_state_bias",
]

# Arguments are checked where the functions are called from outside; inside the room they call each other unchecked.
globals().update({name: checked(globals()[name]) for name in __all__ if isfunction(globals()[name])})
