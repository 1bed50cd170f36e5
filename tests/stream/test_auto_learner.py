"""AutoLearner: against a textbook form, in every form of rows, from files, and in what it refuses."""

import numpy as np
import pytest
import scipy.sparse as sp

import gradient_dd as gdd
from gradient_dd import tasks
from gradient_dd.engine import held_out
from gradient_dd.engine.held_out import FIRST_GTD2, MULTIPLES, RUNGS, HeldOut, kernel_rows
from gradient_dd.engine.stream import NO_INDICES
from gradient_dd.engine.trajectories import Stream
from gradient_dd.errors import BadRequestError, DivergedError
from gradient_dd.files import open_saved, write_file
from gradient_dd.stream.auto import AUTO_FILE, AutoLearner

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
    o = Stream(task, 0, run).take(steps)
    return X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o]


def learnt(task, steps, **options):
    agent = AutoLearner(task.n_features, initial_w=task.initial_weights, **options)
    agent.update_many(*transitions(task, steps))
    return agent


def textbook(task, data, alpha=None):
    """Return w and shares, written as docs/auto-learner.md has it: dense means, restarts, and a solve."""
    p = task.n_features
    w = np.tile(task.initial_weights.astype(float), (RUNGS, 1))
    a, eta, G, S, C, c = w.copy(), np.zeros((RUNGS, p)), np.zeros((RUNGS, p)), np.zeros((RUNGS,) * 2), np.zeros(p), None
    c, norms, following, penalty = np.eye(RUNGS)[0], 0.0, 1, np.ones(RUNGS)
    recent = np.zeros(RUNGS)
    for t, (x, reward, discount, x_next, rho) in enumerate(zip(*data, strict=True), start=1):
        held, own = (reward + discount * one @ x_next - one @ x for one in (a, w))
        recent += (rho * own) ** 2
        share = 4 / (t + 3)
        C += share * (x * x - C)
        G += share * (rho * held[:, None] * x - G)
        seen = x != 0
        S += share * (rho**2 * np.outer(held, held) * (x[seen] ** 2 / C[seen]).sum() - S)
        norms += max(1.0, rho) * x @ x
        steps = MULTIPLES * (alpha or held_out.UNIT * t / norms)
        second = np.where(np.arange(RUNGS) >= FIRST_GTD2, eta @ x, own)
        along = (np.arange(RUNGS) >= FIRST_GTD2)[:, None] * discount * x_next
        x_eta = eta @ x
        w = w + (steps * rho * second)[:, None] * (x - along)
        eta = eta + (held_out.ZETA * steps * (rho * own - x_eta))[:, None] * x
        a += 2 / (t + 1) * (w - a)
        if t == following:
            used = C > 0
            N = (G[:, used] / C[used]) @ G[:, used].T + held_out.NOISE / t * S
            worth = N.diagonal() * penalty
            best = int(np.argmin(worth))
            doubt, first = S[0, 0] / t, N[0, 0] - held_out.NOISE / t * S[0, 0]
            bursts = (np.arange(RUNGS) != best) & (recent > held_out.BURST * recent[0])
            recent[:] = 0.0
            for k in 1 + np.flatnonzero(bursts[1:] | (N.diagonal() > held_out.WORSE * N[best, best])[1:]):
                w[k], a[k], G[k] = w[best], a[best], G[best]
                eta[k] = eta[best] if min(k, best) >= FIRST_GTD2 else 0.0
                for square in (N, S):
                    square[k, :], square[:, k] = square[best, :], square[:, best]
                    square[k, k] = square[best, best]
                penalty[k] *= 2
            c = np.eye(RUNGS)[best]
            if N[best, best] > 0:
                N[1:, 1:] += held_out.NOISE / t * np.diag(S.diagonal()[1:])
                ridge = held_out.RIDGE * N.diagonal() * penalty
                ridge[0] = 0.0
                c = np.linalg.solve(N + np.diag(ridge), np.ones(RUNGS))
                c /= c.sum()
            hold = min(1.0, held_out.CHANCE * doubt / first) if first > 0 else 1.0
            c = (1 - hold) * c + hold * np.eye(RUNGS)[0]
            following = t + min(t, held_out.BLOCK)
    return c @ a, c


