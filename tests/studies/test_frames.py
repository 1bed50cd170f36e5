"""Tables of results: every parameter that a rule declares is a column, and a mean is over the runs asked for."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gradient_dd.learners import Parameter, Rule
from gradient_dd.learners.rule import ALPHA
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import Results, run_frame, summary_frame, write_frame
from gradient_dd.studies.store import Store
from gradient_dd.studies.sweep import run
from gradient_dd.tasks import random_walk


def clipped_step(alpha, rho, delta, clip, runs):
    return (alpha * rho * min(max(delta, -clip), clip) * runs,)


CLIPPED = Rule(
    name="clipped",
    label="Clipped TD",
    step=clipped_step,
    moves=("w_x",),
    parameters=(ALPHA, Parameter("clip", "bound of δ", default=1.0), Parameter("runs", "a factor", default=1.0)),
    reference="A test.",
    module=__name__,
)
STUDY = Study(
    "clipping",
    tasks=(task("random_walk", n_states=3),),
    grids=(grid(CLIPPED, alpha=(0.1, 0.2), clip=(0.01, 1.0)), grid("tdrc", alpha=0.1), grid("td", alpha=0.1)),
    episodes=20,
    runs=3,
)
NAME = "random_walk(n_states=3)"
FIXED = [
    *("task", "size", "reading", "learner", "alpha", "zeta", "kappa", "schedule", "episodes", "runs"),
    *("last100_mean", "last100_sem", "mean_error_mean", "mean_error_sem", "diverged_runs"),
]
pytestmark = pytest.mark.xdist_group("kernels of td")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run(STUDY, tmp_path_factory.mktemp("frames") / "a.db")


def test_every_declared_parameter_is_a_column_of_the_summary(results):
    """The rule's own `clip` has a column; its `runs`, a name that every table has already, gets another name."""
    frame = results.frame()
    others = ["exploded_runs", "reg", "rho_mode", "sampling", "clip", "parameter_runs"]
    assert frame.columns.tolist() == [*FIXED, *others, "area_mean", "area_sem"]
    assert frame[["area_mean", "area_sem"]].to_numpy().tolist() == frame[FIXED[12:14]].to_numpy().tolist()
    assert frame["clip"].tolist() == pytest.approx([0.01, 1.0, 0.01, 1.0, np.nan, np.nan], nan_ok=True)
    assert frame["alpha"].tolist() == [0.1, 0.1, 0.2, 0.2, 0.1, 0.1]
    assert frame["reg"].tolist() == pytest.approx([*[np.nan] * 4, 1.0, np.nan], nan_ok=True)
    assert frame["parameter_runs"].tolist() == pytest.approx([*[1.0] * 4, np.nan, np.nan], nan_ok=True)
    assert frame["runs"].tolist() == [3] * 6
    declared = ["learner", "alpha", "zeta", "kappa", "reg", "clip", "parameter_runs"]
    assert not frame.duplicated(declared).any(), "rows that cannot be told apart"


def test_a_run_far_beyond_the_first_error_is_counted_as_exploded_even_if_it_is_finite(tmp_path):
    steep = replace(STUDY, grids=(grid("gtd2", alpha=(0.01, 1.5, 300.0), zeta=1.0),), episodes=30)
    found = run(steep, tmp_path / "steep.db")
    frame, first = found.frame(), found.tasks[NAME].rmsve(found.tasks[NAME].initial_weights)
    both = [found.errors(NAME, measure)[1] for measure in ("last100", "mean_error")]
    assert frame["exploded_runs"].tolist() == [
        sum(not max(last, mean_error) <= 10 * first for last, mean_error in zip(*rows, strict=True))
        for rows in zip(*both, strict=True)
    ]
    exploded, diverged = frame["exploded_runs"].tolist(), frame["diverged_runs"].tolist()
    assert exploded[0] == 0
    assert any(more > fewer for more, fewer in zip(exploded, diverged, strict=True)), "a finite explosion"
    with Store(found.path) as store:
        exported = summary_frame(store)
    assert exported["exploded_runs"].tolist() == exploded, "an export counts the same, from the file alone"
    assert exported.columns.tolist()[-3:] == ["exploded_runs", "area_mean", "area_sem"], "others read by place"


