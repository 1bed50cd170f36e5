"""Tuned fully: every learner has as many settings over all parameters it has, and what is TD is left out."""

from functools import partial

import numpy as np
import pytest

from gradient_dd.engine import reference
from gradient_dd.experiments.paper import studies
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.tasks import boyan_chain, random_walk


@pytest.mark.parametrize("study", [name for name in STUDIES if name.endswith("-fully")])
def test_tuned_fully_every_learner_has_as_many_settings_over_all_it_has(study):
    found = {}
    for setting in STUDIES[study].settings():
        found.setdefault((setting.rule.name, setting.rho_mode), []).append(setting)
    assert {len(settings) for settings in found.values()} == {studies.SETTINGS}
    for (name, _), settings in found.items():
        several = {parameter for parameter in settings[0].values if len({s.values[parameter] for s in settings}) > 1}
        wanted = set(settings[0].values) - {"lam"}
        if name == "htd_dd" and not study.startswith("baird"):
            wanted -= {"zeta"}  # on-policy ζ of HTD makes no difference
        assert several == wanted, name
    defaults = [s for s in found["gradient_dd", "R"] if s.values["zeta"] == s.values["kappa"] == 1]
    assert len(defaults) >= 8  # the paper's κ = ζ = 1 has its step sizes too


def test_what_is_td_is_left_out_of_tuning_fully():
    """On-policy w of HTD is that of TD, and on tables w of HTD-DD; ζ of HTD-DD changes nothing."""
    walk, boyan = random_walk(6), boyan_chain(4)
    run = partial(reference.run, steps=400, alpha=0.1)
    for one, learner, values in ((boyan, "htd", {}), (walk, "htd_dd", {"kappa": 3.0})):
        assert np.allclose(run(one, learner, **values).w, run(one, "td").w, rtol=0, atol=1e-13)
    first, second = (run(boyan, "htd_dd", zeta=zeta).w for zeta in (0.1, 2.0))
    assert np.allclose(first, second, rtol=0, atol=1e-13)
    assert not np.allclose(first, run(boyan, "td").w, rtol=0, atol=1e-3)
