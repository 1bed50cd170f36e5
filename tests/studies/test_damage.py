"""Damage: a number that was changed in a results file is never returned, is named, and is run again by its sweep."""

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradient_dd.engine.schedules import tapered
from gradient_dd.errors import GradientDDError
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.checked import DamagedError, checked_costs
from gradient_dd.studies.frames import run_frame, summary_frame
from gradient_dd.studies.results import Results
from gradient_dd.studies.sqlite_file import StoreError
from gradient_dd.studies.store import Store
from gradient_dd.studies.sweep import run
from gradient_dd.studies.verification import drop, verify

COMMAND = str(Path(sys.executable).parent / "gradient-dd")
STUDY = Study(
    "s",
    tasks=(task("random_walk", n_states=3), task("random_walk", n_states=5)),
    grids=(grid("td", alpha=(0.1, 0.2)), grid("natural_gtd2", alpha=0.1)),  # each has a kernel, and a cost, of its own
    schedule=tapered(100),
    episodes=30,
    runs=3,
)
pytestmark = pytest.mark.xdist_group("kernels of td")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "a.db"
    run(STUDY, path)
    return path


@pytest.fixture
def copy(original, tmp_path):
    return Path(shutil.copy(original, tmp_path / "a.db"))


def content(path):
    """Return every result, by what it is of, as SQLite has it."""
    with closing(sqlite3.connect(path)) as db:
        both = "result r JOIN curve c ON r.setting = c.setting AND r.run = c.run JOIN setting ON r.setting = id"
        columns = 'key, r.run, last100, area, diverged_step, diverged_episode, points, alpha, learner, "values"'
        return db.execute(f"SELECT {columns} FROM {both} ORDER BY key, r.run").fetchall()


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            db.execute(statement)


def everything_read(path):
    """Return all that a reader gets: tables, errors and curves of the study, as text that is equal only if they are."""
    with Store(path) as store:
        parts = [summary_frame(store).to_csv(), run_frame(store).to_csv()]
    results = Results(STUDY, path)
    for name in results.tasks:
        settings, errors = results.errors(name)
        parts += [str(settings), errors.tobytes().hex(), results.errors(name, "area")[1].tobytes().hex()]
        parts += [results.curves(name, settings).tobytes().hex()]
    return [*parts, results.frame().to_csv()]


# Changed by hand: each kind of damage is noticed, named and mended -------------------------------------------------

