"""Where a log comes from: files that are none, files that change while they are read, Minari datasets."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.evaluation.test_log_kinds import HONEST, REWARD, N, refusal_of, value_of

# Files


def test_pipes_devices_long_names_and_folders_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "pipe.csv")
    (tmp_path / "zero.npy").symlink_to("/dev/zero")
    (tmp_path / "folder.parquet").mkdir()
    for name in ("pipe.csv", "link.csv", "zero.npy", "folder.parquet", "none.csv", "none/log.csv"):
        assert "A log must be a file" in refusal_of(tmp_path / name)
    assert "must be a file whose name has at most 255 bytes." in refusal_of(tmp_path / ("x" * 300 + ".csv"))
    assert "must be a file that can be read." in refusal_of(f"{tmp_path}/\ud800.csv")


@pytest.mark.parametrize("place", ["stat", "open"])
def test_a_file_without_permission_is_one_sentence(place, tmp_path, monkeypatch):
    records = pd.DataFrame(HONEST | {"observation": REWARD}).to_records(index=False)
    np.save(tmp_path / "log.npy", records)
    whole = getattr(Path, place)

    def denied(path, *arguments, **options):
        if path.name == "log.npy":
            raise PermissionError(13, "Permission denied")
        return whole(path, *arguments, **options)

    monkeypatch.setattr(Path, place, denied)
    assert "The log log.npy must be a file that can be read. Got Permission denied." in refusal_of(tmp_path / "log.npy")


def as_records():
    """Return the honest rows as records, so often that they are read in several pieces."""
    kind = [("observation", "f8", 2), ("reward", "f8"), ("terminated", "?"), ("episode", "i8")]
    records = np.empty(N, kind)
    for name in HONEST:
        records[name] = HONEST[name]
    records = np.tile(records, 400)
    records["episode"] = np.arange(len(records)) // 8
    return records


@pytest.mark.parametrize("change", ["cut", "removed", "touched", "replaced"])
def test_a_file_that_changes_while_it_is_read_is_refused(change, tmp_path):
    """A mapped file that is cut would end the process."""
    file = tmp_path / "log.npy"
    np.save(file, as_records())

    def corrupt(rows, total):
        if change == "cut":
            os.truncate(file, 5_000)
        elif change == "removed":
            file.unlink(missing_ok=True)
        elif change == "touched":
            os.utime(file, ns=(1, rows))
        else:
            np.save(tmp_path / "other.npy", as_records()[::-1])
            (tmp_path / "other.npy").replace(file) if (tmp_path / "other.npy").exists() else None

    sentence = refusal_of(file, progress=corrupt)
    assert sentence.startswith(("The log log.npy must not change while it is read.", "A log must be a file."))


# Minari


class Dataset:
    """A made-up Minari dataset."""

    def __init__(self, *episodes):
        self.episodes = episodes

    def iterate_episodes(self):
        return iter(self.episodes)


def episode(n=5, **changes):
    columns = {
        "observations": np.arange(2.0 * n + 2).reshape(n + 1, 2),
        "actions": np.zeros(n, int),
        "rewards": np.ones(n),
        "terminations": np.arange(n) == n - 1,
        "truncations": np.zeros(n, bool),
        "infos": {},
    }
    return SimpleNamespace(**columns | changes)


class Broken:
    """A dataset whose file is damaged."""

    def iterate_episodes(self):
        raise KeyError("episode_0")


@pytest.mark.parametrize(
    "dataset",
    [
        Dataset(),
        Broken(),
        Dataset(episode(observations={"position": np.ones((6, 2))})),
        Dataset(episode(observations=(np.ones((6, 2)), np.ones((6, 2))))),
        Dataset(episode(observations=np.ones((5, 2)))),
        Dataset(episode(observations=None)),
        Dataset(episode(rewards=None)),
        Dataset(episode(rewards=np.ones((5, 2)))),
        Dataset(episode(terminations=np.ones(4, bool))),
        Dataset(episode(terminations=None)),
        Dataset(episode(truncations=np.full(5, 0.5))),
        Dataset(SimpleNamespace(rewards=np.ones(5))),
        Dataset(episode(infos={"rho": np.ones(5)}), episode(infos={})),
        Dataset(episode(), episode(observations=np.ones((6, 3)))),
        Dataset(episode(n=0)),
        Dataset(None),
    ],
)
def test_a_minari_dataset_without_what_it_needs_is_one_sentence(dataset):
    refusal_of(dataset)


def test_a_minari_dataset_is_read():
    episodes = [episode(infos={"propensity": np.full(6, 0.5)}) for _ in range(6)]
    log = {
        "observation": np.concatenate([one.observations[:-1] for one in episodes]),
        "next_observation": np.concatenate([one.observations[1:] for one in episodes]),
        "reward": np.ones(30),
        "terminated": np.tile(np.arange(5) == 4, 6),
        "propensity": np.full(30, 0.5),
        "episode": np.repeat(np.arange(6), 5),
    }
    assert value_of(Dataset(*episodes, episode(n=0, infos={"propensity": np.ones(1)}))) == value_of(log)
