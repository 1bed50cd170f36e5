"""Learning from a stream of transitions, one at a time."""

from gradient_dd.stream.learner import Learner

__all__ = ["Learner"]
