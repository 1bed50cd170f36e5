"""`gradient-dd evaluate`: the value of a policy from a log of transitions, with an interval and a verdict."""

from typing import Any

import click

from gradient_dd.cli.tables import as_json, json_text

ROWS_BETWEEN = 1_000_000  # rows between two lines of progress


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

    LOG is a .parquet, .csv, .npz or .npy file, or minari:NAME. Columns are found by their usual names, and what each
    was taken for is printed first. Where a name is not a usual one, give the column its role with --column ROLE=NAME.

    \b
    observation, next        the state and the next state; several columns: observation=pos,speed
    action, reward           what was done, and what it paid
    terminated, truncated    the episode ended here; it was cut here, by a time limit for instance
    done                     the episode is over: an end, unless 'truncated' says that it was cut
    discount                 γ into the next state, 0 at an end
    episode                  the number or the name of the episode
    rho                      importance ratio, target over behaviour, of the action taken
    target_probability, behaviour_probability
                             the two probabilities of the action taken, instead of rho
    """
    from gradient_dd.cli.evaluation import evaluation_text, page_path, roles_of, write_page
    from gradient_dd.cli.flags import assignment
    from gradient_dd.errors import unknown
    from gradient_dd.evaluation import evaluate_log
    from gradient_dd.studies.files import load_place

    def loaded(what: str, place: str) -> Any:
        file, name, module = load_place(what, place)
        if not hasattr(module, name):
            raise unknown(f"name in {file!r}", name, [one for one in vars(module) if not one.startswith("_")])
        return getattr(module, name)

    shown, printed = 0, list[str]()

    def on_progress(rows: int) -> None:
        nonlocal shown
        if rows >= shown + ROWS_BETWEEN:
            shown = rows
            click.echo(f"{rows:,} rows", err=True)

    def on_columns(stated: list[str]) -> None:
        if not as_json:
            printed.extend(stated)
            click.echo("\n".join([*stated, ""]))

    page = None if report is None else page_path(report)
    result = evaluate_log(
        log,
        target=None if target is None else loaded("'--target'", target),
        features=loaded("'--features'", features) if features and ":" in features else features,
        columns=roles_of(columns),
        on_columns=on_columns,
        on_progress=on_progress,
        **options,
        **dict(map(assignment, parameters)),
    )
    if page is not None:
        write_page(result, log, page)
    click.echo(json_text(result.facts()) if as_json else evaluation_text(result, printed))
