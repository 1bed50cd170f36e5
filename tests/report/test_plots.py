"""`.plot()` and `.report()` of results, evaluations and comparisons: axes in, axes out, the numbers of the tables."""

import matplotlib as mpl
import numpy as np
import pytest

import gradient_dd as gdd
from tests.evaluation.test_compare import LOG, OPTIONS, to_the_right

mpl.use("agg")
from matplotlib import pyplot as plt


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    grids = gdd.grid("td", alpha=[0.1, 0.2, 0.4]), gdd.grid("gradient_dd", alpha=[0.1, 0.2])
    study = gdd.Study("small", ("five_state_walk",), grids, episodes=20, runs=3)
    return gdd.run(study, tmp_path_factory.mktemp("plots") / "results.db")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_errors_against_the_step_size_are_those_of_the_table(results):
    ax = results.plot()
    frame = results.frame()
    expected = frame[frame.learner == "td"].last100_mean
    assert np.allclose(ax.lines[0].get_ydata(), expected)
    assert [one.get_text() for one in ax.get_legend().get_texts()] == ["TD", "Gradient-DD"]


def test_learning_curves_are_drawn_on_given_axes_with_their_bands(results):
    given = plt.subplots()[1]
    assert results.plot("curves", ax=given) is given
    middle, curves = results.curves(next(iter(results.tasks)), [results.selected(next(iter(results.tasks)), "td")])
    assert curves.shape == (1, 3, len(middle))
    assert middle[0] == 0.5
    assert np.allclose(given.lines[0].get_ydata(), curves[0].mean(axis=0))
    assert len(given.collections) == 2
    assert given.get_xlabel() == "episodes"


def test_a_plot_that_cannot_be_gets_one_sentence(results):
    with pytest.raises(gdd.BadRequestError, match="'kind' must be 'step_sizes' or 'curves'"):
        results.plot("pie")
    with pytest.raises(gdd.BadRequestError, match="must include 'walk'"):
        results.plot(task="walk")


def test_an_evaluation_and_a_comparison_are_forests_and_pages(results, tmp_path):
    found = gdd.evaluate_log(LOG, target=to_the_right(0.7), **OPTIONS)
    names = [one.get_text() for one in found.plot().get_yticklabels()]
    assert names == ["logging policy", "doubly robust", "LSTD-Q", "value"]
    compared = gdd.compare(LOG, {"right": to_the_right(0.7)}, **OPTIONS)
    ax = compared.plot(ax=plt.subplots()[1])
    values = {one["name"]: one["value"] for one in compared.table}
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert dots == sorted(values.values())
    for one in (found, compared, results):
        page = one.report(tmp_path / f"{type(one).__name__}.html")
        assert "<svg" in page.read_text()
