"""`gradient-dd analyse`: which learner and which parameters to take, on a task or for a log."""

from typing import Any

import click

from gradient_dd.cli.options import as_json, json_text, log_options, refuse_log_options, take_log_options, text_of
from gradient_dd.errors import Unquoted, bad_request


@click.command()
@click.argument("task", required=False)
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@click.option("--episodes", type=int, help="How long you will learn, on a task with episodes; default 10,000.")
@click.option("--steps", type=int, help="How long you will learn, in steps; default 100,000, or one pass over a log.")
@click.option("--schedule", default="constant", show_default=True, help="'constant', 'tapered(1000)', '... per step'.")
@click.option("--measure", help="The error to keep small: 'area', over the whole run, or 'last100', at its end.")
@click.option("--sampling", help="'trajectory' (default) or 'iid'.")
@click.option("--learner", "learners", multiple=True, metavar="NAME", help="Try this learner, not the usual five.")
@click.option("--rule", "rules", multiple=True, metavar="FILE.py:NAME", help="Try a rule of your own as well.")
@click.option("--shadows", is_flag=True, help="Measure with copies without rewards whether each learner diverges.")
@click.option("--details", is_flag=True, help="Print the other learners, their limits and the theorem's assumptions.")
@click.option("--log", "log_file", type=click.Path(), help="A log, as 'evaluate' takes it, instead of a task.")
@log_options
@as_json
def analyse(task: str | None, parameters: tuple[str, ...], log_file: str | None, as_json: bool, **flags: Any) -> None:
    """Tell which learner and which step size to take on TASK, for as long as you will learn.

    \b
    gradient-dd analyse random_walk n_states=20 --episodes 20000 --schedule "tapered(1000)"
    gradient-dd analyse baird n_states=7 --steps 200000 --measure last100
    gradient-dd analyse --log transitions.npz --discount 0.99 --column reward=r

    Hundreds of settings are tried on the task itself, on runs that are kept for this purpose. It takes some seconds.
    The measure is 'area' by default, and 'last100' for a log. Columns of a log are found by their names, or named with
    --column; 'gradient-dd evaluate --help' lists their roles.
    """
    from gradient_dd.cli.flags import assignment
    from gradient_dd.studies import load_rule, parse_schedule
    from gradient_dd.tasks import build
    from gradient_dd.theory.analysis import AnalysisRequest, analyse_log, analyse_task
    from gradient_dd.theory.analysis_page import page_lines

    def on_progress(doing: str, share: float) -> None:
        click.echo(f"{share:4.0%}  {doing}", err=True)

    if (task is None) == (log_file is None):
        raise bad_request("'analyse'", "be given a task or a log", Unquoted("neither" if task is None else "both"))
    if log_file is None:
        refuse_log_options(flags)
    reading, details = take_log_options(flags), flags.pop("details")
    flags["schedule"] = parse_schedule(flags["schedule"])
    flags["rules"] = tuple(map(load_rule, flags["rules"]))
    request = AnalysisRequest(**flags, on_progress=on_progress)
    if task is None:
        found = analyse_log(str(log_file), request, **reading)
    else:
        found = analyse_task(build(task, **dict(map(assignment, parameters))), request)
    click.echo(json_text(found.facts()) if as_json else text_of(page_lines(found, details)))
