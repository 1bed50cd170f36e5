"""The results file as a file: nothing is left beside it, and it is locked, found, moved and read only as promised."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import Results, run_frame
from gradient_dd.studies.sqlite_file import StoreError, is_same, locked
from gradient_dd.studies.store import Store, verify
from gradient_dd.studies.sweep import run

STUDY = Study("s", (task("random_walk", n_states=3),), (grid("td", alpha=(0.1, 0.2)),), episodes=20, runs=4)
NAME = "random_walk(n_states=3)"
pytestmark = pytest.mark.xdist_group("kernels of td")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "a.db"
    run(STUDY, path)
    return path


@pytest.fixture
def copy(finished, tmp_path):
    return Path(shutil.copy(finished, tmp_path / "a.db"))


def files(folder):
    return sorted(file.name for file in folder.iterdir())


def in_wal_mode(path):
    """Leave a file with a log beside it: with the need for a log, and the log beside it."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        db.execute("SELECT count(*) FROM unit").fetchone()


def test_a_sweep_and_a_reader_leave_the_results_file_alone(copy):
    assert files(copy.parent) == ["a.db"]
    run(STUDY, copy)
    assert files(copy.parent) == ["a.db"]
    with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",), "any tool can read it without a log"
    Results(STUDY, copy).errors(NAME)
    verify(copy)
    assert files(copy.parent) == ["a.db"]


def test_a_reader_removes_a_log_that_was_left(copy):
    in_wal_mode(copy)
    assert files(copy.parent) == ["a.db", "a.db-shm", "a.db-wal"]
    verify(copy)
    assert files(copy.parent) == ["a.db"]


def test_a_reader_who_is_still_looking_keeps_nobody_from_finishing(copy):
    with Store(copy) as reader:
        assert len(run_frame(reader)) == 8
        run(Study("more", STUDY.tasks, STUDY.grids, episodes=20, runs=5), copy)
        assert len(run_frame(reader)) == 10
    verify(copy)
    assert files(copy.parent) == ["a.db"]


@pytest.fixture
def read_only(copy, tmp_path):
    """Yield a results file on a read-only file system, or in a read-only folder where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    root = os.geteuid() == 0
    if root and subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False).returncode:
        pytest.skip("may not mount a file system here")
    file = Path(shutil.copy(copy, folder / "a.db"))
    if root:
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    else:
        folder.chmod(0o555)
    yield file
    if root:
        subprocess.run(["umount", folder], check=True)
    else:
        folder.chmod(0o755)


def test_a_finished_file_is_read_on_a_read_only_file_system(read_only, finished):
    before = files(read_only.parent)
    assert (Results(STUDY, read_only).errors(NAME)[1] == Results(STUDY, finished).errors(NAME)[1]).all()
    assert verify(read_only).whole
    with pytest.raises(StoreError, match="cannot be opened: its folder does not exist or is not writable"):
        Store(read_only, write=True)
    assert files(read_only.parent) == before


# The lock -----------------------------------------------------------------------------------------------------------


def test_a_link_does_not_evade_the_lock(copy, tmp_path):
    link, other = tmp_path / "link.db", tmp_path / "folder"
    link.symlink_to(copy)
    other.symlink_to(copy.parent, target_is_directory=True)
    with Store(copy, write=True):
        for place in (link, other / "a.db"):
            with pytest.raises(StoreError, match="is in use by another sweep"):
                Store(place, write=True)
    with Store(link, write=True), pytest.raises(StoreError, match="is in use by another sweep"):
        Store(copy, write=True)
    run(STUDY, link)
    assert verify(copy).whole


def test_a_lock_that_was_left_behind_is_taken_over_and_removed(copy):
    lock = copy.with_name("a.db.lock")
    lock.touch()
    run(STUDY, copy)
    assert not lock.exists()


def test_a_lock_that_its_holder_removes_is_not_taken(tmp_path):
    """Whoever opened the file before it was removed holds a lock on nothing, notices, and takes a new one."""
    with locked(tmp_path / "a.db") as place:
        handle = os.open(place, os.O_RDWR)
        assert is_same(place, os.fstat(handle))
    assert not is_same(place, os.fstat(handle))
    with locked(tmp_path / "a.db"):
        assert not is_same(place, os.fstat(handle))
        os.close(handle)
    assert files(tmp_path) == []


RACE = """
import sys, time
from contextlib import suppress
from gradient_dd.studies.sqlite_file import StoreError, locked
from pathlib import Path
until, counter, won = time.monotonic() + 3, Path(sys.argv[1] + ".count"), 0
while time.monotonic() < until:
    with suppress(StoreError), locked(Path(sys.argv[1])):
        before = int(counter.read_text())
        time.sleep(0.0005)
        counter.write_text(str(before + 1))
        won += 1
print(won)
"""


def test_two_processes_never_hold_the_lock_at_once(tmp_path):
    """Three processes count to a file under the lock, as often as they get it: no count is lost."""
    counter = tmp_path / "a.db.count"
    counter.write_text("0")
    call = [sys.executable, "-c", RACE, str(tmp_path / "a.db")]
    processes = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    won = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(won) == int(counter.read_text()) > 100


# Moved, removed, misnamed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["removed", "replaced", "moved"])
def test_a_file_that_goes_away_stops_the_sweep_at_the_next_commit(finished, tmp_path, what):
    path, seen = tmp_path / "a.db", []

    def interfere(state):
        seen.append(state.cells[0])
        if len(seen) == 2:
            if what == "moved":
                path.rename(tmp_path / "b.db")
            else:
                path.unlink()
            if what == "replaced":
                shutil.copy(finished, path)

    with pytest.raises(StoreError, match="was removed or replaced"):
        run(Study("long", STUDY.tasks, STUDY.grids, episodes=20, runs=50), path, workers=1, on_progress=interfere)
    assert len(seen) == 2, "it went on"
    if what == "replaced":
        assert verify(path).whole
    assert path.exists() == (what == "replaced")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (".", "is not a results file: it is a folder."),
        ("/", "is not a results file: it is a folder."),
        ("", "is not a results file: it is a folder."),
        ("x" * 300, "as a results file: File name too long."),
        ("x" * 253, "cannot be used: its name is too long."),
        ("a\0b", "as a results file:"),
        ("file/a.db", "cannot be opened: its folder does not exist or is not writable."),
        ("nowhere/a.db", "cannot be opened: its folder does not exist or is not writable."),
    ],
)
def test_a_path_where_no_file_can_be_gets_one_sentence(tmp_path, monkeypatch, path, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        run(STUDY, path)
    assert sentence in str(caught.value)
    with pytest.raises(StoreError):
        Store(path)
    assert files(tmp_path) == ["file"]


def test_links_that_lead_nowhere_get_one_sentence(tmp_path):
    loop, dangling = tmp_path / "loop.db", tmp_path / "dangling.db"
    loop.symlink_to(loop)
    with pytest.raises(StoreError):
        run(STUDY, loop)
    dangling.symlink_to(tmp_path / "there.db")
    run(STUDY, dangling)
    assert verify(tmp_path / "there.db").whole
