"""Where learners with traces converge to: their errors on Collision."""

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.tasks import exact

DRAWS = [tasks.collision(seed) for seed in range(60)]
KNOWN = [  # mean RMSVE of the fixed points over draws of the features, from an independent run of ours
    ("td", 0.5, 0.143),
    ("td", 0.9, 0.074),
    ("td", 1.0, 0.071),
    ("etd", 0.0, 0.111),
    ("etd", 0.5, 0.093),
    ("etd", 0.9, 0.075),
    ("etd", 1.0, 0.071),
]


def closed_form(task, lam, emphatic=False):
    """Return the fixed point from the table alone."""
    discount = task.discount[task.states]
    emphasis = exact.emphatic_weights(task.visits, task.P, discount, lam) if emphatic else None
    A, b = exact.trace_moments(task.features, task.visits, task.P, task.r, discount, lam, emphasis)
    return exact.fixed_point(A, b)


@pytest.mark.parametrize(("name", "lam", "known"), KNOWN)
def test_the_errors_of_the_fixed_points_on_collision_are_those_of_another_run(name, lam, known):
    errors = [task.rmsve(closed_form(task, lam, name == "etd")) for task in DRAWS]
    assert np.mean(errors) == pytest.approx(known, abs=2 * np.std(errors) / np.sqrt(len(DRAWS)) + 5e-4)
