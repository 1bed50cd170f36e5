"""The checksums of stored numbers: as docs/store.md defines them, and changed by any flipped bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd.studies.checksums import checksum, curve_checksum, result_checksums, row_checksum

MASK = 2**64 - 1


def by_hand(key, run, *numbers):
    """Return the checksum of a result as docs/store.md defines it, in Python's own whole numbers."""
    total = 0
    for word in (checksum(key), run, *numbers):
        total ^= (word if isinstance(word, int) else int(np.float64(word).view(np.uint64))) & MASK
        total = (total ^ total >> 30) * 0xBF58476D1CE4E5B9 & MASK
        total = (total ^ total >> 27) * 0x94D049BB133111EB & MASK
        total ^= total >> 31
    return total


WHOLE, ERROR = st.integers(0, 2**53), st.floats(0, allow_nan=False)


@given(st.text(max_size=5), WHOLE, st.one_of(st.tuples(WHOLE, WHOLE), st.tuples(ERROR, ERROR)))
def test_the_checksum_of_a_result_is_what_its_definition_says(key, run, numbers):
    columns = [np.array([value]) for value in (checksum(key), run, *numbers)]
    assert result_checksums(*columns)[0] == by_hand(key, run, *numbers)


@given(st.integers(0, 3), st.integers(0, 63), st.integers(0, 2**32))
def test_any_single_flipped_bit_changes_the_checksum_of_a_result(word, bit, seed):
    words = np.random.default_rng(seed).integers(0, 2**62, (4, 1), dtype=np.int64)
    changed = words.copy()
    changed[word] ^= np.int64(1) << np.int64(bit)
    assert result_checksums(*words)[0] != result_checksums(*changed)[0]


def test_checksums_of_texts_rows_and_curves_are_fixed():
    """They are in files: another definition would call every file damaged."""
    assert checksum("a") == checksum(b"a") == 3405396810240292928
    ones = [np.array([number]) for number in (1, 2, 0.5, 0.25)]
    assert result_checksums(*ones)[0] == 3113253653568884291
    assert row_checksum((1, 2.5, None, "é")) == checksum(r"(1, 2.5, None, '\xe9')")
    assert curve_checksum("k", 3, b"\x00") == checksum(b"k 3 \x00")
