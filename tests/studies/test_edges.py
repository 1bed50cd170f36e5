"""A tuned setting at an end of its grid is named, with values to try beyond it."""

import pytest

from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import edge, edges
from gradient_dd.studies.sweep import run


def test_an_edge_of_the_grid_is_marked():
    settings = list(grid("gtd2", alpha=(0.1, 0.2, 0.3), zeta=(1, 4)).settings())
    assert [edge(one, settings) for one in settings[::2]] == [
        "lowest alpha, lowest zeta",
        "lowest zeta",
        "highest alpha, lowest zeta",
    ]
    assert edge(settings[2], settings[2:3]) == ""
    assert edges(settings[4], settings) == [("highest", "alpha", "0.45, 0.675"), ("lowest", "zeta", "0.25, 0.0625")]


def test_the_largest_legal_value_is_no_edge():
    settings = list(grid("gtd2_to_td", alpha=0.1, c=(0.5, 0.75, 1.0)).settings())
    assert [edge(one, settings) for one in settings] == ["lowest c", "", ""]


@pytest.mark.parametrize(
    ("best", "values", "beyond"),
    [
        (0.4, [0.1, 0.2, 0.4], "0.8, 1.6"),
        (0.1, [0.1, 0.2, 0.4], "0.05, 0.025"),
        (0.5, [0.0, 0.5], "1, 1.5"),
        (0.0, [0.0, 0.5], ""),
    ],
)
def test_values_beyond_an_end_are_spaced_as_the_grid_is(best, values, beyond):
    settings = {one.values["kappa"]: one for one in grid("gradient_dd", alpha=0.1, kappa=values).settings()}
    ((_, _, found),) = edges(settings[best], settings.values())
    assert found == beyond


def test_values_beyond_an_end_are_legal():
    settings = list(grid("td", alpha=0.1, lam=(0.0, 0.6)).settings())
    assert edges(settings[1], settings) == [("highest", "lam", "")]


def test_a_sweep_whose_best_step_size_is_the_largest_says_so(tmp_path):
    walk = (task("random_walk", n_states=5),)
    small = Study("small", tasks=walk, grids=(grid("td", alpha=(1e-4, 1e-3)),), episodes=20, runs=2)
    wide = Study("wide", tasks=walk, grids=(grid("td", alpha=(1e-4, 0.05, 1.0)),), episodes=200, runs=2)
    assert run(small, tmp_path / "a.db").edge_notes() == [
        "td on random_walk(n_states=5): the best alpha, 0.001, is the highest tried. Also try 0.01, 0.1."
    ]
    assert run(wide, tmp_path / "a.db").edge_notes() == []
