"""`gradient-dd verify`: a check of a results file against its checksums."""

import sys
from pathlib import Path

import click

from gradient_dd.cli.options import as_json, found_file, json_text, table


@click.command()
@click.argument("file", required=False, callback=found_file, type=click.Path())
@as_json
def verify(file: Path, as_json: bool) -> None:
    """Check every number in a results file, and list the damaged units.

    FILE is a results file or its folder; default: results.db, or the results of `reproduce`. The exit code is 1 if
    anything is damaged. To replace a damaged unit, run its sweep again.
    """
    from gradient_dd.studies.store import verify

    found = verify(file)
    if as_json:
        click.echo(json_text(found._asdict()))
        sys.exit(0 if found.whole else 1)
    for problem in found.structure:
        click.echo(f"the structure of the file: {problem}")
    if found.damaged:
        rows = [
            (
                one["task"],
                "all" if one["run"] is None else str(one["run"]),
                ", ".join(f"{count} × {kind}" for kind, count in one["what"].items()),
            )
            for one in found.damaged
        ]
        click.echo(table(rows, ("task", "run", "damaged")))
    checked = f"{found.units:,} units with {found.results:,} results"
    if found.whole:
        click.echo(f"{file}: checked {checked} and their curves. No damage found.")
        return
    advice = "To replace the damaged units, run their sweep again."
    click.echo(f"{file}: {len(found.damaged):,} units are damaged; {checked} are intact. {advice}")
    sys.exit(1)
