"""Experiments: studies, tuning, fresh runs, claims, figures and a page, as data that one machinery runs.

    experiment   what an experiment is, its scale, and one call of it
    running      runs an experiment, or writes everything again from what a folder holds
    by_study     the plain kind: claims and figures that name studies, and the headings of figures
    tuning       settings selected on some runs and shown on others
    verdicts     from a question about fresh runs to a verdict
    claims       statements with their questions, and the sentence that tells what was found
    drawing      pictures, each drawn again only if it would differ

A new experiment is a module with an `EXPERIMENT` and a line here.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradient_dd.experiments.experiment import Experiment

EXPERIMENTS = {  # by the name that `gradient-dd reproduce` takes: the module that holds it as EXPERIMENT
    "paper": "gradient_dd.experiments.paper.experiment",
}


def find_experiment(name: str) -> "Experiment":
    """Return the experiment of a name; its module is imported only now."""
    found: Experiment = import_module(EXPERIMENTS[name]).EXPERIMENT
    return found
