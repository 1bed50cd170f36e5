"""Logs as streams of transitions: columns found by name, files of any size, bad rows refused with their number."""

from gradient_dd.evaluation.log.evaluate import evaluate_log

__all__ = ["evaluate_log"]
