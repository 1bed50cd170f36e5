"""The short run of the adversary: a few inputs of every attack, the same ones every time, and a few flips and kills."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd.arrays import numbers
from gradient_dd.errors import BadRequestError, bad_request, show
from tests.adversary import torture
from tests.adversary.plan import ATTACKS, run_input
from tests.adversary.rule import Case, judge

pytestmark = pytest.mark.xdist_group("adversary")
INPUTS = 12
FEWER = {  # they take long
    "advice": 2,
    "log_forms": 2,
    "kernel_folder": 3,
    "environment_reuses_its_array": 1,
    "environment_answers": 5,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_odd_inputs_are_refused_in_one_sentence_or_taken(attack):
    numbers = range(FEWER.get(attack, INPUTS))
    found = [run_input(0, number, attack)[1] for number in numbers]
    late = [k for k in numbers if found[k] and found[k].kind.startswith("took more")]
    for number in late:  # the first input that needs a kernel compiles it: the limit is for those that find it on disk
        found[number] = run_input(0, number, attack)[1]
    assert [f"{one.kind}: {one.words} {one.detail}" for one in found if one] == []


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: 1 / 0, "ZeroDivisionError at outside"),
        (lambda: raise_ours("two\nlines"), "said more or less than one line"),
        (lambda: raise_ours(""), "said more or less than one line"),
        (lambda: STATE.append(1) or raise_ours("no"), "was refused, but changed something"),
        (
            lambda: np.seterr(all="raise"),
            "changed the world: a registry, NumPy's settings, the folder, the environment",
        ),
        (lambda: "odd", "is odd"),
    ],
)
def test_the_rule_sees_what_breaks_it(call, kind):
    with np.errstate():
        _, finding = judge("probe", 0, Case("", call, lambda: len(STATE), lambda one: "is odd" if one == "odd" else ""))
    assert finding.kind == kind


STATE = []


def raise_ours(sentence):
    raise BadRequestError(sentence)


def test_a_hang_is_seen(monkeypatch):
    monkeypatch.setattr("tests.adversary.rule.SECONDS", 0.05)

    def forever():
        while True:
            pass

    _, finding = judge("probe", 0, Case("", forever))
    assert finding.kind == "took more than 0.05 s"


@pytest.mark.parametrize("kind", ["results file", "learner"])
def test_flipped_bytes_are_never_read_as_other_numbers(kind):
    assert torture.flip_bytes(kind, 8, Random(0)) == []


NUMBERS = st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.fractions()
VALUES = st.recursive(
    NUMBERS | st.none() | st.text() | st.binary(),
    lambda inside: st.lists(inside, max_size=4) | st.tuples(inside, inside) | st.dictionaries(st.text(), inside),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_is_shown_on_one_short_line(value):
    assert len(show(value)) <= 80
    assert show(value).isprintable()
    assert str(bad_request("It", "be another", value)).isprintable()


@given(VALUES)
def test_numbers_are_taken_as_they_are_or_refused(value):
    try:
        taken = numbers("'x'", value)
    except BadRequestError:
        return
    assert taken.dtype == float
    assert np.isfinite(taken).all()
    assert np.array_equal(taken, np.array(value, dtype=object).astype(float))
