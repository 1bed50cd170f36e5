"""Horizons: when errors are taken, whatever pieces a run is cut into."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernels.rows import measure
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.tasks import TASKS

schedules = st.sampled_from([constant, tapered(10), tapered(10, per="step"), Schedule(lambda n: 1 / n)])


def taken(horizon, ends, lengths, schedule):
    """Return, for each step, its factor; and for each error taken, (step, episode, bin, whether last)."""
    factors, errors, steps, episodes = [], [], 0, 0
    for length in lengths:
        piece = ends[steps : steps + length]
        at = np.flatnonzero(piece) + 1
        cut = horizon.cut(at, len(piece), steps, episodes, schedule)
        factors += np.repeat(cut.factor, np.diff([0, *cut.end])).tolist()
        errors += [row for row in zip(*cut[4:], cut.point, cut.last, strict=True) if row[2] >= 0 or row[3]]
        steps, episodes = int(cut.step[-1]), episodes + int((at <= cut.end[-1]).sum())
        if steps == horizon.steps or episodes == horizon.episodes:
            break
    return factors, errors, steps, episodes


@given(
    ends=st.lists(st.booleans(), min_size=60, max_size=400),
    cuts=st.lists(st.integers(1, 100), max_size=5),
    schedule=schedules,
    by_steps=st.booleans(),
)
def test_pieces_do_not_matter(ends, cuts, schedule, by_steps):
    ends = np.array([*ends, True])
    horizon = Horizon(steps=len(ends) // 7 * 7, every=7) if by_steps else Horizon(episodes=int(ends.sum()))
    whole = taken(horizon, ends, [len(ends)], schedule)
    assert taken(horizon, ends, [*cuts, len(ends)], schedule) == whole
    factors, errors, steps, episodes = whole
    episode = 1 + np.concatenate([[0], np.cumsum(ends)[:-1]])
    n = episode if schedule.per == "episode" else np.arange(1, len(ends) + 1)
    assert factors == [schedule.factor(int(i)) for i in n[: len(factors)]]
    if by_steps:
        assert steps == horizon.steps
        assert [step for step, _, point, _ in errors if point >= 0] == list(range(7, steps + 1, 7))
        assert [step for step, *_, last in errors if last] == list(range(max(1, steps - 99), steps + 1))
    else:
        assert episodes == horizon.episodes
        assert [step for step, *_ in errors] == (np.flatnonzero(ends) + 1).tolist()
        assert sum(last for *_, last in errors) == horizon.n_last


@given(points=st.integers(1, 5000))
def test_bins_are_even(points):
    horizon = Horizon(episodes=points)
    sizes = horizon.bin_sizes()
    assert len(sizes) == horizon.bins <= 200
    assert sizes.sum() == points
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("task", [builder() for builder in TASKS.values()] + [tasks.boyan_chain(100)], ids=str)
def test_the_measure_is_the_error(task):
    """Rows of states or of the triangular factor: the same RMSVE, for weights near and far."""
    form, rng = measure(task), np.random.default_rng(0)
    for scale in (1e-6, 1.0, 1e6):
        w = task.initial_weights + scale * rng.standard_normal(task.n_features)
        gaps = (w[form.rows.astype(int)] * form.values).sum(axis=1) - form.targets
        assert np.sqrt(form.rest + gaps @ gaps) == pytest.approx(task.rmsve(w), rel=1e-12)
    near = task.fixed_point if task.name != "random_mdp" else w
    gaps = (near[form.rows.astype(int)] * form.values).sum(axis=1) - form.targets
    assert np.sqrt(form.rest + gaps @ gaps) == pytest.approx(task.rmsve(near), rel=1e-9, abs=1e-12)


def test_an_ill_conditioned_task_keeps_its_states():
    """Two features that are nearly the same: the triangular factor would lose digits."""
    rng = np.random.default_rng(0)
    same = rng.standard_normal(30)
    features = np.column_stack([same, same + 1e-6 * rng.standard_normal(30)])
    uniform = np.full((30, 1, 30), 1 / 30)
    task = tasks.from_tables(uniform, rng.standard_normal((30, 1)), 0.9, np.ones((30, 1)), features=features)
    form = measure(task)
    assert form.rows.shape == (30, 2)
    gaps = -form.targets
    assert np.sqrt(form.rest + gaps @ gaps) == pytest.approx(task.rmsve(np.zeros(2)), rel=1e-13)


def test_the_measure_of_a_chain_is_short():
    assert measure(tasks.boyan_chain(100)).rows.shape == (100, 2)
