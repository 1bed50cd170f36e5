"""Results files of earlier versions: they are read as they are, and a sweep that writes to one adds checksums."""

import sqlite3
from contextlib import closing

import pytest

from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.checked import DamagedError
from gradient_dd.studies.frames import run_frame, summary_frame
from gradient_dd.studies.results import Results
from gradient_dd.studies.store import Store
from gradient_dd.studies.sweep import run
from gradient_dd.studies.verification import verify

STUDY = Study(
    "s",
    tasks=(task("random_walk", n_states=3), task("random_walk", n_states=5)),
    grids=(grid("td", alpha=(0.1, 0.2)),),
    episodes=30,
    runs=3,
)
NAME = "random_walk(n_states=3)"
OLD_TABLES = """
CREATE TABLE cost (
    unit INTEGER NOT NULL REFERENCES unit (id), learner TEXT NOT NULL, seconds REAL NOT NULL, updates INTEGER NOT NULL,
    PRIMARY KEY (unit, learner)
);
CREATE TABLE setting (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, said TEXT NOT NULL,
    task TEXT NOT NULL, size INTEGER NOT NULL, reading TEXT NOT NULL, learner TEXT NOT NULL,
    alpha REAL, zeta REAL, kappa REAL, rho_mode TEXT NOT NULL, "values" TEXT NOT NULL,
    schedule TEXT NOT NULL, episodes INTEGER, steps INTEGER, every INTEGER NOT NULL,
    sampling TEXT NOT NULL, seed INTEGER NOT NULL
);
CREATE INDEX setting_said ON setting (said);
CREATE TABLE result (
    setting INTEGER NOT NULL REFERENCES setting (id), run INTEGER NOT NULL,
    last100 REAL NOT NULL, area REAL NOT NULL, diverged_step INTEGER NOT NULL, diverged_episode INTEGER NOT NULL,
    PRIMARY KEY (setting, run)
) WITHOUT ROWID;
CREATE TABLE curve (
    setting INTEGER NOT NULL REFERENCES setting (id), run INTEGER NOT NULL, points BLOB NOT NULL,
    PRIMARY KEY (setting, run)
);
CREATE TABLE unit (
    id INTEGER PRIMARY KEY, task TEXT NOT NULL, run INTEGER NOT NULL, settings INTEGER NOT NULL,
    steps INTEGER NOT NULL, seconds REAL NOT NULL, at TEXT NOT NULL, provenance INTEGER REFERENCES provenance (id)
);
CREATE TABLE study (id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE provenance (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
PRAGMA application_id = 0x67644444;
PRAGMA journal_mode = WAL;
"""
TABLES = ("setting", "result", "curve", "unit", "cost", "study", "provenance")
pytestmark = pytest.mark.xdist_group("kernels of td")


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    path = tmp_path_factory.mktemp("old") / "new.db"
    run(STUDY, path)
    return path


@pytest.fixture(params=[1, 2])
def old(request, new, tmp_path):
    """Return a file with the same results that has the tables of an earlier version."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(OLD_TABLES)
        db.execute("ATTACH ? AS new", (str(new),))
        for table in TABLES:
            count = len(db.execute(f"PRAGMA main.table_info({table})").fetchall())
            columns = [f'"{row[1]}"' for row in db.execute(f"PRAGMA new.table_info({table})")][:count]
            db.execute(f"INSERT INTO main.{table} SELECT {', '.join(columns)} FROM new.{table}")
        db.execute("DETACH new")
        if request.param == 1:
            db.execute("DROP TABLE cost")
        db.execute(f"PRAGMA user_version = {request.param}")
    return path


def tables(path):
    with Store(path) as store:
        return summary_frame(store), run_frame(store)


def change(path, statement):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


def test_it_is_read_as_it_is(old, new):
    before = old.read_bytes()
    for theirs, ours in zip(tables(old), tables(new), strict=True):
        assert theirs.equals(ours)
    theirs, ours = (Results(STUDY, path) for path in (old, new))
    settings, errors = ours.errors(NAME)
    assert (theirs.errors(NAME)[1] == errors).all()
    assert (theirs.curves(NAME, settings) == ours.curves(NAME, settings)).all()
    found = verify(old)
    assert found.is_whole
    assert not found.has_checksums
    assert old.read_bytes() == before
    assert [file.name for file in old.parent.iterdir()] == ["old.db"]


def test_a_sweep_adds_checksums_and_says_so(old, new):
    notices, before = [], verify(old).results
    run(STUDY, old, on_notice=notices.append)
    assert (
        "was written by an earlier version, without checksums. The 12 results that it holds have got theirs now"
        in (notices[0])
    )
    found = verify(old)
    assert (found.is_whole, found.has_checksums, found.results) == (True, True, before)
    for theirs, ours in zip(tables(old), tables(new), strict=True):
        assert theirs.equals(ours)
    with Store(old) as store:
        assert store.rows("PRAGMA user_version") == [(3,)]
        assert store.rows("SELECT count(*) FROM unit") == [(6,)], "nothing was run again"
    notices.clear()
    run(STUDY, old, on_notice=notices.append)
    assert notices == []
    change(old, "UPDATE result SET last100 = last100 * 2 WHERE setting = 1 AND run = 0")
    with pytest.raises(DamagedError):
        tables(old)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE result SET area = 'large' WHERE setting = 2 AND run = 1",
        "DELETE FROM curve WHERE setting = 2 AND run = 1",
        "DELETE FROM result WHERE setting = 2 AND run = 1",
        "UPDATE curve SET points = 'low' WHERE setting = 2 AND run = 1",
        "UPDATE curve SET points = zeroblob(8) WHERE setting = 2 AND run = 1",
    ],
)
def test_what_can_be_seen_without_checksums_is_noticed_and_run_again(old, new, statement):
    change(old, statement)
    results = Results(STUDY, old)
    with pytest.raises(DamagedError, match="Got damage to random_walk 3, run 1"):
        results.curves(NAME, results.errors(NAME)[0])
    run(STUDY, old)
    assert verify(old).is_whole
    for theirs, ours in zip(tables(old), tables(new), strict=True):
        assert theirs.equals(ours)


@pytest.mark.parametrize("text", ["'{\"alpha\": 0.1'", "'[1]'", "x'00ff'", "7"])
def test_values_that_cannot_be_read_are_noticed(old, text):
    change(old, f'UPDATE setting SET "values" = {text} WHERE id = 1')
    with pytest.raises(DamagedError, match="Got damage to random_walk 3, every run"):
        tables(old)
