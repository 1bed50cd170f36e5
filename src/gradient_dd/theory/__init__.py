"""Executable theory: what the equations imply for a learner on a task, and advice from pilot runs.

All results are exact except those of `advice` and `analysis`, which run learners on a task to find good parameters.
Only these runs load the compiler.
"""

from gradient_dd.theory.advice import Advice, advise
from gradient_dd.theory.dynamics import ExpectedRun, MeanOperator, SampleMaps, expected_run
from gradient_dd.theory.effective import Interpolation, diverging_mdps, flow_edge, interpolation
from gradient_dd.theory.recursion import Assumption, check_assumptions, recursion_eigenvalues
from gradient_dd.theory.stability import Limits, exact_limits, largest_stable_alpha, rate
from gradient_dd.theory.trust_region import (
    NaturalRelation,
    constrained_step,
    kappa_of_mu,
    natural_relation,
    penalised_step,
)

__all__ = [
    "Advice",
    "Assumption",
    "ExpectedRun",
    "Interpolation",
    "Limits",
    "MeanOperator",
    "NaturalRelation",
    "SampleMaps",
    "advise",
    "check_assumptions",
    "constrained_step",
    "diverging_mdps",
    "exact_limits",
    "expected_run",
    "flow_edge",
    "interpolation",
    "kappa_of_mu",
    "largest_stable_alpha",
    "natural_relation",
    "penalised_step",
    "rate",
    "recursion_eigenvalues",
]
