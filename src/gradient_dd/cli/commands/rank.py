"""`gradient-dd rank`: how a rule ranks among all learners."""

from typing import Any

import click

from gradient_dd.cli.commands.evaluate import page_path
from gradient_dd.cli.options import as_json, json_text, printable, table, worker_count
from gradient_dd.errors import bad_request


@click.command()
@click.argument("rule", required=False, metavar="[FILE.py:NAME]")
@click.option("--grid", "grids", multiple=True, metavar="NAME=V,V", help="Values to try for a parameter of the rule.")
@click.option("--against", default="td,tdrc", show_default=True, metavar="NAME,NAME", help="Learners to compare with.")
@click.option("--suite", default="all", show_default=True, help="'classic', 'random' or 'all'.")
@click.option("--quick", is_flag=True, help="A quick estimate: few problems, a small budget, only --against.")
@click.option("--verify", metavar="NAME", help="Recompute a shipped learner and compare every bit.")
@click.option("--report", type=click.Path(), help="Write an HTML report, with tables and pictures beside it.")
@worker_count
@as_json
def rank(
    rule: str | None,
    grids: tuple[str, ...],
    against: str,
    suite: str,
    verify: str | None,
    report: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Rank a rule among all learners, tuned in the same way and tested on the same transitions.

    \b
    gradient-dd rank                                the standings of all learners
    gradient-dd rank my_rule.py:MY_RULE --grid clip=0.1,1,10 --report page.html

    A rule is a Rule in a Python file, or the name of a learner. Without a rule, the command lists all learners.
    """
    from gradient_dd.cli.live import print_notice
    from gradient_dd.learners import find
    from gradient_dd.ranking import rank as rank_rule
    from gradient_dd.studies import load_rule

    if verify is not None:
        click.echo(verified(verify, suite))
        return
    page = None if report is None else page_path(report)
    chosen = None if rule is None else load_rule(rule) if ":" in rule else find(rule)
    found = rank_rule(
        chosen, values_by_name(grids), against=against.split(","), suite=suite, on_progress=print_notice, **how
    )
    if page is not None:
        found.report(page)
    for sentence in found.warnings:
        print_notice(sentence)
    if as_json:
        click.echo(json_text({"sentence": found.sentence, "table": found.frame().to_dict("records")}))
        return
    rows = [("▸" if name == found.own else "", *row) for name, row in found.rows.items()]
    click.echo(printable(table(rows, ("", *found.head))))
    click.echo(printable(found.sentence))


def values_by_name(texts: tuple[str, ...]) -> dict[str, list[float]]:
    """Return the values of arguments such as "clip=0.1,1"."""
    found = {}
    for text in texts:
        name, _, values = text.partition("=")
        try:
            found[name] = [float(value) for value in values.split(",")]
        except ValueError:
            raise bad_request("'--grid'", "be written NAME=VALUE,VALUE", text) from None
    return found


def verified(learner: str, suite: str) -> str:
    """Return a sentence on recomputing a shipped learner; raise if any number differs."""
    from gradient_dd.errors import GradientDDError
    from gradient_dd.ranking.standings import verify
    from gradient_dd.ranking.suites import problems_of

    problems = problems_of(suite)
    if wrong := verify(learner, problems):
        raise GradientDDError(
            f"The shipped numbers of {learner} differ from the recomputed ones on {', '.join(wrong)}."
        )
    return f"The shipped numbers of {learner} are identical to the recomputed ones on all {len(problems)} problems."
