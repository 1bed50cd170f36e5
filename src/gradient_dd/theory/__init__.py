"""Theory you can run: what the equations say of a learner on a task, exactly, and advice that follows from trying.

Everything is exact but for two modules. `advice` runs learners on a task to find good parameters, and `sampled_rates`
runs them to compare predicted rates with measured ones. The compiler is loaded when one of these runs something.
"""

from collections.abc import Callable
from typing import Any

from gradient_dd.theory.advice import Advice, advise, advise_from_log
from gradient_dd.theory.arguments import checked
from gradient_dd.theory.dynamics import ExpectedRun, MeanOperator, Means, expected_run, one_step_map
from gradient_dd.theory.effective import (
    Interpolation,
    averaged_matrix,
    diverging_mdps,
    effective_matrix,
    flow_rate,
    interpolation,
    stability_over_kappa_alpha,
)
from gradient_dd.theory.limits import Limits, exact_limits
from gradient_dd.theory.log import Log, log_of, read_log
from gradient_dd.theory.mean_square import SquareOperator, largest_safe_alpha, mean_square_radius
from gradient_dd.theory.natural import (
    NaturalRelation,
    angle,
    change_features,
    natural_direction,
    natural_relation,
    plain_direction,
    settled_direction,
)
from gradient_dd.theory.prox import Prox, prox_run
from gradient_dd.theory.recursion import (
    Assumption,
    Recursion,
    check_assumptions,
    combined_step,
    expected_recursion,
    recursion_eigenvalues,
    rest_point,
    sample_recursion,
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
)
from gradient_dd.theory.trust_region import (
    KKT,
    constrained_step,
    contraction_factors,
    generalised_eigenvalues,
    kappa_of_mu,
    kkt,
    mu_of_kappa,
    penalised_step,
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
    "Prox",
    "Recursion",
    "SampleMaps",
    "SquareOperator",
    "Stability",
    "advise",
    "advise_from_log",
    "angle",
    "averaged_matrix",
    "best_alpha",
    "change_features",
    "check_assumptions",
    "combined_step",
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
    "one_step_map",
    "penalised_step",
    "plain_direction",
    "prox_run",
    "rate",
    "read_log",
    "recursion_eigenvalues",
    "rest_point",
    "sample_recursion",
    "settled_direction",
    "spectral_radius",
    "stability_over_kappa_alpha",
    "stability_table",
]

_ENTRANCES: tuple[Callable[..., Any], ...] = (  # their arguments are checked where they are called from outside
    *(angle, averaged_matrix, best_alpha, change_features, check_assumptions, combined_step, exact_limits),
    *(constrained_step, contraction_factors, effective_matrix, expected_recursion, expected_run, flow_rate),
    *(generalised_eigenvalues, interpolation, kappa_of_mu, kkt, largest_safe_alpha, largest_stable_alpha),
    *(mean_square_radius, mu_of_kappa, natural_direction, natural_relation, one_step_map, penalised_step),
    *(plain_direction, prox_run, rate, recursion_eigenvalues, rest_point, sample_recursion, settled_direction),
    *(spectral_radius, stability_over_kappa_alpha, stability_table, diverging_mdps, advise, advise_from_log),
)
globals().update({function.__name__: checked(function) for function in _ENTRANCES})
