"""`gradient-dd status`: the contents of a results file."""

from pathlib import Path

import click

from gradient_dd.cli.options import as_json, json_text, results_file, table
from gradient_dd.errors import one_line


@click.command()
@results_file
@as_json
def status(out: Path, as_json: bool) -> None:
    """Show the contents of a results file, even while a sweep writes to it."""
    from gradient_dd.studies.store import Store, store_status

    with Store(out) as store:
        facts = store_status(store)
    if as_json:
        click.echo(json_text(facts))
        return
    studies = [
        (
            *(one_line(str(one[name])) for name in ("name", "started", "length", "runs")),
            f"{one['done']:,} of {one['total']:,}",
        )
        for one in facts["studies"]
    ]
    click.echo(table(studies, ("study", "started", "length", "runs", "done")) + "\n")
    rows = [tuple(one_line(str(cell)) for cell in row.values()) for row in facts["tasks"]]
    click.echo(table(rows, ("task", "size", "reading", "settings", "runs", "results", "diverged")))
    click.echo(f"{facts['units']} units, {facts['steps']:,} steps, {facts['worker_seconds']:.1f} seconds of work")
    if facts["damaged"]:
        click.echo(f"{facts['damaged']:,} damaged parts are not counted. Run: gradient-dd verify {out}")
