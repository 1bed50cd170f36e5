"""`gradient-dd compare`: which of several policies to deploy, from a log of another policy."""

from typing import Any

import click

from gradient_dd.cli.commands.evaluate import TimeLeft, page_path
from gradient_dd.cli.options import as_json, columns_by_role, dask_address, json_text, loaded, table
from gradient_dd.errors import bad_request

SHOWN = ("value", "low", "high", "difference", "difference_low", "difference_high")
HEAD = ("policy", "value", "low", "high", "more", "low", "high", "verdict")


@click.command()
@click.argument("log")
@click.option("--target", "targets", multiple=True, metavar="FILE.py:NAME", help="A target policy; can be repeated.")
@click.option("--discount", "discounts", multiple=True, type=float, help="Discount γ; can be repeated.")
@click.option("--reward", "rewards", multiple=True, metavar="COLUMN", help="A reward column; can be repeated.")
@click.option("--features", help="Features, as for evaluate.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="ROLE=NAME[,NAME...]",
    help="Assign columns to a role; see evaluate --help for the roles.",
)
@click.option("--skip-bad-rows", is_flag=True, help="Omit rows with missing or impossible numbers.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the groups of episodes.")
@click.option("--report", type=click.Path(), help="Also write an HTML report.")
@dask_address
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
    """Recommend which of several policies to deploy, from a LOG of transitions of another policy.

    \b
    gradient-dd compare log.parquet --target policies.py:cautious --target policies.py:greedy --discount 0.99
    gradient-dd compare log.parquet --target pi_greedy_ --discount 0.9 --discount 0.99 --report page.html

    Every policy is compared with the baseline "today", the logging policy. A policy is a function of observations in a
    Python file that returns the probabilities of all actions (n, actions), a classifier with predict_proba, the name
    of a column with the probabilities of the actions taken, or the common prefix of columns with the probabilities of
    all actions.
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
        on_progress=TimeLeft(),
        **options,
    )
    if page is not None:
        found.report(page)
    click.echo(json_text(found.facts()) if as_json else comparison_text(found))


def target_name(place: str, targets: tuple[str, ...]) -> str:
    """Return the name of a policy: the part after the file, or the whole text if two files use the same name."""
    name = place.rpartition(":")[2]
    return name if sum(one.rpartition(":")[2] == name for one in targets) == 1 else place


def comparison_text(found: Any) -> str:
    """Return a comparison as text: columns used, a table per question, and the recommendation."""
    from gradient_dd.evaluation.comparison import asked_words

    lines = [*found.stated, ""]
    for question in found.questions:
        rows = [(one["name"], *(f"{one[name]:.4g}" for name in SHOWN), one["verdict"]) for one in question.records()]
        lines += [f"{asked_words(question)}:" if len(found.questions) > 1 else "", table(rows, HEAD), ""]
        reasons = {one["name"]: one["why"][0] for one in question.records() if one["why"]}
        lines += [*(f"  {name}: {why}" for name, why in reasons.items()), ""] if reasons else []
    return "\n".join([*lines, found.sentence]).replace("\n\n\n", "\n\n")
