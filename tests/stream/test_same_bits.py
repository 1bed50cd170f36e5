"""Every registered learner gives the same bits in every way of feeding it the same rows.

`update`, plain and compiled, against `update_many`; with traces, momentum and ratios in either place; dense rows,
one-hot rows, and sparse rows whose indices are in order, in no order, or repeated.
"""

import numpy as np
import pytest

from gradient_dd import LEARNERS, Learner
from tests.rules import FEW, with_kernels

P, N = 9, 130  # so that the last updates are compiled


def numbers(rng):
    """Return reward, discount, rho, pi and mu of N transitions, some of them ends of episodes."""
    mu, pi = rng.uniform(0.2, 0.9, N), rng.uniform(0.0, 1.0, N)
    discount = np.where(np.arange(N) % 70 == 69, 0.0, rng.uniform(0.5, 1.0, N))  # traces grow old before an end
    return {"reward": rng.normal(size=N), "discount": discount, "rho": pi / mu, "pi": pi, "mu": mu}


def dense(rng):
    return rng.normal(size=(N, P)) * (rng.random((N, P)) < 0.6)


def one_hot(rng):
    """Return rows that leave a feature for good, so that its trace becomes tiny."""
    return np.eye(P)[(np.arange(N) + rng.integers(2, size=N)) // 16 % P]


def ordered(rng):
    indices = np.sort(np.argsort(rng.random((N, P)), axis=1)[:, :4], axis=1)
    return indices, rng.normal(size=(N, 4))


def unordered(rng):
    return np.argsort(rng.random((N, P)), axis=1)[:, :4], rng.normal(size=(N, 4))


def repeated(rng):
    return rng.integers(P, size=(N, 4)), rng.normal(size=(N, 4))


FORMS = (dense, one_hot, ordered, unordered, repeated)


def single(rows, t):
    """Return a row as `update` takes it."""
    return (rows[0][t], rows[1][t]) if isinstance(rows, tuple) else rows[t]


def settings_of(rule):
    """Return what a learner is tried with: its defaults, with a trace where it can have one, the ratio elsewhere."""
    found = [{"alpha": 0.01}]
    if "lam" in rule.defaults:
        found.append({"alpha": 0.01, "lam": 0.5})
    if rule.has_rho_mode:
        found.append({"alpha": 0.01, "rho_mode": "T"})
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", with_kernels(LEARNERS, (*FEW, "gtd2_momentum")))
def test_update_and_update_many(name, form):
    rng = np.random.default_rng(0)
    x, x_next, columns = form(rng), form(rng), numbers(rng)
    for values in settings_of(LEARNERS[name]):
        one, many = (Learner(name, P, **values) for _ in range(2))
        rows = ({key: column[t] for key, column in columns.items()} for t in range(N))
        deltas = [one.update(single(x, t), x_next=single(x_next, t), **row) for t, row in enumerate(rows)]
        assert np.array_equal(many.update_many(x, x_next=x_next, **columns), deltas), values
        assert np.array_equal(many.w, one.w), values
        assert np.array_equal(many.eta, one.eta), values


def test_what_is_not_promised():
    """Dense rows and the same rows as pairs differ where a sparse trace drops what is below its rounding."""
    rng = np.random.default_rng(2)
    x, x_next, columns = one_hot(rng), one_hot(rng), numbers(rng)
    agents = [Learner("td", P, alpha=0.1, lam=0.5) for _ in range(2)]
    agents[0].update_many(x, x_next=x_next, **columns)
    agents[1].update_many(*(as_pairs(rows) for rows in (x,)), x_next=as_pairs(x_next), **columns)
    assert np.allclose(agents[0].w, agents[1].w, rtol=1e-13, atol=1e-15)


def as_pairs(rows):
    return np.argmax(rows, axis=1)[:, None], np.ones((len(rows), 1))