def test_an_export_counts_explosions_on_a_task_of_the_user_s_own(tmp_path):
    """The error of the first weights is stored with the setting, so any task will do."""
    walk = random_walk(5)
    own = replace(walk, name="mine", parameters={}, initial_weights=walk.initial_weights + 3)
    found = run(replace(STUDY, tasks=(own,), grids=(grid("td", alpha=(0.1, 50.0)),)), tmp_path / "own.db")
    with Store(found.path) as store:
        assert summary_frame(store)["exploded_runs"].tolist() == found.frame()["exploded_runs"].tolist() == [0, 3]
        facts = store.settings()[0].facts
    assert facts["first_error"] == own.rmsve(own.initial_weights)


def test_every_declared_parameter_is_a_column_of_the_table_of_runs(results):
    with Store(results.path) as store:
        frame = run_frame(store)
    assert frame.columns.tolist() == [
        *("task", "size", "reading", "learner", "alpha", "zeta", "kappa", "rho_mode", "schedule", "episodes"),
        *("sampling", "seed", "run", "last100", "mean_error", "diverged_step", "diverged_episode"),
        *("reg", "clip", "parameter_runs", "area"),
    ]
    assert frame["area"].tolist() == frame["mean_error"].tolist()
    assert len(frame) == 18
    means = frame.groupby(["learner", "alpha", "clip"], sort=False)["last100"].mean()
    wanted = results.frame().dropna(subset="clip").set_index(["learner", "alpha", "clip"])["last100_mean"]
    assert means.loc[wanted.index].to_numpy() == pytest.approx(wanted.to_numpy())


def test_an_exported_file_has_them_too(results, tmp_path):
    with Store(results.path) as store:
        write_frame(summary_frame(store), tmp_path / "t.csv")
    assert pd.read_csv(tmp_path / "t.csv")["clip"].nunique() == 2


def test_selection_distinguishes_the_values_of_an_own_parameter(results):
    """A clip of 0.01 learns next to nothing in 20 episodes, so the selected setting has the other."""
    assert results.selected(NAME, "clipped").values["clip"] == 1.0


def test_a_summary_folds_the_runs_asked_for_and_no_others(results):
    """The file holds runs 0 to 4; the table of runs 3 and 4 has their mean and count alone."""
    later = run(replace(STUDY, first_run=3, runs=2), results.path)
    frame = later.frame()
    _, errors = later.errors(NAME)
    assert frame["runs"].tolist() == [2] * 6
    assert frame["last100_mean"].to_numpy() == pytest.approx(errors.mean(axis=1))
    assert results.frame()["runs"].tolist() == [3] * 6
    assert results.frame()["last100_mean"].to_numpy() == pytest.approx(results.errors(NAME)[1].mean(axis=1))
    assert frame["last100_mean"].to_numpy() != pytest.approx(results.frame()["last100_mean"].to_numpy())


def test_what_is_complete_is_read_once_and_what_is_not_is_read_again(tmp_path):
    file, three = tmp_path / "a.db", replace(STUDY, grids=(grid("td", alpha=0.1),))
    run(replace(three, runs=1), file)
    results = Results(three, file)
    assert np.isnan(results.errors(NAME)[1]).sum() == 2
    run(three, file)
    errors = results.errors(NAME)[1]
    assert np.isfinite(errors).all()
    kept = errors.copy()
    errors[:] = 0  # what a caller does to its own table is its own affair
    file.unlink()
    assert (results.errors(NAME)[1] == kept).all()


def test_curves_are_read_beside_those_of_longer_runs_in_the_same_file(tmp_path):
    """Both studies have the same task and runs, and another number of bins of a curve."""
    short = replace(STUDY, grids=STUDY.grids[-1:], episodes=None, steps=60, every=10)
    long = replace(short, name="long", grids=STUDY.grids[1:2], steps=300, every=100)
    alone, beside = (run(short, tmp_path / name) for name in ("alone.db", "both.db"))
    run(long, tmp_path / "both.db")
    for found, expected in zip(*(one.curves(NAME, list(short.settings())) for one in (beside, alone)), strict=True):
        assert np.array_equal(found, expected)
