"""Results files of other versions: refused with one sentence that says what to do, and left as they are."""

import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from gradient_dd.cli.commands import cli
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import Results
from gradient_dd.studies.sqlite_file import APPLICATION, StoreError
from gradient_dd.studies.store import Store, verify
from gradient_dd.studies.sweep import run

STUDY = Study("s", (task("random_walk", n_states=3),), (grid("td", alpha=0.1),), episodes=5, runs=1)
OLD_TABLES = """
CREATE TABLE setting (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, alpha REAL, "values" TEXT NOT NULL);
CREATE TABLE result (
    setting INTEGER NOT NULL REFERENCES setting (id), run INTEGER NOT NULL, last100 REAL NOT NULL, area REAL NOT NULL,
    PRIMARY KEY (setting, run)
) WITHOUT ROWID;
INSERT INTO setting VALUES (1, 'k', 0.1, '{"alpha": 0.1}');
INSERT INTO result VALUES (1, 0, 0.5, 0.6);
"""
USES = {
    "Store": Store,
    "verify": verify,
    "run": lambda file: run(STUDY, file),
    "errors": lambda file: Results(STUDY, file).errors("random_walk(n_states=3)"),
    "frame": lambda file: Results(STUDY, file).frame(),
}


@pytest.fixture(params=[0, 3, 4])
def old(request, tmp_path):
    """Return a results file with the tables of an earlier version, in short."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLD_TABLES)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {request.param}")
    return path


@pytest.mark.parametrize("use", USES)
def test_a_file_of_an_earlier_version_is_refused_and_left_alone(old, use):
    before = old.read_bytes()
    with pytest.raises(StoreError, match=r"must be a results file of version 5. Got version \d. An earlier") as caught:
        USES[use](old)
    assert str(caught.value).endswith("Nothing was changed. Repeat the command with a new file.")
    assert old.read_bytes() == before
    assert [file.name for file in old.parent.iterdir()] == ["old.db"]


def test_the_command_line_says_it_in_one_sentence(old):
    done = CliRunner().invoke(cli, ["status", "--out", str(old)])
    assert done.exit_code == 1
    assert "Repeat the command with a new file" in str(done.exception) + done.output
