"""Signs in the rows: what each function computes, on rows made for it."""

import numpy as np
import pytest

from gradient_dd.evaluation import transitions_of
from gradient_dd.evaluation.copies import Twins, twins_of
from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.evaluation.row_findings import RowEvidence
from gradient_dd.evaluation.row_signs import (
    Drift,
    Hole,
    RowSigns,
    Shift,
    Tail,
    drift_of,
    influences,
    links_of,
    row_signs,
    shift_of,
    sketch,
    tail_of,
)
from gradient_dd.stream.features import Rows
from gradient_dd.tasks import random_walk
from tests.evaluation.known_logs import log_of

NOTHING = RowSigns(None, None, None, None, None, None)


def said(name, scale=10.0, **signs):
    """Return what a finding says of some signs."""
    return list(FINDINGS[name].find(RowEvidence(NOTHING._replace(**signs), scale)))


@pytest.mark.parametrize(
    ("halves", "chance", "quarters", "level"),
    [(1.1, 9e-5, 0.5, "not"), (1.1, 9e-4, 0.5, "with care"), (1.1, 0.0011, 0.5, "fine"), (0.9, 9e-4, 0.5, "fine"),
     (0.9, 9e-5, 0.5, "with care"), (0.1, 0.5, 9e-5, "with care"), (-1.1, 9e-5, 0.5, "not")],
)  # fmt: skip
def test_drift(halves, chance, quarters, level):
    words = f"Between the halves of the log the value moves by {halves:+.3g}, between quarters by up to 2"
    ends = {"not": ": rewards, transitions or ratios drift.", "fine": ", which may be chance."}
    end = ends.get(level, ", more than chance allows: something drifts.")
    assert said("drift", drift=Drift(halves, 2.0, chance, quarters)) == [(level, words + end)]
    assert said("drift") == []


def test_heavy_tails():
    words = "The largest 0.1% of the rewards hold {} of all squares, and are 12.3 times as large as usual ones: no "
    words += "interval knows what a larger one would do."
    assert said("heavy_tails", tail=Tail(0.51, 12.34)) == [("not", words.format("51%"))]
    assert said("heavy_tails", tail=Tail(0.5, 12.34)) == [("with care", words.format("50%"))]
    assert said("heavy_tails", tail=Tail(0.25, 12.34)) == said("heavy_tails", tail=Tail(0.9, 10.0)) == []


def test_copies_order_holes_and_shifts():
    copies = "3% of the episodes are the same as another one in every row: copies."
    assert said("copied_episodes", twins=Twins(0.03, 9.0, 4.1)) == [("with care", copies)]
    assert said("copied_episodes", twins=Twins(0.02, 9.0, 4.1)) == said("copied_episodes", twins=Twins(1, 9, 4.0)) == []
    unlinked = "Successive states have nothing to do with each other: the rows may be shuffled."
    assert said("order", linked=3.9) == [("with care", unlinked)]
    assert said("order", linked=4.0) == []
    jumps = "After every 9 rows the state jumps: rows seem to be missing there."
    assert said("missing_rows", hole=Hole(9, 1.3, 6.1)) == [("with care", jumps)]
    assert said("missing_rows", hole=Hole(9, 1.2, 6.1)) == said("missing_rows", hole=Hole(9, 1.3, 6.0)) == []
    for rows, where in ((-1, "before"), (1, "after")):
        words = f"The row {where} explains 21% more of the rewards than their own row: rewards are shifted."
        assert said("shifted_rewards", shift=Shift(rows, 0.21, 6.1)) == [("not", words)]
    assert said("shifted_rewards", shift=Shift(1, 0.05, 9.0)) == said("shifted_rewards", shift=Shift(1, 0.2, 6.0)) == []