NULL_ALLOWED = (
    "UPDATE sqlite_master SET sql = replace(sql, 'last100 REAL NOT NULL', 'last100 REAL') WHERE name = 'result'"
)
DAMAGES = {
    "a changed error": ["UPDATE result SET last100 = last100 + 1e-9 WHERE setting = 2 AND run = 1"],
    "a changed area": ["UPDATE result SET area = 1.42 WHERE setting = 2 AND run = 1"],
    "a changed step of divergence": ["UPDATE result SET diverged_step = 7 WHERE setting = 2 AND run = 1"],
    "text where a number must be": ["UPDATE result SET last100 = 'a lot' WHERE setting = 2 AND run = 1"],
    "bytes where a number must be": ["UPDATE result SET area = x'302e35' WHERE setting = 2 AND run = 1"],
    "a fraction where a whole number must be": ["UPDATE result SET diverged_step = 0.5 WHERE setting = 2 AND run = 1"],
    "no number": ["UPDATE result SET last100 = NULL WHERE setting = 2 AND run = 1"],
    "a lost result": ["DELETE FROM result WHERE setting = 2 AND run = 1"],
    "a lost curve": ["DELETE FROM curve WHERE setting = 2 AND run = 1"],
    "a lost result and its curve": [
        "DELETE FROM result WHERE setting = 2 AND run = 1",
        "DELETE FROM curve WHERE setting = 2 AND run = 1",
    ],
    "a changed curve": ["UPDATE curve SET points = zeroblob(240) WHERE setting = 2 AND run = 1"],
    "a shorter curve": ["UPDATE curve SET points = zeroblob(8) WHERE setting = 2 AND run = 1"],
    "text that is not text for a curve": [
        "UPDATE curve SET points = CAST(x'ff00ff' AS TEXT) WHERE setting = 2 AND run = 1"
    ],
    "text that is not text for a number": [
        "UPDATE result SET area = CAST(x'ff00ff' AS TEXT) WHERE setting = 2 AND run = 1"
    ],
    "text for a curve": ["UPDATE curve SET points = 'low' WHERE setting = 2 AND run = 1"],
    "two results exchanged": [
        "UPDATE result SET run = 9 WHERE setting = 2 AND run = 1",
        "UPDATE result SET run = 1 WHERE setting = 2 AND run = 0",
        "UPDATE result SET run = 0 WHERE setting = 2 AND run = 9",
    ],
    "a changed checksum of a result": ["UPDATE seal SET errors = zeroblob(24) WHERE first_setting = 1 AND run = 1"],
    "a changed checksum of divergence": [
        "UPDATE seal SET divergence = zeroblob(24) WHERE first_setting = 1 AND run = 1"
    ],
    "a changed checksum of a curve": ["UPDATE seal SET curves = zeroblob(24) WHERE first_setting = 1 AND run = 1"],
    "a changed seal": ["UPDATE seal SET settings = zeroblob(24) WHERE first_setting = 1 AND run = 1"],
    "a lost seal": ["DELETE FROM seal WHERE first_setting = 1 AND run = 1"],
}


def allow_null(path):
    change(path, "PRAGMA writable_schema = ON", NULL_ALLOWED, "PRAGMA writable_schema = RESET")


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_noticed_named_and_run_again(kind, original, copy):
    before = everything_read(copy)
    if kind == "no number":
        allow_null(copy)
    change(copy, *DAMAGES[kind])
    with pytest.raises(DamagedError, match=r"must be whole. Got damage to random_walk 3, run [01]"):
        everything_read(copy)
    found = verify(copy)
    assert not found.is_whole
    assert {(name, number) for name, number, _ in found.damaged} <= {("random_walk 3", 0), ("random_walk 3", 1)}
    assert ("random_walk 3", 1) in {(name, number) for name, number, _ in found.damaged}
    notices = []
    run(STUDY, copy, on_notice=notices.append)
    assert any("They are run again." in sentence for sentence in notices)
    assert content(copy) == content(original)
    assert everything_read(copy) == before
    assert verify(copy).is_whole


SETTING_DAMAGES = {
    "a changed parameter": "UPDATE setting SET alpha = 0.7 WHERE id = 2",
    "a changed value": """UPDATE setting SET "values" = '{"alpha": 0.7}' WHERE id = 2""",
    "a changed name": "UPDATE setting SET learner = 'gtd2' WHERE id = 2",
    "a changed key": "UPDATE setting SET key = 'another' WHERE id = 2",
    "a changed description": "UPDATE setting SET description = 'another' WHERE id = 2",
    "a changed checksum": "UPDATE setting SET checksum = 5 WHERE id = 2",
    "text that is not text": "UPDATE setting SET learner = CAST(x'74ff64' AS TEXT) WHERE id = 2",
}


@pytest.mark.parametrize("kind", SETTING_DAMAGES)
def test_a_damaged_setting_is_noticed_and_mended_without_a_run(kind, original, copy):
    before, units = everything_read(copy), count(copy, "unit")
    change(copy, SETTING_DAMAGES[kind])
    with Store(copy) as store, pytest.raises(DamagedError, match="Got damage to random_walk 3, every run"):
        summary_frame(store)
    assert not verify(copy).is_whole
    run(STUDY, copy)
    assert content(copy) == content(original)
    assert everything_read(copy) == before
    assert verify(copy).is_whole
    assert count(copy, "unit") == units, "its results were whole"


