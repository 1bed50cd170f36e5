"""`gradient-dd analyse`: which learner and which parameters to use on a task."""

from typing import Any

import click

from gradient_dd.cli.options import as_json, json_text, text_of


@click.command()
@click.argument("task")
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@click.option("--episodes", type=int, help="Length of the run in episodes; default 10,000 on episodic tasks.")
@click.option("--steps", type=int, help="Length of the run in steps; default 100,000 on other tasks.")
@click.option(
    "--schedule", default="constant", show_default=True, help="'constant', 'tapered(N)' or 'tapered(N) per step'."
)
@click.option(
    "--measure",
    default="mean_error",
    show_default=True,
    help="The error to minimise: 'mean_error' (over the run) or 'last100' (final error).",
)
@click.option("--sampling", default="trajectory", show_default=True, help="'trajectory' or 'iid'.")
@click.option("--learner", "learners", multiple=True, metavar="NAME", help="Try this learner instead of the defaults.")
@click.option("--rule", "rules", multiple=True, metavar="FILE.py:NAME", help="Also try a rule of your own.")
@click.option("--details", is_flag=True, help="Print the other learners, their limits and the theorem's assumptions.")
@as_json
def analyse(task: str, parameters: tuple[str, ...], details: bool, as_json: bool, **flags: Any) -> None:
    """Recommend a learner and a step size for TASK and the length of your run.

    \b
    gradient-dd analyse random_walk n_states=20 --episodes 20000 --schedule "tapered(1000)"
    gradient-dd analyse baird n_states=7 --steps 200000 --measure last100

    The command tries hundreds of settings on the task, on separate tuning runs; this takes a few seconds.
    To evaluate a log, use 'gradient-dd evaluate' or 'gradient-dd compare', which need no step size.
    """
    from gradient_dd.cli.flags import assignment
    from gradient_dd.engine.schedules import parse_schedule
    from gradient_dd.studies import load_rule
    from gradient_dd.tasks import build
    from gradient_dd.theory.analysis import analyse_task, page_lines

    def on_progress(doing: str, share: float) -> None:
        click.echo(f"{share:4.0%}  {doing}", err=True)

    flags["measure"] = {"area": "mean_error"}.get(flags["measure"], flags["measure"])  # the name in earlier versions
    flags["schedule"] = parse_schedule(flags["schedule"])
    flags["rules"] = tuple(map(load_rule, flags["rules"]))
    found = analyse_task(build(task, **dict(map(assignment, parameters))), **flags, on_progress=on_progress)
    click.echo(json_text(found.facts()) if as_json else text_of(page_lines(found, details)))
