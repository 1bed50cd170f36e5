"""Step sizes from 1e-300 to 1e300: both engines find divergence at the same step, however fast it comes."""

import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.learners import LEARNERS
from gradient_dd.testing.mean_contracts import away_from_zero
from tests.rules import compiled_rules, with_kernels

EXPONENTS = (-300, -200, -100, -50, -10, 10, 20, 30, 50, 60, 80, 100, 120, 150, 160, 200, 250, 300)
CASES = [(tasks.random_walk(5), Horizon(episodes=6)), (tasks.baird(5), Horizon(steps=24))]


QUICK = ("gtd", "gradient_dd")  # η shrinks as a whole, and w remembers: where the engines compute in different ways
LATER = pytest.mark.slow


@pytest.mark.parametrize(
    "name",
    [
        *with_kernels(QUICK),
        *(pytest.param(one, marks=LATER) for one in compiled_rules() if one not in QUICK),
    ],
)
def test_both_engines_find_divergence_at_the_same_step(name):
    """η may be as large as a number can be before w shows it: its scale in a lane must leave it that room."""
    found = set()
    for rule in LEARNERS[name].forms:
        chosen = [rule.setting(**away_from_zero(rule) | {"alpha": 10.0**exponent}) for exponent in EXPONENTS]
        for task, horizon in CASES:
            run = LaneRun(task, chosen, horizon)
            run.advance()
            for setting, step in zip(chosen, run.results().diverged_step[0], strict=True):
                counted = {"episodes": horizon.episodes, "steps": horizon.steps}
                wanted = reference.run(task, rule, **counted, **setting.values).diverged_at
                assert step == (wanted or 0), f"{setting} on {task}"
                found.add(bool(step))
    assert found == {False, True}
