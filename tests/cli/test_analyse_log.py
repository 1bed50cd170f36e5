"""`analyse --log` takes every log that `evaluate` takes, with the same roles of columns and the same sentences."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from gradient_dd.cli.commands import cli
from gradient_dd.errors import BadRequestError
from gradient_dd.theory import log_of, read_log

N = 120
PLACE = np.arange(N) % 3
LOG = {
    "x": np.eye(3)[PLACE],
    "reward": (PLACE == 2).astype(float),
    "discount": np.where(PLACE == 2, 0.0, 0.9),
    "x_next": np.eye(3)[(PLACE + 1) % 3],
    "rho": np.full(N, 1.0),
}
WANTED = log_of(**LOG)
SHORT = ("--steps", "60", "--learner", "td", "--json")


def columns_of(log):
    """Return the log as a frame, a column for each feature."""
    wide = {f"{name}{i}": log[key][:, i] for key, name in (("x", "x"), ("x_next", "next")) for i in range(3)}
    return pd.DataFrame(wide | {name: log[name] for name in ("reward", "discount", "rho")})


def same(found):
    return all(np.array_equal(getattr(found, name), getattr(WANTED, name)) for name in LOG)


def test_every_form_is_the_same_log(tmp_path):
    frame = columns_of(LOG)
    np.savez(tmp_path / "log.npz", **LOG)
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    np.save(tmp_path / "log.npy", frame.to_records(index=False))
    for log in (LOG, frame, *(tmp_path / f"log.{kind}" for kind in ("npz", "csv", "parquet", "npy"))):
        assert same(read_log(log))
    advice = [
        json.loads(CliRunner().invoke(cli, ["analyse", "--log", f"{tmp_path}/log.{kind}", *SHORT]).stdout)["advice"]
        for kind in ("npz", "parquet")
    ]
    assert advice[0] == advice[1]


def test_roles_of_columns_and_the_next_row(tmp_path):
    """Next observations, discounts and ratios may be missing, as for `evaluate`."""
    frame = columns_of(LOG)[["x0", "x1", "x2", "reward"]].assign(terminated=PLACE == 2)
    assert same(read_log(frame, discount=0.9))
    frame = frame.rename(columns={"x0": "a", "x1": "b", "x2": "c", "reward": "paid"})
    frame.to_csv(tmp_path / "log.csv", index=False)
    roles = {"observation": ["a", "b", "c"], "reward": "paid"}
    assert same(read_log(tmp_path / "log.csv", discount=0.9, columns=roles, features="raw"))
    flags = ["--discount", "0.9", "--column", "observation=a,b,c", "--column", "reward=paid", "--features", "raw"]
    found = CliRunner().invoke(cli, ["analyse", "--log", f"{tmp_path}/log.csv", *flags, *SHORT])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["task"] == "a log of 120 transitions with 3 features"


def test_one_number_alone_stays_one_feature_and_sparse_features_become_dense():
    one = {"x": PLACE.astype(float), "reward": LOG["reward"], "discount": LOG["discount"], "x_next": 0.0 * PLACE}
    assert read_log(one).x.shape == (N, 1)
    assert read_log(one | {"discount": 0.5}).discount.tolist() == [0.5] * N  # one number for all rows
    wide = read_log({"obs": PLACE, "reward": LOG["reward"], "terminated": PLACE == 2}, discount=0.9, features="tiles")
    assert wide.x.shape[1] > 3
    assert (wide.x_next[PLACE == 2] == 0).all()


def test_features_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_MEMORY", "1e3")
    with pytest.raises(BadRequestError, match="The features of a log must take at most 1 kB"):
        read_log(LOG)


def with_a_bad_row():
    frame = columns_of(LOG).drop(columns="discount")
    frame.loc[3, "reward"] = np.nan
    return frame


def test_bad_rows_can_be_skipped(tmp_path):
    with_a_bad_row().to_csv(tmp_path / "log.csv", index=False)
    flags = ["--log", f"{tmp_path}/log.csv", "--discount", "0.9", "--skip-bad-rows"]
    found = CliRunner().invoke(cli, ["analyse", *flags, *SHORT])
    assert json.loads(found.stdout)["task"] == "a log of 119 transitions with 3 features"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--log", "log.csv"], "'discount' must be given where the log has no column of discounts."),
        (["--log", "log.csv", "--discount", "0.9"], "Column 'reward' in row 3 must be a finite number. Got nan."),
        (["--log", "log.csv", "--column", "reward=r", "--discount", "0.9"], "The column 'r' for 'reward' must be in"),
        (["--log", "log.csv", "--column", "reward"], "'--column' must be written ROLE=NAME or ROLE=NAME,NAME"),
        (["random_walk", "--discount", "0"], "'--discount' must be left out without a log. Got 0."),
        (["random_walk", "--column", "reward=r"], "'--column' must be left out without a log."),
    ],
)
def test_a_bad_request_gets_the_sentence_of_evaluate(flags, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_a_bad_row().to_csv("log.csv", index=False)
    result = CliRunner().invoke(cli, ["analyse", *flags, *SHORT])
    assert isinstance(result.exception, BadRequestError)
    assert sentence in str(result.exception)
