"""Findings on the rows: what each statistic computes on rows made for it, and the level at both sides of its bounds."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from gradient_dd.evaluation import row_findings
from gradient_dd.evaluation.findings import FINDINGS
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.row_findings import (
    Drift,
    Hole,
    drift_of,
    duplicate_episodes,
    links_of,
    moved_most,
    products_of,
    row_evidence,
    shift_of,
    sketch,
    tail_of,
)
from gradient_dd.tasks import random_walk
from tests.evaluation.known_logs import log_of


def said(name, links=(None, None)):
    """Return the levels that a finding gives to rows with these links."""
    return [level for level, _ in FINDINGS[name].find(SimpleNamespace(links=links))]


def rows_of(log, **options):
    """Return the evidence on the rows of a log."""
    return row_evidence(LogData(log, {"today": None}, **options))[0]


@pytest.mark.parametrize(
    ("name", "statistic", "values", "levels"),
    [
        ("heavy_tails", "tail_of", (0.51, 12.34), ["not"]),
        ("heavy_tails", "tail_of", (0.5, 12.34), ["with care"]),
        ("heavy_tails", "tail_of", (0.25, 12.34), []),
        ("heavy_tails", "tail_of", (0.9, 10.0), []),
        ("heavy_tails", "tail_of", None, []),
        ("copied_episodes", "duplicate_episodes", (0.03, 4.1), ["with care"]),
        ("copied_episodes", "duplicate_episodes", (0.02, 4.1), []),
        ("copied_episodes", "duplicate_episodes", (1.0, 4.0), []),
        ("shifted_rewards", "shift_of", ("after", 0.21, 6.1), ["not"]),
        ("shifted_rewards", "shift_of", ("after", 0.05, 9.0), []),
        ("shifted_rewards", "shift_of", ("after", 0.2, 6.0), []),
    ],
)
def test_findings_on_statistics(name, statistic, values, levels, monkeypatch):
    monkeypatch.setattr(row_findings, statistic, lambda *arrays: values)
    rows = rows_of({"obs": np.arange(201) % 7, "reward": np.ones(201)}, discount=0.9)
    assert [level for level, _ in FINDINGS[name].find(rows)] == levels


def test_findings_on_links_and_drift(monkeypatch):
    assert said("order", links=(3.9, None)) == ["with care"]
    assert said("order", links=(4.0, None)) == said("order") == []
    assert said("missing_rows", links=(9.0, Hole(9, 1.3, 6.1))) == ["with care"]
    assert said("missing_rows", links=(9.0, Hole(9, 1.2, 6.1))) == []
    assert said("missing_rows", links=(9.0, Hole(9, 1.3, 6.0))) == []
    for found, levels in ((Drift(0.003), ["fine"]), (None, [])):
        monkeypatch.setattr(row_findings, "drift_of", lambda rows, found=found: found)
        assert said("drift") == levels


def test_rewards_that_change_in_some_states_are_drift_and_another_policy_is_not():
    rng = np.random.default_rng(0)
    n = 4000
    state, late = rng.integers(0, 5, n), np.arange(n) >= 3 * n // 4
    columns = {"obs": state, "terminated": np.arange(n) % 4 == 3, "reward": state + rng.standard_normal(n)}
    assert drift_of(rows_of(columns, discount=0.9)).chance > 0.01
    moved = columns | {"reward": columns["reward"] - 0.6 * late * (state == 2)}
    rows = rows_of(moved, discount=0.9)
    found = drift_of(rows)
    assert found.chance <= 0.002
    assert found.since / n == pytest.approx(0.75, abs=0.1)
    assert found.what == "reward"
    where, change = moved_most(rows, found)
    assert where == "where 'obs' is 2"
    assert change == pytest.approx(-0.6, abs=0.2)
    ((level, sentence),) = FINDINGS["drift"].find(rows)
    assert level == "with care"
    assert sentence.startswith("The reward where 'obs' is 2 changes by -0.")
    assert " after episode " in sentence
    often = np.where(late, rng.integers(2, 5, n), state)  # other states are visited, and pay what they always paid
    assert (
        drift_of(rows_of(columns | {"obs": often, "reward": often + rng.standard_normal(n)}, discount=0.9)).chance < 1
    )


def test_a_rare_reward_is_no_heavy_tail():
    rng = np.random.default_rng(0)
    assert tail_of((rng.random(5000) < 0.002) * 1.0)[1] == 1.0
    assert tail_of(rng.standard_normal(5000))[0] < 0.02
    share, times = tail_of(rng.pareto(1.0, 5000))
    assert (share > 0.5, times > 100) == (True, True)
    assert tail_of(np.zeros(5000)) is tail_of(np.ones(100)) is None


def test_a_log_without_noise_does_not_drift():
    state = np.arange(400) % 4
    log = {"obs": state, "reward": state == 3, "terminated": state == 3}
    assert drift_of(rows_of(log, discount=0.9)).chance == 1.0


def walks(seed, n=4000, times=1):
    """Return a log of a walk, all of it so many times."""
    log = log_of(random_walk(10), n, seed)
    last = np.flatnonzero(log["discount"] == 0)[-1] + 1
    return {name: np.concatenate([column[:last]] * times) for name, column in log.items()}


def twins(log):
    """Return the statistic of copied episodes."""
    rows = rows_of(log)
    return duplicate_episodes(rows.piece, rows.reward)


def test_short_episodes_repeat_by_chance_and_copies_do_not():
    for seed in range(5):
        assert twins(walks(seed))[1] < 4
    assert twins(walks(0, 1500, 3))[1] > 10
    assert twins(walks(0, 40)) is None


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


@pytest.mark.parametrize(("rows", "where"), [(-1, "before"), (1, "after")])
def test_rewards_that_are_shifted(rows, where):
    rng = np.random.default_rng(0)
    described = np.column_stack([rng.standard_normal((2000, 3)), np.ones(2000)])
    reward = described @ [1.0, -2.0, 0.5, 1.0] + 0.1 * rng.standard_normal(2000)
    assert shift_of(described, reward)[1] < 0
    row, gain, sure = shift_of(described, np.roll(reward, -rows))
    assert (row, gain > 0.9, sure > 10) == (where, True, True)
    assert shift_of(described, np.ones(2000)) is None


def test_short_logs_give_no_signs_and_many_features_a_sketch():
    short = rows_of(walks(0, 100))
    assert tail_of(short.reward) is None
    assert short.links == (None, None)
    assert list(FINDINGS["shifted_rewards"].find(short)) == []
    assert sketch(np.ones((3, 65))).shape == (3, 64)
    assert np.array_equal(sketch(np.eye(3)), np.eye(3))


def test_many_actions_and_features_do_not_need_all_their_products_at_once():
    rng = np.random.default_rng(0)
    actions, here = np.eye(60)[rng.integers(0, 60, 5000)], rng.standard_normal((5000, 60))
    tracemalloc.start()
    found = products_of(actions, here)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5000 * 60 * 60 * 8  # bytes of all products
    whole = (actions[:, :, None] * here[:, None, :]).reshape(5000, -1)
    assert np.allclose(found, np.column_stack([sketch(whole, 12), here, actions]))
