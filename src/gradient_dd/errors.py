"""Exceptions, and checks of arguments that raise them. Messages about arguments have one form:

*What* must be *rule*. Got *value*. Did you mean …?
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from math import inf, isfinite, nan
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any

LONGEST = 80  # maximum number of characters of a value in a message
LONGEST_NAME = 255  # maximum number of bytes of a file name on all common file systems
MOST_BITS = 10_000  # maximum size of a printed integer; Python refuses to print more than 4,300 digits


class GradientDDError(Exception):
    """Base class of all errors of this package."""


class BadRequestError(GradientDDError, ValueError):
    """An argument is invalid, and nothing was changed. The exit code is 2."""


class DivergedError(GradientDDError, ArithmeticError):
    """A learner's next step would not be finite; the learner keeps its last finite weights."""


class MissingExtraError(GradientDDError, ImportError):
    """A package of an optional extra is not installed."""


EXTRAS = {  # for each extra, the feature that needs the extra and the packages that the extra installs
    "cluster": ("A Dask cluster", "cloudpickle distributed"),
    "environments": ("A Gymnasium environment", "gymnasium"),
    "neural": ("A network", "jax optax"),
    "report": ("A figure or a report", "jinja2 matplotlib"),
}


class Unquoted(str):
    """Text that messages show without quotes."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Turn a failed import of an extra into an error that says how to install the package.

    with extra("environments"):
        import gymnasium
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        user, packages = EXTRAS[name]
        sentence = f"{user} needs {package}, which is not installed. Try: pip install {packages}"
        raise MissingExtraError(sentence) from None


@contextmanager
def foreign(what: str, rule: str) -> Iterator[None]:
    """Turn any exception of user code or of another package into a BadRequestError of one sentence."""
    try:
        yield
    except GradientDDError:
        raise
    except Exception as error:
        raise bad_request(what, rule, Unquoted(f"{type(error).__name__}: {error}")) from error


def bad_request(what: str, rule: str, got: Any, hint: str = "") -> BadRequestError:
    """Return the error for an invalid argument."""
    return BadRequestError(f"{one_line(what)} must {rule}. Got {show(got)}." + (f" {hint}" if hint else ""))


def number(what: str, rule: str, value: Any, low: float = -inf, high: float = inf, positive: bool = False) -> float:
    """Return `value` as a float if it is one finite real number within the bounds, else raise."""
    if isinstance(value, float) and isfinite(value) and low <= value <= high and not (positive and value == 0):
        return float(value)  # fast path for the common case, which includes np.float64
    try:
        plain: Any = value.item() if hasattr(value, "item") and not hasattr(value, "mask") else value
        real = nan if isinstance(plain, bool) or not isinstance(plain, Real) else float(plain)
    except (OverflowError, TypeError, ValueError):
        real = nan
    if not (isfinite(real) and low <= real <= high) or (positive and real == 0):
        raise bad_request(what, rule, value)
    return real


def whole_number(what: str, value: Any, at_least: int = 1, at_most: int | None = None) -> int:
    """Return `value` as a plain int within the bounds, else raise. Booleans are rejected."""
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if fits and value >= at_least and (at_most is None or value <= at_most):
        return int(value)
    rule = f"be a whole number from {at_least} to {at_most}"
    if at_most is None:
        rule = f"be a whole number, {at_least} or more"
    elif at_least == at_most:
        rule = f"be {at_least}"
    raise bad_request(what, rule, Unquoted(repr(value)) if type(value) is float else value)  # 100000.0, not 100000


def checked_seed(seed: Any) -> int:
    """Return `seed` if it is an integer that a results file can store, else raise."""
    return whole_number("'seed'", seed, at_least=0, at_most=2**63 - 1)


def boolean(what: str, value: Any) -> bool:
    """Return `value` as a bool if it is a Python or NumPy boolean, else raise; 1 and "no" raise."""
    plain = value.item() if getattr(value, "ndim", None) == 0 else value
    if not isinstance(plain, bool):
        raise bad_request(what, "be true or false", value)
    return plain


def text(what: str, value: Any) -> str:
    """Return `value` if it is text that can be written to a file, else raise."""
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise bad_request(what, "be text", value)
    return value


def one_of(what: str, value: Any, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of the `allowed` words, else raise."""
    words = tuple(allowed)
    if not isinstance(value, str) or value not in words:
        raise bad_request(what, "be " + " or ".join(map(repr, words)), value)
    return value


def file_path(what: str, value: Any) -> Path:
    """Return `value` as the path of a file; raise if the name is empty or invalid."""
    text = fspath(value) if isinstance(value, str | PathLike) else ""
    if not isinstance(text, str) or "\0" in text or Path(text).name in ("", ".."):
        raise bad_request(what, "be the path of a file", value)
    if len(Path(text).name.encode(errors="surrogatepass")) > LONGEST_NAME:
        raise bad_request(what, f"be a file whose name has at most {LONGEST_NAME} bytes", value)
    return Path(text)


def unknown(kind: str, name: Any, known: Iterable[str]) -> BadRequestError:
    """Return the error for a name that is not in `known`, with the closest match."""
    known = list(known)
    wanted = name[:LONGEST].strip().lower().replace("-", "_").replace(" ", "_") if isinstance(name, str) else ""
    close = get_close_matches(wanted, known, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known)}."
    return BadRequestError(f"Unknown {kind} {show(name)}. {hint}")


def show(value: Any) -> str:
    """Return a value as one short line for a message; NumPy scalars look like Python numbers."""
    try:
        return shortened(value)
    except Exception:  # `repr` may raise any error, e.g. ValueError for 5,000 digits or RecursionError
        return f"{type(value).__name__} that cannot be shown"


def shortened(value: Any) -> str:
    """Return a value on one line of at most LONGEST characters; Unquoted text may be longer."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0 and not hasattr(value, "mask"):
        value = value.item()
    if isinstance(value, Unquoted):
        return one_line(value)
    if isinstance(value, float):
        return f"{value:.6g}" if float(f"{value:.6g}") == value else f"{value:.12g}"
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return f"a whole number of about {value.bit_length() * 0.30103:.0f} digits"
    text = one_line(repr(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def one_line(text: str) -> str:
    """Return a text on one line, with non-printable characters escaped."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Return a text with non-printable characters escaped, such as control characters and direction marks."""
    return "".join(one if one == "\n" or one.isprintable() else ascii(one)[1:-1] for one in text)