def test_a_jump_in_the_middle_is_drift():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(4000)
    assert drift_of(noise).chance > 0.01
    found = drift_of(noise + 0.3 * (np.arange(4000) >= 2000))
    assert found.halves == pytest.approx(0.3, abs=0.1)
    assert found.chance < 1e-6
    season = drift_of(noise + 0.3 * (np.arange(4000) // 1000 % 2))
    assert season.chance > 0.01
    assert season.chance_of_quarters < 1e-4
    assert drift_of(noise[:399]) is None
    assert drift_of(np.ones(400)) == Drift(0.0, 0.0, 1.0, 1.0)


def test_influences_are_those_of_leaving_rows_out():
    """The value without a stretch of rows is the value minus what those rows pull, to first order."""
    log = log_of(random_walk(5), 4000, 3)
    X, ahead = log.x.values, np.where(log.ended[:, None], 0.0, log.x_next.values)
    first = np.diff(log.episode, prepend=-1) != 0

    def value(kept):
        A = X[kept].T @ (X[kept] - log.discount[kept, None] * ahead[kept])
        return X[kept & first].mean(axis=0) @ np.linalg.solve(A, X[kept].T @ log.reward[kept])

    everything = np.ones(4000, bool)
    A = X.T @ (X - log.discount[:, None] * ahead) / 4000
    w = np.linalg.solve(A, X.T @ log.reward / 4000)
    pulls = influences(log, w, np.linalg.solve(A.T, X[first].mean(axis=0)))
    for episode in (10, 200):
        kept = log.episode != episode
        assert value(everything) - value(kept) == pytest.approx(pulls[~kept].sum() / 4000, rel=0.1, abs=1e-5)
    assert pulls.sum() == pytest.approx(0.0, abs=1e-9)


def test_a_rare_reward_is_no_heavy_tail():
    rng = np.random.default_rng(0)
    assert tail_of((rng.random(5000) < 0.002) * 1.0).times == 1.0
    assert tail_of(rng.standard_normal(5000)).share < 0.02
    heavy = tail_of(rng.pareto(1.0, 5000))
    assert (heavy.share > 0.5, heavy.times > 100) == (True, True)
    assert tail_of(np.zeros(5000)) is tail_of(np.ones(100)) is None


def walks(seed, n=4000, times=1):
    """Return a log of a walk, all of it so many times."""
    log = log_of(random_walk(10), n, seed)
    return transitions_of(
        *(np.tile(one, (times, 1)) if one.ndim == 2 else np.tile(one, times) for one in (
            log.x.values, log.reward, log.discount, log.x_next.values))
    )  # fmt: skip


def test_short_episodes_repeat_by_chance_and_copies_do_not():
    for seed in range(5):
        assert twins_of(walks(seed)).beyond < 4
    assert twins_of(walks(0, 1500, 3)).beyond > 10
    assert twins_of(walks(0, 40)) is None


def test_states_that_are_linked_and_holes():
    rng = np.random.default_rng(0)
    path = np.cumsum(rng.standard_normal((3001, 2)), axis=0)
    episode = np.zeros(3000, int)
    linked, hole = links_of(path[:-1], path[1:], np.ones(3000, bool), episode)
    assert linked > 1000
    assert hole.sure < 5
    mixed = rng.permutation(path)
    assert links_of(mixed[:-1], mixed[1:], np.ones(3000, bool), episode)[0] < 4
    holed = path[np.arange(3001) % 10 != 4]
    hole = links_of(holed[:-1], holed[1:], np.ones(len(holed) - 1, bool), episode[: len(holed) - 1])[1]
    assert (hole.period in (9, 18), hole.sure > 6, hole.times > 1.2) == (True, True, True)


@pytest.mark.parametrize("rows", [-1, 1])
def test_rewards_that_are_shifted(rows):
    rng = np.random.default_rng(0)
    described = np.column_stack([rng.standard_normal((2000, 3)), np.ones(2000)])
    reward = described @ [1.0, -2.0, 0.5, 1.0] + 0.1 * rng.standard_normal(2000)
    assert shift_of(described, reward).gain < 0
    found = shift_of(described, np.roll(reward, -rows))
    assert (found.rows, found.gain > 0.9, found.sure > 10) == (rows, True, True)
    assert shift_of(described, np.ones(2000)) is None


def test_short_logs_give_no_signs_and_many_features_a_sketch():
    assert row_signs(walks(0, 100), None) == NOTHING._replace(twins=None)
    wide = Rows(np.array([[0, 500]]), np.ones((1, 2)))
    assert sketch(wide).shape == (1, 64)
    assert np.array_equal(sketch(Rows(np.array([[2]]), np.ones((1, 1)))), [[0.0, 0.0, 1.0]])
