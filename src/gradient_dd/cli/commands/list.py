"""`gradient-dd list`: learners, tasks and figures."""

import sys
from shutil import get_terminal_size
from textwrap import TextWrapper

import click

from gradient_dd.cli.options import as_json, json_text

WIDEST = 100  # columns; longer lines are wrapped


@click.command("list")
@click.argument("what", type=click.Choice(["learners", "tasks", "figures"]), required=False)
@as_json
def list_command(what: str | None, as_json: bool) -> None:
    """List learners, tasks and figures, or only one of these."""
    from gradient_dd.cli.listing import figure_lines, learner_lines, task_lines

    kinds = {"learners": learner_lines, "tasks": task_lines, "figures": figure_lines}
    lines = {kind: rows() for kind, rows in kinds.items() if what in (None, kind)}
    if as_json:
        click.echo(json_text(lines))
        return
    for kind, rows in lines.items():
        click.echo(f"{kind}:")
        width = max(map(len, rows))
        is_terminal = sys.stdout is not None and sys.stdout.isatty()  # None if the stream is closed
        across = min(WIDEST, get_terminal_size().columns) if is_terminal else WIDEST
        wrapper = TextWrapper(across, subsequent_indent=" " * (width + 4), break_on_hyphens=False)
        for name, line in rows.items():
            click.echo(wrapper.fill(f"  {name:{width}}  {line}"))
