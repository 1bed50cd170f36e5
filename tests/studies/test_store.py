"""The store: whole or not at all, and one sentence for every file that cannot be used."""

import os
import sqlite3
import subprocess

import numpy as np
import pytest

from gradient_dd.engine.lanes import LaneResults
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import Results, run_frame, summary_frame
from gradient_dd.studies.sqlite_file import APPLICATION, StoreError
from gradient_dd.studies.store import NUMBERS, Store, Work, checksum

STUDY = Study("s", (task("random_walk", n_states=3),), (grid("td", alpha=(0.1, 0.2, 0.3)),), episodes=8, runs=2)


def fill(store, runs=(0, 1), wild=False):
    """Write made-up results: error = alpha + run / 10, infinite for the last setting of the last run if wild."""
    walk = STUDY.built_tasks[0]
    lanes = list(STUDY.lanes(walk))
    store.add_settings((key, facts) for key, _, facts in lanes)
    for run in runs:
        errors = np.array([[setting.values["alpha"] + run / 10 for _, setting, _ in lanes]])
        errors[0, -1] = np.inf if wild and run == 1 else errors[0, -1]
        zeros = np.zeros((1, 3), int)
        results = LaneResults(errors, 2 * errors, np.ones((1, 3, 8)) * run, zeros, zeros, np.array([40]))
        store.add_unit(walk, run, [key for key, *_ in lanes], results, Work(0.1, {}), {"gradient-dd": "test"})


def test_results_come_back(tmp_path):
    with Store(tmp_path / "a.db", write=True) as store:
        fill(store)
    results = Results(STUDY, tmp_path / "a.db")
    settings, errors = results.errors("random_walk(n_states=3)")
    assert errors == pytest.approx(np.array([[0.1, 0.2], [0.2, 0.3], [0.3, 0.4]]))
    assert results.selected("random_walk(n_states=3)", "td").values["alpha"] == 0.1
    assert results.curves("random_walk(n_states=3)", settings[:1])[1][0, 1].tolist() == [1] * 8
    assert results.compare("random_walk(n_states=3)", settings[0], settings[1]).estimate == pytest.approx(-0.1)
    frame = results.frame()
    assert frame.columns[:15].tolist() == [
        "task",
        "size",
        "reading",
        "learner",
        "alpha",
        "zeta",
        "kappa",
        "schedule",
        "episodes",
        "runs",
        "last100_mean",
        "last100_sem",
        "mean_error_mean",
        "mean_error_sem",
        "diverged_runs",
    ]
    assert frame["last100_mean"].tolist() == pytest.approx([0.15, 0.25, 0.35])
    assert frame["last100_sem"].tolist() == pytest.approx([0.05] * 3)


def test_divergence_and_missing_runs_stay_in_the_table(tmp_path):
    with Store(tmp_path / "a.db", write=True) as store:
        fill(store, wild=True)
        store.add_settings((f"other{i}", facts) for i, (_, _, facts) in enumerate(STUDY.lanes(STUDY.built_tasks[0])))
    with Store(tmp_path / "a.db") as store:
        frame = summary_frame(store)
        assert len(run_frame(store)) == 6
    assert frame["diverged_runs"].tolist() == [0, 0, 1, 0, 0, 0]
    assert frame["last100_mean"].iloc[2] == np.inf
    assert frame["runs"].tolist() == [2, 2, 2, 0, 0, 0]
    assert frame["last100_mean"].iloc[3:].isna().all()


def test_an_empty_store_has_an_empty_table(tmp_path):
    Store(tmp_path / "a.db", write=True).close()
    with Store(tmp_path / "a.db") as store:
        assert summary_frame(store).empty


def test_a_unit_is_committed_whole_or_not_at_all(tmp_path, monkeypatch):
    """A unit whose transaction fails after it was written leaves nothing of itself."""

    def failing(self, task_key):
        raise ZeroDivisionError

    with Store(tmp_path / "a.db", write=True) as store:
        fill(store, runs=[0])
        before = store.rows("SELECT * FROM unit")
        monkeypatch.setattr(Store, "count_units", failing)
        with pytest.raises(ZeroDivisionError):
            fill(store, runs=[1])
        monkeypatch.undo()
        assert store.rows("SELECT * FROM unit") == before
        fill(store, runs=[1])
        assert len(run_frame(store)) == 6


def test_readers_look_on_while_a_sweep_writes(tmp_path):
    with Store(tmp_path / "a.db", write=True) as writer, Store(tmp_path / "a.db") as reader:
        assert len(run_frame(reader)) == 0
        fill(writer, runs=[0])
        assert len(run_frame(reader)) == 3
        with writer.transaction(), Store(tmp_path / "a.db") as another:
            writer.db.execute("DELETE FROM unit")
            assert len(run_frame(another)) == 3
            assert len(run_frame(reader)) == 3


