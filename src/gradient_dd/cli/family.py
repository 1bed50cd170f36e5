"""`gradient-dd reproduce family`: every learner on the problems of the field."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradient_dd.cli.commands.reproduce import coloured, print_stage, style
from gradient_dd.cli.options import folder_at
from gradient_dd.cli.tables import json_text, table

if TYPE_CHECKING:
    from gradient_dd.experiments.family.reproduce import Comparison

STEPS = 10  # of a run, for each episode that is asked for


def reproduce(
    runs: int | None, episodes: int | None, workers: int | None, dask: str | None, out: str | None, as_json: bool
) -> None:
    """Compare the family, and print what it says."""
    from gradient_dd.cli.live import watched
    from gradient_dd.experiments.family.problems import Scale
    from gradient_dd.experiments.family.reproduce import reproduce_family
    from gradient_dd.experiments.paper.scale import Scale as PaperScale

    asked = PaperScale(runs, episodes)  # refuses what the paper's own reproduction refuses
    scale = Scale(asked.runs, asked.episodes and STEPS * asked.episodes)
    default = "results-family-quick" if scale.note else "results-family"
    folder = Path(default) if out is None else folder_at(out)
    with watched(folder / "results.db", workers, dask) as how:
        made = reproduce_family(folder, scale, on_stage=print_stage, **how)
    print_comparison(made, as_json)


def rewrite(folder: Path, as_json: bool) -> None:
    """Write the report of a folder anew, and print what it says."""
    from gradient_dd.experiments.family.reproduce import rewrite_family

    print_comparison(rewrite_family(folder, on_stage=print_stage), as_json)


def print_comparison(made: "Comparison", as_json: bool) -> None:
    """Print conclusions and verdicts."""
    from gradient_dd.experiments.paper.claims import as_data

    if as_json:
        click.echo(json_text(as_data(made.verdicts)))
        return
    for sentence in made.conclusions:
        click.echo(style(sentence, bold=True) + "\n")
    rows = [(v.where, v.statement, f"{v.verdict} ({v.fraction})") for v in made.verdicts]
    click.echo(coloured(table(rows, ("where", "statement", "verdict"))) + "\n")
    click.echo(f"The report, with pictures and the numbers of every verdict: {made.page}")
