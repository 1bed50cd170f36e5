"""Evaluation of a policy from transitions of another one: from a log or from any stream of batches."""

from gradient_dd.evaluation.compare import compare
from gradient_dd.evaluation.comparison import PolicyComparison
from gradient_dd.evaluation.environment import evaluate
from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.evaluation.log import evaluate_log
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.stream import Evaluator, evaluate_stream
from gradient_dd.evaluation.transitions import Transitions, transitions_of

__all__ = [
    "FINDINGS",
    "Evaluation",
    "Evaluator",
    "PolicyComparison",
    "Transitions",
    "compare",
    "evaluate",
    "evaluate_log",
    "evaluate_stream",
    "transitions_of",
]
