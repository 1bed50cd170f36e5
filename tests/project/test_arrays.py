"""The checks of numbers, arrays, paths and sizes that every room uses, and the sentences they raise."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from gradient_dd.arrays import check_memory, in_words, numbers, sparse_numbers
from gradient_dd.errors import (
    BadRequestError,
    Unquoted,
    bad_request,
    boolean,
    file_path,
    number,
    show,
    unknown,
    whole_number,
)


class Unshowable:
    def __repr__(self):
        raise RuntimeError("no")


def nested(depth):
    inside = []
    for _ in range(depth):
        inside = [inside]
    return inside


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10**5000, "a whole number of about 5000 digits"),
        ([10**5000], "list that cannot be shown"),
        (nested(100_000), "list that cannot be shown"),
        (Unshowable(), "Unshowable that cannot be shown"),
        ("a\nb\x1b[31m", r"'a\nb\x1b[31m'"),
        (Unquoted("a\nb \x1b[31m"), r"a b \x1b[31m"),
        ("x" * 500, "'" + "x" * 76 + "..."),
        (np.float64(0.1), "0.1"),
    ],
    ids=show,
)
def test_any_value_can_stand_in_a_sentence(value, text):
    assert show(value) == text
    assert str(bad_request("It", "be another", value)) == f"It must be another. Got {text}."


def test_an_unknown_name_may_be_anything():
    assert str(unknown("learner", ["td"], ["td"])) == "Unknown learner ['td']. Known: td."
    assert len(str(unknown("learner", "x" * 10**6, ["td"]))) < 200


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked_array([1.0, 2.0], [False, True]),
        [np.ma.masked_array([1.0]), np.ma.masked_array([2.0])],
        [1j, 2],
        np.array([1 + 1j]),
        ["1", "2"],
        np.array(["2020-01-01"], "M8[D]"),
        np.array([3], "m8[s]"),
        np.zeros(2, [("a", float)]),
        [10**400],
        [Fraction(10**400)],
        [[1], [2, 3]],
        [None, 1.0],
        [object],
        nested(100),
        {"a": 1},
        np.nan,
        [np.longdouble("1e4000")],
        [1e51],
    ],
    ids=lambda value: f"{type(value).__name__} {show(value)}",
)
def test_what_would_lose_its_meaning_as_floats_is_refused(value):
    with pytest.raises(BadRequestError, match=r"^'x' must be ") as caught:
        numbers("'x'", value, largest=1e50)
    assert "\n" not in str(caught.value)


def test_what_floats_can_hold_is_taken():
    for value in ([True, False], [1, 0], np.array([1, 0], np.uint8), [Fraction(1), 0], np.array([1, 0], "<f4")):
        assert numbers("'x'", value).tolist() == [1.0, 0.0]
    assert numbers("'x'", np.eye(2)[0]).dtype == float


@pytest.mark.parametrize(
    "value", [np.ma.masked, np.ma.masked_array(1.0, True), Fraction(10**400), 10**400, "1", True], ids=show
)
def test_a_number_is_one_number(value):
    with pytest.raises(BadRequestError, match=r"^'r' must be a finite number\. Got "):
        number("'r'", "be a finite number", value)


@pytest.mark.parametrize("value", [1, 0, "no", None, np.array([True, False]), np.array([True]), 1.0, np.int64(1)])
def test_a_boolean_is_true_or_false(value):
    with pytest.raises(BadRequestError, match="must be true or false"):
        boolean("'ended'", value)


def test_booleans_of_numpy_are_booleans():
    assert boolean("'ended'", np.True_) is True
    assert boolean("'ended'", np.array(False)) is False


def test_a_whole_number_shows_that_a_float_is_none():
    with pytest.raises(BadRequestError, match=r"must be a whole number, 1 or more\. Got 100000\.0\."):
        whole_number("'n'", 1e5)


@pytest.mark.parametrize("value", ["", ".", "/", "..", "a\0b", b"abc", 3, None, "a/.."])
def test_a_path_names_a_file(value):
    with pytest.raises(BadRequestError, match="must be the path of a file"):
        file_path("It", value)


def test_sparse_matrices_are_checked_like_dense_ones():
    good = sp.csr_matrix(np.eye(3))
    for bad in (np.nan, np.inf, 1e60):
        broken = good.copy()
        broken.data[1] = bad
        with pytest.raises(BadRequestError, match="'X' must be"):
            sparse_numbers("'X'", broken, largest=1e50)
    outside = good.copy()
    outside.indices[1] = 1000
    for broken in (outside, good * 1j):
        with pytest.raises(BadRequestError, match="'X' must be"):
            sparse_numbers("'X'", broken)
    assert (sparse_numbers("'X'", sp.coo_matrix(np.eye(2, dtype=int))).toarray() == np.eye(2)).all()


def test_sizes_are_refused_in_words(monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_MEMORY", "1e6")
    check_memory("It", 1e6, "Less.")
    with pytest.raises(BadRequestError) as caught:
        check_memory("It", 7.2e9, "Less.")
    sentence = "It must take at most 1 MB, the limit in GRADIENT_DD_MEMORY. Got 7.2 GB. Less."
    assert str(caught.value) == sentence
    with pytest.raises(BadRequestError, match="Got 1e"):
        check_memory("It", 10**5000, "Less.")
    monkeypatch.setenv("GRADIENT_DD_MEMORY", "much")
    with pytest.raises(BadRequestError, match=r"^GRADIENT_DD_MEMORY must be a number of bytes"):
        check_memory("It", 1, "Less.")
    monkeypatch.delenv("GRADIENT_DD_MEMORY")
    check_memory("It", 1e7, "Less.")
    with pytest.raises(BadRequestError, match=r"half of the memory of this machine\. Got 1e"):
        check_memory("It", 1e30, "Less.")
    assert [in_words(size) for size in (7, 8.1e3, 9e14)] == ["7 bytes", "8.1 kB", "900 TB"]
