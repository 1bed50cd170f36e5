"""Hypothesis draws the same examples every time: a failure is a fact, not an event. BLAS keeps to one thread.

Compiled kernels are kept beside pytest's own cache, so that the tests read and write nothing of the user's.
"""

import gc
import os
from pathlib import Path

os.environ.setdefault("GRADIENT_DD_CACHE", str(Path(__file__).parent.parent / ".pytest_cache" / "kernels"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: its threads would fight with those of the tests

import pytest
from hypothesis import settings

gc.set_threshold(100_000, 20, 20)  # compiling makes many objects that live on: 6 % less time

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A small reproduction of one figure: its folder, and what `reproduce` returned."""
    from gradient_dd.experiments.job import Scale
    from gradient_dd.experiments.running import reproduce

    folder = tmp_path_factory.mktemp("reproduction")
    return folder, reproduce(("walk-constant",), folder, Scale(runs=3, episodes=120))
