"""Evidence of made-up worlds: every error is what a function says, with some noise. Nothing is run."""

from functools import cache
from types import SimpleNamespace

import numpy as np

from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.experiments.tuning import ErrorTable, StudyEvidence

RUNS, FRESH = 12, 24


class MadeUp(StudyEvidence):
    """Evidence that makes its tables up: `world(study, task, setting, measure, fresh)` is the mean error."""

    def __init__(self, name, world, noise=1e-3):
        study = STUDIES[name]
        tasks = {str(one): one for one in study.built_tasks}
        super().__init__(SimpleNamespace(study=study, tasks=tasks))
        self.world, self.noise, self.settings = world, noise, list(study.settings())

    def read(self, case, measure, fresh):
        one = self.cases[case][0]
        means = np.array([self.world(self.study.name, one, s, measure, fresh) for s in self.settings])
        rng = np.random.default_rng([fresh, *map(ord, self.study.name + case + measure)])
        noise = 1 + self.noise * rng.standard_normal((len(means), FRESH if fresh else RUNS))
        return ErrorTable(self.settings, means[:, None] * noise)


def world_evidence(world, names=STUDIES, noise=1e-3):
    """Return evidence of every study in one world."""
    return {name: MadeUp(name, world, noise) for name in names}


def first(task):
    """Return the unit of Baird's errors: the first error, or 1 where they are relative to it."""
    return 1.0 if "start_seed" in task.parameters else task.rmsve(task.initial_weights)


@cache
def alphas(study, learner):
    """Return the step sizes that a learner has in a study."""
    return [s.values["alpha"] for s in STUDIES[study].settings() if s.rule.name == learner]


def right(study, task, setting, measure="last100", fresh=False):
    """Return the error of a setting where all claims hold."""
    learner, size = setting.rule.name, next(iter(task.parameters.values()))
    if task.name == "baird":
        return {"td": 2.0, "tdrc": 0.9, "gradient_dd": 1e-5}.get(learner, 0.5) * first(task)
    slower = 0.015 if "constant" in study else 0.01
    if measure == "early":
        return 2.0 if learner == "gradient_dd" else 1.0
    if learner in ("gtd2", "tdc"):
        return slower * size
    if learner == "gradient_dd":
        return slower * (0.9 if setting.values["alpha"] == max(alphas(study, learner)) else 5.0)
    return slower * (1 + size / 1000)


def wrong(study, task, setting, measure="last100", fresh=False):
    """Return the error of a setting where no claim holds."""
    learner, values, size = setting.rule.name, setting.values, next(iter(task.parameters.values()))
    if task.name == "baird":
        ours = 0.5 if values.get("kappa") == 4 else 0.9
        return (ours if learner == "gradient_dd" else 1e-5) * first(task)
    if measure == "early":
        return 0.5 if learner == "gradient_dd" else 1.0
    if learner in ("td", "tdrc"):
        return 1.0 if values["alpha"] == min(alphas(study, learner)) else 9.0
    if learner != "gradient_dd":
        return 1.0
    better = values["kappa"] == 4 or values["zeta"] == 4 or round(values["kappa"] * values["alpha"], 9) == 2
    if study.endswith("-fully"):
        better = (values["kappa"], values["zeta"]) != (1, 1)
    return (3.0 if better else 10.0) * size / (2.0 if "constant" in study else 1.0)
