"""`gradient-dd export`: results as a CSV or Parquet file."""

from pathlib import Path

import click

from gradient_dd.cli.options import results_file


@click.command()
@click.argument("target", type=click.Path())
@results_file
@click.option("--per-run", is_flag=True, help="Write one row per run instead of means over runs.")
def export(target: str, out: Path, per_run: bool) -> None:
    """Write results to TARGET, a .csv or .parquet file."""
    from gradient_dd.studies.results import run_frame, summary_frame, write_frame
    from gradient_dd.studies.store import Store

    with Store(out) as store:
        frame = run_frame(store) if per_run else summary_frame(store)
    write_frame(frame, target)
    click.echo(f"Wrote {len(frame)} rows to {target}.")
