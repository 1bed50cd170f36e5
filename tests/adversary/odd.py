"""Odd values, drawn from a seeded generator: numbers, texts, arrays, paths, and things that are none of these."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp


class Unshowable:
    """An object that cannot even be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def deep(levels: int) -> list[Any]:
    """Return a list in a list in a list."""
    inside: list[Any] = []
    for _ in range(levels):
        inside = [inside]
    return inside


def own_member() -> list[Any]:
    """Return a list that contains itself."""
    one: list[Any] = [1.0]
    one.append(one)
    return one


WHOLE = (0, 1, 2, 3, -1, -3, 7, 100, 10**6, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 10**400, 10**5000)
REAL = (0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 3.0, 1e-12, 1e-320, 1e30, 1e49, 1e51, 1e150, 1e200, 1e308)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
NUMPY = (np.int64(3), np.uint8(200), np.float32(0.1), np.float64(2.0), np.True_, np.longdouble("1e4000"), np.array(3))
TEXTS = (
    *(
        "",
        " ",
        "0",
        "1",
        "-1",
        "0.1",
        "1e",
        "1e400",
        "nan",
        "inf",
        "true",
        "no",
        "None",
        "td",
        "random_walk",
        "constant",
    ),
    *(
        "tapered(10)",
        "tapered(e)",
        "tapered(1.2.3)",
        "tapered(-1)",
        "iid",
        "trajectory",
        "R",
        "T",
        "episode",
        "last100",
    ),
    *("a\nb", "\x1b[31mred", "\0", "é", "\udc80", "ρ", "'; DROP TABLE result; --", "=1+1", "{}", "%s", "../x"),
    *("x" * 300, "9" * 5000),
)
OTHERS: tuple[Callable[[], Any], ...] = (
    *(lambda: None, lambda: True, lambda: False, lambda: 1j, lambda: b"x", list, lambda: (), dict, set),
    *(object, Unshowable, lambda: Fraction(1, 3), lambda: Fraction(10**400), lambda: Decimal("0.1"), lambda: range(3)),
    *(
        lambda: np.ma.masked,
        lambda: np.datetime64("2020-01-01"),
        lambda: float,
        lambda: lambda n: 1.0,
        lambda: {"a": 1},
    ),
    *(
        lambda: deep(100),
        lambda: deep(50_000),
        own_member,
        lambda: [[1], [2, 3]],
        lambda: ["a", 1],
        lambda: [None, 1.0],
    ),
    *(lambda: [10**400], lambda: [10**5000, 1.0], lambda: iter([1.0]), lambda: np.zeros(2, [("a", float)])),
)
FILLS = (0.0, 1.0, -1.0, 0.5, 1e-300, 1e60, 1e200, np.nan, np.inf)


def scalar(rng: Random) -> Any:
    """Return one odd value that is not an array, or a plain one."""
    pool = rng.choice((WHOLE, WHOLE, REAL, REAL, NOT_FINITE, NUMPY, TEXTS, OTHERS))
    value = rng.choice(pool)
    return value() if pool is OTHERS else value


def array(rng: Random, shape: tuple[int, ...]) -> Any:
    """Return an array near a shape, of an odd kind or with odd numbers in it."""
    if rng.random() < 0.5:
        shape = rng.choice([(), (0,), shape[1:], (*shape, 1), (1, *shape), tuple(n + 1 for n in shape), shape[::-1]])
    made = np.random.default_rng(rng.getrandbits(32)).choice([0.0, 1.0, 0.5, 0.25, 2.0], size=shape)
    kind = rng.choice(["float", "float", "fill", "int", "bool", "f4", "text", "complex", "object", "masked", "list"])
    if kind == "fill" and made.size:
        made.flat[rng.randrange(made.size)] = rng.choice(FILLS)
    kinds: dict[str, Callable[[], Any]] = {
        "int": lambda: made.astype(int),
        "bool": lambda: made > 0,
        "f4": lambda: made.astype("f4"),
        "text": lambda: made.astype(str),
        "complex": lambda: made + 1j,
        "object": lambda: made.astype(object),
        "masked": lambda: np.ma.masked_array(made, made > 0),
        "list": made.tolist,
    }
    return kinds[kind]() if kind in kinds else made


def sparse(rng: Random, shape: tuple[int, int]) -> Any:
    """Return a SciPy matrix near a shape, sound or not."""
    made = np.asarray(array(rng, shape))
    dense = made if made.ndim == 2 and made.dtype.kind in "biufc" else np.ones(shape)
    matrix = rng.choice([sp.csr_matrix, sp.coo_matrix, sp.csc_matrix, sp.lil_matrix])(dense)
    if matrix.format == "csr" and matrix.nnz and rng.random() < 0.2:
        matrix.indices[rng.randrange(matrix.nnz)] = rng.choice([-1, 10**6])
    return matrix


def anything(rng: Random, shape: tuple[int, ...] = (3,)) -> Any:
    """Return any odd value; arrays are near `shape`."""
    return scalar(rng) if rng.random() < 0.6 else array(rng, shape)


def changed(rng: Random, good: dict[str, Any], shapes: dict[str, tuple[int, ...]] | None = None) -> dict[str, Any]:
    """Return keywords of which some, mostly one, have odd values; now and then one is missing or too many."""
    words = dict(good)
    for name in rng.sample(sorted(words), k=min(len(words), rng.choice([0, 1, 1, 1, 2]))):
        words[name] = anything(rng, (shapes or {}).get(name, (3,)))
    return words
