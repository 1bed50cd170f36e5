"""Damage: a number that was changed in a results file is never returned, is named, and is run again by its sweep."""

import json
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradient_dd.engine.schedules import tapered
from gradient_dd.errors import GradientDDError
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import Results, run_frame, summary_frame
from gradient_dd.studies.sqlite_file import StoreError
from gradient_dd.studies.store import DamagedStoreError, Store, verify
from gradient_dd.studies.sweep import run
from tests.command import call

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
    """Return every result, by the key of its setting and its run, as bytes."""
    found = {}
    with Store(path) as store:
        for unit in store.units():
            for key, numbers, points in zip(unit.keys, unit.numbers, store.curves(unit), strict=True):
                found[key, unit.run] = numbers.tobytes() + points.tobytes()
    return found


def change(path, *statements):
    """Change a file as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            statement(db) if callable(statement) else db.execute(statement)


def everything_read(path):
    """Return all that a reader gets: tables, errors and curves of the study, as text that is equal only if they are.

    The order of the rows of a table is left out: a setting that was written again comes last.
    """
    results = Results(STUDY, path)
    with Store(path) as store:
        tables = [summary_frame(store), run_frame(store), results.frame()]
    parts = [sorted(table.to_csv(index=False).splitlines()) for table in tables]
    for name in results.tasks:
        settings, errors = results.errors(name)
        parts += [str(settings), errors.tobytes().hex(), results.errors(name, "mean_error")[1].tobytes().hex()]
        parts += [results.curves(name, settings)[1].tobytes().hex()]
    return parts


# Changed by hand: each kind of damage is noticed, named and mended -------------------------------------------------

NAME = "random_walk(n_states=3)"
HERE = f"WHERE run = 1 AND facts LIKE '%{NAME}%'"  # one unit


def flip(column, place):
    """Return a change of one bit of a blob of that unit."""

    def changed(db):
        row, blob = db.execute(f"SELECT id, {column} FROM unit {HERE}").fetchone()
        blob = bytearray(blob)
        blob[place] ^= 1
        db.execute(f"UPDATE unit SET {column} = ? WHERE id = ?", (bytes(blob), row))

    return changed


def exchange(column):
    """Return an exchange of cells between that unit and the one of the run before."""

    def changed(db):
        (one, first), (other, second) = db.execute(
            f"SELECT id, {column} FROM unit WHERE run < 2 AND facts LIKE '%{NAME}%'"
        ).fetchall()
        db.execute(f"UPDATE unit SET {column} = ? WHERE id = ?", (first, other))
        db.execute(f"UPDATE unit SET {column} = ? WHERE id = ?", (second, one))

    return changed


DAMAGES = {
    **{f"a changed byte {place} of the numbers": flip("numbers", place) for place in (0, 47, -1)},
    **{f"a changed byte {place} of the curves": flip("curves", place) for place in (0, -1)},
    **{f"{column} of another run": exchange(column) for column in ("numbers", "curves", "curves_checksum", "run")},
    **{f"no {column}": f"UPDATE unit SET {column} = zeroblob(0) {HERE}" for column in ("numbers", "curves")},
    **{f"text for {column}": f"UPDATE unit SET {column} = 'low' {HERE}" for column in ("numbers", "curves")},
    "text that is not text for curves": f"UPDATE unit SET curves = CAST(x'ff00ff' AS TEXT) {HERE}",
    "another key": f"UPDATE unit SET settings = 'f' || substr(settings, 2) || 'f' {HERE}",
    "keys exchanged": f"UPDATE unit SET settings = substr(settings, 26) || ' ' || substr(settings, 1, 24) {HERE}",
    "another run": f"UPDATE unit SET run = 77 {HERE}",
    "another task": f"UPDATE unit SET task_key = 'another' {HERE}",
    "another row": f"UPDATE unit SET id = 99 {HERE}",
    "no facts": f"UPDATE unit SET facts = '{{' {HERE}",
    "text that is not text for facts": f"UPDATE unit SET facts = CAST(x'ff00ff' AS TEXT) {HERE}",
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_noticed_named_and_run_again(kind, original, copy):
    before = everything_read(copy)
    change(copy, DAMAGES[kind])
    with pytest.raises(DamagedStoreError, match=r"is damaged: (random_walk\(n_states=3\)|\?), (every )?run"):
        everything_read(copy)
    found = verify(copy)
    assert not found.whole
    assert {(one["task"], one["run"]) for one in found.damaged} <= {
        (NAME, 0),
        (NAME, 1),
        (NAME, 77),
        (NAME, None),
        ("?", 1),
    }
    assert found.results >= 12, "what is not damaged counts"
    notices = []
    run(STUDY, copy, on_notice=notices.append)
    assert any("was damaged:" in sentence and "were removed and are recomputed" in sentence for sentence in notices)
    assert content(copy) == content(original)
    assert everything_read(copy) == before
    assert verify(copy).whole


@pytest.mark.parametrize("kind", ["another run", "another task", "another row", "run of another run"])
def test_a_unit_that_was_moved_is_missed_by_whoever_reads_its_task(kind, copy):
    """Another program has changed the index with it, but not its checksum and the number of units of its task."""
    change(copy, DAMAGES[kind])
    results = Results(STUDY, copy)
    for read in (lambda: results.errors(NAME), lambda: results.curves(NAME, []), results.frame):
        with pytest.raises(DamagedStoreError, match="is damaged: random_walk"):
            read()


SETTING_DAMAGES = {
    "a changed parameter": "UPDATE setting SET facts = json_set(facts, '$.values.alpha', 0.7) WHERE id = 2",
    "facts that are not JSON": "UPDATE setting SET facts = '{' WHERE id = 2",
    "a changed description": "UPDATE setting SET description = 'another' WHERE id = 2",
    "a changed key": "UPDATE setting SET key = 'another' WHERE id = 2",
    "a changed row": "UPDATE setting SET id = 99 WHERE id = 2",
    "text that is not text": "UPDATE setting SET facts = CAST(x'74ff64' AS TEXT) WHERE id = 2",
    "a lost setting": "DELETE FROM setting WHERE id = 2",
}


@pytest.mark.parametrize("kind", SETTING_DAMAGES)
def test_a_damaged_setting_is_noticed_and_mended_without_a_run(kind, original, copy):
    change(copy, SETTING_DAMAGES[kind])
    for read in (summary_frame, run_frame, lambda store: Results(STUDY, store.path).frame()):
        with Store(copy) as store, pytest.raises(DamagedStoreError, match=r"is damaged: (random_walk|\?)"):
            read(store)
    right, read = (Results(STUDY, path).errors(NAME)[1] for path in (original, copy))
    assert (read == right).all(), "numbers are found by the key of their setting"
    assert not verify(copy).whole
    run(STUDY, copy)
    assert content(copy) == content(original)
    assert everything_read(copy) == everything_read(original)
    assert verify(copy).whole
    with Store(original) as old, Store(copy) as new:
        assert [unit.facts for unit in old.units()] == [unit.facts for unit in new.units()], "its results were whole"


def test_a_damaged_study_is_noticed_and_removed(copy):
    right = everything_read(copy)
    change(copy, "UPDATE study SET facts = replace(facts, '\"runs\": 3', '\"runs\": 4')")
    with Store(copy) as store, pytest.raises(DamagedStoreError, match="is damaged: a study"):
        store.studies()
    assert verify(copy).damaged == [{"task": "a study", "run": None, "what": {"study": 1}}]
    run(STUDY, copy)
    assert verify(copy).whole
    assert (verify(copy).units, everything_read(copy)) == (6, right)


def test_other_results_stay_readable(copy):
    """Damage to one task does not keep a study of the other from being read."""
    change(copy, flip("numbers", 0))
    other = Results(replace(STUDY, tasks=STUDY.tasks[1:]), copy)
    assert not np.isnan(other.errors("random_walk(n_states=5)")[1]).any()
    assert other.frame()["runs"].tolist() == [3, 3, 3]


@pytest.mark.parametrize("column", ["numbers", "curves"])
def test_only_the_damaged_unit_is_run_again(copy, column):
    with Store(copy) as store:
        before = [unit.facts for unit in store.units()]
    change(copy, flip(column, 0))
    run(STUDY, copy)
    with Store(copy) as store:
        assert [(unit.run, len(unit.keys)) for unit in store.units() if unit.facts not in before] == [(1, 3)]


GONE = f"DELETE FROM unit {HERE}"


@pytest.mark.parametrize("edit", [GONE, "DELETE FROM task", f"{GONE}; UPDATE task SET units = units - 1"])
def test_a_unit_that_was_removed_is_missed(original, copy, edit):
    """Each task has the number of its units: one that another program has removed, or a wrong number, is noticed."""
    change(copy, *edit.split(";"))
    with pytest.raises(DamagedStoreError, match=r"is damaged: random_walk\(n_states=3\), every run"):
        Results(STUDY, copy).errors(NAME)
    assert {"task": NAME, "run": None, "what": {"missing unit": 1}} in verify(copy).damaged
    run(STUDY, copy)
    assert content(copy) == content(original)
    assert verify(copy).whole


# Hidden by a damaged page: what a table or an index has lost is missed -----------------------------------------------


def damage_page(path, name, change_bytes):
    """Change the first page of a table or an index."""
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    whole = path.read_bytes()
    begin = size * (page - 1)
    part = bytearray(whole[begin : begin + size])
    change_bytes(part)
    path.write_bytes(whole[:begin] + part + whole[begin + size :])


def test_a_unit_that_its_table_has_lost_is_noticed(copy):
    def lose_a_cell(page):
        page[4] -= 1  # the number of cells of the page

    damage_page(copy, "unit", lose_a_cell)
    with Store(copy) as store, pytest.raises(DamagedStoreError, match=r"is damaged: random_walk.*, every run"):
        store.units()
    assert any(one["what"] == {"missing unit": 1} for one in verify(copy).damaged)
    with pytest.raises(DamagedStoreError):
        everything_read(copy)


INDEXES = {"unit_task": "task_key", "sqlite_autoindex_setting_1": "key", "sqlite_autoindex_task_1": "key"}


@pytest.mark.parametrize("index", INDEXES)
def test_what_an_index_has_lost_is_missed_and_mended_without_a_run(copy, index):
    """An index says another key than its table: readers are refused, and the next sweep mends the index."""
    right = everything_read(copy)
    with closing(sqlite3.connect(copy)) as db:
        table = index.removeprefix("sqlite_autoindex_").partition("_")[0]
        (key,) = db.execute(f"SELECT max({INDEXES[index]}) FROM {table}").fetchone()

    def change_a_key(page):
        page[page.index(key.encode()) + 23] ^= 1

    damage_page(copy, index, change_a_key)
    assert verify(copy).structure
    with pytest.raises(DamagedStoreError):
        everything_read(copy)
    run(STUDY, copy)
    assert verify(copy).whole
    assert (verify(copy).units, everything_read(copy)) == (6, right), "nothing was run again"


def test_a_file_with_other_tables_is_refused(copy):
    """A column that has another name could not be read: nothing is taken for damaged, and nothing is removed."""

    def rename(db):
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'curves BLOB', 'curvez BLOB') WHERE name = 'unit'")
        db.execute("PRAGMA writable_schema = RESET")

    change(copy, rename)
    before = copy.read_bytes()
    for use in (everything_read, verify, lambda file: run(STUDY, file)):
        with pytest.raises(StoreError, match=r"is damaged. Nothing was changed"):
            use(copy)
    assert copy.read_bytes() == before


# Flipped bytes: what is read is right, or refused --------------------------------------------------------------------


def flipped(whole, count, seed):
    """Yield copies of a file with one bit changed, at places drawn at random; most of a small file is empty."""
    rng = random.Random(seed)
    for place in rng.sample([place for place, byte in enumerate(whole) if byte], count):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        yield place, damaged


def test_a_flipped_byte_never_gives_a_wrong_number(original, copy):
    """Readers get what was written, or one sentence."""
    right, refused = everything_read(original), 0
    for place, damaged in flipped(original.read_bytes(), 120, seed=0):
        copy.write_bytes(damaged)
        try:
            assert everything_read(copy) == right, f"byte {place}"
        except GradientDDError:
            refused += 1
    assert refused > 60


def test_a_flipped_byte_is_mended_by_the_sweep_or_the_file_is_refused(original, copy):
    right, mended = everything_read(original), 0
    for place, damaged in flipped(original.read_bytes(), 30, seed=1):
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
    right = everything_read(copy)

    def free_a_byte(page):
        page[7] += 1  # the count of fragmented bytes in the head of a page

    damage_page(copy, "unit", free_a_byte)
    before = copy.read_bytes()
    with pytest.raises(StoreError, match=r"is damaged. Nothing was changed"):
        run(STUDY, copy)
    assert (copy.read_bytes(), everything_read(copy)) == (before, right)
    assert verify(copy).structure


# The command -----------------------------------------------------------------------------------------------------


def test_verify_says_what_it_checked_or_names_what_is_damaged(copy):
    whole = call("verify", copy)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout == f"{copy}: checked 6 units with 18 results and their curves. No damage found.\n"
    change(copy, flip("numbers", 0))
    damaged = call("verify", copy)
    assert damaged.returncode == 1
    assert "random_walk(n_states=3)  1    1 × unit" in damaged.stdout
    facts = json.loads(call("verify", copy, "--json").stdout)
    assert facts["damaged"] == [{"task": NAME, "run": 1, "what": {"unit": 1}}]
    assert (facts["whole"], facts["units"], facts["results"]) == (False, 5, 15)
    exported = call("export", copy.parent / "t.csv", "--out", copy)
    assert exported.returncode == 1
    assert f"is damaged: {NAME}, run 1." in exported.stderr
    assert not (copy.parent / "t.csv").exists()
    assert call("verify", copy.parent / "none.db").returncode == 1
