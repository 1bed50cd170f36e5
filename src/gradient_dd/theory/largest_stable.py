"""Limits: the largest number up to which something is stable, by scanning upwards and then bisecting.

A window of instability narrower than the scan's steps can be missed.
"""

from collections.abc import Callable
from math import inf, sqrt


def largest_stable(is_stable: Callable[[float], bool], low: float, high: float, step: float, precision: float) -> float:
    """Return the largest stable number between `low` and `high`, scanned by factors of `step`.

    0 where `low` is unstable, inf where `high` is still stable.
    """
    if not is_stable(low):
        return 0.0
    stable = low
    while is_stable(stable * step):
        stable *= step
        if stable > high:
            return inf
    return bisected(is_stable, stable, stable * step, precision)


def bisected(is_stable: Callable[[float], bool], stable: float, unstable: float, precision: float) -> float:
    """Return the largest number found stable between a stable and an unstable one."""
    while unstable / stable > 1 + precision:
        middle = sqrt(stable * unstable)
        stable, unstable = (middle, unstable) if is_stable(middle) else (stable, middle)
    return float(stable)
