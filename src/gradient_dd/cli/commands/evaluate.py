"""`gradient-dd evaluate`: the value of a policy from a log of transitions, with an interval and a verdict."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradient_dd.cli.options import as_json, json_text, loaded, log_options, table, take_log_options
from gradient_dd.errors import bad_request, file_path

if TYPE_CHECKING:
    from gradient_dd.evaluation import Evaluation
    from gradient_dd.evaluation.log import Answers

WORDS = {
    "trust": "Trust it: nothing was found that speaks against it.",
    "with care": "Take it with care.",
    "not": "Do not trust it.",
}
COLUMNS = ("value", "low", "high")  # of a state that was asked for
ROWS_BETWEEN = 1_000_000  # rows between two lines of progress


@click.command()
@click.argument("log")
@log_options
@click.option("--questions", metavar="FILE:NAME", help="Answer these questions instead, all in one pass.")
@click.option(
    "--learner", default="auto", show_default=True, help="'auto', 'lstd' or a learner whose weights are used."
)
@click.option("--set", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the learner.")
@click.option("--at", multiple=True, metavar="NUMBER[,NUMBER...]", help="Print the value of this state as well.")
@click.option("--values", is_flag=True, help="Print the values of all distinct states.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the groups of episodes.")
@click.option("--report", type=click.Path(), help="Write a page in HTML as well.")
@as_json
def evaluate(
    log: str,
    parameters: tuple[str, ...],
    at: tuple[str, ...],
    values: bool,
    report: str | None,
    questions: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Tell what a policy is worth, from a LOG of transitions that another one made, and whether to trust it.

    \b
    gradient-dd evaluate log.parquet --discount 0.99
    gradient-dd evaluate log.csv --discount 0.9 --target policy.py:target --report page.html
    gradient-dd evaluate log.csv --discount 0.9 --column reward=r --column observation=pos,speed --features tiles
    gradient-dd evaluate log.csv --questions questions.py:ALL

    LOG is a .parquet, .csv, .npz or .npy file, a folder of Parquet files, or minari:NAME. Columns are found by their
    usual names, and the columns used are printed first. Where a name is not a usual one, give the column its role with
    --column ROLE=NAME.

    \b
    observation, next        the state and the next state; several columns: observation=pos,speed
    action, reward           what was done, and what it paid
    terminated, truncated    the episode ended here; it was cut here, by a time limit for instance
    done                     the episode is over: an end, unless 'truncated' says that it was cut
    discount                 γ into the next state, 0 at an end
    episode                  the number or the name of the episode
    rho                      importance ratio, target over behaviour, of the action taken
    target_probability, behaviour_probability
                             the two probabilities of the action taken, instead of rho
    """
    from gradient_dd.cli.flags import assignment
    from gradient_dd.evaluation import evaluate_log

    shown, printed = 0, list[str]()

    def on_progress(rows: int) -> None:
        nonlocal shown
        if rows >= shown + ROWS_BETWEEN:
            shown = rows
            click.echo(f"{rows:,} rows", err=True)

    def on_columns(stated: list[str]) -> None:
        if not as_json:
            printed.extend(stated)
            click.echo("\n".join([*stated, ""]))

    page = None if report is None else page_path(report)
    options["at"] = asked_states(at, values)
    options |= {"on_columns": on_columns, "on_progress": on_progress, **take_log_options(options)}
    if questions is not None:
        if report is not None:
            raise bad_request("'--report'", "be left out with --questions", report)
        options["questions"] = loaded("'--questions'", questions)
        answers: Any = evaluate_log(log, **options, **dict(map(assignment, parameters)))
        click.echo(json_text(answers.facts()) if as_json else answers_text(answers))
        return
    result = evaluate_log(log, **options, **dict(map(assignment, parameters)))
    if page is not None:
        from gradient_dd.report.evaluation_pages import evaluation_page

        page.write_text(evaluation_page(result, log), encoding="utf-8")
    click.echo(json_text(result.facts()) if as_json else evaluation_text(result, printed))


def answers_text(found: "Answers") -> str:
    """Return the answers to questions as a table."""
    rows = [(one["name"], *(number_text(one[name]) for name in COLUMNS), one["verdict"]) for one in found.table]
    return table(rows, ("question", *COLUMNS, "verdict"))


def asked_states(at: tuple[str, ...], values: bool) -> Any:
    """Return the states of `--at` and `--values` as `evaluate_log` takes them."""
    if at and values:
        raise bad_request("'--at'", "be left out with --values", " ".join(at))
    rows = [[float(cell) if is_number(cell) else cell.strip() for cell in one.split(",")] for one in at]
    return "all" if values else rows or None


def is_number(cell: str) -> bool:
    """Return whether a text spells a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def page_path(report: str) -> Path:
    """Return where a page is written; this is asked before the work, which may take minutes."""
    page = file_path("'--report'", report)
    if not page.absolute().parent.is_dir() or (page.exists() and not page.is_file()):
        raise bad_request("'--report'", "be a file in a folder that exists", report)
    return page


def asked_lines(found: "Evaluation") -> list[str]:
    """Return the values that were asked for as lines of a table."""
    rows = [
        (", ".join(str(cell) for cell in one["observation"]), *(number_text(one[name]) for name in COLUMNS))
        for one in found.asked()
    ]
    return [table(rows, ("state", *COLUMNS)), ""] if rows else []


def number_text(value: float | None) -> str:
    """Return a number as text; a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"


def evaluation_text(found: "Evaluation", printed: Sequence[str]) -> str:
    """Return an evaluation as text: the value, the verdict and why, both estimates, and what is not `printed` yet."""
    low, high = found.start_interval
    lines = [
        f"Value where episodes begin: {found.start_value:.4g}, from {low:.4g} to {high:.4g} "
        f"({found.confidence:.0%} interval).",
        WORDS[found.verdict.word],
        "",
        *asked_lines(found),
        *(f"  {one.level:10}{one.sentence}" for one in found.verdict.findings),
        "",
        *policy_lines(found),
        "",
        *(sentence for sentence in found.stated if sentence not in printed),
    ]
    return "\n".join(lines).rstrip()


def policy_lines(found: "Evaluation") -> list[str]:
    """Return both estimates of the policy, and the logging policy beside them."""
    named = {"LSTD-Q": found.exact, "doubly robust": found.robust, "logging policy": found.logging}
    rows = [
        (name, *(f"{part:.4g}" for part in (one.estimate, one.low, one.high)))
        for name, one in named.items()
        if one is not None
    ]
    gain = found.difference
    more = "" if gain is None else "more" if gain.estimate >= 0 else "less"
    words = (
        []
        if gain is None
        else [
            f"The target is worth {abs(gain.estimate):.4g} {more} than the logging policy, "
            f"from {gain.low:.4g} to {gain.high:.4g}."
        ]
    )
    return [table(rows, ("estimate", *COLUMNS)), *words]
