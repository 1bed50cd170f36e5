"""Signs in the rows: what each function computes, on rows made for it."""

import numpy as np
import pytest

from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.row_findings import RowEvidence
from gradient_dd.evaluation.row_signs import (
    Drift,
    Hole,
    RowSigns,
    Shift,
    Tail,
    Twins,
    links_of,
    row_signs,
    shift_of,
    sketch,
    tail_of,
)
from gradient_dd.tasks import random_walk
from tests.evaluation.known_logs import log_of

NOTHING = RowSigns(None, None, None, None, None, None)


def said(name, **signs):
    """Return the levels that a finding gives to some signs."""
    return [level for level, _ in FINDINGS[name].find(RowEvidence(NOTHING._replace(**signs), ("a",)))]


def signs_of(log, **options):
    """Return the signs of a log."""
    return row_signs(LogData(log, {"today": None}, **options), 0)


def test_findings_on_signs():
    assert said("drift", drift=Drift(0.002, True, 0, 0.5, 0.1)) == ["with care"]
    assert said("drift", drift=Drift(0.003, True, 0, 0.5, 0.1)) == ["fine"]
    assert said("drift") == []
    assert said("heavy_tails", tail=Tail(0.51, 12.34)) == ["not"]
    assert said("heavy_tails", tail=Tail(0.5, 12.34)) == ["with care"]
    assert said("heavy_tails", tail=Tail(0.25, 12.34)) == said("heavy_tails", tail=Tail(0.9, 10.0)) == []
    assert said("copied_episodes", twins=Twins(0.03, 9.0, 4.1)) == ["with care"]
    assert said("copied_episodes", twins=Twins(0.02, 9.0, 4.1)) == said("copied_episodes", twins=Twins(1, 9, 4.0)) == []
    assert said("order", linked=3.9) == ["with care"]
    assert said("order", linked=4.0) == []
    assert said("missing_rows", hole=Hole(9, 1.3, 6.1)) == ["with care"]
    assert said("missing_rows", hole=Hole(9, 1.2, 6.1)) == said("missing_rows", hole=Hole(9, 1.3, 6.0)) == []
    assert said("shifted_rewards", shift=Shift(1, 0.21, 6.1)) == ["not"]
    assert said("shifted_rewards", shift=Shift(1, 0.05, 9.0)) == said("shifted_rewards", shift=Shift(1, 0.2, 6.0)) == []


def test_rewards_that_change_in_some_states_are_drift_and_another_policy_is_not():
    rng = np.random.default_rng(0)
    n = 4000
    state, late = rng.integers(0, 5, n), np.arange(n) >= 3 * n // 4
    columns = {"obs": state, "terminated": np.arange(n) % 4 == 3, "reward": state + rng.standard_normal(n)}
    assert signs_of(columns, discount=0.9).drift.chance > 0.01
    moved = columns | {"reward": columns["reward"] - 0.6 * late * (state == 2)}
    found = signs_of(moved, discount=0.9).drift
    assert found.chance <= 0.002
    assert found.since == pytest.approx(0.75, abs=0.1)
    assert found.reward
    often = np.where(late, rng.integers(2, 5, n), state)  # other states are visited, and pay what they always paid
    assert signs_of(columns | {"obs": often, "reward": often + rng.standard_normal(n)}, discount=0.9).drift.chance < 1


def test_a_rare_reward_is_no_heavy_tail():
    rng = np.random.default_rng(0)
    assert tail_of((rng.random(5000) < 0.002) * 1.0).times == 1.0
    assert tail_of(rng.standard_normal(5000)).share < 0.02
    heavy = tail_of(rng.pareto(1.0, 5000))
    assert (heavy.share > 0.5, heavy.times > 100) == (True, True)
    assert tail_of(np.zeros(5000)) is tail_of(np.ones(100)) is None


def test_a_log_without_noise_does_not_drift():
    state = np.arange(400) % 4
    log = {"obs": state, "reward": state == 3, "terminated": state == 3}
    assert signs_of(log, discount=0.9).drift.chance == 1.0


def walks(seed, n=4000, times=1):
    """Return a log of a walk, all of it so many times."""
    log = log_of(random_walk(10), n, seed)
    last = np.flatnonzero(log["discount"] == 0)[-1] + 1
    return {name: np.concatenate([column[:last]] * times) for name, column in log.items()}


def test_short_episodes_repeat_by_chance_and_copies_do_not():
    for seed in range(5):
        assert signs_of(walks(seed)).twins.beyond < 4
    assert signs_of(walks(0, 1500, 3)).twins.beyond > 10
    assert signs_of(walks(0, 40)).twins is None


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
    assert signs_of(walks(0, 100))._replace(drift=None) == NOTHING
    assert sketch(np.ones((3, 65))).shape == (3, 64)
    assert np.array_equal(sketch(np.eye(3)), np.eye(3))
