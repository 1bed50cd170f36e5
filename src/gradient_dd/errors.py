"""One small tree of errors, and the one form their sentences take.

*What* must be *rule*. Got *value*. Did you mean …?
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from math import inf, isfinite, nan
from numbers import Integral, Real
from typing import Any


class GradientDDError(Exception):
    """Whatever this package raises on purpose."""


class BadRequestError(GradientDDError, ValueError):
    """The caller asked for something that cannot be; nothing was changed. Exit code 2."""


class DivergedError(GradientDDError, ArithmeticError):
    """A learner's next step would leave the finite numbers; its last finite weights are kept."""


class MissingExtraError(GradientDDError, ImportError):
    """A package is not installed that an extra of this one brings."""


EXTRAS = {  # each extra of the package, and what needs it
    "cli": "The command line",
    "cluster": "A Dask cluster",
    "environments": "A Gymnasium environment",
    "frames": "A data frame",
    "parquet": "A Parquet file",
    "report": "A figure or a report",
}


class Words(str):
    """A value given in words: a sentence shows it without quotes."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import what an extra brings; where it is not installed, the error says how to install it.

    with extra("frames"):
        import pandas as pd
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        sentence = f"{EXTRAS[name]} needs {package}, which is not installed. Try: pip install 'gradient-dd[{name}]'."
        raise MissingExtraError(sentence) from None


def must(what: str, rule: str, got: Any, hint: str = "") -> BadRequestError:
    """Return the error for a broken rule, ready to raise."""
    return BadRequestError(f"{what} must {rule}. Got {show(got)}." + (f" {hint}" if hint else ""))


def number(what: str, rule: str, value: Any, low: float = -inf, high: float = inf, positive: bool = False) -> float:
    """Return `value` as a float if it is one finite real number within the bounds, else raise."""
    if type(value) is float and isfinite(value) and low <= value <= high and not (positive and value == 0):
        return value  # the common case, a million times
    try:
        plain: Any = value.item() if hasattr(value, "item") else value
        real = nan if isinstance(plain, bool) or not isinstance(plain, Real) else float(plain)
    except (OverflowError, ValueError):
        real = nan
    if not (isfinite(real) and low <= real <= high) or (positive and real == 0):
        raise must(what, rule, value)
    return real


def whole_number(what: str, value: Any, at_least: int = 1, at_most: int | None = None) -> int:
    """Return `value` as a plain int within the bounds, else raise. A bool is not a number."""
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if fits and value >= at_least and (at_most is None or value <= at_most):
        return int(value)
    if at_most is None:
        raise must(what, f"be a whole number, {at_least} or more", value)
    raise must(
        what, f"be {at_least}" if at_least == at_most else f"be a whole number from {at_least} to {at_most}", value
    )


def one_of(what: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of the `allowed` words, else raise."""
    words = tuple(allowed)
    if not isinstance(value, str) or value not in words:
        raise must(what, "be " + " or ".join(map(repr, words)), value)
    return value


def unknown(kind: str, name: Any, known: Iterable[str]) -> BadRequestError:
    """Return the error for a name that is not in `known`, with the nearest known one."""
    known = list(known)
    wanted = str(name).strip().lower().replace("-", "_").replace(" ", "_")
    close = get_close_matches(wanted, known, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known)}."
    return BadRequestError(f"Unknown {kind} {name!r}. {hint}")


def show(value: Any) -> str:
    """Write a value as it should stand in a sentence: short, and plain for NumPy scalars."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, Words):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}" if float(f"{value:.6g}") == value else f"{value:.12g}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
