"""Theory you can run: what the equations say of a learner on a task, exactly, without sampling."""

from gradient_dd.theory.dynamics import ExpectedRun, MeanOperator, Means, expected_run, one_step_map
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
from gradient_dd.theory.stability import Best, Stability, best_alpha, largest_stable_alpha, rate, spectral_radius, table

__all__ = [
    "Assumption",
    "Best",
    "ExpectedRun",
    "MeanOperator",
    "Means",
    "Recursion",
    "SampleMaps",
    "Stability",
    "best_alpha",
    "check_assumptions",
    "combined_step",
    "expected_recursion",
    "expected_run",
    "largest_stable_alpha",
    "one_step_map",
    "rate",
    "recursion_eigenvalues",
    "rest_point",
    "sample_recursion",
    "spectral_radius",
    "table",
]
