"""Many transitions of a user's own for one learner, compiled: rows of features in, steps made.

`online.Learner.update_many` calls it. The memory is the learner's, and changes in place.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.learners import Setting


class FeatureRows(NamedTuple):
    """Rows of features: row t has values[begin[t]:begin[t + 1]], at these indices; dense rows need none."""

    begin: Integers
    indices: Integers
    values: Array


class Transitions(NamedTuple):
    """n transitions, checked: rows of features of both states, and (n,) numbers. x_next is empty where it ended."""

    x: FeatureRows
    x_next: FeatureRows
    reward: Array
    discount: Array
    rho: Array
    dense: bool


def advance(
    memory: Array,
    scale: Array,
    setting: Setting,
    data: Transitions,
    factor: Array,
    previous: Integers,
    deltas: Array,
    first: int,
) -> int:
    """Make the steps from row `first` on; return the row at which it stopped, or how many rows there are.

    memory    (p, 4) w, η over its scale, w − w_prev, and a part that is not used
    scale     (1,) of η
    factor    (n,) of the schedule
    previous  the features at which w changed in the step before
    deltas    (n,) is filled with the TD errors
    """
    from gradient_dd.engine.kernels.stream import stream_kernel  # here, so that a Learner alone loads no compiler

    rule, values = setting.rule, setting.values
    start = np.array([values["alpha"], values.get("zeta", 0.0)])
    own = [values[p.name] for p in rule.parameters if p.name not in ("alpha", "zeta") and not p.shared]
    given = data.x, data.x_next, data.reward, data.discount, data.rho, factor, previous, deltas, first
    kernel = stream_kernel(rule, data.dense)
    return int(kernel(memory, scale, start, np.array(own or [0.0]), setting.rho_mode == "T", *given))
