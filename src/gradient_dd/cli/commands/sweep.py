"""`gradient-dd sweep`: run a study."""

from pathlib import Path
from typing import Any

import click

from gradient_dd.cli.options import (
    RUNS,
    as_json,
    checked_folder,
    dask_address,
    new_results_file,
    own_rules,
    worker_count,
)
from gradient_dd.errors import printable


@click.command()
@click.argument("study_file", required=False, type=click.Path(), metavar="[STUDY.toml]")
@click.option("--task", "tasks", multiple=True, metavar="NAME[:P=V,...]", help="A task, e.g. random_walk:n_states=40.")
@click.option("--learner", "learners", multiple=True, metavar="NAME[:T]", help="A learner; ':T' for rho_mode T.")
@own_rules
@click.option("--alpha", metavar="VALUES", help="Values: 0.1,0.3 or, logarithmically spaced, 1e-3..1:13.")
@click.option("--zeta", metavar="VALUES", help="Step size of eta divided by the step size of w.")
@click.option("--kappa", metavar="VALUES", help="Regulariser of Gradient-DD and of learners named *_dd.")
@click.option("--set", "others", multiple=True, metavar="NAME=VALUES", help="Values of any other parameter.")
@click.option("--schedule", help="'constant' (default), 'tapered(1000)' or 'tapered(1000) per step'.")
@click.option("--episodes", type=int, help="Length of a run in episodes, for episodic tasks.")
@click.option("--steps", type=int, help="Length of a run in steps.")
@click.option("--every", type=int, help="With --steps: steps between two recorded errors; default 1.")
@click.option("--runs", type=int, help=f"Number of runs; default {RUNS}.")
@click.option("--seed", type=int, help="Seed of all random numbers; default 0.")
@click.option("--sampling", help="'trajectory' (default) or 'iid'.")
@new_results_file
@worker_count
@dask_address
@click.option("--report", is_flag=True, help="Also write a page with figures and tables next to the results.")
@click.option("--dry-run", is_flag=True, help="Print the size of the study and run nothing.")
@as_json
def sweep(study_file: str | None, out: Path, report: bool, dry_run: bool, as_json: bool, **flags: Any) -> None:
    """Run a study from a TOML file or from options. Only results missing in the results file are computed.

    The options for length, runs, seed, sampling and schedule override the file.

    \b
    gradient-dd sweep --task random_walk:n_states=20 --learner td --learner gradient_dd \\
        --alpha 1e-3..1:13 --kappa 0.5,1,2 --schedule "tapered(1000)" --episodes 2000 --runs 10
    """
    from gradient_dd.cli.flags import study_from_file, study_from_flags
    from gradient_dd.cli.live import print_notice, watched
    from gradient_dd.studies import load_rule
    from gradient_dd.studies.sweep import run

    rules = {rule.name: rule for rule in map(load_rule, flags["rules"])}
    if study_file is None:
        study = study_from_flags(flags, rules)
    else:
        study, changes = study_from_file(study_file, flags, rules)
        for sentence in changes:
            print_notice(sentence)
    click.echo(printable(str(study)), err=True)
    if dry_run:
        return
    if report:
        from gradient_dd.report.own_study import report_folder

        folder = checked_folder("The folder of the report", report_folder(out))
    with watched(out, flags["workers"], flags["dask"]) as how:
        results = run(study, out, **how)
    if report:
        click.echo(f"Report: {results.report(folder / 'report.html')}", err=True)
    if as_json:
        click.echo(results.frame().to_json(orient="records"))
        return
    click.echo("Best setting of each learner, by the mean of the last 100 errors:")
    click.echo(printable(results.best_frame().to_string(index=False, na_rep="")))
    for sentence in results.edge_notes():
        print_notice(sentence)
    total = study.n_settings * len(study.tasks)
    click.echo(f"All {total} settings are in {out}. To export them: gradient-dd export --out {out} table.csv")
