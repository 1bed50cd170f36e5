"""Progress on stderr: lines where it is redirected, bars in a terminal, nothing if it is not wanted."""

import os
import subprocess
import sys

import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.progress import Bars, shown

PROGRAM = """
import time
import gradient_dd.progress as progress
progress.EVERY = progress.PATIENCE = 0.05
with progress.shown(True, "rows") as told:
    told(3, 0)
    time.sleep(0.3)
    told(2_000, 5_000)
    time.sleep(0.3)
"""


def test_a_line_now_and_then_says_how_far_it_is():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    lines = dict.fromkeys(done.stderr.splitlines())
    assert next(iter(lines)) == "rows: 3"
    assert all(one.startswith("rows: ") for one in lines)
    assert any(one.startswith("rows: 2,000 of 5,000") for one in lines)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_terminal_gets_a_bar_that_is_removed_at_the_end():
    leader, follower = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], stderr=follower, env=environment, check=True)
    os.close(follower)
    said = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "2000/5000" in said
    assert said.rstrip().endswith("\x1b[2K"), "the line of the bar is cleared"


def test_quick_or_unwanted_work_shows_nothing_and_a_function_gets_the_numbers(capsys):
    seen = []
    for progress in (True, False, lambda *numbers: seen.append(numbers)):
        with shown(progress, "rows") as told:
            told(1, 2)
    assert seen == [(1, 2)]
    assert capsys.readouterr() == ("", "")
    with pytest.raises(BadRequestError, match="'progress' must be true or false"), shown("no", "rows"):
        pass


def test_a_line_names_only_what_is_not_done():
    bars = Bars()
    bars.show("first", 5, 5)
    bars.show("second", 1, 4)
    assert bars.line() == "second: 1 of 4"
