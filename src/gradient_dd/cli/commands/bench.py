"""`gradient-dd bench`: the lane engine against C, a plain NumPy loop and JAX."""

import click

from gradient_dd.cli.tables import as_json, json_text, table
from gradient_dd.errors import unknown


@click.command()
@click.option("--task", help="Only this task, e.g. random_walk.")
@click.option(
    "--scaling", is_flag=True, help="Measure how it scales instead: features, age of weights, threads, memory."
)
@click.option("--paper", is_flag=True, help="Measure the studies of the paper instead, against C for the same work.")
@click.option("--stream", is_flag=True, help="Measure `Learner` with a million features instead, against C and others.")
@click.option("--traces", is_flag=True, help="Measure learners with a trace instead, against C of the same layout.")
@as_json
def bench(task: str | None, scaling: bool, paper: bool, stream: bool, traces: bool, as_json: bool) -> None:
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
    if stream:
        from gradient_dd.bench import stream as stream_bench

        found = stream_bench.run_stream_bench(lambda what: click.echo(f"measuring {what}", err=True))
        click.echo(json_text(found) if as_json else table(stream_bench.stream_table(found), stream_bench.HEAD))
        return
    if traces:
        from gradient_dd.bench import traced

        measured = traced.run_traced_bench(lambda what: click.echo(f"measuring {what}", err=True))
        click.echo(json_text({"rows": measured}) if as_json else table(traced.traced_table(measured), traced.HEAD))
        return
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
