"""The command line, called in this process: no interpreter has to start and import everything again."""

from typing import Any, NamedTuple

from click.testing import CliRunner

from gradient_dd.cli.commands import cli
from gradient_dd.errors import BadRequestError, GradientDDError


class Done(NamedTuple):
    """What a command has left: its exit code, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def call(*words: Any) -> Done:
    """Run a command; an error of ours becomes an exit code and a sentence, as `gradient_dd.cli.main` does it."""
    result = CliRunner().invoke(cli, [str(word) for word in words])
    error = result.exception
    if isinstance(error, GradientDDError):
        return Done(2 if isinstance(error, BadRequestError) else 1, result.stdout, f"{result.stderr}Error: {error}\n")
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return Done(result.exit_code, result.stdout, result.stderr)
