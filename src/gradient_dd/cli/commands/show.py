"""`gradient-dd show`: all there is to know of a learner or a task."""

import click

from gradient_dd.cli.tables import as_json, json_text
from gradient_dd.errors import must, unknown


@click.command()
@click.argument("name")
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@as_json
def show(name: str, parameters: tuple[str, ...], as_json: bool) -> None:
    """Show all there is to know of a learner or a task NAME.

    A task takes its parameters as PARAMETER=VALUE, e.g. `show random_walk n_states=40`.
    """
    from gradient_dd.cli.flags import assignment
    from gradient_dd.cli.listing import describe_learner, describe_task, page
    from gradient_dd.learners import LEARNERS
    from gradient_dd.tasks import TASKS, build

    if name in LEARNERS:
        if parameters:
            raise must("A learner", "be shown by its name alone", " ".join(parameters))
        facts = describe_learner(LEARNERS[name])
    elif name in TASKS:
        facts = describe_task(build(name, **dict(map(assignment, parameters))))
    else:
        raise unknown("learner or task", name, [*LEARNERS, *TASKS])
    click.echo(json_text(facts) if as_json else page(facts))
