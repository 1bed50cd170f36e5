"""`gradient-dd verify`: all of a results file against its checksums."""

import sys
from pathlib import Path

import click

from gradient_dd.cli.options import as_json, found_file, json_text, table


@click.command()
@click.argument("file", required=False, callback=found_file, type=click.Path())
@click.option("--drop", is_flag=True, help="Then remove what is damaged, for good; its sweep would run it again.")
@as_json
def verify(file: Path, drop: bool, as_json: bool) -> None:
    """Check every number in a results file, and name the units that are damaged.

    FILE is a results file or its folder; default results.db, or where `reproduce` left one. The exit code is 1 if
    anything is damaged. The sweep that made a damaged unit replaces it when it is run again.
    """
    from gradient_dd.studies.status import drop as drop_damage
    from gradient_dd.studies.status import verify

    found = verify(file)
    if drop and not found.is_whole:
        drop_damage(file)
    if as_json:
        click.echo(json_text(found.as_data()))
        sys.exit(0 if found.is_whole else 1)
    for problem in found.structure:
        click.echo(f"the structure of the file: {problem}")
    if found.damaged:
        counts = [", ".join(f"{count} × {kind}" for kind, count in what.items()) for *_, what in found.damaged]
        rows = [
            (task, "all" if run is None else str(run), count)
            for (task, run, _), count in zip(found.damaged, counts, strict=True)
        ]
        click.echo(table(rows, ("task", "run", "damaged")))
    checked = f"{found.units:,} units with {found.results:,} results"
    if found.is_whole:
        click.echo(f"{file}: {checked} and their curves were checked. None is damaged.")
        return
    advice = "It has been removed." if drop else "The sweep that made it replaces it when it is run again."
    click.echo(f"{file}: damage to {len(found.damaged):,} units; {checked} are whole. {advice}")
    sys.exit(1)
