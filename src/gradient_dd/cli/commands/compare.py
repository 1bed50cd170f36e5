"""`gradient-dd compare`: which of several policies to deploy, from a log of another policy."""

from pathlib import Path
from typing import Any

import click

from gradient_dd.cli.options import json_text, loaded, log_options, table, value_head, with_interval
from gradient_dd.errors import bad_request


@click.command()
@click.argument("log")
@click.option("--target", "targets", multiple=True, metavar="FILE.py:NAME", help="A target policy; can be repeated.")
@click.option("--discount", multiple=True, type=float, help="Discount γ; can be repeated.")
@click.option("--reward", multiple=True, metavar="COLUMN", help="A reward column; can be repeated.")
@log_options
def compare(log: str, targets: tuple[str, ...], report: Path | None, as_json: bool, **options: Any) -> None:
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
        raise bad_request("'--target'", "be given at least once", None, "For example: --target FILE.py:NAME.")
    names = [one.rpartition(":")[2] for one in targets]
    policies: dict[str, Any] = {}
    for name, place in zip(names, targets, strict=True):
        is_file = ":" in place or place.endswith(".py")
        policies[name if names.count(name) == 1 else place] = loaded("'--target'", place) if is_file else place
    options |= {name: list(options[name]) or None for name in ("discount", "reward")}
    found = compare_policies(log, policies, **options)
    if report is not None:
        found.report(report)
    click.echo(json_text(found.facts()) if as_json else comparison_text(found))


def comparison_text(found: Any) -> str:
    """Return a comparison as text: columns used, a table per question, and the recommendation."""
    from gradient_dd.evaluation.comparison import asked_words
    from gradient_dd.evaluation.findings import sentences_of

    limited = [one for question in found.questions for one in question.judged if one.verdict.reasons]
    sentences = sentences_of(one.verdict.findings[0] for one in limited)
    lines = [*found.stated, ""]
    for question in found.questions:
        value, gain = (value_head(found.confidence, what) for what in ("value", f"gain over {question.baseline.name}"))
        rows = [
            (
                one["name"],
                with_interval(one["value"], one["low"], one["high"]),
                with_interval(one["difference"], one["difference_low"], one["difference_high"]),
                one["verdict"],
            )
            for one in question.records()
        ]
        reasons = [f"  {one.name}: {next(sentences)}" for one in question.judged if one.verdict.reasons]
        lines += [f"{asked_words(question)}:", table(rows, ("policy", value, gain, "verdict")), "", *reasons, ""]
    return "\n".join([*lines, found.sentence]).replace("\n\n\n", "\n\n")
