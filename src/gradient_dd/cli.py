"""The command line: parses, calls, translates errors. No logic of its own.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from gradient_dd import __version__
from gradient_dd.errors import BadRequestError, GradientDDError, must, unknown

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="gradient-dd")
def cli() -> None:
    """Gradient-DD and the TD family: linear off-policy value prediction.

    \b
    Try:
      gradient-dd list                          what there is
      gradient-dd show gradient_dd              a learner: equation, parameters, reference, file
      gradient-dd show baird n_states=20        a task: sizes, values, visits, condition numbers
      gradient-dd reproduce                     what the paper states, with verdicts
    """


@cli.command("list")
@click.argument("what", type=click.Choice(["learners", "tasks"]), required=False)
@as_json
def list_command(what: str | None, as_json: bool) -> None:
    """List the learners and the tasks, or one kind of them."""
    from gradient_dd.overview import learner_lines, task_lines

    kinds = {"learners": learner_lines, "tasks": task_lines}
    lines = {kind: rows() for kind, rows in kinds.items() if what in (None, kind)}
    if as_json:
        click.echo(json.dumps(lines, ensure_ascii=False, indent=2))
        return
    for kind, rows in lines.items():
        click.echo(f"{kind}:")
        width = max(map(len, rows))
        for name, line in rows.items():
            click.echo(f"  {name:{width}}  {line}")


@cli.command()
@click.argument("name")
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@as_json
def show(name: str, parameters: tuple[str, ...], as_json: bool) -> None:
    """Show all there is to know of a learner or a task NAME.

    A task takes its parameters as PARAMETER=VALUE, e.g. `show random_walk n_states=40`.
    """
    from gradient_dd.learners import LEARNERS
    from gradient_dd.overview import describe_learner, describe_task, page
    from gradient_dd.tasks import TASKS, build

    if name in LEARNERS:
        if parameters:
            raise must("A learner", "be shown by its name alone", " ".join(parameters))
        facts = describe_learner(LEARNERS[name])
    elif name in TASKS:
        facts = describe_task(build(name, **dict(map(assignment, parameters))))
    else:
        raise unknown("learner or task", name, [*LEARNERS, *TASKS])
    click.echo(json.dumps(facts, ensure_ascii=False, indent=2) if as_json else page(facts))


@cli.command()
@as_json
def reproduce(as_json: bool) -> None:
    """Reproduce what the paper states exactly: true values, optimal weights, ranks, and its counterexample.

    The figures need the sweeps, which this version does not have yet; it says so.
    """
    from gradient_dd.statements import check_statements

    statements = check_statements()
    if as_json:
        click.echo(json.dumps([statement._asdict() for statement in statements], ensure_ascii=False, indent=2))
    else:
        click.echo(
            table([(s.where, s.paper, s.ours, s.verdict) for s in statements], ("where", "paper", "ours", "verdict"))
        )
        click.echo("\nThe figures of the paper are not part of this version.")


@cli.command()
@click.option("--task", help="Only this task, e.g. random_walk.")
@click.option(
    "--scaling", is_flag=True, help="Measure how it scales instead: features, age of weights, threads, memory."
)
@as_json
def bench(task: str | None, scaling: bool, as_json: bool) -> None:
    """Measure the lane engine against C, a plain NumPy loop and JAX, in one run on one core.

    C is compiled on the spot where there is a C compiler; JAX is measured where it is installed. Times are nanoseconds
    per update of one setting; "/ C" is ours over C's, "NumPy /" and "JAX /" theirs over ours.
    """
    from gradient_dd.bench import CASES, HEAD, bench_table, run_bench

    if scaling:
        from gradient_dd.bench.scaling import scaling_tables

        for title, head, rows in scaling_tables():
            click.echo(f"{title}\n{table(rows, head)}\n")
        return
    if task not in (None, *(case.name for case, _ in CASES)):
        raise unknown("task of the benchmark", task, [case.name for case, _ in CASES])
    result = run_bench(lambda what: click.echo(f"measuring {what}", err=True), task)
    if as_json:
        click.echo(json.dumps(result, indent=2))
        return
    click.echo(table(bench_table(result), HEAD))
    for row in result["sampling"]:
        click.echo(f"A step of the trajectory of {row['task']}, shared by all lanes: {row['ns_per_step']:.1f} ns.")
    click.echo(", ".join(f"{name} {value}" for name, value in result["machine"].items()))


def assignment(text: str) -> tuple[str, Any]:
    """Return the name and the value of "name=value"; numbers become numbers."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise must("A parameter", "be written NAME=VALUE", text)
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, {"true": True, "false": False}.get(value.lower(), value)


def table(rows: Iterable[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Return rows in aligned columns under a head."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(text)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the work failed, 2 a bad request."""
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        sys.exit(1)
    except BadRequestError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except GradientDDError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
