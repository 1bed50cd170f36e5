"""AutoLearner: against a textbook form, in every form of rows, from files, and in what it refuses."""

from itertools import pairwise
from types import FunctionType

import numpy as np
import pytest
import scipy.sparse as sp

import gradient_dd as gdd
from gradient_dd import tasks
from gradient_dd.engine import auto
from gradient_dd.engine.auto import AT, MULTIPLES, RUNGS, AutoState, kernel_rows
from gradient_dd.engine.kernels import auto as compiled
from gradient_dd.engine.single import NO_INDICES
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import BadRequestError, DivergedError
from gradient_dd.files import open_saved, write_file
from gradient_dd.stream.auto import AutoLearner
from gradient_dd.stream.shrinkage import EquationMeans, shrunk_solution

TASKS = {
    "walk": tasks.random_walk(5),
    "boyan": tasks.boyan_chain(5),
    "baird": tasks.baird(7),
    "dense": tasks.random_mdp(seed=3),
}


def transitions(task, steps, run=0):
    """Return x, reward, discount, x_next and rho of the first steps of a stream, x and x_next dense."""
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    o = OutcomeSampler(task, 0, run).take(steps)
    return X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o]


def learnt(task, steps, **options):
    agent = AutoLearner(task.n_features, initial_w=task.initial_weights, **options)
    agent.update_many(*transitions(task, steps))
    return agent


def textbook_rungs(task, x, reward, discount, x_next, rho, alpha):
    """Yield z and z' of every step (docs/evidence/auto-learner.md): averages of TD and GTD2, less the first weights."""
    first = np.array(task.initial_weights, float)
    w, eta, norms = np.tile(first, (RUNGS, 1)), np.zeros(len(first)), 0.0
    a = w.copy()
    for t in range(len(reward)):
        yield (a - first) @ x[t], (a - first) @ x_next[t]
        norms += max(1.0, rho[t]) * x[t] @ x[t]
        steps = MULTIPLES * (alpha or auto.UNIT * (t + 1) / norms)
        delta = rho[t] * (reward[t] + discount[t] * w @ x_next[t] - w @ x[t])
        change = (steps * delta)[:, None] * x[t]
        change[2] = steps[2] * rho[t] * (eta @ x[t]) * (x[t] - discount[t] * x_next[t])
        eta = eta + auto.ZETA * steps[2] * (delta[2] - eta @ x[t]) * x[t]
        w = w + change
        a += 2 / (t + 2) * (w - a)
    yield a - first, None


