"""Checks of what the builders are given."""

from numbers import Integral
from typing import Any

from gradient_dd.errors import must


def whole(name: str, value: Any, at_least: int, at_most: int | None = None) -> int:
    """Return `value` as an int within the bounds, or raise."""
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or value < at_least or (at_most is not None and value > at_most):
        rule = (
            f"be a whole number, {at_least} or more"
            if at_most is None
            else f"be a whole number from {at_least} to {at_most}"
        )
        raise must(f"{name!r}", rule if at_least != at_most else f"be {at_least}", value)
    return int(value)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of `allowed`, or raise."""
    if value not in allowed:
        raise must(f"{name!r}", "be " + " or ".join(repr(word) for word in allowed), value)
    return str(value)
