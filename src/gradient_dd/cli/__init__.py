"""The command line. A command parses its words, calls one function of one room, and prints what comes back.

Each command is a file of `commands/`; `group.py` collects them. This file needs no extra, so that `gradient-dd` can say
which one is missing.
"""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from gradient_dd.errors import BadRequestError, GradientDDError, extra

if TYPE_CHECKING:
    import click


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the work failed, 2 a bad request."""
    if "numpy" not in sys.modules:  # it is read once, when NumPy loads
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small, and we have threads of our own
    try:
        with extra("cli"):
            from gradient_dd.cli.group import cli
        run(cli)
    except BadRequestError as error:
        stop(f"Error: {error}", 2)
    except GradientDDError as error:
        stop(f"Error: {error}", 1)


def run(command: "click.Command") -> None:
    """Run a command with the words that the program was called with."""
    import click

    try:
        command.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        stop("Stopped.", 1)


def stop(sentence: str, code: int) -> NoReturn:
    """Print a sentence to stderr and end the program."""
    print(sentence, file=sys.stderr)
    sys.exit(code)