@pytest.mark.parametrize("alpha", [None, 0.05])
@pytest.mark.parametrize("name", ["walk", "boyan", "dense"])
def test_it_is_the_textbook_form(name, alpha):
    task, data = TASKS[name], transitions(TASKS[name], 230)
    agent = AutoLearner(task.n_features, alpha, initial_w=task.initial_weights)
    agent.update_many(*data)
    w, c = textbook(task, data, alpha)
    assert np.allclose(agent.w, w, rtol=1e-7, atol=1e-10)
    assert np.allclose(agent.shares, c, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", TASKS)
def test_the_compiled_and_the_plain_form_give_the_same_bits(name):
    """1,100 steps: restarts on Baird's, and two windows."""
    task, (x, reward, discount, x_next, rho) = TASKS[name], transitions(TASKS[name], 1100)
    plain, p = HeldOut.begin(np.array(task.initial_weights, float)), task.n_features
    rows = [kernel_rows((NO_INDICES, p, NO_INDICES, one.ravel(), np.inf)) for one in (x, x_next)]
    deltas = np.empty(1100)
    assert held_out.run(tuple(plain), 0.0, *rows, (reward, discount, rho), deltas) == 1100
    agent = AutoLearner(p, initial_w=task.initial_weights)
    assert np.array_equal(agent.update_many(x, reward, discount, x_next, rho), deltas)
    assert all(np.array_equal(a, b) for a, b in zip(plain, agent._state, strict=True))
    assert name != "baird" or plain.penalties.max() > 1


@pytest.mark.parametrize("name", TASKS)
def test_every_form_of_rows_gives_the_same_bits(name):
    task, (x, reward, discount, x_next, rho) = TASKS[name], transitions(TASKS[name], 600)
    width = int(max((x != 0).sum(axis=1).max(), (x_next != 0).sum(axis=1).max()))
    indices = [np.argsort(one == 0, axis=1, kind="stable")[:, :width] for one in (x, x_next)]
    pairs = [(i, np.take_along_axis(one, i, axis=1)) for i, one in zip(indices, (x, x_next), strict=True)]
    several = [AutoLearner(task.n_features, initial_w=task.initial_weights) for _ in range(5)]
    several[0].update_many(x, reward, discount, x_next, rho)
    several[1].update_many(sp.csr_matrix(x), reward, discount, sp.csr_matrix(x_next), rho)
    several[2].update_many(pairs[0], reward, discount, pairs[1], rho)
    for t in range(600):
        several[3].update(x[t], reward[t], discount[t], x_next[t] if discount[t] else None, rho[t])
        pair = [(np.flatnonzero(one[t])[::-1], one[t][one[t] != 0][::-1]) for one in (x, x_next)]
        several[4].update(pair[0], reward[t], discount[t], pair[1], rho[t])
    assert len({agent.w.tobytes() for agent in several}) == 1
    assert several[0].updates == 600


def test_many_features_are_read_rarely_and_a_step_costs_its_nonzeros():
    """With 2 of 1,000 features in a row, readings are 500 steps apart at the end, and double until then."""
    rng, agent = np.random.default_rng(0), AutoLearner(1000)
    rows = rng.integers(0, 500, (3001, 2)) * 2 + np.array([0, 1])
    ages = set()
    for t in range(3000):
        agent.update((rows[t], np.ones(2)), 1.0, 0.9, (rows[t + 1], np.ones(2)))
        ages.add(agent._state.numbers[held_out.NEXT])
    assert sorted(ages) == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1012, 1512, 2012, 2512, 3012]


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
    assert agent.choice == agent.rungs[int(np.argmax(agent.shares))]
    assert agent.residual > 0
    assert repr(agent).startswith("<AutoLearner 4 features, 500 updates, mostly ")
    assert repr(AutoLearner(3, 0.5)).startswith("<AutoLearner alpha=0.5, 3 features")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"alpha": -1.0}, "'alpha' must be a positive number. Got -1"),
        ({"n_features": 0}, "'n_features' must be a whole number, 1 or more. Got 0."),
        ({"n_features": 2**62}, "must take at most"),
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
def test_a_refused_update_changes_nothing(bad, many):
    agent = learnt(TASKS["dense"], 60)
    before = [array.copy() for array in agent._state]
    words = {"x": np.ones(4), "reward": 1.0, "discount": 0.9, "x_next": np.ones(4), "rho": 1.0} | bad
    if many:
        words |= {name: [words[name]] for name in ("x", "x_next") if words[name] is not None}
    with pytest.raises(BadRequestError):
        (agent.update_many if many else agent.update)(**words)
    assert all(np.array_equal(a, b) for a, b in zip(before, agent._state, strict=True))


def test_numbers_that_overflow_at_the_first_weights_are_said():
    agent = AutoLearner(2)
    agent.update([1.0, 0.0], 1.0, 0.5, [0.0, 1.0])
    with pytest.raises(DivergedError, match="a TD error beyond 1e\\+100"):
        agent.update_many([[1.0, 0.0]] * 2, [1.0, 1e200], 0.5, [[0.0, 1.0]] * 2)
    assert agent.updates == 2
    assert np.isfinite(agent.w).all()


def test_rungs_that_overflow_are_brought_back():
    """Steps of 1e6 send every rung beyond all bounds at once: what is read out stays at the first weights."""
    agent = AutoLearner(1, alpha=1e6, initial_w=3.0)
    for _ in range(300):
        agent.update([1.0], 1.0, 0.5, [2.0], 3.0)
    assert np.isfinite(agent._state.memory).all()
    assert abs(agent.w[0] - 3.0) < 1e-3


@pytest.mark.parametrize("alpha", [None, 0.05])
def test_a_loaded_learner_goes_on_with_the_same_bits(alpha, tmp_path):
    x, *rest = transitions(TASKS["dense"], 700)
    agent = AutoLearner(4, alpha, initial_w=[1.0, 2.0, 3.0, 4.0])
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
        lambda header, arrays: arrays.update(shares=np.zeros(3)),
        lambda header, arrays: arrays.update(shares=np.zeros(RUNGS, int)),
        lambda header, arrays: arrays["numbers"].fill(np.nan),
    ],
)
def test_a_changed_file_is_refused(change, tmp_path):
    path = tmp_path / "agent.npz"
    AutoLearner(3, 0.1).save(path)
    with open_saved(path, AUTO_FILE) as (header, arrays):
        pass
    change(header, arrays)
    write_file(path, AUTO_FILE, header, arrays)
    with pytest.raises(BadRequestError):
        AutoLearner.load(path)


def test_another_learners_file_is_refused(tmp_path):
    gdd.Learner("td", 3).save(tmp_path / "td.npz")
    with pytest.raises(BadRequestError, match="must be an AutoLearner saved by gradient-dd"):
        AutoLearner.load(tmp_path / "td.npz")
