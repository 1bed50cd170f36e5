"""`gradient-dd reproduce`, `report` and `plot`: the experiments."""

import os
import re
from pathlib import Path
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

figure_names = click.argument("figures", nargs=-1, metavar="[FIGURE]...")


@click.command()
@click.argument("figures", nargs=-1, metavar="[paper | FIGURE ...]")
@click.option("--runs", type=int, help="Number of runs; the paper has 50. Fewer runs give a quick estimate.")
@click.option("--episodes", type=int, help="Episodes per run; runs counted in steps get ten steps per episode.")
@worker_count
@dask_address
@click.option("--out", type=click.Path(), help="The folder; default: results, or results-quick for fewer runs.")
@as_json
def reproduce(figures: tuple[str, ...], out: str | None, as_json: bool, **how: Any) -> None:
    """Reproduce the paper at its own scale: all figures, or the named ones, with a verdict on every claim.

    Writes report.html, play.html, figures/NAME.{svg,png}, tables/NAME.csv, claims.json and results.db to a folder; a
    second call resumes. `gradient-dd list figures` names the figures.
    """
    from gradient_dd.experiments import EXPERIMENTS, find_experiment

    name = next((one for one in figures if one in EXPERIMENTS), "paper")
    names = tuple(one for one in figures if one != name)
    given = None if out is None else folder_at(out)
    whole = "the whole paper" if name == "paper" else name
    click.echo(f"Reproducing {', '.join(names) or whole} …", err=True)  # the imports below are slow
    from gradient_dd.cli.live import watched
    from gradient_dd.experiments.experiment import Scale
    from gradient_dd.experiments.running import check_names, reproduce

    scale, experiment = Scale(how["runs"], how["episodes"]), find_experiment(name)
    check_names(experiment, names)
    folder = given or experiment.results_folder(scale)
    with watched(folder / "results.db", how["workers"], how["dask"]) as ways:
        made = reproduce(experiment, names, folder, scale, print_stage, **ways)
    print_made(made, as_json, whole=not names)


@click.command()
@figure_names
@results_file
@own_rules
@as_json
def report(figures: tuple[str, ...], out: Path, rules: tuple[str, ...], as_json: bool) -> None:
    """Write the report of existing results; runs nothing.

    For results of `reproduce`, writes the report, figures, tables and claims again. For a sweep, writes a page with
    figures, best settings and tables to NAME-report beside NAME.db; name your own rules as in the sweep.
    """
    from gradient_dd.experiments.experiment import holds
    from gradient_dd.experiments.running import rewrite
    from gradient_dd.report.own_study import report_folder, report_stored
    from gradient_dd.studies import load_rule

    if figures or holds(out):
        print_made(rewrite(figures, out.parent, print_stage), as_json, whole=not figures)
    else:
        own = {rule.name: rule for rule in map(load_rule, rules)}
        folder = checked_folder("The folder of the report", report_folder(out))
        click.echo(str(report_stored(out, folder, own)))


@click.command()
@figure_names
@results_folder
def plot(figures: tuple[str, ...], out: Path) -> None:
    """Draw figures from the results in a folder to FOLDER/figures; runs nothing."""
    from gradient_dd.experiments.running import plot

    for path in plot(figures, out):
        click.echo(str(path))


def style(text: str, **looks: Any) -> str:
    """Return a text with terminal colours, unless NO_COLOR is set; `click.echo` removes them elsewhere."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **looks)


def coloured(text: str) -> str:
    """Return a table of verdicts in colour."""
    return re.sub("|".join(COLOURS), lambda found: style(found[0], fg=COLOURS[found[0]]), text)


def print_stage(sentence: str) -> None:
    """Print the duration of a stage to stderr."""
    click.echo(sentence, err=True)


def print_made(made: "Made", as_json: bool, whole: bool) -> None:
    """Print the answer and the verdicts; verdicts on exact statements only for the `whole` experiment."""
    from gradient_dd.experiments.verdicts import totals

    if as_json:
        click.echo(json_text(made.data()))
        return
    for sentence in made.answer:
        click.echo(style(sentence, bold=True) + "\n")
    if whole and made.statements:
        exact = [(s.where, s.paper, s.ours, s.verdict) for s in made.statements]
        click.echo(table(exact, ("exact", "paper", "ours", "verdict")) + "\n")
    columns = made.experiment.columns
    rows = [tuple(getattr(one, name) for name in columns.values()) for one in made.verdicts]
    if rows:
        click.echo(coloured(table(rows, tuple(columns))) + "\n")
    if counted := str(totals(made.verdicts)):
        click.echo(counted + "\n")
    click.echo(f"Report with all figures and numbers: {made.page}")
