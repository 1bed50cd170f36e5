"""Small pictures: axes that show the estimates, arrows where an interval goes on beyond them."""

import pytest

from gradient_dd.report.small_svg import Dot, decades, domain_of, forest


def dot(estimate, low, high):
    return Dot("m = 10, TD", estimate, low, high, "#123456")


def test_the_axis_follows_the_estimates():
    narrow = domain_of([dot(0.5, 0.4, 0.6), dot(2.0, 1.5, 2.5)])
    assert narrow == pytest.approx((0.4 / 1.2, 2.5 * 1.2))
    wide = domain_of([dot(0.5, 1e-9, 1e9), dot(2.0, 0.0, float("inf"))])
    assert wide == pytest.approx((0.05 / 1.2, 20 * 1.2)), "a decade beyond the estimates, however wide the interval"
    assert domain_of([]) == pytest.approx((0.8 / 1.2, 1.25 * 1.2))


def test_an_interval_beyond_the_axis_has_an_arrow():
    def arrows(*dots):
        return forest("t", dots, domain_of(dots)).count("<polyline")

    assert arrows(dot(0.5, 0.4, 0.6)) == 0
    assert arrows(dot(0.5, 1e-9, 0.6)) == 1
    assert arrows(dot(0.5, 0.0, float("inf"))) == 2
    assert arrows(dot(0.5, float("nan"), 0.6)) == 1


def test_numbers_of_an_axis_do_not_overlap():
    assert decades((0.4, 3.0)) == pytest.approx([0.5, 1, 2])
    assert decades((1e-4, 1e4)) == pytest.approx([1e-4, 1e-2, 1, 1e2, 1e4])
