"""The command line. A command parses its arguments, calls one function of one package, and prints the result.

Each command is a file in `commands/`.
"""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from gradient_dd.errors import BadRequestError, GradientDDError, one_line

if TYPE_CHECKING:
    import click

SOON = 0.02  # seconds after which a lost KeyboardInterrupt is raised again
DEBUG = "GRADIENT_DD_DEBUG"  # environment variable; if set, the program shows tracebacks


def main() -> None:
    """Run the command line. Exit codes: 0 for success, 1 for failed or interrupted work, 2 for a bad request.

    Every error is one sentence on stderr; GRADIENT_DD_DEBUG=1 shows the traceback of an unexpected error.
    """
    stopped = catch_ctrl_c()
    try:
        if "numpy" not in sys.modules:  # NumPy reads the variable only when it is imported
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small, and sweeps use threads
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # None if the stream is closed
                stream.reconfigure(errors="backslashreplace")  # escapes characters that the terminal cannot show
        from gradient_dd.cli.commands import cli

        run(cli)
    except KeyboardInterrupt as error:
        stop(str(error) or "Stopped.", 1)
    except Exception as error:
        if stopped:  # an import interrupted by Ctrl-C may raise anything
            stop("Stopped.", 1)
        if isinstance(error, GradientDDError):
            stop(f"Error: {error}", 2 if isinstance(error, BadRequestError) else 1)
        if os.environ.get(DEBUG):
            raise
        stop(f"Error: {unexpected(error)}", 1)
    finally:
        handle_ctrl_c(lambda *_: os._exit(1) if stopped else None)  # everything has been printed


def run(command: "click.Command") -> None:
    """Run a command with the arguments of the program; Ctrl-C raises KeyboardInterrupt."""
    import click

    try:
        command.main(standalone_mode=False)
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        stop("", 2)
    except click.Abort as error:  # Click replaces KeyboardInterrupt; this keeps the message
        raise KeyboardInterrupt(*(error.__cause__.args if error.__cause__ else ())) from None


def catch_ctrl_c() -> list[int]:
    """Make Ctrl-C raise KeyboardInterrupt, and return a list that is empty until the first Ctrl-C.

    Python drops exceptions raised in destructors and callbacks, so a dropped KeyboardInterrupt is raised again.
    """
    stopped: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        stopped.append(number)
        raise KeyboardInterrupt

    def raise_again(dropped: "sys.UnraisableHookArgs") -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            threading.Timer(SOON, _thread.interrupt_main).start()
        else:
            sys.__unraisablehook__(dropped)

    handle_ctrl_c(interrupt)
    sys.unraisablehook = raise_again
    return stopped


def handle_ctrl_c(handler: Callable[[int, FrameType | None], object]) -> None:
    """Make Ctrl-C call a function, unless the process ignores Ctrl-C, as background jobs do."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def stop(sentence: str, code: int) -> NoReturn:
    """Print a sentence to stderr, if possible, and end the program."""
    handle_ctrl_c(lambda *_: None)  # so that nothing interrupts the exit
    with suppress(OSError):
        if sentence and sys.stderr is not None:
            print(sentence, file=sys.stderr)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # the interpreter would flush again on exit, and report the error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def unexpected(error: Exception) -> str:
    """Return one sentence about an unexpected error and what the user can do."""
    if isinstance(error, MemoryError):
        return "Not enough memory. Try a smaller task, fewer settings or fewer workers."
    if isinstance(error, OSError) and error.errno is not None:
        place = f"use {one_line(str(error.filename))!r}" if error.filename else "read or write"
        return f"Cannot {place}: {error.strerror}."
    got = one_line(f"{type(error).__name__}: {error}").rstrip(": .")[:300]
    return f"gradient-dd failed unexpectedly with {got}. Please report it with the output of {DEBUG}=1."
