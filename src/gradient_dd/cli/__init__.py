"""The command line. A command parses its words, calls one function of one room, and prints what comes back.

Each command is a file of `commands/`. Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn

import click

from gradient_dd import __version__
from gradient_dd.cli.commands import COMMANDS
from gradient_dd.errors import BadRequestError, GradientDDError, one_line

DEBUG = "GRADIENT_DD_DEBUG"  # the environment variable that lets tracebacks through


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="gradient-dd")
def cli() -> None:
    """Gradient-DD and the TD family: linear off-policy value prediction.

    \b
    Try:
      gradient-dd list                          what there is
      gradient-dd show gradient_dd              a learner: equation, parameters, reference, file
      gradient-dd show baird n_states=20        a task: sizes, values, visits, condition numbers
      gradient-dd sweep --task baird --learner gradient_dd --alpha 1e-3..0.1:9 --steps 10000
      gradient-dd analyse baird                 which step sizes are stable, how fast, what to take
      gradient-dd reproduce                     the paper: figures, tables, verdicts
    """


for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the work failed, 2 a bad request.

    Whatever goes wrong is one sentence on stderr; GRADIENT_DD_DEBUG=1 shows the traceback of an unexpected error.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads: matrices are small, and we have threads
    print_what_can_be_printed()
    try:
        cli.main(standalone_mode=False)
        flush_output()
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        leave(2)
    except BadRequestError as error:
        leave(2, f"Error: {error}")
    except GradientDDError as error:
        leave(1, f"Error: {error}")
    except (click.Abort, KeyboardInterrupt):
        leave(1, "Stopped.")
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        leave(1, f"Error: {unexpected(error)}")


def print_what_can_be_printed() -> None:
    """Let Greek letters be written as escapes where the terminal cannot show them, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # it is None where the stream is closed
            stream.reconfigure(errors="backslashreplace")


def flush_output() -> None:
    """Write what is still buffered, while an error can be reported."""
    if sys.stdout is not None:
        sys.stdout.flush()


def leave(code: int, sentence: str = "") -> NoReturn:
    """Print a sentence to stderr, if that is possible, and end with an exit code."""
    with suppress(OSError):
        if sentence:
            click.echo(sentence, err=True)
    try:
        flush_output()
    except OSError:  # the interpreter would flush again at its end, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def unexpected(error: Exception) -> str:
    """Return one sentence about an error that nobody foresaw, and what the user can do."""
    if isinstance(error, MemoryError):
        return (
            "The work must fit in memory. Got more than there is. Try a smaller task, fewer settings or fewer workers."
        )
    if isinstance(error, OSError) and error.errno is not None:
        place = f" ({one_line(str(error.filename))!r})" if error.filename else ""
        return f"Files and output must be usable. Got {error.strerror}{place}."
    got = one_line(f"{type(error).__name__}: {error}").rstrip(": .")[:300]
    return f"gradient-dd must not fail like this. Got {got}. Please report it with what {DEBUG}=1 shows."
