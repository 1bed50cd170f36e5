"""Fingerprints: equal values have equal names, and a change of what a function does changes its name."""

import numpy as np
import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.fingerprint import DEEPEST, fingerprint


def nested(depth):
    """Return a list with so many nested lists."""
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_equal_values_have_equal_names():
    name = fingerprint({"alpha": 0.5, "n": 3}, [1.5])
    assert name == fingerprint({"n": np.int64(3), "alpha": np.float64(0.5)}, [np.array(1.5)])
    assert len(name) == 24
    assert len({name, fingerprint({"alpha": 0.5, "n": 4}, [1.5]), fingerprint({"alpha": 0.5, "n": 3}, 1.5)}) == 3


def test_values_nested_beyond_the_limit_are_refused():
    assert DEEPEST == 50
    fingerprint(nested(DEEPEST))  # the parts themselves are one more
    with pytest.raises(BadRequestError, match="at most 50 nested lists"):
        fingerprint(nested(DEEPEST + 1))
