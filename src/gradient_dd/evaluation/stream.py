"""Evaluation of a stream: batches of transitions in, an `Evaluation` out. Logs and environments come through here."""

from collections.abc import Iterable
from typing import Any

from gradient_dd.errors import whole_number
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.learners import Rule
from gradient_dd.online.features import Features
from gradient_dd.online.learner import Learner


class Evaluator:
    """Learns from batches as they come; `result` can be asked for at any time.

    n_features  how many features a row has
    learner     "auto", a name in LEARNERS or a Rule, with its parameters
    features    the map that made the feature rows, which `Evaluation.predict` then uses
    """

    def __init__(
        self,
        n_features: int,
        *,
        learner: str | Rule = "auto",
        features: Features | None = None,
        seed: int = 0,
        **parameters: Any,
    ) -> None:
        self.n_features, self.features = whole_number("'n_features'", n_features), features
        self.seed = whole_number("'seed'", seed, at_least=0)
        self.agent = Learner("tdrc" if learner == "auto" else learner, self.n_features, **parameters)

    def observe(self, batch: Transitions) -> None:
        """Learn from a batch."""
        pairs = [rows.values if rows.indices is None else tuple(rows) for rows in (batch.x, batch.x_next)]
        self.agent.update_many(pairs[0], batch.reward, batch.discount, pairs[1], batch.rho)

    def result(self) -> Evaluation:
        """Return what has been learnt so far."""
        return Evaluation(self.agent.w.copy(), str(self.agent.setting), self.features)


def evaluate_stream(batches: Iterable[Transitions], n_features: int, **options: Any) -> Evaluation:
    """Return the evaluation of a stream; options are those of `Evaluator`."""
    evaluator = Evaluator(n_features, **options)
    for batch in batches:
        evaluator.observe(batch)
    return evaluator.result()
