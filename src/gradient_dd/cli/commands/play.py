"""`gradient-dd play`: an interactive page that runs the learners."""

from pathlib import Path

import click

from gradient_dd.cli.options import own_rules


@click.command()
@click.option("--task", "tasks", multiple=True, metavar="NAME[:P=V,...]", help="An additional task on the page.")
@own_rules
@click.option(
    "--out", type=click.Path(dir_okay=False), default="play.html", show_default=True, help="The page to write."
)
def play(tasks: tuple[str, ...], rules: tuple[str, ...], out: str) -> None:
    """Write a page that runs learners in the browser, bit for bit like the reference engine.

    \b
    gradient-dd play
    gradient-dd play --task random_walk:n_states=9 --rule examples/my_rule.py:TDC_DD --out mine.html

    The page is one file and needs no server. A rule that cannot be translated to JavaScript is an error.
    """
    from gradient_dd.cli.flags import task_table
    from gradient_dd.files import check_regular
    from gradient_dd.report.play.page import live_page
    from gradient_dd.studies import load_rule
    from gradient_dd.tasks import build

    target = Path(out)
    check_regular(target)
    tables = [task_table(text) for text in tasks]
    built = [build(table.pop("name"), **table) for table in tables]
    page = live_page(built, {place: load_rule(place) for place in rules})
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")
    click.echo(f"Wrote {target} ({len(page.encode()) / 1000:.0f} kB). Open it in a browser.")
