"""`gradient-dd rank`: how a rule ranks among all learners."""

from pathlib import Path
from typing import Any

import click

from gradient_dd.cli.options import as_json, json_text, report_page, table, worker_count
from gradient_dd.errors import GradientDDError, printable


@click.command()
@click.argument("rule", required=False, metavar="[FILE.py:NAME]")
@click.option("--grid", multiple=True, metavar="NAME=VALUES", help="Values to try for a parameter of the rule.")
@click.option("--against", default="td,tdrc", show_default=True, metavar="NAME,NAME", help="Learners to compare with.")
@click.option("--suite", default="all", show_default=True, help="'classic', 'random' or 'all'.")
@click.option("--quick", is_flag=True, help="Quick estimate: few problems and a small budget, only --against.")
@click.option("--verify", metavar="NAME", help="Recompute a shipped learner and compare every bit.")
@report_page
@worker_count
@as_json
def rank(rule: str | None, verify: str | None, report: Path | None, as_json: bool, **how: Any) -> None:
    """Rank a rule among all learners, tuned in the same way and tested on the same transitions.

    \b
    gradient-dd rank                                the standings of all learners
    gradient-dd rank my_rule.py:MY_RULE --grid clip=0.1,1,10 --report page.html

    A rule is a Rule in a Python file, or the name of a learner. Without a rule, the command ranks all learners.
    """
    from gradient_dd.cli.flags import values_by_name
    from gradient_dd.cli.live import print_notice
    from gradient_dd.learners import find
    from gradient_dd.ranking import rank as rank_rule
    from gradient_dd.ranking import standings
    from gradient_dd.ranking.suites import problems_of
    from gradient_dd.studies import load_rule

    if verify is not None:
        problems = problems_of(how["suite"])
        if wrong := standings.verify(verify, problems):
            raise GradientDDError(f"The shipped numbers of {verify} differ on {', '.join(wrong)}.")
        click.echo(f"The shipped numbers of {verify} are identical on all {len(problems)} problems.")
        return
    chosen = None if rule is None else load_rule(rule) if ":" in rule or rule.endswith(".py") else find(rule)
    how |= {"grid": values_by_name("'--grid'", how["grid"]), "against": how["against"].split(",")}
    found = rank_rule(chosen, **how)
    if report is not None:
        found.report(report)
    for sentence in found.warnings:
        print_notice(sentence)
    if as_json:
        click.echo(json_text({"sentence": found.sentence, "table": found.frame().to_dict("records")}))
        return
    rows = [("▸" if name == found.own else "", *row) for name, row in found.rows.items()]
    click.echo(printable(table(rows, ("", *found.head))))
    click.echo(printable(found.sentence))
