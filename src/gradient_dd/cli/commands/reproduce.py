"""`gradient-dd reproduce`, `report` and `plot`: the paper."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradient_dd.cli.options import dask_address, folder_at, own_rules, results_file, results_folder, worker_count
from gradient_dd.cli.tables import as_json, json_text, table

if TYPE_CHECKING:
    from gradient_dd.experiments.paper.reproduce import Reproduction

COLOURS = {"does not hold": "red", "holds in part": "yellow", "not decided": "yellow", "holds": "green"}

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
    resumes. `gradient-dd list figures` names the figures. `gradient-dd reproduce shadows` makes the report of the
    learner that chooses instead, in results-shadows: a trial, four figures and verdicts, in about four minutes.
    `gradient-dd reproduce family` compares every learner on the problems of the field, in results-family, and says
    where the DD term helps, in about twelve minutes.
    """
    if "family" in figures:
        reproduce_family(figures, runs, episodes, workers, dask, out, as_json)
        return
    if "shadows" in figures:
        others = {"FIGURE": figures[1:], "--runs": runs, "--episodes": episodes, "--workers": workers, "--dask": dask}
        reproduce_shadows([name for name, value in others.items() if value], out, as_json)
        return
    given = None if out is None else folder_at(out)
    click.echo(f"Reproducing {', '.join(figures) or 'the whole paper'} …", err=True)  # what follows loads slowly
    from gradient_dd.cli.live import watched
    from gradient_dd.experiments.paper.reproduce import reproduce
    from gradient_dd.experiments.paper.scale import Scale

    scale = Scale(runs, episodes)
    folder = given or Path("results-quick" if scale.is_smaller else "results")
    with watched(folder / "results.db", workers, dask) as how:
        made = reproduce(figures, folder, scale, on_stage=print_stage, **how)
    print_verdicts(made, as_json, whole=not figures)


def reproduce_family(figures: tuple[str, ...], *how: Any) -> None:
    """Compare the family, and print what it says."""
    from gradient_dd.cli.family import reproduce
    from gradient_dd.errors import Words, must

    if len(figures) > 1:
        raise must("'family'", "stand alone, without figures", Words(" ".join(figures)))
    reproduce(*how)


def reproduce_shadows(others: list[str], out: str | None, as_json: bool) -> None:
    """Make the report of shadows, and print its verdicts; `others` are options that it does not have."""
    from gradient_dd.errors import Words, must
    from gradient_dd.experiments.shadows.reproduce import reproduce_shadows

    if others:
        raise must("'reproduce shadows'", "be called without more than --out and --json", Words(", ".join(others)))
    made = reproduce_shadows(Path("results-shadows") if out is None else folder_at(out), print_stage)
    if as_json:
        click.echo(json_text([one._asdict() for one in made.verdicts]))
        return
    rows = [(one.statement, one.verdict, one.numbers) for one in made.verdicts]
    click.echo(coloured(table(rows, ("statement", "verdict", "measured"))) + "\n")
    click.echo(f"The report, with figures: {made.page}")


@click.command()
@figure_names
@results_file
@own_rules
@as_json
def report(figures: tuple[str, ...], out: Path, rules: tuple[str, ...], as_json: bool) -> None:
    """Write the report of results that are there; runs nothing.

    Of the paper, or of `reproduce family`: report, figures, tables and claims, anew. Of a sweep: a page with figures,
    the best settings and tables, in NAME-report beside NAME.db; rules of your own are named as in the sweep.
    """
    from gradient_dd.cli.family import rewrite
    from gradient_dd.experiments.family.reproduce import holds_the_family
    from gradient_dd.experiments.paper.reproduce import rewrite_report
    from gradient_dd.experiments.paper.scale import holds_the_paper
    from gradient_dd.report.own_study import report_folder, report_stored
    from gradient_dd.studies import load_rule

    if figures or holds_the_paper(out):
        print_verdicts(rewrite_report(figures, out.parent, print_stage), as_json, whole=not figures)
    elif holds_the_family(out):
        rewrite(out.parent, as_json)
    else:
        own = {rule.name: rule for rule in map(load_rule, rules)}
        click.echo(str(report_stored(out, report_folder(out), own)))


@click.command()
@figure_names
@results_folder
def plot(figures: tuple[str, ...], out: Path) -> None:
    """Draw figures from the results in a folder, into FOLDER/figures; runs nothing."""
    from gradient_dd.experiments.paper.reproduce import plot

    for path in plot(figures, out):
        click.echo(str(path))


def style(text: str, **looks: Any) -> str:
    """Return a text with colours for a terminal, unless NO_COLOR is set; `click.echo` drops them elsewhere."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **looks)


def coloured(text: str) -> str:
    """Return a table of verdicts with each verdict in its colour."""
    return re.sub("|".join(COLOURS), lambda found: style(found[0], fg=COLOURS[found[0]]), text)


def print_stage(sentence: str) -> None:
    """Print to stderr how long a stage took."""
    click.echo(sentence, err=True)


def print_verdicts(made: "Reproduction", as_json: bool, whole: bool) -> None:
    """Print the verdicts, those on exact statements too where the `whole` paper was reproduced."""
    if as_json:
        from gradient_dd.experiments.paper.claims import as_data

        click.echo(json_text(as_data(made.verdicts) + [s._asdict() for s in made.statements]))
        return
    from gradient_dd.experiments.paper.answer import headline

    for sentence in headline(made.verdicts):
        click.echo(style(sentence, bold=True) + "\n")
    if whole:
        exact = [(s.where, s.paper, s.ours, s.verdict) for s in made.statements]
        click.echo(table(exact, ("exact", "paper", "ours", "verdict")) + "\n")
    rows = [(v.where, v.statement, f"{v.verdict} ({v.fraction})", v.alike) for v in made.verdicts]
    if rows:
        click.echo(coloured(table(rows, ("claim", "statement", "verdict", "tuned alike"))) + "\n")
    click.echo(f"The report, with figures and the numbers of every verdict: {made.page}")
