"""`gradient-dd evaluate`: the value of a policy from a log of transitions, with an interval and a verdict."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from gradient_dd.cli.options import as_json, dask_address, json_text, loaded, log_options, table, take_log_options
from gradient_dd.errors import bad_request, file_path

if TYPE_CHECKING:
    from gradient_dd.evaluation import Evaluation
    from gradient_dd.evaluation.log import Answers

WORDS = {
    "trust": "Trust this value: no finding questions it.",
    "with care": "Use this value with care.",
    "not": "Do not trust this value.",
}
COLUMNS = ("value", "low", "high")  # of a requested state
EVERY = 10.0  # seconds between progress lines


class TimeLeft:
    """Prints the progress of an evaluation and the time left to stderr, in a terminal or not."""

    def __init__(self) -> None:
        self.shown = perf_counter()
        self.start: tuple[float, int] | None = None  # when the total became known, and the work done by then

    def __call__(self, done: int, total: int) -> None:
        now = perf_counter()
        if total and self.start is None:
            self.start = now, done
        if now - self.shown < EVERY:
            return
        self.shown = now
        if self.start is None or done <= self.start[1]:
            click.echo(f"{done:,} rows read", err=True)
            return
        left = (now - self.start[0]) * (total - done) / (done - self.start[1])
        words = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min" if left < 6000 else f"{left / 3600:.1f} h"
        click.echo(f"{done / total:.0%} done, about {words} left", err=True)


@click.command()
@click.argument("log")
@log_options
@click.option("--questions", metavar="FILE:NAME", help="Answer these questions instead, in one pass.")
@click.option(
    "--learner", default="auto", show_default=True, help="'auto', 'lstd' or a learner whose weights are used."
)
@click.option("--set", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the learner.")
@click.option("--at", multiple=True, metavar="NUMBER[,NUMBER...]", help="Also print the value of this state.")
@click.option("--values", is_flag=True, help="Also print the values of all distinct states.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the groups of episodes.")
@click.option("--report", type=click.Path(), help="Also write an HTML report.")
@dask_address
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

    printed = list[str]()

    def on_columns(stated: list[str]) -> None:
        if not as_json:
            printed.extend(stated)
            click.echo("\n".join([*stated, ""]))

    page = None if report is None else page_path(report)
    options["at"] = asked_states(at, values)
    options |= {"on_columns": on_columns, "on_progress": TimeLeft(), **take_log_options(options)}
    if questions is not None:
        if report is not None:
            raise bad_request("'--report'", "be omitted with --questions", report)
        options["questions"] = loaded("'--questions'", questions)
        answers: Any = evaluate_log(log, **options, **dict(map(assignment, parameters)))
        click.echo(json_text(answers.facts()) if as_json else answers_text(answers))
        return
    result = evaluate_log(log, **options, **dict(map(assignment, parameters)))
    if page is not None:
        result.report(page)
    click.echo(json_text(result.facts()) if as_json else evaluation_text(result, printed))


def answers_text(found: "Answers") -> str:
    """Return the answers to questions as a table."""
    rows = [(one["name"], *(number_text(one[name]) for name in COLUMNS), one["verdict"]) for one in found.table]
    return table(rows, ("question", *COLUMNS, "verdict"))


def asked_states(at: tuple[str, ...], values: bool) -> Any:
    """Return the states of `--at` and `--values` as `evaluate_log` takes them."""
    if at and values:
        raise bad_request("'--at'", "be omitted with --values", " ".join(at))
    rows = [[float(cell) if is_number(cell) else cell.strip() for cell in one.split(",")] for one in at]
    return "all" if values else rows or None


def is_number(cell: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def page_path(report: str) -> Path:
    """Return the path of the page; checked before the work, which may take minutes."""
    page = file_path("'--report'", report)
    if not page.absolute().parent.is_dir() or (page.exists() and not page.is_file()):
        raise bad_request("'--report'", "be a file in an existing folder", report)
    return page


def asked_lines(found: "Evaluation") -> list[str]:
    """Return the requested values as lines of a table."""
    rows = [
        (", ".join(str(cell) for cell in one["observation"]), *(number_text(one[name]) for name in COLUMNS))
        for one in found.asked()
    ]
    return [table(rows, ("state", *COLUMNS)), ""] if rows else []


def number_text(value: float | None) -> str:
    """Return a number as text; a dash for None."""
    return "-" if value is None else f"{value:.4g}"


def evaluation_text(found: "Evaluation", printed: Sequence[str]) -> str:
    """Return an evaluation as text: value, verdict, reasons, both estimates, and the lines not `printed` yet."""
    low, high = found.start_interval
    lines = [
        f"Value at the start of episodes: {found.start_value:.4g} "
        f"({found.confidence:.0%} interval: {low:.4g} to {high:.4g}).",
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
    """Return both estimates for the target policy, and the logging policy for comparison."""
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
            f"The target policy is worth {abs(gain.estimate):.4g} {more} than the logging policy "
            f"(interval: {gain.low:.4g} to {gain.high:.4g})."
        ]
    )
    return [table(rows, ("estimate", *COLUMNS)), *words]
