"""`gradient-dd evaluate`: the value of a policy from a log of transitions, with an interval and a verdict."""

from typing import Any

import click

from gradient_dd.cli.tables import as_json, json_text


@click.command()
@click.argument("log")
@click.option("--discount", type=float, help="γ, unless the log has a column of discounts.")
@click.option("--target", metavar="FILE.py:NAME", help="A function (observations, actions) -> probabilities.")
@click.option("--features", help="'raw', 'standard', 'tiles', 'fourier', 'radial', 'polynomial' or FILE.py:NAME.")
@click.option("--column", "columns", multiple=True, metavar="ROLE=NAME[,NAME...]", help="Say which column is what.")
@click.option("--learner", default="auto", show_default=True, help="'auto', 'lstd' or a learner.")
@click.option("--set", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the learner.")
@click.option("--passes", type=int, help="How often the log is read; default once, a short log more often.")
@click.option("--order", default="log", show_default=True, help="'log', or 'shuffled' within a pass.")
@click.option("--skip-bad-rows", is_flag=True, help="Leave out rows with missing or impossible numbers.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap samples.")
@click.option("--report", type=click.Path(), help="Write a page in HTML as well.")
@as_json
def evaluate(
    log: str,
    target: str | None,
    features: str | None,
    columns: tuple[str, ...],
    parameters: tuple[str, ...],
    report: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Tell what a policy is worth, from a LOG of transitions that another one made, and whether to trust it.

    \b
    gradient-dd evaluate log.parquet --discount 0.99
    gradient-dd evaluate log.csv --discount 0.9 --target policy.py:target --report page.html
    gradient-dd evaluate log.csv --discount 0.9 --column reward=r --column observation=pos,speed --features tiles

    LOG is a .parquet, .csv, .npz or .npy file, or minari:NAME. Columns are found by their usual names, and printed.
    """
    from gradient_dd.cli.evaluation import evaluation_text, roles_of, write_page
    from gradient_dd.cli.flags import assignment
    from gradient_dd.evaluation import evaluate_log
    from gradient_dd.studies.files import load_place

    def loaded(what: str, place: str) -> Any:
        _, name, module = load_place(what, place)
        return getattr(module, name, None)

    def on_progress(rows: int) -> None:
        if rows % 1_048_576 < 65_536:
            click.echo(f"{rows:,} rows", err=True)

    result = evaluate_log(
        log,
        target=None if target is None else loaded("'--target'", target),
        features=loaded("'--features'", features) if features and ":" in features else features,
        columns=roles_of(columns),
        on_progress=on_progress,
        **options,
        **dict(map(assignment, parameters)),
    )
    if report is not None:
        write_page(result, log, report)
    click.echo(json_text(result.facts()) if as_json else evaluation_text(result))
