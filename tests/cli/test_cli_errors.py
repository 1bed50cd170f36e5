"""How errors and odd outputs reach the user of the command line: one sentence, the right exit code, no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradient_dd import cli

COMMAND = str(Path(sys.executable).parent / "gradient-dd")


def call(*arguments, **environment):
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, check=False, env=os.environ | environment, timeout=60
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reproduce", "--runs", "0"], "Error: 'runs' must be a whole number, 1 or more. Got 0."),
        (["reproduce", "--runs", "-3"], "Error: 'runs' must be a whole number, 1 or more. Got -3."),
        (["reproduce", "--episodes", "0"], "Error: 'episodes' must be a whole number, 1 or more. Got 0."),
        (["reproduce", "family", "walk"], "Error: 'family' must stand alone, without figures. Got family walk."),
        (["show", "random_mdp", "episodic=no"], "Error: 'episodic' must be true or false. Got 'no'."),
        (["show", "baird", "n_states=100000"], "Error: The table of baird, 100000 states, must take at most 1 GB, "),
        (["show", "random_walk", "n_states=1e400"], "Error: 'n_states' must be a whole number, 1 or more. Got inf."),
        (["analyse", "random_walk", "n_states=30000"], "Error: The pilot of the advice must take at most 6 s"),
        (["analyse", "--log", ""], "Error: A log must be the path of a file. Got ''."),
        (["analyse", "--log", "/"], "Error: A log must be the path of a file. Got '/'."),
    ],
)
def test_a_mistake_changes_nothing_and_gets_one_sentence(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call(*arguments, GRADIENT_DD_MEMORY="1e9")
    assert result.returncode == 2
    assert result.stderr.decode().strip().splitlines()[-1].startswith(sentence)
    assert not result.stdout
    assert not list(tmp_path.iterdir())


def test_a_large_task_is_shown_without_what_would_take_hours():
    facts = json.loads(call("show", "random_walk", "n_states=30000", "--json", GRADIENT_DD_MEMORY="1e9").stdout)
    assert facts["matrices"] == "not computed beyond 2,000 features"
    assert len(facts["true values"]) == 30_000


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_an_output_without_greek_letters_gets_escapes(encoding):
    result = call("show", "gradient_dd", PYTHONIOENCODING=encoding)
    assert result.returncode == 0, result.stderr
    assert b"\\u03b7" in result.stdout
    facts = json.loads(call("show", "gradient_dd", "--json", PYTHONIOENCODING=encoding).stdout.decode(encoding))
    assert "η" in facts["equation"][1]


def test_a_full_disk_is_reported():
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([COMMAND, "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "Error: Files and output must be usable. Got No space left on device.\n"


def test_a_reader_may_stop_reading():
    """`gradient-dd list | head -1` says nothing."""
    with subprocess.Popen([COMMAND, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 1
    assert not errors


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-", "2>/dev/full"])
def test_closed_streams_are_no_error(closed):
    done, refused = (
        subprocess.run(["sh", "-c", f"{COMMAND} {words} {closed}"], capture_output=True, text=True, check=False)
        for words in ("list", "lisst")
    )
    assert (done.returncode, refused.returncode) == (0, 2)
    assert "Traceback" not in done.stderr + refused.stderr
    assert "Exception ignored" not in done.stderr + refused.stderr


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "Error: The work must fit in memory. Got more than there is."),
        (
            RecursionError("maximum\ndepth"),
            "Error: gradient-dd must not fail like this. Got RecursionError: maximum depth.",
        ),
        (ZeroDivisionError(), "Error: gradient-dd must not fail like this. Got ZeroDivisionError."),
        (OSError(28, "No space left on device", "a\x1bb"), "Error: Files and output must be usable. Got No space left"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_unexpected_error_is_one_sentence(error, sentence, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr("gradient_dd.cli.listing.learner_lines", fail)
    monkeypatch.setattr(sys, "argv", ["gradient-dd", "list", "learners"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    written = capsys.readouterr().err
    assert written.startswith(sentence)
    assert written.count("\n") == 1
    assert "\x1b" not in written


def test_the_traceback_of_an_unexpected_error_can_be_seen(monkeypatch):
    monkeypatch.setattr("gradient_dd.cli.listing.learner_lines", lambda: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["gradient-dd", "list", "learners"])
    monkeypatch.setenv("GRADIENT_DD_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main()
