"""`gradient-dd play`: the live page, on which the rules run while you drag."""

from pathlib import Path

import click

from gradient_dd.cli.options import own_rules


@click.command()
@click.option("--task", "tasks", multiple=True, metavar="NAME[:P=V,...]", help="A task for the bench, beside its own.")
@own_rules
@click.option(
    "--out", type=click.Path(dir_okay=False), default="play.html", show_default=True, help="The page to write."
)
def play(tasks: tuple[str, ...], rules: tuple[str, ...], out: str) -> None:
    """Write a page on which learners run in the browser, with the bits of the reference engine.

    \b
    gradient-dd play
    gradient-dd play --task random_walk:n_states=9 --rule examples/my_rule.py:TDC_DD --out mine.html

    The page is one file and needs no server. A rule that cannot be translated to JavaScript is refused with its line.
    """
    from gradient_dd.cli.flags import task_table
    from gradient_dd.report.play.page import live_page
    from gradient_dd.studies import load_rule
    from gradient_dd.tasks import build

    tables = [task_table(text) for text in tasks]
    built = [build(table.pop("name"), **table) for table in tables]
    page = live_page(built, {place: load_rule(place) for place in rules})
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")
    click.echo(f"{target} ({len(page.encode()) / 1000:.0f} kB): open it in a browser.")
