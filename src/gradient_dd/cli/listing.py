"""Learners and tasks as text for the command line."""

import re
from inspect import cleandoc, signature
from sys import modules
from typing import Any

import numpy as np

from gradient_dd.learners import LEARNERS, RHO_MODES, Rule
from gradient_dd.tasks import TASKS, Task

Facts = dict[str, Any]
MOST_DENSE = 2000  # maximum number of features for which matrices are decomposed (20 seconds)


def learner_lines() -> dict[str, str]:
    """Return one line per learner: its summary without the equation labels of the paper."""
    return {name: re.sub(r" \[[\w, -]+\]$", "", rule.summary) for name, rule in LEARNERS.items()}


def task_lines() -> dict[str, str]:
    """Return one line per task: its parameters and its summary."""
    lines = {}
    for name, builder in TASKS.items():
        defaults = ", ".join(f"{p.name}={p.default!r}" for p in signature(builder).parameters.values())
        lines[name] = f"{task_summary(name)} ({defaults})"
    return lines


def figure_lines() -> dict[str, str]:
    """Return one line per figure of the paper."""
    from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES

    return {name: figure.title for name, figure in (FIGURES | DRAWINGS).items()}


def describe_learner(rule: Rule) -> Facts:
    """Return the facts of a learner."""
    return {
        "learner": rule.name,
        "label": rule.label,
        "summary": rule.summary,
        "equation": rule.equation.splitlines(),
        "parameters": {
            parameter.name: f"{parameter.meaning}; {parameter.legal}, default {parameter.default:g}"
            for parameter in rule.parameters
        },
        "rho_mode": dict(RHO_MODES) if rule.has_rho_mode else "none: the update does not depend on it",
        "cost of a step": "O(p²)" if rule.natural else "O(non-zeros)",
        "reference": rule.reference,
        "file": f"{rule.module.replace('.', '/')}.py" if rule.module.startswith("gradient_dd.") else str(rule.file),
    }


def describe_task(task: Task) -> Facts:
    """Return the facts of a task; facts that need large dense matrices are omitted."""
    rank: str = "rank not computed"
    matrices: Facts = {"matrices": f"not computed for more than {MOST_DENSE:,} features"}
    if task.n_features <= MOST_DENSE:
        rank, (A, _, C) = f"rank {np.linalg.matrix_rank(task.features)}", task.moments
        matrices = {
            "TD fixed point": task.fixed_point.tolist(),
            "rank of A": int(np.linalg.matrix_rank(A)),
            "condition number of A": condition(A),
            "condition number of C": condition(C),
            "smallest real part of the eigenvalues of A": float(np.linalg.eigvals(A).real.min()),
        }
    return {
        "task": str(task),
        "summary": task_summary(task.name) if task.name in TASKS else "user-defined task",
        "states": f"{task.n_states} and {int(task.terminal.sum())} terminal",
        "actions": task.n_actions,
        "features": f"{task.n_features}, {rank}",
        "policies": task.policies,
        "ratios": "target / behaviour" if task.ratios is None else "defined by the task: E[ρ|s] need not be 1",
        "discount": sorted({float(value) for value in task.discount[~task.terminal]}),
        "expected length of an episode": task.expected_length if task.episodic else "episodes never end",
        "true values": task.true_values.tolist(),
        "visits d": task.visits.tolist(),
        "error of the initial weights (RMSVE)": task.rmsve(task.initial_weights),
        **matrices,
        "file": f"{TASKS[task.name].__module__.replace('.', '/')}.py" if task.name in TASKS else "",
    }


def condition(matrix: np.ndarray) -> float:
    """Return the ratio of the largest to the smallest non-zero singular value."""
    values = np.linalg.svd(matrix, compute_uv=False)
    values = values[values > 1e-13 * values[0]]
    return float(values[0] / values[-1]) if len(values) else float("inf")


def block(name: str, value: Any) -> str:
    """Return one fact as text; a long list of numbers is abbreviated."""
    lines = [f"{key}: {text}" for key, text in value.items()] if isinstance(value, dict) else value
    if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], str)):
        return f"{name}:" + "".join(f"\n  {line}" for line in lines)
    if isinstance(value, list):
        shown = value if len(value) <= 12 else [*value[:6], None, *value[-5:]]
        return f"{name}: " + " ".join("…" if number is None else f"{number:.4g}" for number in shown)
    return f"{name}: {value:.6g}" if isinstance(value, float) else f"{name}: {value}"


def task_summary(name: str) -> str:
    """Return the first line of the docstring of a task's file."""
    return cleandoc(modules[TASKS[name].__module__].__doc__ or "").splitlines()[0]
