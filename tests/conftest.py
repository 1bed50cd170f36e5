"""Hypothesis draws the same examples every time: a failure is a fact, not an event."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("repeatable")
