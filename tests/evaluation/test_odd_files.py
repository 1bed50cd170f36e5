"""Logs that are written in an unusual way: nothing merges silently, and the form of a file is found out."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest

import gradient_dd as gdd
from gradient_dd.errors import BadRequestError
from gradient_dd.files import array_shapes, read_arrays

LARGE = 2**53


def bandit(ids, n=400):
    """Return a log of one step an episode in which the second action pays 1."""
    rng = np.random.default_rng(0)
    k = rng.integers(len(ids), size=n)
    seen, chance = rng.integers(2, size=n), [1 / len(ids)] * n
    return {"obs": seen, "action": [ids[i] for i in k], "reward": k, "propensity": chance}


def write(file, log, separator=",", encoding="utf-8", decimal="."):
    """Write a log as text."""
    rows = zip(*log.values(), strict=True)
    lines = [separator.join(log), *(separator.join(map(str, row)).replace(".", decimal) for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding=encoding)
    return file


def second(seen):
    return np.tile([0.0, 1.0], (len(seen), 1))


def test_large_action_ids_do_not_merge_in_a_csv_file(tmp_path):
    log = bandit([LARGE, LARGE + 1])
    found = gdd.compare(write(tmp_path / "log.csv", log), {"second": second}, discount=0.0)
    assert found.table[1]["value"] == pytest.approx(1.0, abs=0.01)
    spelled = log | {"action": [f"+{one}" for one in log["action"]]}  # the reader of CSV files takes these for floats
    with pytest.raises(BadRequestError, match="Column 'action' in row 0 must have an action"):
        gdd.compare(write(tmp_path / "spelled.csv", spelled), {"second": second}, discount=0.0)


def test_large_action_ids_that_are_floats_are_refused():
    log = bandit([float(LARGE + 2), float(LARGE + 4)])
    with pytest.raises(BadRequestError, match=r"Column 'action' must have whole numbers below 2\*\*53"):
        gdd.compare(log, {"second": second}, discount=0.0)


@pytest.mark.parametrize("twice", ["01", "+1"])
def test_actions_that_are_spelled_in_two_ways_are_noted(tmp_path, twice):
    log = bandit([0, 1])
    log["action"] = [twice if i % 2 and one else one for i, one in enumerate(log["action"])]
    for given in (write(tmp_path / "log.csv", log), log | {"action": list(map(str, log["action"]))}):
        stated = gdd.compare(given, {"second": second}, discount=0.0).stated
        assert any("spells one action in several ways" in one and repr(twice) in one for one in stated)
    assert not any("spells" in one for one in gdd.compare(bandit([0, 1]), {"f": second}, discount=0.0).stated)


@pytest.mark.parametrize("odd", [np.inf, "inf", "1e400"])
def test_an_infinite_action_is_refused_with_its_row(odd):
    log = bandit([0, 1])
    log["action"][7] = odd
    with pytest.raises(BadRequestError, match="Column 'action' in row 7 must have an action"):
        gdd.compare(log, {"second": second}, discount=0.0)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"separator": ";"}, "semicolons separate its cells"),
        ({"separator": "\t"}, "tabs separate its cells"),
        ({"separator": ";", "decimal": ","}, "it has decimal commas"),
        ({"encoding": "utf-16"}, "its encoding is UTF-16"),
        ({"encoding": "utf-16-le"}, "its encoding is UTF-16-LE"),
    ],
)
def test_the_form_of_a_csv_file_is_found_out_and_stated(tmp_path, form, words):
    usual = gdd.compare(write(tmp_path / "usual.csv", bandit([0, 1])), {"second": second}, discount=0.0)
    found = gdd.compare(write(tmp_path / "odd.csv", bandit([0, 1]), **form), {"second": second}, discount=0.0)
    assert found.table == usual.table
    assert any(words in one for one in found.stated)
    assert not any("CSV" in one for one in usual.stated)


def test_whole_numbers_that_become_fractions_in_a_later_block_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("gradient_dd.stream.log.sources.CSV_BYTES", 200)
    log = bandit([0, 1])
    log["reward"] = [one + 0.5 * (i > 300) for i, one in enumerate(log["reward"])]
    found = gdd.compare(write(tmp_path / "log.csv", log), {"second": second}, discount=0.0)
    assert found.table == gdd.compare(log, {"second": second}, discount=0.0).table


def test_arrays_of_an_npz_log_that_nothing_uses_stay_packed(tmp_path, monkeypatch):
    log = {name: np.asarray(column) for name, column in bandit([0, 1]).items()}
    file = tmp_path / "log.npz"
    np.savez_compressed(file, **log, unused=np.zeros((400, 5000)))
    asked = []
    monkeypatch.setattr(
        "gradient_dd.stream.log.sources.read_arrays",
        lambda path, names: asked.extend(names) or read_arrays(path, names),
    )
    found = gdd.compare(file, {"second": second}, discount=0.0, columns={"observation": ["obs"]})
    assert found.table == gdd.compare(log, {"second": second}, discount=0.0).table
    assert sorted(asked) == ["action", "obs", "propensity", "reward"]
    assert array_shapes(file)["unused"] == (400, 5000)


def test_a_discount_of_0_asks_for_the_first_reward_of_an_episode_in_both():
    rng = np.random.default_rng(1)
    step, action = np.arange(1200) % 3, rng.integers(2, size=1200)
    log = {"obs": step, "action": action, "reward": 10.0 * step + action, "propensity": np.full(1200, 0.5)}
    log |= {"terminated": step == 2, "episode": np.arange(1200) // 3}
    one = gdd.evaluate_log(log, target=second, discount=0.0)
    many = gdd.compare(log, {"second": second}, discount=0.0).table[1]
    assert one.start_value == many["value"] == pytest.approx(1.0, abs=0.01)
    assert json.dumps([float(x) for x in one.start_interval]) == json.dumps([many["low"], many["high"]])


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_the_name_of_a_log_may_be_any_bytes(tmp_path, ending):
    log, odd = bandit([0, 1]), tmp_path / os.fsdecode(b"log\xff." + ending.encode())
    try:
        odd.touch()
    except OSError:
        pytest.skip("this file system has names in UTF-8 alone")
    usual = write(tmp_path / "log.csv", log)
    if ending == "parquet":
        pd.DataFrame(log).to_parquet(usual := tmp_path / "log.parquet")
    elif ending == "npz":
        np.savez(usual := tmp_path / "log.npz", **log)
    found = gdd.compare(shutil.copyfile(usual, odd), {"second": second}, discount=0.0)
    assert found.table == gdd.compare(usual, {"second": second}, discount=0.0).table
    assert "log\\udcff" in found.report(tmp_path / "page.html").read_text()
