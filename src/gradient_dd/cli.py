"""The command line: parses, calls, translates errors. No logic of its own.

Heavy modules are imported inside the commands, so that `--help` answers at once.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from gradient_dd import __version__
from gradient_dd.errors import BadRequestError, GradientDDError, Words, must, unknown

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
      gradient-dd sweep --task baird --learner gradient_dd --alpha 1e-3..0.1:9 --steps 10000
      gradient-dd analyse baird                 which step sizes are stable, how fast, what to take
      gradient-dd reproduce                     the paper: figures, tables, verdicts
    """


@cli.command("list")
@click.argument("what", type=click.Choice(["learners", "tasks", "figures"]), required=False)
@as_json
def list_command(what: str | None, as_json: bool) -> None:
    """List the learners, the tasks and the figures, or one kind of them."""
    from gradient_dd.overview import figure_lines, learner_lines, task_lines

    kinds = {"learners": learner_lines, "tasks": task_lines, "figures": figure_lines}
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
    from gradient_dd.requests import assignment
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


figure_names = click.argument("figures", nargs=-1, metavar="[FIGURE]...")
quick_runs = click.option("--runs", type=int, help="Fewer runs than the paper's 50, for a quick look.")
quick_episodes = click.option("--episodes", type=int, help="Shorter runs; Baird gets ten steps for each episode.")
results_folder = click.option(
    "--out", type=click.Path(), help="The folder; default results, or results-quick for a quick look."
)


