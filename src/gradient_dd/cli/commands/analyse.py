"""`gradient-dd analyse`: which learner and which step size to take on a task or for a log."""

import click

from gradient_dd.cli.tables import as_json, json_text
from gradient_dd.errors import Words, must


@click.command()
@click.argument("task", required=False)
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@click.option("--log", "log_file", type=click.Path(), help="Transitions in a .npz or .csv file, instead of a task.")
@click.option("--sampling", default="trajectory", show_default=True, help="'trajectory' or 'iid'.")
@as_json
def analyse(task: str | None, parameters: tuple[str, ...], log_file: str | None, sampling: str, as_json: bool) -> None:
    """Tell which step sizes are stable on TASK, how fast each learner is there, and which one to take.

    \b
    gradient-dd analyse baird n_states=7
    gradient-dd analyse --log transitions.npz     arrays x, reward, discount, x_next and rho

    All is exact where the tables are known, and an estimate with its doubt from a log. Nothing is sampled.
    """
    from gradient_dd.cli.analysis import analyse_log, analyse_task, facts_page
    from gradient_dd.cli.flags import assignment
    from gradient_dd.tasks import build

    def said(what: str) -> None:
        click.echo(f"looking at {what}", err=True)

    if (task is None) == (log_file is None):
        raise must("'analyse'", "be given a task or a log", Words("neither" if task is None else "both"))
    if log_file is not None:
        facts = analyse_log(log_file)
    else:
        facts = analyse_task(build(str(task), **dict(map(assignment, parameters))), sampling, said)
    click.echo(json_text(facts) if as_json else facts_page(facts))
