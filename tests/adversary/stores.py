"""Attacks on results files: damage on disk, and edits by another program. The true numbers are read, or none."""

import sqlite3
from atexit import register
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from gradient_dd.cli.commands import cli
from gradient_dd.engine.schedules import tapered
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import Results
from gradient_dd.studies.sweep import run
from tests.adversary.files import damaged, files_of, written
from tests.adversary.rule import Attack, Case

STUDY = Study(
    "s",
    tasks=(task("random_walk", n_states=3), task("random_walk", n_states=5)),
    grids=(grid("td", alpha=(0.1, 0.2, 1e6)),),  # the last one diverges
    schedule=tapered(100),
    episodes=200,
    runs=12,
)


TINY = ("sweep", "--task", "random_walk:n_states=3", "--learner", "td", "--episodes", "2")


def command(*words: Any) -> None:
    """Run a command of the command line in this process; its errors come out as they are."""
    cli.main([str(word) for word in words], standalone_mode=False)


@cache
def scratch() -> Path:
    """Return a folder of this process."""
    folder = mkdtemp(prefix="adversary-")
    register(rmtree, folder, ignore_errors=True)
    return Path(folder)


def exported(file: Path, *options: str) -> str:
    """Return what `export` writes."""
    target = scratch() / "table.csv"
    target.unlink(missing_ok=True)
    command("export", target, "--out", file, *options)
    return target.read_text(encoding="utf-8")


def all_errors(file: Path) -> list[bytes]:
    """Return the errors of every task, by both measures."""
    results = Results(STUDY, file)
    return [
        results.errors(name, measure)[1].tobytes() for name in results.tasks for measure in ("last100", "mean_error")
    ]


def all_curves(file: Path) -> list[bytes]:
    """Return the curves of every setting of every task."""
    results = Results(STUDY, file)
    return [results.curves(name, results.errors(name)[0])[1].tobytes() for name in results.tasks]


READERS: dict[str, Callable[[Path], Any]] = {
    "export --per-run": lambda file: exported(file, "--per-run"),
    "export": exported,
    "Results.errors": all_errors,
    "Results.curves": all_curves,
    "Results.frame": lambda file: Results(STUDY, file).frame().to_csv(),
}


