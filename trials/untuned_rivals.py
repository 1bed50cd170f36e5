"""Compare AutoLearner with rules that adapt their own step sizes, on one task and with their defaults.

    python -m trials.untuned_rivals

    Adam      TD's update as the gradient, step size 0.001                 Kingma & Ba (2015)
    Autostep  a step size for each feature, μ = 0.01, τ = 10⁴              Mahmood et al. (2012)
    TIDBD     the same by meta-gradients of TD, θ = 0.01                   Kearney et al. (2018)

All follow TD's ρ δ x. Autostep and TIDBD begin at 0.1 over the mean of ‖x‖². Each is measured with its last weights and
with averaged weights.
"""

import numba
import numpy as np

from tools.programs import parser_of
from trials.auto_learner.cases import aimed_at_the_fixed_point, ring
from trials.auto_learner.rivals import Road, auto_run
from trials.auto_learner.trial import AVERAGED

RULES = ("Adam", "Autostep", "TIDBD")
ADAM_STEP, FIRST, SECOND, META, TAU = 0.001, 0.9, 0.999, 0.01, 1e4


@numba.njit(error_model="numpy")
def advance(rule, w, mean, state, steps, x, x_next, reward, discount, rho):  # pragma: no cover - compiled
    """Make steps of one rule; `state` (3, p) is its own, `mean` the average of w with weights 1, 2, 3, …"""
    own, h, v = state
    for t in range(reward.size):
        steps += 1
        delta = rho[t] * (reward[t] + discount[t] * (x_next[t] @ w) - x[t] @ w)
        if rule == 0:
            h[:] = FIRST * h + (1 - FIRST) * delta * x[t]
            v[:] = SECOND * v + (1 - SECOND) * (delta * x[t]) ** 2
            w += ADAM_STEP * (h / (1 - FIRST**steps)) / (np.sqrt(v / (1 - SECOND**steps)) + 1e-8)
        elif rule == 1:
            pull = delta * x[t] * h
            v[:] = np.maximum(np.abs(pull), v + own * x[t] ** 2 * (np.abs(pull) - v) / TAU)
            own *= np.exp(META * np.where(v > 0, pull / np.where(v > 0, v, 1.0), 0.0))
            own /= max(1.0, (own * x[t] ** 2).sum())
            w += own * delta * x[t]
            h[:] = h * (1 - own * x[t] ** 2) + own * delta * x[t]
        else:
            own += META * delta * x[t] * h
            alpha = np.exp(own)
            w += alpha * delta * x[t]
            h[:] = h * np.maximum(0.0, 1 - alpha * x[t] ** 2) + alpha * delta * x[t]
        mean += 2 / (steps + 1) * (w - mean)
    return steps


def mean_errors(road: Road) -> dict[str, float]:
    """Return the mean error of every rule over a run, with last and averaged weights; {} for sparse features."""
    found = {}
    for place, name in enumerate(RULES if not road.sparse else ()):
        w = np.array(road.task.initial_weights, dtype=float)
        mean, state, steps, errors = w.copy(), np.zeros((3, w.size)), 0, []
        state[0] = {"Autostep": 0.1 * road.unit, "TIDBD": np.log(0.1 * road.unit)}.get(name, 0.0)
        for row, next_row, reward, discount, rho in road.parts():
            steps = advance(place, w, mean, state, steps, row, next_row, reward, discount, rho)
            errors.append(road.errors(np.column_stack([w, mean])))
        found[name], found[name + AVERAGED] = (float(one) for one in np.mean(errors, axis=0))
    return found


def main(words: list[str] | None = None) -> None:
    """Print the mean errors on one ring; `trials.learner_trial` has them on all tasks."""
    parser_of(__doc__).parse_args(words)
    road = Road(aimed_at_the_fixed_point(ring(1)), 20_000, 0)
    print(mean_errors(road) | {"AutoLearner": auto_run(road).mean_error})


if __name__ == "__main__":
    main()
