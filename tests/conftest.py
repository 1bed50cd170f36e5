"""Hypothesis draws the same examples every time: a failure is a fact, not an event. BLAS keeps to one thread."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: its threads would fight with those of the tests

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("repeatable")
