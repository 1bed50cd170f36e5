"""A command run in this process, as `gradient-dd` runs it: quick, for nothing is started or imported anew."""

import signal
import sys
from typing import NamedTuple

import pytest

from gradient_dd import cli


class Done(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


@pytest.fixture
def own_ctrl_c():
    """Give pytest its Ctrl-C back after `main` was called in this process."""
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    yield
    signal.signal(signal.SIGINT, handler)
    sys.unraisablehook = hook


@pytest.fixture
def command(monkeypatch, capsys, own_ctrl_c):
    """Return a function that runs a command with these words, and returns its exit code and what it printed."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["gradient-dd", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        return Done(code, *capsys.readouterr())

    return run
