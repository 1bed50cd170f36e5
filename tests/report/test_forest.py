"""Forest plots: axes with round numbers, tables that show estimates, limits and warnings."""

import re

import pytest

from gradient_dd.report.forest import Forest, ForestRow, Mark, axis_of
from gradient_dd.report.svg import PlotAxis


def test_numbers_of_an_axis_are_round_and_do_not_overlap():
    assert PlotAxis(0.4, 3.0).ticks() == pytest.approx([0.5, 1, 2])
    assert PlotAxis(1e-4, 1e4).ticks() == pytest.approx([1e-4, 1e-2, 1, 1e2, 1e4])
    assert PlotAxis(-0.13, 0.29, linear=True).ticks() == pytest.approx([-0.1, 0, 0.1, 0.2])
    assert PlotAxis(987.0, 1213.0, linear=True).ticks() == pytest.approx([1000, 1050, 1100, 1150, 1200])
    assert PlotAxis(-1e308, 1e308, linear=True).ticks() == []


def table(rows, **more):
    return Forest("Errors", ["ratio"], rows, axis_of(rows, 1.0, ratios=True), 1.0, unit="m", **more).html()


def row(label, low, high, look="y", **more):
    return ForestRow("", label, [[Mark((low * high) ** 0.5, low, high, look)]], **more)


def test_a_table_shows_the_limit_the_numbers_and_what_is_off_the_scale():
    plot = table([row("10", 0.5, 0.8, value="0.63", title="interval 0.5 to 0.8"), row("20", 1e5, 1e7)])
    assert '<caption class="srt">Errors</caption>' in plot
    assert 'title="interval 0.5 to 0.8"' in plot
    assert '<use href="#mr" x="98%"' in plot, "an arrow at the right end"
    assert 'class="lim">1</s>' in plot
    at = re.search(r'<use href="#mc" x="([0-9.]+)%"', plot)[1]
    axis = axis_of([row("10", 0.5, 0.8), row("20", 1e5, 1e7)], 1.0, ratios=True)
    assert float(at) == pytest.approx(100 * axis.place(0.4**0.5, 0, 1), abs=0.1)


def test_a_note_stands_below_its_row_and_cells_have_the_names_of_their_columns():
    columns = ("ratio", "error")
    plot = table([row("<td>", 0.5, 0.8, value="0.63", cells=["0.1"], note="At an end.")], columns=columns)
    assert "&lt;td&gt;" in plot
    assert '<tr class="note"><td colspan="4">At an end.' in plot
    assert all(f'data-head="{name}"' in plot for name in columns)
