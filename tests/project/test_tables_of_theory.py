"""Tables of docs/explanation/theory.md that are quick to compute are computed again, cell by cell."""

from pathlib import Path

import pytest

from gradient_dd import tasks
from gradient_dd.learners import LEARNERS
from gradient_dd.theory import largest_stable_alpha, rate
from trials.theory_tables import steady_state_bias

TEXT = (Path(__file__).parents[2] / "docs/explanation/theory.md").read_text(encoding="utf-8")
BUILDERS = {"walk, m": tasks.random_walk, "Boyan, p": tasks.boyan_chain, "Baird, N": tasks.baird}
NAMES = {"TD": "td", "TDC": "tdc", "TDRC": "tdrc", "GTD2": "gtd2", "Gradient-DD": "gradient_dd"}


def table_after(words):
    """Return the head and the rows of the first table after some words of the page."""
    lines = TEXT[TEXT.index(words) :].splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[0], rows[2:]


def task_of(name):
    kind, size = name.rsplit(" = ", 1)
    return BUILDERS[kind](int(size))


def agrees(told, value):
    """Return whether a number is what was told, to the digits that were told."""
    digits, _, power = told.partition("e")
    form = f".{len(digits.partition('.')[2])}{'e' if power else 'f'}"
    return float(told) == float(f"{value:{form}}")


def test_the_limit_of_the_mean():
    head, rows = table_after("RMSVE of the limit of E[w]")
    assert len(rows) == 3
    for name, alpha, *cells in rows:
        for label, told in zip(head[2:], cells, strict=True):
            bias = steady_state_bias(task_of(name), LEARNERS[NAMES[label]].setting(alpha=float(alpha)))
            assert agrees(told, bias), (name, label, told, bias)


def test_the_largest_step_sizes_with_independent_draws():
    """Those along trajectories, and in mean square, take minutes."""
    head, rows = table_after("Largest α, mean / mean square")
    drawn = [row for row in rows if row[1] == "i.i.d."]
    assert len(drawn) == 4
    for name, _, *cells in drawn:
        for label, told in zip(head[2:], cells, strict=True):
            limit = largest_stable_alpha(task_of(name), NAMES[label], "iid")
            assert agrees(told.split(" / ")[0], limit), (name, label, told, limit)


@pytest.mark.parametrize("size", [10, 20])
def test_rates(size):
    head, rows = table_after("Rates at α = 0.3")
    (row,) = (row for row in rows if row[0] == f"walk, m = {size}")
    task, found = tasks.random_walk(size), {}
    for label, told in zip(head[1:4], row[1:4], strict=True):
        setting = LEARNERS[NAMES[label.partition(",")[0]]].setting(alpha=0.3)
        found[label] = [rate(task, setting, sampling) for sampling in ("iid", "trajectory")]
        assert all(map(agrees, told.split(" / "), found[label])), (label, told, found[label])
    assert agrees(row[4], found[head[3]][1] / found["GTD2"][1])
