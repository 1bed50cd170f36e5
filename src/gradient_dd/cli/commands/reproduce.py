"""`gradient-dd reproduce`, `report` and `plot`: the experiments."""

import os
import re
from dataclasses import asdict
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from gradient_dd.cli.options import (
    as_json,
    checked_folder,
    dask_address,
    folder_at,
    json_text,
    own_rules,
    results_file,
    results_folder,
    table,
    worker_count,
)

if TYPE_CHECKING:
    from gradient_dd.experiments.running import Made

COLOURS = {"does not hold": "red", "partly holds": "yellow", "undecided": "cyan", "holds": "green"}

TABLE = ("claim", "statement", "verdict (yes / undecided / no)", "equal budgets", "by search")
WRITTEN = {"figures": "svg", "tables": "csv"}
WIDTH = 110  # maximum width of an answer in characters

print_stage = partial(click.echo, err=True)  # prints the duration of a stage

figure_names = click.argument("figures", nargs=-1, metavar="[FIGURE]...")
whole_table = click.option("--table", "as_table", is_flag=True, help="Also print every verdict.")


@click.command()
@figure_names
@click.option("--runs", type=int, help="Number of runs; the paper has 50. Fewer runs give a quick estimate.")
@click.option("--episodes", type=int, help="Episodes per run; runs with a length in steps get 10 per episode.")
@worker_count
@dask_address
@click.option("--out", type=click.Path(), help="The folder; default: results, or results-quick for fewer runs.")
@whole_table
@as_json
def reproduce(figures: tuple[str, ...], out: str | None, as_table: bool, as_json: bool, **how: Any) -> None:
    """Reproduce the paper at its own scale: all figures, or the named ones, with a verdict on every claim.

    Writes report.html, play.html, figures/NAME.{svg,png}, tables/NAME.csv, claims.json and results.db to a folder; a
    second call resumes. `gradient-dd list figures` names the figures.
    """
    names = tuple(one for one in figures if one != "paper")
    given = None if out is None else folder_at(out)
    click.echo(f"Reproducing {', '.join(names) or 'the whole paper'} …", err=True)  # the imports below are slow
    from gradient_dd.cli.live import watched
    from gradient_dd.experiments.job import Scale
    from gradient_dd.experiments.running import check_names, reproduce

    scale = Scale(how["runs"], how["episodes"])
    check_names(names)
    folder = given or scale.folder
    with watched(folder / "results.db", how["workers"], how["dask"]) as ways:
        made = reproduce(names, folder, scale, print_stage, **ways)
    print_made(made, as_table, as_json)


@click.command()
@figure_names
@results_file
@own_rules
@whole_table
@as_json
def report(figures: tuple[str, ...], out: Path, rules: tuple[str, ...], as_table: bool, as_json: bool) -> None:
    """Write the report of existing results without running anything.

    For results of `reproduce`, writes the report, figures, tables and claims again. For a sweep, writes a page with
    figures, best settings and tables to NAME-report beside NAME.db; name your own rules as in the sweep.
    """
    from gradient_dd.experiments.job import STORE, read_scale
    from gradient_dd.experiments.running import make, reading
    from gradient_dd.report.own_study import report_folder, report_stored
    from gradient_dd.studies import load_rule

    if figures or (out.name == STORE and read_scale(out.parent)[0] is not None):
        print_made(make(reading(figures, out.parent, print_stage)), as_table, as_json)
    else:
        own = {rule.name: rule for rule in map(load_rule, rules)}
        folder = checked_folder("The folder of the report", report_folder(out))
        click.echo(str(report_stored(out, folder, own)))


@click.command()
@figure_names
@results_folder
def plot(figures: tuple[str, ...], out: Path) -> None:
    """Draw figures of existing results in FOLDER/figures without running anything."""
    from gradient_dd.experiments.running import plot

    for path in plot(figures, out):
        click.echo(str(path))


def style(text: str, **looks: Any) -> str:
    """Return a text with terminal colours, unless NO_COLOR is set; `click.echo` removes them outside terminals."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **looks)


def coloured(text: str) -> str:
    """Return a table of verdicts in colour."""
    return re.sub("|".join(COLOURS), lambda found: style(found[0], fg=COLOURS[found[0]]), text)


def print_made(made: "Made", as_table: bool, as_json: bool) -> None:
    """Print the scorecard, the answers, the files written and the duration; `as_table` adds every verdict."""
    from gradient_dd.experiments.summary import COUNTED, answers, scorecard

    if as_json:
        click.echo(json_text([*map(asdict, made.verdicts), *(one._asdict() for one in made.statements)]))
        return
    job, folder = made.job, made.page.parent
    if as_table:
        verdicts = [
            (one.where, one.statement, f"{one.verdict} ({one.tally})", one.alike, one.fully) for one in made.verdicts
        ]
        exact = [] if job.names else made.statements  # exact statements belong to the whole paper only
        verdicts += [(one.where, f"{one.paper}: {one.ours}", one.verdict, "", "") for one in exact]
        click.echo(coloured(table(verdicts, TABLE)) + "\n")
    if job.scale.note:
        click.echo(style(job.scale.note, bold=True) + "\n")
    rows = [
        (title, *(str(verdicts[word]) for word in COUNTED), str(comparisons))
        for title, verdicts, comparisons in scorecard(made.verdicts)
    ]
    if rows:
        click.echo(coloured(table(rows, ("claims", *COUNTED, "comparisons: yes / undecided / no"))) + "\n")
    for one in answers(made.verdicts, job.scale):
        told = f"{one.question} {style(one.word + '.', bold=True)} {one.sentence}"
        click.echo(fill(told, WIDTH, subsequent_indent="  "))
    counts = {name: len(list((folder / name).glob(f"*.{ending}"))) for name, ending in WRITTEN.items()}
    took = f"{made.seconds:.0f} s" if made.seconds < 100 else f"{made.seconds / 60:.0f} min"
    click.echo(
        f"\n{folder}: report.html, play.html, claims.json, {counts['figures']} figures, "
        f"{counts['tables']} tables. Took {took}."
    )
    click.echo(f"Report with all figures and numbers: {made.page}")
