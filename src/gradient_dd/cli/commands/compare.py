"""`gradient-dd compare`: which of several policies to deploy, from a log of transitions that another one made."""

from typing import Any

import click

from gradient_dd.cli.commands.evaluate import page_path
from gradient_dd.cli.options import as_json, columns_by_role, json_text, loaded, table
from gradient_dd.errors import bad_request

SHOWN = ("value", "low", "high", "difference", "difference_low", "difference_high")
HEAD = ("policy", "value", "low", "high", "more", "low", "high", "verdict")


@click.command()
@click.argument("log")
@click.option(
    "--target", "targets", multiple=True, metavar="FILE.py:NAME", help="A policy; may be given several times."
)
@click.option("--discount", "discounts", multiple=True, type=float, help="γ; may be given several times.")
@click.option("--reward", "rewards", multiple=True, metavar="COLUMN", help="A signal; may be given several times.")
@click.option("--features", help="As for evaluate.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME[,NAME...]",
    help="Say which column is what; the roles are those of evaluate --help.",
)
@click.option("--skip-bad-rows", is_flag=True, help="Leave out rows with missing or impossible numbers.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the groups of episodes.")
@click.option("--report", type=click.Path(), help="Write a page in HTML as well.")
@as_json
def compare(
    log: str,
    targets: tuple[str, ...],
    discounts: tuple[float, ...],
    rewards: tuple[str, ...],
    features: str | None,
    columns: tuple[str, ...],
    report: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Tell which of several policies to deploy, from a LOG of transitions that another one made.

    \b
    gradient-dd compare log.parquet --target policies.py:cautious --target policies.py:greedy --discount 0.99
    gradient-dd compare log.parquet --target pi_greedy_ --discount 0.9 --discount 0.99 --report page.html

    The policy that made the log, "today", is the baseline: every other one is compared with it. A policy is a function
    of observations in a Python file, which returns the probabilities of all actions (n, actions), a classifier with
    predict_proba, the name of a column with its probabilities of the actions taken, or the beginning of the names of
    columns that hold the probabilities of all actions.
    """
    from gradient_dd.evaluation import compare as compare_policies

    if not targets:
        raise bad_request("'--target'", "be given at least once", None, "A policy: --target FILE.py:NAME.")
    page = None if report is None else page_path(report)
    found = compare_policies(
        log,
        {target_name(place, targets): loaded("'--target'", place) if ":" in place else place for place in targets},
        discount=list(discounts) or None,
        reward=list(rewards) or None,
        features=loaded("'--features'", features) if features and ":" in features else features,
        columns=columns_by_role(columns),
        **options,
    )
    if page is not None:
        from gradient_dd.report.evaluation_pages import comparison_page

        page.write_text(comparison_page(found, log), encoding="utf-8")
    click.echo(json_text(found.facts()) if as_json else comparison_text(found))


def target_name(place: str, targets: tuple[str, ...]) -> str:
    """Return the name of a policy: what follows the file, or all of it where two files have the same name."""
    name = place.rpartition(":")[2]
    return name if sum(one.rpartition(":")[2] == name for one in targets) == 1 else place


def comparison_text(found: Any) -> str:
    """Return a comparison as text: what was taken for what, a table for each question, and what to do."""
    from gradient_dd.evaluation.comparison import asked_words

    lines = [*found.stated, ""]
    for question in found.questions:
        rows = [(one["name"], *(f"{one[name]:.4g}" for name in SHOWN), one["verdict"]) for one in question.records()]
        lines += [f"{asked_words(question)}:" if len(found.questions) > 1 else "", table(rows, HEAD), ""]
        reasons = {one["name"]: one["why"][0] for one in question.records() if one["why"]}
        lines += [*(f"  {name}: {why}" for name, why in reasons.items()), ""] if reasons else []
    return "\n".join([*lines, found.sentence]).replace("\n\n\n", "\n\n")