def test_a_second_sweep_on_the_same_file_is_refused(tmp_path):
    with Store(tmp_path / "a.db", write=True) as store:
        with pytest.raises(StoreError, match=r"is in use by another sweep"):
            Store(tmp_path / "a.db", write=True)
        fill(store)
    with Store(tmp_path / "a.db", write=True) as store:
        assert len(run_frame(store)) == 6


def refusal(path, write=True):
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError) as caught:
        Store(path, write=write)
    if before is not None:
        assert path.read_bytes() == before, "the file was touched"
    return str(caught.value)


def test_files_that_are_not_ours_are_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("hello " * 1000)
    assert "is not a results file. Nothing was changed." in refusal(text)
    foreign = tmp_path / "foreign.db"
    other = sqlite3.connect(foreign)
    other.execute("CREATE TABLE phones (number TEXT)")
    other.close()
    assert "it is a database of another program. Nothing was changed." in refusal(foreign)
    assert "it is a database of another program" in refusal(foreign, write=False)
    newer = tmp_path / "newer.db"
    Store(newer, write=True).close()
    db = sqlite3.connect(newer)
    db.execute("PRAGMA user_version = 99")
    db.close()
    assert (
        "must be a results file of version 5. Got version 99. A newer version of gradient-dd wrote it. Please update."
        in refusal(newer)
    )
    assert "does not exist." in refusal(tmp_path / "none.db", write=False)
    assert "cannot be opened: its folder does not exist" in refusal(tmp_path / "nowhere" / "a.db")


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_a_truncated_file_is_noticed(tmp_path, keep):
    path = tmp_path / "a.db"
    with Store(path, write=True) as store:
        fill(store)
        store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    for leftover in ("-wal", "-shm"):
        path.with_name(path.name + leftover).unlink(missing_ok=True)
    assert "is damaged. Nothing was changed" in refusal(path)


def test_a_full_disk_loses_nothing(tmp_path):
    """The file may not grow any more: the unit is refused in one sentence, what was there stays."""
    with Store(tmp_path / "a.db", write=True) as store:
        fill(store, runs=[0])
        (pages,) = store.db.execute("PRAGMA page_count").fetchone()
        store.db.execute(f"PRAGMA max_page_count = {pages}")
        walk = STUDY.built_tasks[0]
        key = next(iter(STUDY.lanes(walk)))[0]
        big = LaneResults(*np.ones((2, 1, 1)), np.ones((1, 1, 10**6)), *np.zeros((2, 1, 1), int), np.array([1]))
        with pytest.raises(StoreError, match=r"cannot be written: the disk is full. Committed results are kept"):
            store.add_unit(walk, 1, [key], big, Work(0.1, {}), {})
        assert len(run_frame(store)) == 3
    with Store(tmp_path / "a.db", write=True) as store:
        fill(store, runs=[1])
        assert len(run_frame(store)) == 6


def test_a_disk_that_is_really_full(tmp_path):
    """The same on a file system of 300 kB, where the machine lets us make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a file system here")
    try:
        with Store(disk / "a.db", write=True) as store:
            fill(store, runs=[0])
            (disk / "ballast").write_bytes(b"x" * os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize)
            with pytest.raises(StoreError, match="cannot be written: the disk is full"):
                fill(store, runs=range(1, 500))
            kept = len(run_frame(store))
            (disk / "ballast").unlink()
        assert kept >= 3
        assert kept % 3 == 0
        with Store(disk / "a.db") as store:
            assert len(run_frame(store)) == kept
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_is_read_only(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(folder)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a file system here")
    folder.chmod(0o555) if os.geteuid() != 0 else None
    try:
        assert "cannot be opened: its folder does not exist or is not writable" in refusal(folder / "a.db")
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", str(folder)], check=True)


def test_the_schema_is_documented(tmp_path):
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "reference" / "results-file.md").read_text()
    with Store(tmp_path / "a.db", write=True) as store:
        for (table,) in store.rows("SELECT name FROM sqlite_master WHERE type = 'table'"):
            assert f"`{table}`" in page
            for _, column, *_ in store.rows(f"PRAGMA table_info({table})"):
                assert f"`{column}`" in page, f"{table}.{column}"
    assert hex(APPLICATION) in page
    for name in NUMBERS.names:
        assert f"`{name}`" in page


def test_checksums_are_fixed():
    """They are in files: another definition would call every file damaged."""
    assert checksum((1, "a"), b"\x00") == -5909069969979155590
    different = [(("a", 1),), (("a", "1"),), ((b"a", 1),), (("a", 1.0),), (("a", 1), b"x"), (("a", None),)]
    assert len({checksum(*one) for one in different}) == len(different)
