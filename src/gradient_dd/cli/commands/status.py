"""`gradient-dd status`: what a results file holds."""

from pathlib import Path

import click

from gradient_dd.cli.options import results_file
from gradient_dd.cli.tables import as_json, json_text, table


@click.command()
@results_file
@as_json
def status(out: Path, as_json: bool) -> None:
    """Tell what a results file holds; also while a sweep writes to it."""
    from gradient_dd.studies.status import store_status
    from gradient_dd.studies.store import Store

    with Store(out) as store:
        facts = store_status(store)
    if as_json:
        click.echo(json_text(facts))
        return
    if facts["study"]:
        click.echo(f"started {facts['study']['started']}\n{facts['study']['text']}\n")
    rows = [tuple(map(str, row.values())) for row in facts["tasks"]]
    click.echo(table(rows, ("task", "size", "reading", "settings", "runs", "results", "diverged")))
    click.echo(f"{facts['units']} units, {facts['steps']:,} steps, {facts['worker_seconds']:.1f} seconds of work")
