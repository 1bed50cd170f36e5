"""How errors and odd outputs reach the user of the command line: one sentence, the right exit code, no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradient_dd.cli import options
from gradient_dd.errors import BadRequestError

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
        (["show", "random_mdp", "episodic=no"], "Error: 'episodic' must be true or false. Got 'no'."),
        (["show", "baird", "n_states=100000"], "Error: The table of baird, 100000 states, must take at most 1 GB, "),
        (["show", "random_walk", "n_states=1e400"], "Error: 'n_states' must be a whole number, 1 or more. Got inf."),
        (["analyse", "random_walk", "n_states=30000"], "Error: The pilot of the advice must take at most 6 s"),
        (["evaluate", ""], "Error: A log must be the path of a file. Got ''."),
        (["evaluate", "/"], "Error: A log must be the path of a file. Got '/'."),
    ],
)
def test_a_mistake_changes_nothing_and_gets_one_sentence(arguments, sentence, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADIENT_DD_MEMORY", "1e9")
    result = command(*arguments)
    assert result.code == 2
    assert result.err.strip().splitlines()[-1].startswith(sentence)
    assert not result.out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", ["reproduce", "plot walk", "sweep"])
def test_a_folder_of_other_things_is_left_alone(words, tmp_path, command):
    (tmp_path / "letter.txt").write_text("dear")
    study = ["--task", "random_walk", "--learner", "td", "--episodes", "3"] if words == "sweep" else []
    result = command(*words.split(), "--out", tmp_path, *study)
    rule = "be a new folder, an empty folder or a folder of earlier results"
    assert result.err.endswith(f"Error: '--out' must {rule}. Got '{tmp_path}'. Name another folder.\n")
    assert result.code == 2
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_may_be_new_or_empty_or_ours(tmp_path):
    assert options.checked_folder("'--out'", tmp_path / "new") == tmp_path / "new"
    for held in (".hidden", *options.OURS, "letter.txt"):
        (tmp_path / held).touch()
        assert options.checked_folder("'--out'", tmp_path) == tmp_path
    for name in options.OURS:
        (tmp_path / name).unlink()
    with pytest.raises(BadRequestError):
        options.checked_folder("'--out'", tmp_path)
    with pytest.raises(BadRequestError):
        options.folder_at("/")


def test_a_large_task_is_shown_without_what_would_take_hours(command, monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_MEMORY", "1e9")
    facts = json.loads(command("show", "random_walk", "n_states=30000", "--json").out)
    assert facts["matrices"] == "not computed for more than 2,000 features"
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
    assert result.stderr == "Error: Cannot read or write: No space left on device.\n"


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
        (MemoryError(), "Error: Not enough memory. Try a smaller task"),
        (
            RecursionError("maximum\ndepth"),
            "Error: gradient-dd failed unexpectedly with RecursionError: maximum depth.",
        ),
        (ZeroDivisionError(), "Error: gradient-dd failed unexpectedly with ZeroDivisionError."),
        (OSError(28, "No space left on device", "a\x1bb"), "Error: Cannot use 'a\\\\x1bb': No space left on device."),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_unexpected_error_is_one_sentence(error, sentence, monkeypatch, command):
    def fail():
        raise error

    monkeypatch.setattr("gradient_dd.cli.listing.learner_lines", fail)
    done = command("list", "learners")
    assert done.code == 1
    assert done.err.startswith(sentence)
    assert done.err.count("\n") == 1
    assert "\x1b" not in done.err


def test_the_traceback_of_an_unexpected_error_can_be_seen(monkeypatch, command):
    monkeypatch.setattr("gradient_dd.cli.listing.learner_lines", lambda: 1 / 0)
    monkeypatch.setenv("GRADIENT_DD_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        command("list", "learners")


def test_an_error_of_ours_that_is_no_bad_request_has_exit_code_1(command, tmp_path):
    (tmp_path / "a.db").write_text("no store")
    done = command("status", "--out", tmp_path / "a.db")
    assert done.code == 1
    assert done.err.startswith("Error: ")


# Ctrl-C

INTERRUPT = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from gradient_dd.cli import main

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)

class Dropping:  # an exception in a destructor is dropped
    def __del__(self):
        ctrl_c()
        while True:
            pass

class Import:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            act()

{when}
sys.argv = ["gradient-dd", *{words}]
main()
"""
AT_IMPORT = "module, act = {!r}, {}; sys.meta_path.insert(0, Import())"
WALK = ["--task", "random_walk:n_states=3", "--learner", "td", "--alpha", "0.1", "--episodes", "5", "--runs", "1"]
AT_END = "import click; echo = click.echo; click.echo = lambda *a, **k: (echo(*a, **k), sys.stdout.flush(), ctrl_c())"


def interrupted(when, *words):
    """Run a command that gets Ctrl-C at some moment; return what it left."""
    code = INTERRUPT.format(when=when, words=words)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("act", ["ctrl_c", "Dropping"])
@pytest.mark.parametrize(
    "module", ["click", "gradient_dd.cli.commands.show", "numpy", "numpy.linalg", "scipy.sparse", "gradient_dd.tasks"]
)
def test_ctrl_c_ends_every_import_with_a_sentence(module, act):
    result = interrupted(AT_IMPORT.format(module, act), "show", "baird")
    assert (result.returncode, result.stderr.strip(), result.stdout) == (1, "Stopped.", "")


def test_ctrl_c_after_the_last_word_changes_nothing():
    result = interrupted("import atexit; atexit.register(ctrl_c)", "list", "learners")
    assert (result.returncode, result.stderr) == (0, "")
    stopped = interrupted(f"import atexit; atexit.register(ctrl_c); {AT_END}", "list", "learners")
    assert (stopped.returncode, stopped.stderr.strip()) == (1, "Stopped.")


def test_ctrl_c_while_an_error_is_printed_changes_nothing():
    hit = "out = sys.stderr.write; sys.stderr.write = lambda text: (out(text), ctrl_c())[0]"
    result = interrupted(hit, "show", "xyzzy")
    assert result.returncode == 2
    assert result.stderr.startswith("Error: Unknown learner or task 'xyzzy'.")
    assert "Traceback" not in result.stderr


def test_ctrl_c_in_a_sweep_says_what_is_kept(tmp_path):
    hit = AT_IMPORT.format("gradient_dd.engine.lanes", "lambda: threading.Timer(0.0, ctrl_c).start()")
    during = "from gradient_dd.studies import sweep; sweep.run = lambda *a, **k: ctrl_c()"
    for when, kept in ((during, True), (hit, False)):
        result = interrupted(when, "sweep", *WALK, "--out", str(tmp_path / "a.db"))
        assert result.returncode == 1
        sentence = f"Committed results are kept in {tmp_path / 'a.db'}; run the same command to resume."
        last = result.stderr.splitlines()[-1]
        assert last == f"Stopped. {sentence}" if kept else last.startswith("Stopped.")
        assert "Traceback" not in result.stderr


def test_a_job_in_the_background_keeps_ignoring_ctrl_c():
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN); " + AT_IMPORT.format("numpy", "ctrl_c")
    result = interrupted(ignored, "list", "learners")
    assert (result.returncode, result.stderr) == (0, "")
