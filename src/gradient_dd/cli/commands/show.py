"""`gradient-dd show`: the facts of a learner, a task or a rule of your own."""

import click

from gradient_dd.cli.options import as_json, json_text
from gradient_dd.errors import Unquoted, bad_request, unknown


@click.command()
@click.argument("name", required=False)
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@click.option("--rule", metavar="FILE.py:NAME", help="Show a rule of your own instead.")
@as_json
def show(name: str | None, parameters: tuple[str, ...], rule: str | None, as_json: bool) -> None:
    """Show the facts of a learner or a task NAME, or of a rule of your own.

    \b
    gradient-dd show gradient_dd
    gradient-dd show random_walk n_states=40     a task takes its parameters
    gradient-dd show --rule my_rule.py:MY_RULE
    """
    from gradient_dd.cli.flags import assignment
    from gradient_dd.cli.listing import block, describe_learner, describe_task
    from gradient_dd.learners import LEARNERS
    from gradient_dd.tasks import TASKS, build

    if (name is None) == (rule is None):
        raise bad_request("'show'", "be given a name or a rule", Unquoted("neither" if name is None else "both"))
    if rule is not None:
        from gradient_dd.studies import load_rule

        facts = describe_learner(load_rule(rule))
    elif name is not None and name in LEARNERS:
        if parameters:
            raise bad_request("A learner", "be shown without parameters", " ".join(parameters))
        facts = describe_learner(LEARNERS[name])
    elif name is not None and name in TASKS:
        facts = describe_task(build(name, **dict(map(assignment, parameters))))
    elif name is not None and ".py" in name:
        raise bad_request("'show'", "be given a rule in a file as --rule FILE.py:NAME", name)
    else:
        raise unknown("learner or task", name, [*LEARNERS, *TASKS])
    blocks = (block(name, value) for name, value in facts.items() if value != "")
    click.echo(json_text(facts) if as_json else "\n".join(blocks))
