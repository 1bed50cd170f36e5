"""`gradient-dd reproduce`, `report` and `plot`: the paper."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradient_dd.cli.options import dask_address, results_folder, worker_count
from gradient_dd.cli.tables import as_json, json_text, table

if TYPE_CHECKING:
    from gradient_dd.paper.reproduce import Reproduction

figure_names = click.argument("figures", nargs=-1, metavar="[FIGURE]...")


@click.command()
@figure_names
@click.option("--runs", type=int, help="Fewer runs than the paper's 50, for a quick look.")
@click.option("--episodes", type=int, help="Shorter runs; Baird gets ten steps for each episode.")
@worker_count
@dask_address
@click.option("--out", type=click.Path(), help="The folder; default results, or results-quick for a quick look.")
@as_json
def reproduce(
    figures: tuple[str, ...],
    runs: int | None,
    episodes: int | None,
    workers: int | None,
    dask: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Reproduce the paper at its own scale: every figure, or those named, and a verdict on every claim.

    Leaves report.html, figures/NAME.{svg,png}, tables/NAME.csv, claims.json and results.db in a folder; a second call
    resumes. `gradient-dd list figures` names the figures.
    """
    from gradient_dd.cli.live import watched
    from gradient_dd.paper.reproduce import reproduce
    from gradient_dd.paper.scale import Scale

    scale = Scale(runs, episodes)
    folder = Path(out or ("results-quick" if scale.is_smaller else "results"))
    with watched(folder / "results.db", workers, dask) as how:
        made = reproduce(figures, folder, scale, on_stage=print_stage, **how)
    print_verdicts(made, as_json, whole=not figures)


@click.command()
@figure_names
@results_folder
@as_json
def report(figures: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Write the report, figures, tables and claims anew from the results in a folder; runs nothing."""
    from gradient_dd.paper.reproduce import rewrite_report

    print_verdicts(rewrite_report(figures, out, print_stage), as_json, whole=not figures)


@click.command()
@figure_names
@results_folder
def plot(figures: tuple[str, ...], out: Path) -> None:
    """Draw figures from the results in a folder, into FOLDER/figures; runs nothing."""
    from gradient_dd.paper.reproduce import plot

    for path in plot(figures, out):
        click.echo(str(path))


def print_stage(sentence: str) -> None:
    """Print to stderr how long a stage took."""
    click.echo(sentence, err=True)


def print_verdicts(made: "Reproduction", as_json: bool, whole: bool) -> None:
    """Print the verdicts, those on exact statements too where the `whole` paper was reproduced."""
    if as_json:
        from gradient_dd.paper.claims import as_data

        click.echo(json_text(as_data(made.verdicts) + [s._asdict() for s in made.statements]))
        return
    if whole:
        exact = [(s.where, s.paper, s.ours, s.verdict) for s in made.statements]
        click.echo(table(exact, ("exact", "paper", "ours", "verdict")) + "\n")
    rows = [(v.where, v.statement, f"{v.verdict} ({v.fraction})", v.alike) for v in made.verdicts]
    if rows:
        click.echo(table(rows, ("claim", "statement", "verdict", "tuned alike")) + "\n")
    click.echo(f"The report, with figures and the numbers of every verdict: {made.page}")
