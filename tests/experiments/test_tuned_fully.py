"""Tuned fully: every learner spends the same budget on all parameters it has, and what is TD is left out."""

from functools import partial

import numpy as np
import pytest

from gradient_dd.engine import reference
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.studies.search import search
from gradient_dd.tasks import boyan_chain, random_walk


@pytest.mark.parametrize("study", [name for name in STUDIES if name.endswith("-fully")])
def test_tuned_fully_every_learner_spends_the_same_budget_on_all_parameters_it_has(study):
    study = STUDIES[study]
    budget = study.budget_at_scale
    assert study.goals == ("last100", "mean_error")
    assert budget.starts >= 8
    assert budget.all_runs >= 80
    for space in study.spaces():
        evaluated = []

        def errors(settings, runs, evaluated=evaluated):
            evaluated += [setting for setting in settings for _ in runs]
            return np.array([[abs(np.log2(one.values["alpha"])) + run / 1e6 for run in runs] for one in settings])

        search(space, errors, budget)
        assert len(evaluated) == budget.lane_runs, space
        several = {name for name in evaluated[0].values if len({one.values[name] for one in evaluated}) > 1}
        wanted = set(evaluated[0].values) - {"lam"}
        if space.rule.name == "htd_dd" and not study.name.startswith("baird"):
            wanted -= {"zeta"}  # on-policy ζ of HTD makes no difference
        assert several == wanted, space


def test_what_is_td_is_left_out_of_tuning_fully():
    """On-policy w of HTD is that of TD, and on tables w of HTD-DD; ζ of HTD-DD changes nothing."""
    walk, boyan = random_walk(6), boyan_chain(4)
    run = partial(reference.run, steps=400, alpha=0.1)
    for one, learner, values in ((boyan, "htd", {}), (walk, "htd_dd", {"kappa": 3.0})):
        assert np.allclose(run(one, learner, **values).w, run(one, "td").w, rtol=0, atol=1e-13)
    first, second = (run(boyan, "htd_dd", zeta=zeta).w for zeta in (0.1, 2.0))
    assert np.allclose(first, second, rtol=0, atol=1e-13)
    assert not np.allclose(first, run(boyan, "td").w, rtol=0, atol=1e-3)