@cache
def whole_store() -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a results file, and what is read from it."""
    file = scratch() / "whole.db"
    run(STUDY, file, workers=1)
    with sqlite3.connect(file) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    opened.close()
    with redirect_stdout(StringIO()):
        return file.read_bytes(), {name: read(file) for name, read in READERS.items()}


def attack_damaged_store(rng: Random, folder: Path) -> Case:
    """A results file with damage, read in one way."""
    name = rng.choice(list(READERS))
    words, content = damaged(rng, whole_store()[0])
    file = written(folder, "results.db", content)
    complaint = lambda result: "" if result == whole_store()[1][name] else f"{name} read wrong numbers"  # noqa: E731
    return Case(f"{name}, {words}", lambda: READERS[name](file), lambda: file.read_bytes(), complaint)


EDITS = (
    "UPDATE unit SET numbers = zeroblob(length(numbers)) WHERE run = 1",
    "UPDATE unit SET numbers = substr(numbers, 1, 32) WHERE run = 0",
    "UPDATE unit SET numbers = 'abc' WHERE run = 2",
    "UPDATE unit SET numbers = X'00' WHERE run = 2",
    "UPDATE unit SET numbers = (SELECT max(numbers) FROM unit)",
    "UPDATE unit SET run = run + 1000 WHERE run = 2",
    "UPDATE unit SET run = 'x' WHERE run = 2",
    "UPDATE unit SET id = id + 1000 WHERE run = 2",
    "UPDATE unit SET curves_checksum = 7 WHERE run = 2",
    "UPDATE task SET units = units + 1",
    "DELETE FROM unit WHERE run = 2",
    "DELETE FROM task",
    "UPDATE unit SET task_key = 'abc'",
    "UPDATE unit SET task_key = X'FF' WHERE run = 3",
    "UPDATE unit SET settings = substr(settings, 26) || ' ' || substr(settings, 1, 24)",
    "UPDATE unit SET settings = substr(settings, 26) WHERE run = 4",
    "UPDATE unit SET settings = ''",
    "UPDATE unit SET facts = 'not json'",
    "UPDATE unit SET facts = json_set(facts, '$.seconds', 9)",
    "UPDATE unit SET checksum = 'x' WHERE run = 0",
    "UPDATE unit SET curves = zeroblob(8) WHERE run = 0",
    "UPDATE unit SET curves = zeroblob(length(curves)) WHERE run = 0",
    "UPDATE unit SET curves = 'text' WHERE run = 1",
    "UPDATE unit SET curves = 7 WHERE run = 1",
    "UPDATE unit SET curves = (SELECT max(curves) FROM unit)",
    "INSERT INTO unit SELECT id + 1000, task_key, run, facts, settings, 1, checksum, numbers, curves FROM unit",
    "UPDATE setting SET facts = json_set(facts, '$.values.alpha', 0.15) WHERE id = 1",
    "UPDATE setting SET facts = json_set(facts, '$.learner', 'tdc')",
    "UPDATE setting SET facts = X'FF'",
    "UPDATE setting SET facts = 'not json'",
    "UPDATE setting SET facts = '{}'",
    "UPDATE setting SET facts = json_set(facts, '$.size', 'big')",
    "UPDATE setting SET facts = json_set(facts, '$.schedule', 'a' || char(10) || char(27) || '[31m')",
    "UPDATE setting SET key = 'abc' WHERE id = 1",
    "UPDATE setting SET id = id + 1000",
    "UPDATE study SET facts = '[]'",
    "DELETE FROM setting WHERE id = 1",
    "DROP TABLE unit",
    "DROP TABLE setting",
    "DROP INDEX unit_task",
    "ALTER TABLE unit RENAME COLUMN numbers TO figures",
    "ALTER TABLE unit RENAME TO units",
    "PRAGMA user_version = 99",
    "PRAGMA user_version = 4",
    "PRAGMA user_version = 0",
    "PRAGMA application_id = 7",
    "CREATE TABLE more (x)",
    "VACUUM",
    "PRAGMA journal_mode = DELETE",
)


def attack_edited_store(rng: Random, folder: Path) -> Case:
    """A results file that another program has changed, read in one way."""
    name, edit = rng.choice([*READERS, "status"]), rng.choice(EDITS)
    file = written(folder, "results.db", whole_store()[0])
    with sqlite3.connect(file, isolation_level=None) as opened:
        opened.execute(edit)
    opened.close()
    read = READERS.get(name, lambda file: command("status", "--out", file))
    complaint = lambda result: "" if result == whole_store()[1].get(name) else f"{name} read wrong numbers"  # noqa: E731
    return Case(f"{name} after {edit}", lambda: read(file), lambda: file.read_bytes(), complaint)


def attack_store_that_is_none(rng: Random, folder: Path) -> Case:
    """Another kind of file, a folder, or nothing, where results are to be read or written."""
    place = rng.choice(["folder", "text", "empty", "foreign", "none", "long", "inside", "link"])
    path = folder / "results.db"
    if place == "folder":
        path.mkdir()
    elif place == "text":
        path.write_text("hello " * 1000)
    elif place == "empty":
        path.touch()
    elif place == "foreign":
        with sqlite3.connect(path) as opened:
            opened.execute("CREATE TABLE mine (x)")
        opened.close()
    elif place == "long":
        path = folder / ("x" * 300)
    elif place == "inside":
        (folder / "file").touch()
        path = folder / "file" / "results.db"
    elif place == "link":
        path.symlink_to(folder / "nowhere" / "x.db")
    name = rng.choice([*READERS, "status", "run", "sweep"])
    uses: dict[str, Callable[[], Any]] = {
        "status": lambda: command("status", "--out", path),
        "run": lambda: run(STUDY, path, workers=1),
        "sweep": lambda: command(*TINY, "--out", path),
    }
    call = uses.get(name, lambda: READERS[name](path))
    before = (lambda: files_of(folder)) if name not in ("run", "sweep") else lambda: None
    return Case(f"{name} of a results file that is {place}", call, before)


ATTACKS: dict[str, Attack] = {
    name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")
}
