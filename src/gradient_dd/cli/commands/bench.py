"""`gradient-dd bench`: the lane engine against C and a plain NumPy loop."""

import click

from gradient_dd.cli.tables import as_json, json_text, table
from gradient_dd.errors import unknown


@click.command()
@click.option("--task", help="Only this task, e.g. random_walk.")
@click.option("--paper", is_flag=True, help="Measure the studies of the paper instead, against C for the same work.")
@as_json
def bench(task: str | None, paper: bool, as_json: bool) -> None:
    """Measure the lane engine against C and a plain NumPy loop, in one run on one core.

    C is compiled on the spot where there is a C compiler. Times are nanoseconds per update of one setting; "/ C" is
    ours over C's, "NumPy /" theirs over ours.
    """
    from gradient_dd.bench import CASES, HEAD, bench_table, run_bench

    if paper:
        from gradient_dd.bench import paper as paper_bench

        result = paper_bench.run_paper_bench(lambda what: click.echo(f"measuring {what}", err=True))
        click.echo(json_text(result) if as_json else table(paper_bench.paper_table(result), paper_bench.HEAD))
        return
    if task not in (None, *(case.name for case, _ in CASES)):
        raise unknown("task of the benchmark", task, [case.name for case, _ in CASES])
    result = run_bench(lambda what: click.echo(f"measuring {what}", err=True), task)
    if as_json:
        click.echo(json_text(result))
        return
    click.echo(table(bench_table(result), HEAD))
    for row in result["sampling"]:
        click.echo(f"A step of the trajectory of {row['task']}, shared by all lanes: {row['ns_per_step']:.1f} ns.")
    click.echo(", ".join(f"{name} {value}" for name, value in result["machine"].items()))
