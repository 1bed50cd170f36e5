"""Off-policy evaluation from logs and environments."""

from gradient_dd.evaluation.comparison import PolicyComparison
from gradient_dd.evaluation.environment import collect, evaluate
from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.evaluation.log import compare, evaluate_log
from gradient_dd.evaluation.result import Evaluation

__all__ = ["FINDINGS", "Evaluation", "PolicyComparison", "collect", "compare", "evaluate", "evaluate_log"]