def count(path, table):
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_other_results_stay_readable(copy):
    """Damage to one task does not keep a study of the other from being read."""
    change(copy, DAMAGES["a changed error"][0])
    other = Results(replace(STUDY, tasks=STUDY.tasks[1:]), copy)
    assert not np.isnan(other.errors("random_walk(n_states=5)")[1]).any()


def test_only_what_is_damaged_is_run_again(copy):
    change(copy, DAMAGES["a changed error"][0])
    run(STUDY, copy)
    with Store(copy) as store:
        assert store.rows("SELECT task, run, settings FROM unit ORDER BY id DESC LIMIT 1") == [
            ("random_walk(n_states=3)", 1, 1)
        ]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE unit SET seconds = 9 WHERE id = 1",
        "UPDATE unit SET steps = 9 WHERE id = 1",
        "UPDATE cost SET seconds = 9 WHERE unit = 1",
        "UPDATE cost SET updates = 9 WHERE unit = 1",
        "DELETE FROM cost WHERE unit = 1 AND learner = 'td'",
    ],
)
def test_a_damaged_record_of_time_is_named_and_removed(copy, statement):
    """Its results are whole, so nothing is run again."""
    before, notices = everything_read(copy), []
    change(copy, statement)
    (damaged,) = verify(copy).damaged
    assert damaged[2] == {"record of time": 1}
    with Store(copy) as store, pytest.raises(DamagedError, match="Got damage to random_walk"):
        checked_costs(store, "random_walk(n_states=3)", range(3))
    run(STUDY, copy, on_notice=notices.append)
    assert any("1 damaged records of the time" in sentence for sentence in notices)
    assert (count(copy, "unit"), everything_read(copy)) == (5, before)
    assert verify(copy).is_whole


def test_a_result_under_another_number_is_removed(original, copy):
    """A run that nobody made stands where run 1 was lost: the sweep runs run 1 again, and removes the stray."""
    change(copy, "UPDATE result SET run = 77 WHERE setting = 2 AND run = 1")
    assert {number for _, number, _ in verify(copy).damaged} == {1, 77}
    run(STUDY, copy)
    assert verify(copy).is_whole
    assert content(copy) == content(original)


def test_a_lost_setting_is_noticed_and_run_again(copy):
    right = everything_read(copy)
    change(copy, "DELETE FROM setting WHERE id = 2")
    for read in (lambda: Results(STUDY, copy).frame(), lambda: Results(STUDY, copy).errors("random_walk(n_states=3)")):
        with pytest.raises(DamagedError, match="Got damage to a setting that is missing"):
            read()
    assert not verify(copy).is_whole
    notices = []
    run(STUDY, copy, on_notice=notices.append)
    assert any("had lost 1 settings" in sentence for sentence in notices)
    assert verify(copy).is_whole
    assert Results(STUDY, copy).errors("random_walk(n_states=3)")[1].tobytes().hex() == right[3]


def test_a_setting_that_its_index_has_lost_is_still_found(copy):
    """The index says another key than the table: readers look into the table, and the next sweep mends the index."""
    right = everything_read(copy)
    with closing(sqlite3.connect(copy)) as db:
        (key,) = db.execute("SELECT key FROM setting WHERE id = 2").fetchone()
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_setting_1'").fetchone()
    content = copy.read_bytes()
    begin = 16384 * (page - 1)
    place = content.index(key.encode(), begin, begin + 16384)
    other = chr(ord(key[-1]) ^ 1)  # the order of the index stays
    copy.write_bytes(content[: place + 23] + other.encode() + content[place + 24 :])
    assert verify(copy).structure
    assert everything_read(copy) == right
    run(STUDY, copy)
    assert verify(copy).is_whole
    assert (count(copy, "unit"), everything_read(copy)) == (6, right), "nothing was run again"


