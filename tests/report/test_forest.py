"""Forest plots: axes with round numbers that show the estimates, arrows where an interval goes on beyond them."""

import re

import pytest

from gradient_dd.report.svg import BARE, Dot, PlotAxis, forest, ratio_axis, value_axis


def dot(estimate, low, high, **look):
    return Dot("m = 10, TD", estimate, low, high, "#123456", **look)


def test_an_axis_of_ratios_follows_the_estimates():
    narrow = ratio_axis([dot(0.5, 0.4, 0.6), dot(2.0, 1.5, 2.5)])
    assert narrow == pytest.approx((0.4 / 1.2, 2.5 * 1.2, False))
    wide = ratio_axis([dot(0.5, 1e-9, 1e9), dot(2.0, 0.0, float("inf"))])
    assert wide == pytest.approx((0.05 / 1.2, 20 * 1.2, False)), "a decade beyond the estimates, whatever the interval"
    assert ratio_axis([]) == pytest.approx((0.8 / 1.2, 1.25 * 1.2, False))
    assert ratio_axis([], bound=9.0).high == pytest.approx(9.0 * 1.2)


def test_an_axis_of_values_holds_all_intervals():
    assert value_axis([dot(5.0, -3.0, 6.0), dot(1.0, 0.0, float("inf"))]) == (-3.0, 6.0, True)
    assert value_axis([dot(-2.0, -2.0, -2.0)]) == (-4.0, 0.0, True)
    assert value_axis([]) == (-1.0, 1.0, True)


def test_an_interval_beyond_the_axis_has_an_arrow():
    def arrows(*dots):
        return forest(dots, ratio_axis(dots)).count("<polyline")

    assert arrows(dot(0.5, 0.4, 0.6)) == 0
    assert arrows(dot(0.5, 1e-9, 0.6)) == 1
    assert arrows(dot(0.5, 0.0, float("inf"))) == 2
    assert arrows(dot(0.5, float("nan"), 0.6)) == 1


def test_numbers_of_an_axis_are_round_and_do_not_overlap():
    assert PlotAxis(0.4, 3.0).ticks() == pytest.approx([0.5, 1, 2])
    assert PlotAxis(1e-4, 1e4).ticks() == pytest.approx([1e-4, 1e-2, 1, 1e2, 1e4])
    assert PlotAxis(-0.13, 0.29, linear=True).ticks() == pytest.approx([-0.1, 0, 0.1, 0.2])
    assert PlotAxis(987.0, 1213.0, linear=True).ticks() == pytest.approx([1000, 1050, 1100, 1150, 1200])
    assert PlotAxis(-1e308, 1e308, linear=True).ticks() == []


def test_a_dot_beside_another_has_no_row_of_its_own():
    dots = [dot(0.5, 0.4, 0.6), dot(0.7, 0.6, 0.8, hollow=True, beside=True), dot(2.0, 1.5, 2.5, dashed=True)]
    plot = forest(dots, ratio_axis(dots), title="<b>", words="Ratios")
    assert plot.count("m = 10, TD</text>") == 2
    assert plot.count("<circle") == 3
    assert plot.count("fill:var(--paper)") == plot.count("stroke-dasharray") == 1
    assert "&lt;b&gt;" in plot
    assert 'aria-label="Ratios"' in plot


def test_a_bare_plot_has_marks_alone_and_a_line_only_where_it_is_wanted():
    dots = [dot(0.5, 0.4, 0.6)]
    plot = forest(dots, ratio_axis(dots), size=BARE)
    assert "<text" not in plot
    assert 'aria-hidden="true"' in plot
    assert plot.count('class="one"') == 1
    assert 'class="one"' not in forest(dots, value_axis(dots), None)


def test_a_value_stands_where_the_axis_has_it():
    dots = [dot(5.0, 0.0, 10.0)]
    (x,) = re.findall(r'cx="([0-9.]+)"', forest(dots, value_axis(dots), None))
    assert float(x) == pytest.approx((150 + 390) / 2)