@cli.command()
@figure_names
@quick_runs
@quick_episodes
@click.option("--workers", type=int, help="Threads; default one a core.")
@click.option("--dask", metavar="ADDRESS", help="Run on a Dask cluster, e.g. tcp://host:8786, or 'local'.")
@results_folder
@as_json
def reproduce(
    figures: tuple[str, ...],
    runs: int | None,
    episodes: int | None,
    workers: int | None,
    dask: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Reproduce the paper at its own scale: every figure, or those named, and a verdict on every claim.

    Leaves report.html, figures/NAME.{svg,png}, tables/NAME.csv, claims.json and results.db in a folder; a second call
    resumes. `gradient-dd list figures` names the figures.
    """
    make_page(figures, runs, episodes, out, as_json, lambda studies, store: run_watched(studies, store, workers, dask))


@cli.command()
@figure_names
@quick_runs
@quick_episodes
@results_folder
@as_json
def report(figures: tuple[str, ...], runs: int | None, episodes: int | None, out: str | None, as_json: bool) -> None:
    """Write the report, figures, tables and claims anew from results that are there; runs nothing."""
    from gradient_dd.reproduce import stored
    from gradient_dd.store import Store

    Store(folder_of(runs, episodes, out) / "results.db").close()
    make_page(figures, runs, episodes, out, as_json, stored)


@cli.command()
@figure_names
@quick_runs
@quick_episodes
@results_folder
def plot(figures: tuple[str, ...], runs: int | None, episodes: int | None, out: str | None) -> None:
    """Draw figures from results that are there, into FOLDER/figures; runs nothing."""
    from gradient_dd.reproduce import Scale, plot

    for path in plot(figures, folder_of(runs, episodes, out), Scale(runs, episodes)):
        click.echo(str(path))


def folder_of(runs: int | None, episodes: int | None, out: str | None) -> Path:
    """Return the folder of results; a quick look has its own."""
    return Path(out or ("results-quick" if runs or episodes else "results"))


def make_page(
    figures: tuple[str, ...], runs: int | None, episodes: int | None, out: str | None, as_json: bool, run: Any
) -> None:
    """Reproduce by means of `run`, write the report, and print the verdicts."""
    from gradient_dd.report import write_report
    from gradient_dd.reproduce import Scale, reproduce
    from gradient_dd.statements import check_statements

    folder = folder_of(runs, episodes, out)
    made = reproduce(figures, folder, Scale(runs, episodes), run, lambda sentence: click.echo(sentence, err=True))
    statements = check_statements()
    page = write_report(made, statements, folder)
    if as_json:
        verdicts = [verdict.__dict__ for verdict in made.verdicts] + [s._asdict() for s in statements]
        click.echo(json.dumps(verdicts, ensure_ascii=False, indent=2))
        return
    if not figures:
        exact = [(s.where, s.paper, s.ours, s.verdict) for s in statements]
        click.echo(table(exact, ("exact", "paper", "ours", "verdict")) + "\n")
    rows = [(v.where, v.statement, v.reading, v.verdict) for v in made.verdicts]
    if rows:
        click.echo(table(rows, ("claim", "statement", "reading", "verdict")) + "\n")
    click.echo(f"The report, with figures and the numbers of every verdict: {page}")


@cli.command()
@click.argument("task", required=False)
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@click.option("--log", "log_file", type=click.Path(), help="Transitions in a .npz or .csv file, instead of a task.")
@click.option("--sampling", default="trajectory", show_default=True, help="'trajectory' or 'iid'.")
@as_json
def analyse(task: str | None, parameters: tuple[str, ...], log_file: str | None, sampling: str, as_json: bool) -> None:
    """Tell which step sizes are stable on TASK, how fast each learner is there, and which one to take.

    \b
    gradient-dd analyse baird n_states=7
    gradient-dd analyse --log transitions.npz     arrays x, reward, discount, x_next and rho

    All is exact where the tables are known, and an estimate with its doubt from a log. Nothing is sampled.
    """
    from gradient_dd.analysis import analyse_log, analyse_task, facts_page
    from gradient_dd.requests import assignment
    from gradient_dd.tasks import build

    def said(what: str) -> None:
        click.echo(f"looking at {what}", err=True)

    if (task is None) == (log_file is None):
        raise must("'analyse'", "be given a task or a log", Words("neither" if task is None else "both"))
    if log_file is not None:
        facts = analyse_log(log_file)
    else:
        facts = analyse_task(build(str(task), **dict(map(assignment, parameters))), sampling, said)
    click.echo(json.dumps(plain(facts), ensure_ascii=False, indent=2) if as_json else facts_page(facts))


def plain(value: Any) -> Any:
    """Return data that JSON can hold: what is infinite becomes null."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and abs(value) == float("inf") else value


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


@cli.command()
@click.argument("study_file", required=False, type=click.Path(), metavar="[STUDY.toml]")
@click.option("--task", "tasks", multiple=True, metavar="NAME[:P=V,...]", help="A task, e.g. random_walk:n_states=40.")
@click.option("--learner", "learners", multiple=True, metavar="NAME[:T]", help="A learner; ':T' for rho_mode T.")
@click.option("--rule", "rules", multiple=True, metavar="FILE.py:NAME", help="A rule of your own, as a learner.")
@click.option("--alpha", metavar="VALUES", help="Values 0.1,0.3 or, evenly in the logarithm, 1e-3..1:13.")
@click.option("--zeta", metavar="VALUES", help="Step size of eta over that of w.")
@click.option("--kappa", metavar="VALUES", help="For learners that have it.")
@click.option("--set", "others", multiple=True, metavar="NAME=VALUES", help="Any other parameter.")
@click.option("--schedule", default="constant", show_default=True, help="'constant', 'tapered(1000)', '... per step'.")
@click.option("--episodes", type=int, help="Length of a run, for tasks with episodes.")
@click.option("--steps", type=int, help="Length of a run in steps.")
@click.option("--every", type=int, default=1, show_default=True, help="Steps between two errors, with --steps.")
@click.option("--runs", type=int, default=10, show_default=True, help="How many runs.")
@click.option("--seed", type=int, default=0, show_default=True, help="All randomness comes from it.")
@click.option("--sampling", default="trajectory", show_default=True, help="'trajectory' or 'iid'.")
@click.option("--out", default="results.db", show_default=True, type=click.Path(), help="The results file; resumes.")
@click.option("--workers", type=int, help="Threads; default one a core.")
@click.option("--dask", metavar="ADDRESS", help="Run on a Dask cluster, e.g. tcp://host:8786, or 'local'.")
@click.option("--dry-run", is_flag=True, help="Only say what it would be.")
@as_json
def sweep(
    study_file: str | None, out: str, workers: int | None, dask: str | None, dry_run: bool, as_json: bool, **flags: Any
) -> None:
    """Run a study: from a TOML file, or from flags. Only what the results file lacks is run.

    \b
    gradient-dd sweep --task random_walk:n_states=20 --learner td --learner gradient_dd \\
        --alpha 1e-3..1:13 --kappa 0.5,1,2 --schedule "tapered(1000)" --episodes 2000 --runs 10
    """
    from gradient_dd.requests import study_from_flags
    from gradient_dd.studies import load_rule, read_study

    rules = {rule.name: rule for rule in map(load_rule, flags["rules"])}
    study = read_study(study_file, rules) if study_file else study_from_flags(flags, rules)
    click.echo(str(study), err=True)
    if dry_run:
        return
    (results,) = run_watched([study], out, workers, dask)
    frame = results.frame()
    if as_json:
        click.echo(frame.to_json(orient="records"))
        return
    best = frame.loc[frame.groupby(["task", "size", "reading", "learner"], sort=False)["last100_mean"].idxmin()]
    shown = best[
        ["task", "size", "reading", "learner", "alpha", "last100_mean", "last100_sem", "area_mean", "diverged_runs"]
    ]
    click.echo("The best setting of each learner, by the mean of the last 100 errors:")
    click.echo(shown.to_string(index=False))
    click.echo(f"All {len(frame)} settings are in {out}: gradient-dd export --out {out} table.csv")


def run_watched(studies: Any, out: Any, workers: int | None, dask: str | None) -> Any:
    """Run studies with a live view; say what is kept when they are stopped."""
    from gradient_dd.live import LiveView
    from gradient_dd.sweep import StoppedError, run_all

    def notice(sentence: str) -> None:
        click.echo(f"Note: {sentence}", err=True)

    try:
        with LiveView() as view:
            if dask is None:
                results = run_all(studies, out, workers=workers, progress=view, notice=notice)
            else:
                from gradient_dd.cluster import dask_executor

                with dask_executor(dask, studies) as executor:
                    results = run_all(studies, out, executor=executor, workers=workers, progress=view, notice=notice)
        for line in view.worked_off():
            click.echo(line, err=True)
        return results
    except KeyboardInterrupt:
        raise StoppedError(
            f"Stopped. What was committed is kept in {out}; the same command goes on from there."
        ) from None


@cli.command()
@click.option("--out", default="results.db", show_default=True, type=click.Path(), help="The results file.")
@as_json
def status(out: str, as_json: bool) -> None:
    """Tell what a results file holds; also while a sweep writes to it."""
    from gradient_dd.requests import store_status
    from gradient_dd.store import Store

    with Store(out) as store:
        facts = store_status(store)
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    if facts["study"]:
        click.echo(f"started {facts['study']['started']}\n{facts['study']['text']}\n")
    rows = [tuple(map(str, row.values())) for row in facts["tasks"]]
    click.echo(table(rows, ("task", "size", "reading", "settings", "runs", "results", "diverged")))
    click.echo(f"{facts['units']} units, {facts['steps']:,} steps, {facts['worker_seconds']:.1f} seconds of work")


@cli.command()
@click.argument("target", type=click.Path())
@click.option("--out", default="results.db", show_default=True, type=click.Path(), help="The results file.")
@click.option("--per-run", is_flag=True, help="A row for each run instead of means over runs.")
def export(target: str, out: str, per_run: bool) -> None:
    """Write results to TARGET, a .csv or .parquet file."""
    from gradient_dd.requests import write_frame
    from gradient_dd.results import run_frame, summary_frame
    from gradient_dd.store import Store

    with Store(out) as store:
        frame = run_frame(store) if per_run else summary_frame(store)
    write_frame(frame, target)
    click.echo(f"{len(frame)} rows in {target}")


def table(rows: Iterable[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Return rows in aligned columns under a head."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(text)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the work failed, 2 a bad request."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small, and the threads are ours
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