def textbook(task, data, quadratic, alpha=None):
    """Return the weights: sums over all steps so far in which step s counts s times, solved now and then."""
    x, reward, discount, x_next, rho = data
    first = np.array(task.initial_weights, float)
    k = len(first) if quadratic else RUNGS
    A, b, c, v, weights, share, following = np.zeros((k, k)), np.zeros(k), np.zeros(k), np.zeros(k), 0.0, 0.0, 1
    S, e, total, squares, rungs = np.zeros((k, k)), np.zeros(k), 0.0, [], textbook_rungs(task, *data, alpha)
    for t in range(1, 1 + len(reward)):
        row = x[t - 1], x_next[t - 1], discount[t - 1], rho[t - 1]
        z, z_next = row[:2] if quadratic else next(rungs)
        ahead = z - row[2] * z_next
        delta = reward[t - 1] + (row[2] * row[1] - row[0]) @ first
        A += t * row[3] * np.outer(z, ahead)
        b += t * row[3] * delta * z
        c += t * z * z
        weights += t
        squares.append((row[3] * delta) ** 2)
        S += t * row[3] ** 2 * np.outer(ahead, ahead)
        e += t * row[3] ** 2 * delta * ahead
        total += t * squares[-1]
        if t == following:
            events = 0.0 if not any(squares) else sum(squares) ** 2 / np.square(squares).sum()
            sums = (one / weights for one in (A, b, c, S, e, total))
            means = EquationMeans(*sums, 0.75 * t, events)
            v, share, _ = shrunk_solution(means, alpha if quadratic else None)
            following = t + max(1, t // 20, k // 2)
    return first + share * (v if quadratic else v @ next(rungs)[0])


@pytest.mark.parametrize(("quadratic", "alpha"), [(True, None), (True, 0.05), (False, None), (False, 0.05)])
@pytest.mark.parametrize("name", ["walk", "boyan", "dense"])
def test_it_is_the_textbook_form(name, quadratic, alpha):
    """130 steps: no window ends in them, and no rung bursts."""
    task, data = TASKS[name], transitions(TASKS[name], 130)
    agent = AutoLearner(task.n_features, alpha, quadratic=quadratic, initial_w=task.initial_weights)
    agent.update_many(*data)
    assert quadratic or np.array_equal([rung.multiple for rung in agent.rungs[1:]], MULTIPLES)
    assert np.allclose(agent.w, textbook(task, data, quadratic, alpha), rtol=1e-6, atol=1e-9)


def interpreted_steps():
    """Return the step with all functions that it calls, not compiled."""
    names = vars(compiled) | {"fetch": lambda memory, place: None}
    for name, one in vars(compiled).items():
        if name != "fetch" and hasattr(one, "py_func"):
            names[name] = FunctionType(one.py_func.__code__, names, name)
    return names["steps"]


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("name", TASKS)
def test_the_compiled_and_the_plain_form_give_the_same_bits(name, quadratic):
    """1,100 steps: restarts on Baird's, and two windows."""
    task, (x, reward, discount, x_next, rho) = TASKS[name], transitions(TASKS[name], 1100)
    p = task.n_features
    rows = [kernel_rows((NO_INDICES, p, NO_INDICES, one.ravel(), np.inf)) for one in (x, x_next)]
    agent = AutoLearner(p, quadratic=quadratic, initial_w=task.initial_weights)
    wanted = agent.update_many(x, reward, discount, x_next, rho)
    plain = AutoLearner(p, quadratic=quadratic, initial_w=task.initial_weights)
    deltas, done, numbers, steps = np.empty(1100), 0, plain._state.numbers, interpreted_steps()
    while done < 1100:
        done += steps(tuple(plain._state), 0.0, *rows, (reward, discount, rho), deltas, done)
        if numbers[AT.age] >= numbers[AT.stop]:
            plain._look()
    assert np.array_equal(wanted, deltas)
    assert all(np.array_equal(a, b) for a, b in zip(plain._state, agent._state, strict=True))
    assert name != "baird" or quadratic or plain._state.rungs[0].min() < MULTIPLES.min()


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("name", TASKS)
def test_every_form_of_rows_gives_the_same_bits(name, quadratic):
    task, (x, reward, discount, x_next, rho) = TASKS[name], transitions(TASKS[name], 600)
    width = int(max((x != 0).sum(axis=1).max(), (x_next != 0).sum(axis=1).max()))
    indices = [np.argsort(one == 0, axis=1, kind="stable")[:, :width] for one in (x, x_next)]
    pairs = [(i, np.take_along_axis(one, i, axis=1)) for i, one in zip(indices, (x, x_next), strict=True)]
    made = {"quadratic": quadratic, "initial_w": task.initial_weights}
    several = [AutoLearner(task.n_features, **made) for _ in range(5)]
    several[0].update_many(x, reward, discount, x_next, rho)
    several[1].update_many(sp.csr_matrix(x), reward, discount, sp.csr_matrix(x_next), rho)
    several[2].update_many(pairs[0], reward, discount, pairs[1], rho)
    for t in range(600):
        several[3].update(x[t], reward[t], discount[t], x_next[t] if discount[t] else None, rho[t])
        pair = [(np.flatnonzero(one[t])[::-1], one[t][one[t] != 0][::-1]) for one in (x, x_next)]
        several[4].update(pair[0], reward[t], discount[t], pair[1], rho[t])
    assert len({agent.w.tobytes() for agent in several}) == 1
    assert several[0].updates == 600


def test_readings_come_rarely():
    """Each 1/20 of the age after the one before, and at least one step for every two numbers to solve for."""
    rng, agent = np.random.default_rng(0), AutoLearner(40)
    x = rng.standard_normal((3001, 40))
    ages = set()
    for t in range(3000):
        agent.update(x[t], 1.0, 0.9, x[t + 1])
        ages.add(agent._state.numbers[AT.next])
    ages = sorted(ages)
    assert ages[:4] == [21, 41, 61, 81]
    assert all(b == a + max(20, int(a / 20)) for a, b in pairwise(ages))


def test_many_features_have_rungs():
    assert AutoLearner(250).quadratic
    assert not AutoLearner(251).quadratic
    assert AutoLearner(3, alpha=0.1).quadratic
    assert AutoLearner(251, quadratic=True)._state.A.shape == (251, 251)


def test_the_memory_of_a_feature_is_one_cache_line():
    memory = AutoState.begin(np.zeros(300), quadratic=False).memory
    assert memory.strides == (64, 8)
    assert memory.ctypes.data % 64 == 0


def test_predicting():
    task = TASKS["boyan"]
    agent = learnt(task, 300)
    X = task.features
    assert np.allclose(agent.predict(X), X @ agent.w, rtol=1e-12)
    assert agent.predict(([1], [2.0])) == pytest.approx(2 * agent.w[1])
    assert agent.predict(X[2]) == pytest.approx(X[2] @ agent.w)
    assert agent.predict(sp.csr_matrix(X))[2] == pytest.approx(X[2] @ agent.w)


def test_it_tells_what_it_does():
    agent = gdd.AutoLearner(n_features=4)
    assert agent.choice == ("still", 0.0)
    assert agent.residual == 0.0
    agent = learnt(TASKS["dense"], 500)
    assert agent.shares.sum() == pytest.approx(1.0)
    assert agent.rungs == (("still", 0.0), ("lstd", 1.0))
    assert agent.choice == agent.rungs[int(np.argmax(agent.shares))]
    assert agent.residual > 0
    rungs = learnt(TASKS["dense"], 500, quadratic=False)
    assert rungs.shares.sum() == pytest.approx(1.0)
    assert [rung.learner for rung in rungs.rungs] == ["still", "td", "td", "gtd2"]
    assert repr(agent).startswith("<AutoLearner 4 features, 500 updates, mostly ")
    assert repr(AutoLearner(3, 0.5)).startswith("<AutoLearner alpha=0.5, 3 features")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"alpha": -1.0}, "'alpha' must be a positive number. Got -1"),
        ({"n_features": 0}, "'n_features' must be a whole number, 1 or more. Got 0."),
        ({"n_features": 2**62}, "must take at most"),
        ({"quadratic": 1}, "'quadratic' must be true or false. Got 1."),
        ({"initial_w": [1.0]}, r"The shape of 'initial_w' must be \(\) or \(3,\)"),
    ],
)
def test_bad_options_are_refused(wrong, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        AutoLearner(**({"n_features": 3} | wrong))


@pytest.mark.parametrize(
    "bad",
    [{"reward": np.nan}, {"discount": 2}, {"rho": -1}, {"x": [1.0]}, {"x": ([5], [1.0])}, {"x_next": None}],
)
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("quadratic", [False, True])
def test_a_refused_update_changes_nothing(bad, many, quadratic):
    agent = learnt(TASKS["dense"], 60, quadratic=quadratic)
    before = [array.copy() for array in agent._state]
    words = {"x": np.ones(4), "reward": 1.0, "discount": 0.9, "x_next": np.ones(4), "rho": 1.0} | bad
    if many:
        words |= {name: [words[name]] for name in ("x", "x_next") if words[name] is not None}
    with pytest.raises(BadRequestError):
        (agent.update_many if many else agent.update)(**words)
    assert all(np.array_equal(a, b) for a, b in zip(before, agent._state, strict=True))


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("far", [{"reward": 1e200}, {"x": 1e70}, {"x_next": 1e70}, {"rho": 1e70}])
def test_numbers_that_would_overflow_are_refused(far, quadratic):
    agent = AutoLearner(2, quadratic=quadratic)
    agent.update([1.0, 0.0], 1.0, 0.5, [0.0, 1.0])
    reward, rho = [1.0, far.get("reward", 1.0)], [1.0, far.get("rho", 1.0)]
    x, x_next = [[1.0, 0.0], [far.get("x", 1.0), 0.0]], [[0.0, 1.0], [0.0, far.get("x_next", 1.0)]]
    with pytest.raises(DivergedError, match=r"a feature, a ratio or a TD error of its initial weights beyond 1e\+60"):
        agent.update_many(x, reward, 0.5, x_next, rho)
    assert agent.updates == 2
    assert np.isfinite(agent.w).all()


def test_rungs_that_overflow_are_brought_back():
    """Steps of 1e6 send every rung beyond all bounds at once: what is read out stays at the first weights."""
    agent = AutoLearner(1, alpha=1e6, initial_w=3.0)
    for _ in range(300):
        agent.update([1.0], 1.0, 0.5, [2.0], 3.0)
    assert np.isfinite(agent._state.memory).all()
    assert abs(agent.w[0] - 3.0) < 1e-3


@pytest.mark.parametrize("largest", [1e-140, 1e-3, 1e3, 1e50])
def test_the_unit_of_features_does_not_matter(largest):
    task, (x, *rest, x_next, rho) = TASKS["boyan"], transitions(TASKS["boyan"], 2000)
    agents = [AutoLearner(task.n_features) for _ in range(2)]
    for agent, unit in zip(agents, (1.0, largest), strict=True):
        agent.update_many(unit * x, *rest, unit * x_next, rho)
    assert np.allclose(agents[0].w, largest * agents[1].w, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("quadratic", "alpha"), [(True, None), (True, 0.05), (False, None), (False, 0.05)])
def test_a_loaded_learner_goes_on_with_the_same_bits(quadratic, alpha, tmp_path):
    x, *rest = transitions(TASKS["dense"], 700)
    agent = AutoLearner(4, alpha, quadratic=quadratic, initial_w=[1.0, 2.0, 3.0, 4.0])
    agent.update_many(x[:333], *(one[:333] for one in rest))
    agent.save(tmp_path / "agent.npz")
    loaded = AutoLearner.load(tmp_path / "agent.npz")
    for one in (agent, loaded):
        one.update_many(x[333:], *(column[333:] for column in rest))
    assert np.array_equal(agent.w, loaded.w)
    assert repr(agent) == repr(loaded)
    assert all(np.array_equal(a, b) for a, b in zip(agent._state, loaded._state, strict=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(alpha=-1.0),
        lambda header, arrays: header.update(n_features=10**9),
        lambda header, arrays: arrays.pop("memory"),
        lambda header, arrays: header.update(quadratic="yes"),
        lambda header, arrays: header.update(quadratic=True),
        lambda header, arrays: arrays.update(vectors=np.zeros(3)),
        lambda header, arrays: arrays.update(vectors=np.zeros((4, RUNGS), int)),
        lambda header, arrays: arrays["numbers"].fill(np.nan),
    ],
)
def test_a_changed_file_is_refused(change, tmp_path):
    path = tmp_path / "agent.npz"
    AutoLearner(3, 0.1, quadratic=False).save(path)
    with open_saved(path, AutoLearner.file) as (header, arrays):
        pass
    change(header, arrays)
    write_file(path, AutoLearner.file, header, arrays)
    with pytest.raises(BadRequestError):
        AutoLearner.load(path)


def test_another_learners_file_is_refused(tmp_path):
    gdd.Learner("td", 3).save(tmp_path / "td.npz")
    with pytest.raises(BadRequestError, match="must be an AutoLearner saved by gradient-dd"):
        AutoLearner.load(tmp_path / "td.npz")
