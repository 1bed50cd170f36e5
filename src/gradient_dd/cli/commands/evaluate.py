"""`gradient-dd evaluate`: the value of a policy from a log of transitions, with an interval and a verdict."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradient_dd.cli.options import json_text, loaded, log_options, table, value_head, with_interval
from gradient_dd.errors import bad_request

if TYPE_CHECKING:
    from gradient_dd.evaluation import Evaluation


@click.command()
@click.argument("log")
@click.option("--discount", type=float, help="Discount γ, unless the log has a column of discounts.")
@click.option(
    "--target", metavar="FILE.py:NAME", help="The target policy: a function of observations that returns probabilities."
)
@click.option("--questions", metavar="FILE:NAME", help="Answer these questions instead, in one pass.")
@click.option("--learner", default="auto", show_default=True, help="'auto', or a learner whose weights are used.")
@click.option("--set", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the learner.")
@click.option("--at", multiple=True, metavar="NUMBER[,NUMBER...]", help="Also print the value of this state.")
@click.option("--values", is_flag=True, help="Also print the values of all distinct states.")
@log_options
def evaluate(log: str, questions: str | None, report: Path | None, as_json: bool, **options: Any) -> None:
    """Estimate the value of a policy from a LOG of transitions of another policy, with an interval and a verdict.

    \b
    gradient-dd evaluate log.parquet --discount 0.99
    gradient-dd evaluate log.csv --discount 0.9 --target policy.py:target --report page.html
    gradient-dd evaluate log.csv --discount 0.9 --column reward=r --column observation=pos,speed --features tiles
    gradient-dd evaluate log.csv --questions questions.py:ALL

    LOG is a .parquet, .csv, .npz or .npy file, a folder of Parquet files, or minari:NAME. Columns are recognised by
    common names, and the columns used are printed first. Assign a role to columns with other names with
    --column ROLE=NAME.

    \b
    observation, next        the state and the next state; for several columns: observation=pos,speed
    action, reward           the action taken and its reward
    terminated, truncated    the episode ended here; the episode was cut here, for example by a time limit
    done                     the episode is over: terminated, unless 'truncated' says otherwise
    discount                 γ into the next state, 0 at a termination
    episode                  the number or name of the episode
    rho                      importance ratio of the action taken, target over behaviour
    target_probability, behaviour_probability
                             the two probabilities of the action taken, instead of rho
    """
    from gradient_dd.cli.flags import assignment
    from gradient_dd.evaluation import evaluate_log

    parameters, target = dict(map(assignment, options.pop("parameters"))), options["target"]
    at, values = options["at"], options.pop("values")
    if at and values:
        raise bad_request("'--at'", "be omitted with --values", " ".join(at))
    options["at"] = "all" if values else [list(map(number_or_text, one.split(","))) for one in at] or None
    options["target"] = None if target is None else loaded("'--target'", target)
    if questions is not None:
        if report is not None:
            raise bad_request("'--report'", "be omitted with --questions", str(report))
        options["questions"] = loaded("'--questions'", questions)
    found: Any = evaluate_log(log, **options, **parameters)
    if report is not None:
        found.report(report)
    if as_json:
        click.echo(json_text(found.facts()))
    elif questions is None:
        click.echo(evaluation_text(found))
    else:
        rows = [
            (one["name"], with_interval(one["value"], one["low"], one["high"]), one["verdict"]) for one in found.table
        ]
        click.echo(
            "\n".join([*found.stated, "", table(rows, ("question", value_head(options["confidence"]), "verdict"))])
        )


def number_or_text(cell: str) -> float | str:
    """Return a text as a number if it is numeric, else as text."""
    try:
        return float(cell)
    except ValueError:
        return cell.strip()


def evaluation_text(found: "Evaluation") -> str:
    """Return an evaluation as text: columns used, value, verdict, reasons, and estimates."""
    from gradient_dd.evaluation.findings import sentences_of

    findings, (low, high) = found.verdict.findings, found.start_interval
    asked = [
        (", ".join(map(str, one["observation"])), with_interval(one["value"], one["low"], one["high"]))
        for one in found.asked()
    ]
    head = value_head(found.confidence)
    lines = [
        *found.stated,
        "",
        f"Value at the start of episodes: {found.start_value:.4g} "
        f"({found.confidence:.0%} interval: {low:.4g} to {high:.4g}).",
        found.verdict.advice,
        "",
        *([table(asked, ("state", head)), ""] if asked else []),
        *(f"  {one.level:10}{words}" for one, words in zip(findings, sentences_of(findings), strict=True)),
        "",
        table([(name, with_interval(*one)) for name, one in found.parts.items()], ("estimate", head)),
        *([found.gain] if found.gain else []),
    ]
    return "\n".join(lines).rstrip()