def test_what_no_sweep_can_name_is_removed_on_request(copy):
    """A setting that has lost all its names is nobody's; the other results are readable once it is gone."""
    change(copy, "UPDATE setting SET key = 'x', description = 'y' WHERE id = 2")
    run(STUDY, copy)
    with Store(copy) as store, pytest.raises(DamagedError):
        summary_frame(store)
    dropped = call("verify", "--drop", copy)
    assert dropped.returncode == 1
    assert "It has been removed." in dropped.stdout
    assert verify(copy).is_whole
    with Store(copy) as store:
        assert len(run_frame(store)) == 18
    assert everything_read(copy)


def test_removing_damage_leaves_the_rest(copy):
    for statements in DAMAGES.values():
        if "NULL" not in statements[0]:
            change(copy, statements[0])
    drop(copy)
    found = verify(copy)
    assert found.is_whole
    assert found.results >= 9 + 3  # the other task, and other runs
    run(STUDY, copy)
    assert verify(copy).results == 18


# Flipped bytes: what is read is right, or refused --------------------------------------------------------------------


def test_a_flipped_byte_never_gives_a_wrong_number(original, copy):
    """One byte after the other is changed, at places drawn at random: readers get what was written, or one sentence."""
    whole, right, rng = original.read_bytes(), everything_read(original), random.Random(0)
    used = [place for place, byte in enumerate(whole) if byte]  # most of a small file is empty
    refused = 0
    for place in rng.sample(used, 120):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        copy.write_bytes(damaged)
        try:
            assert everything_read(copy) == right, f"byte {place}"
        except GradientDDError:
            refused += 1
    assert refused > 60


def test_a_flipped_byte_is_mended_by_the_sweep_or_the_file_is_refused(original, copy):
    whole, right, rng = original.read_bytes(), everything_read(original), random.Random(1)
    used = [place for place, byte in enumerate(whole) if byte]
    mended = 0
    for place in rng.sample(used, 30):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        copy.write_bytes(damaged)
        try:
            run(STUDY, copy)
        except StoreError:
            continue
        assert everything_read(copy) == right, f"byte {place}"
        mended += 1
    assert mended > 15


def test_a_sweep_never_builds_on_a_damaged_structure(copy):
    """Here a page says that it has more free bytes than it has: no value is wrong, and the file is refused."""
    with Store(copy) as store:
        page = store.rows("SELECT rootpage FROM sqlite_master WHERE name = 'curve'")[0][0]
        (size,) = store.rows("PRAGMA page_size")[0]
        right = everything_read(copy)
    content = bytearray(copy.read_bytes())
    content[(page - 1) * size + 7] += 1  # the count of fragmented bytes in the head of a page
    copy.write_bytes(content)
    assert everything_read(copy) == right
    with pytest.raises(StoreError, match=r"must be whole. Got a damaged file: nothing was changed"):
        run(STUDY, copy)
    assert copy.read_bytes() == bytes(content)
    assert verify(copy).structure


# The command -----------------------------------------------------------------------------------------------------


def call(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_verify_says_what_it_checked_or_names_what_is_damaged(copy):
    whole = call("verify", copy)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout == f"{copy}: 6 units with 18 results and their curves were checked. None is damaged.\n"
    change(copy, DAMAGES["a changed error"][0], DAMAGES["a lost curve"][0])
    damaged = call("verify", copy)
    assert damaged.returncode == 1
    assert "random_walk 3  1    1 × result, 1 × missing curve" in damaged.stdout
    facts = json.loads(call("verify", copy, "--json").stdout)
    assert facts["damaged"] == [{"task": "random_walk 3", "run": 1, "what": {"result": 1, "missing curve": 1}}]
    assert not facts["whole"]
    exported = call("export", copy.parent / "t.csv", "--out", copy)
    assert exported.returncode == 1
    assert "Got damage to random_walk 3, run 1." in exported.stderr
    assert not (copy.parent / "t.csv").exists()
    assert call("verify", copy.parent / "none.db").returncode == 1
