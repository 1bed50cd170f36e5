"""One pipeline: `evaluate_log` and `compare` agree on every log, influences are those of leaving episodes out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradient_dd as gdd
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.passes import values_of
from gradient_dd.evaluation.pieces import HOLE, Piece, numbered, parts_of, ratio_products, step_sums
from gradient_dd.evaluation.rows import EvaluationRows, dealt_groups
from gradient_dd.evaluation.value import blend
from gradient_dd.stream.features import OneHot


def random_log(seed):
    """Return a random log with what makes logs differ, the policy, and the options to read it with."""
    rng = np.random.default_rng(seed)
    n, states, actions = int(rng.integers(60, 400)), int(rng.integers(2, 6)), int(rng.integers(2, 4))
    state, action = rng.integers(0, states, n + 1), rng.integers(0, actions, n)
    log = {"obs": state[:-1], "action": action, "reward": rng.standard_normal(n) + action}
    if rng.random() < 0.5:
        log |= {"obs": state[:-1] + 0.1 * rng.standard_normal(n)}
    if rng.random() < 0.7:
        log["terminated"] = rng.random(n) < rng.choice([0.05, 0.3, 1.0])
    if rng.random() < 0.3:
        log["next_obs"] = state[1:]
    if rng.random() < 0.5:
        log["propensity"] = np.full(n, 1 / actions)
    chances = rng.dirichlet(np.ones(actions))
    gamma = float(rng.choice([0.0, 0.5, 0.9]))
    return log, lambda seen: np.tile(chances, (len(seen), 1)), {"discount": gamma}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_one_policy_alone_has_the_number_the_interval_and_the_verdict_of_a_comparison(seed):
    log, policy, options = random_log(seed)
    one = gdd.evaluate_log(log, target=policy, **options)
    other = gdd.compare(log, {"f": policy, "even": lambda seen: policy(seen)}, **options).table[1]
    assert (one.start_value, *one.start_interval) == (other["value"], other["low"], other["high"])
    assert one.verdict.word == other["verdict"]
    assert one.difference.estimate == other["difference"]
    low, high = one.support.bounds
    assert low <= one.start_interval.low <= one.start_value <= one.start_interval.high <= high


def test_a_log_of_single_decisions_needs_no_episodes():
    """Every row is an episode of its own: the value is the mean over all rows, not over the first."""
    rng = np.random.default_rng(0)
    log = {"obs": rng.integers(0, 3, 600), "action": rng.integers(0, 2, 600), "propensity": np.full(600, 0.5)}
    log["reward"] = log["action"] * (log["obs"] == 2) + 0.1 * rng.standard_normal(600)
    found = gdd.compare(log, {"one": lambda seen: np.tile([0.0, 1.0], (len(seen), 1))}, discount=0.0)
    assert found.table[1]["value"] == pytest.approx(1 / 3, abs=0.05)
    assert found.questions[0].episodes == 600
    several = log | {"episode": np.arange(600) // 3}
    both = {"target": lambda seen: np.tile([0.0, 1.0], (len(seen), 1)), "discount": 0.0}
    first = log["obs"][::3] == 2
    assert gdd.evaluate_log(several, **both).start_value == pytest.approx(first.mean(), abs=0.05)


def data_of(seed=0, episodes=60, **options):
    """Return the data of a random log of a table with two actions, and a policy."""
    rng = np.random.default_rng(seed)
    n = episodes * 6
    state, action = rng.integers(0, 4, n), rng.integers(0, 2, n)
    log = {"obs": state, "action": action, "reward": state * action + rng.standard_normal(n)}
    log |= {"terminated": np.arange(n) % 6 == 5, "propensity": np.full(n, 0.5), "episode": np.arange(n) // 6}
    policy = lambda seen: np.tile([0.4, 0.6], (len(seen), 1))  # noqa: E731
    return log, policy, LogData(log, {"today": None, "f": policy}, discount=0.9, **{"features": OneHot(4)} | options)


def test_influences_are_those_of_leaving_an_episode_out():
    """To first order: the value without an episode is the value minus the influence of the episode."""
    log, policy, data = data_of()
    found = list(values_of(data, data.policies, 0.95))[1][0]
    for episode in (3, 40):
        kept = log["episode"] != episode
        part = LogData({k: v[kept] for k, v in log.items()}, {"f": policy}, discount=0.9, features=OneHot(4))
        other = next(values_of(part, part.policies, 0.95))[0]
        assert found.q.value - other.q.value == pytest.approx(found.psi[episode, 0], rel=0.15, abs=2e-3)
    assert found.psi.shape == (60, 3)
    assert abs(found.psi[:, 0].sum()) < 0.2 * np.abs(found.psi[:, 0]).sum()


def test_the_logging_policy_is_worth_what_its_episodes_paid():
    log, _, data = data_of(episodes=120)
    base = next(values_of(data, data.policies, 0.95))[0]
    paid = np.bincount(log["episode"], log["reward"] * 0.9 ** (np.arange(720) % 6)).mean()
    assert base.value == base.d.value == pytest.approx(paid, abs=1e-9)


def test_wrong_features_are_corrected_by_the_returns():
    """One feature for all states cannot represent anything; the headline goes with the returns then."""
    rng = np.random.default_rng(0)
    n = 3000
    first, action = np.arange(n) % 3 == 0, rng.integers(0, 2, n)
    log = {"obs": rng.standard_normal(n), "action": action, "reward": np.where(first, 10.0 * action, 0.0)}
    log |= {"terminated": np.arange(n) % 3 == 2, "propensity": np.full(n, 0.5)}
    policy = lambda seen: np.tile([0.2, 0.8], (len(seen), 1))  # noqa: E731
    found = gdd.evaluate_log(log, target=policy, discount=1.0, features=lambda seen: np.ones(1)).found
    assert abs(found.value - 8.0) < 0.3
    assert abs(found.q.value - 8.0) > abs(found.d.value - 8.0)


def test_the_blend():
    both = np.array([[1.0, 0.0], [0.0, 3.0]])
    assert blend(1.0, 1.0, both) == (0.75, 0.0)
    share, gap = blend(0.0, 10.0, both)
    assert share == pytest.approx(3 / (4 + 100 - 16))
    assert gap == 5.0
    assert blend(2.0, 2.0, np.zeros((2, 2)))[0] == 1.0


def piece_of(episode, discount, row=None):
    """Return a piece with these episodes, numbered."""
    n = len(episode)
    none, zeros = np.zeros((n, 1)), np.zeros(n, np.int64)
    given = {"seen": none, "after": none, "carried": none, "carried_after": none, "action": none, "signals": none}
    given |= {"rho": np.ones(n), "behaviour": np.ones(n), "cut": zeros > 0, "group": zeros}
    row = np.arange(n) if row is None else np.array(row)
    return next(numbered([Piece(**given, discount=np.array(discount), episode=np.array(episode), step=row)]))


def test_products_along_episodes():
    piece = piece_of([0, 0, 0, 4, 4], [0.9, 0.9, 0, 0.9, 0])
    assert piece.episode.tolist() == [0, 0, 0, 1, 1]
    assert piece.step.tolist() == [0, 1, 2, 0, 1]
    seen = ratio_products(piece, np.array([2.0, 0.5, 3.0, 0.5, 4.0]), 3)
    assert seen.product == pytest.approx([2, 1, 3, 0.5, 2])
    assert seen.discount == pytest.approx([1, 0.9, 0.81, 1, 0.9])
    sums = step_sums(piece, seen, 3)
    assert sums[0] == pytest.approx([2.5, 3, 5])  # the second episode has ended, and keeps its 2
    assert sums[1] == pytest.approx([4.25, 5, 13])


def test_steps_after_a_missing_row_are_not_followed():
    piece = piece_of([0, 0, 0], [0.9, 0.9, 0], row=[0, 1, 3])
    assert piece.step.tolist()[:2] == [0, 1]
    assert piece.step[2] >= HOLE
    assert step_sums(piece, ratio_products(piece, np.array([2.0, 2.0, 5.0]), 3), 3)[0] == pytest.approx([2, 4, 4])


def test_pieces_do_not_cut_episodes_and_groups_do_not_depend_on_pieces():
    piece = piece_of(np.repeat(np.arange(10), 3), np.tile([0.9, 0.9, 0.0], 10))
    parts = list(parts_of(piece, 7))
    assert [len(part) for part in parts] == [6] * 5
    groups = dealt_groups(np.arange(100), 3)
    assert all(sorted(groups[k : k + 20]) == list(range(20)) for k in range(0, 100, 20))
    assert np.array_equal(groups[35:77], dealt_groups(np.arange(35, 77), 3))


def test_few_episodes_are_cut_into_stretches():
    log = {"obs": np.arange(900) % 7, "reward": np.ones(900)}
    data = LogData(log, {"today": None}, discount=0.9)
    assert data.rows.few
    assert data.rows.units == 20
    assert isinstance(data.rows, EvaluationRows)


def test_a_folder_of_parquet_files_is_a_log(tmp_path):
    import pandas as pd

    log, policy, _ = data_of()
    frame = pd.DataFrame(log)
    for k in range(4):
        frame[(frame["episode"] >= 15 * k) & (frame["episode"] < 15 * (k + 1))].to_parquet(tmp_path / f"{k}.parquet")
    options = {"discount": 0.9, "features": OneHot(4)}
    one, two = (gdd.evaluate_log(source, target=policy, **options) for source in (tmp_path, log))
    assert np.array_equal(one.w, two.w)
    assert one.start_interval == two.start_interval


def test_many_actions_share_the_features_of_the_state():
    rng = np.random.default_rng(0)
    n, items = 800, 80
    action = rng.integers(0, items, n)
    log = {f"x{i}": rng.standard_normal(n) for i in range(6)} | {"action": action, "reward": action / items}
    policy = lambda seen: np.tile(np.arange(items) / np.arange(items).sum(), (len(seen), 1))  # noqa: E731
    found = gdd.evaluate_log(log, target=policy, discount=0.0)
    assert found.found.design.form == "sum"
    truth = (np.arange(items) / items * np.arange(items) / np.arange(items).sum()).sum()
    assert found.start_interval.low <= truth <= found.start_interval.high


def test_too_many_features_are_learnt_by_auto_learner():
    rng = np.random.default_rng(0)
    n = 2000
    log = {"x": rng.random((n, 4)), "reward": np.ones(n), "terminated": np.arange(n) % 4 == 3}
    told = []
    found = gdd.evaluate_log(log, discount=0.5, features="tiles", progress=lambda *done: told.append(done))
    assert found.chosen == "AutoLearner"
    assert told[-1][0] == told[-1][1] == 3 * n  # rows read, learnt from, and summed
    assert found.start_value == pytest.approx(1.875, abs=0.3)
    assert found.found.psi.shape == (8, 3)


def parted(folder, n=2400, files=4, **changes):
    """Write a log with text as a folder of files, and return its columns."""
    import pandas as pd

    rng = np.random.default_rng(0)
    state, action = rng.integers(0, 5, n), rng.integers(0, 2, n)
    log = {"obs_0": rng.standard_normal(n), "obs_1": np.array(["a", "b", "c", "d", "e"])[state], "action": action}
    log |= {"reward": state * action + rng.standard_normal(n), "terminated": np.arange(n) % 6 == 5}
    log |= {"propensity": np.full(n, 0.5), "episode": np.arange(n) // 6} | changes
    for k in range(files):
        part = slice(k * n // files, (k + 1) * n // files)
        pd.DataFrame({name: column[part] for name, column in log.items()}).to_parquet(folder / f"{k}.parquet")
    return log


def most_right(seen):
    return np.tile([0.3, 0.7], (len(seen), 1))


@pytest.mark.parametrize("files", [4, 7])  # 7 files cut episodes
def test_a_folder_with_text_has_the_bits_of_its_rows(tmp_path, files):
    log = parted(tmp_path, files=files)
    one, two = (gdd.evaluate_log(source, target=most_right, discount=0.9) for source in (tmp_path, log))
    assert one.rows == two.rows == 2400
    assert np.array_equal(one.w, two.w)
    assert one.start_interval == two.start_interval
    assert one.verdict == two.verdict


def test_parts_of_a_folder_are_summed_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr("gradient_dd.stream.log.reader.SMALL", 0)
    log = parted(tmp_path)
    one, two = (gdd.evaluate_log(source, target=most_right, discount=0.9) for source in (tmp_path, log))
    assert one.rows == two.rows == 2400
    assert one.w == pytest.approx(two.w, rel=1e-9)
    assert one.start_interval == pytest.approx(two.start_interval, rel=1e-9)
    assert one.verdict == two.verdict
    assert LogData(tmp_path, {"a": None}, discount=0.9).rows.parts == 4


def test_an_episode_in_two_files_joins_their_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("gradient_dd.stream.log.reader.SMALL", 0)
    parted(tmp_path, n=2000, terminated=np.arange(2000) % 6 == 5)  # 500 rows are not whole episodes
    rows = LogData(tmp_path, {"a": None}, discount=0.9).rows
    assert rows.parts == 2
    assert [len(rows.reader.files[k]) for k in range(2)] == [3, 1]


@pytest.mark.xdist_group("dask")
@pytest.mark.parametrize("files", [4, 7])  # 7 files cut episodes, and two of them are a part
def test_workers_return_the_same_bits(tmp_path, monkeypatch, files):
    monkeypatch.setattr("gradient_dd.stream.log.reader.SMALL", 0)
    parted(tmp_path, files=files)
    targets = {"f": most_right, "even": lambda seen: np.full((len(seen), 2), 0.5)}
    seen = []
    here, there = (
        gdd.compare(tmp_path, targets, discount=0.9, progress=lambda *done: seen.append(done), **options)
        for options in ({}, {"dask": "local"})
    )
    assert here.table == there.table
    assert here.stated == there.stated
    assert seen[-1][0] == seen[-1][1] > 0
    with pytest.raises(gdd.BadRequestError, match="'dask' must be omitted unless the log is a folder"):
        gdd.compare({}, targets, discount=0.9, dask="local")


def test_an_episode_that_returns_in_another_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gradient_dd.stream.log.sources.CHUNK", 100)
    parted(tmp_path, episode=np.arange(2400) // 6 % 300)
    with pytest.raises(gdd.BadRequestError, match="must not return to an earlier episode"):
        gdd.evaluate_log(tmp_path, discount=0.9)
    monkeypatch.setattr("gradient_dd.stream.log.reader.SMALL", 0)
    with pytest.raises(gdd.BadRequestError, match="Sort the rows by episode"):
        gdd.evaluate_log(tmp_path, discount=0.9)


def test_a_long_log_chooses_its_features_by_a_sample(monkeypatch):
    from gradient_dd.evaluation import rows

    log, policy, _ = data_of(episodes=300)
    log["obs"] = log["obs"] + 0.01 * np.random.default_rng(1).standard_normal(len(log["obs"]))
    whole = gdd.evaluate_log(log, target=policy, discount=0.9)
    monkeypatch.setattr(rows, "KEPT_NUMBERS", 0)
    again = gdd.evaluate_log(log, target=policy, discount=0.9)
    assert again.start_value == pytest.approx(whole.start_value, rel=1e-9)
    monkeypatch.setattr(rows, "SAMPLE_ROWS", 900)
    told = []
    part = gdd.evaluate_log(log, target=policy, discount=0.9, progress=lambda *done: told.append(done))
    assert told[-1][0] == told[-1][1]
    assert part.rows == 1800
    assert part.start_value == pytest.approx(whole.start_value, rel=0.1)
    assert set(part.found.by_map) >= {part.found.map.name}


def test_one_blas_thread_while_an_evaluation_runs():
    from gradient_dd.evaluation.rows import libraries, one_thread

    before = [get() for get, _ in libraries()]
    with one_thread():
        assert [get() for get, _ in libraries()] == [1] * len(before)
    assert [get() for get, _ in libraries()] == before


def test_values_of_states_stay_within_what_rewards_allow():
    log, policy, _ = data_of()
    log["reward"] = np.clip(log["reward"], 0, 1)
    found = gdd.evaluate_log(log, target=policy, discount=0.9, features=lambda seen: np.array([1.0, seen[0] - 20]))
    low, high = found.support.bounds
    states = np.arange(-3000.0, 3000.0, 100.0)
    assert np.nanmin(found.predict(states)) >= low
    assert np.nanmax(found.predict(states)) <= high
    assert (found.predict_interval(states).low >= low).all()
