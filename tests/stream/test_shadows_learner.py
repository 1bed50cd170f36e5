"""The learner that chooses: both of its forms, what it chooses, and what it refuses."""

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import ladder
from gradient_dd.engine.choosing import run_shadow_learner
from gradient_dd.engine.schedules import tapered
from gradient_dd.engine.trajectories import Stream
from gradient_dd.errors import BadRequestError, DivergedError
from gradient_dd.stream.learner import Learner
from gradient_dd.stream.shadow_copies import ShadowCopies
from gradient_dd.stream.shadows import ShadowLearner

TASKS = {
    "walk": tasks.random_walk(5),
    "boyan": tasks.boyan_chain(5),
    "baird": tasks.baird(7),
    "dense": tasks.random_mdp(seed=3),
}


def fed(task, steps, sparse=False, seed=0, **options):
    """Return a ShadowLearner fed with the first steps of a stream."""
    agent = ShadowLearner(task.n_features, initial_w=task.initial_weights, **options)
    rows = [(r.indices, r.data) if sparse else r.toarray()[0] for r in task.row_features]
    row, next_row, reward, discount, rho, ends = task.transitions
    for o in Stream(task, seed).take(steps):
        agent.update(rows[row[o]], reward[o], discount[o], rows[next_row[o]], rho[o], ended=bool(ends[o]))
    return agent


@pytest.mark.parametrize("sparse", [pytest.param(False, marks=pytest.mark.slow), True], ids=["dense", "sparse"])
@pytest.mark.parametrize("alpha", [None, 0.02], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", TASKS)
def test_both_forms_give_the_same_bits(name, alpha, sparse):
    task = TASKS[name]
    agent = fed(task, 730, sparse, alpha=alpha)
    compiled = run_shadow_learner(task, alpha, steps=730)
    assert np.array_equal(agent.w, compiled.w)
    assert agent.rungs.index(agent.choice) == compiled.choices[-1]
    assert len(set(compiled.choices.tolist())) > 1


def test_both_forms_follow_a_schedule():
    for schedule in (tapered(5), tapered(100, per="step")):
        agent = fed(TASKS["walk"], 400, alpha=0.3, schedule=schedule)
        assert np.array_equal(agent.w, run_shadow_learner(TASKS["walk"], 0.3, steps=400, schedule=schedule).w)


def test_before_its_first_choice_it_is_the_first_rung():
    """Within the first block nothing is chosen: the weights are those of TD at the smallest step size."""
    task, last = TASKS["dense"], ladder.NARROW.rungs[ladder.NARROW.first]
    agent = fed(task, ladder.BLOCK - 1, alpha=0.1)
    td = Learner("td", task.n_features, alpha=0.1 * last.multiple)
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    for o in Stream(task).take(ladder.BLOCK - 1):
        td.update(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    assert last.direct
    assert last.c == 1
    assert np.allclose(agent.w, td.w, rtol=1e-12, atol=0)


def test_it_leaves_td_where_td_diverges():
    """On Baird's counterexample TD ends beyond 1e6; the learner that chooses stays below where it began."""
    task, alpha = TASKS["baird"], 0.02
    start = task.rmsve(task.initial_weights)
    runs = [run_shadow_learner(task, alpha, steps=20_000, every=100, run=run).errors for run in range(3)]
    td = Learner("td", task.n_features, alpha=alpha, initial_w=task.initial_weights)
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    for o in Stream(task).take(20_000):
        td.update(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    assert task.rmsve(td.w) > 1e6 * start
    assert max(errors[-1] for errors in runs) < start


def test_without_alpha_the_scale_of_the_features_does_not_matter():
    """Features ten times as large give the same values: all step sizes are in units of the mean of ‖x‖²."""
    plain, scaled = (fed(TASKS["walk"], 300, sparse=False) for _ in range(2))
    task = TASKS["walk"]
    agent = ShadowLearner(task.n_features, initial_w=task.initial_weights / 8)
    X = 8 * task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    for o in Stream(task).take(300):
        agent.update(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    assert np.array_equal(plain.w, scaled.w)
    assert np.allclose(X[:-1] @ agent.w, task.features @ plain.w, rtol=1e-9)


def test_restarted_shadows_leave_the_weights_alone():
    agent = fed(TASKS["dense"], 200, alpha=0.05)
    before = agent.w
    agent.restart_shadows()
    assert np.array_equal(agent.w, before)


def test_predicting():
    agent = fed(TASKS["boyan"], 100, alpha=0.1)
    X = TASKS["boyan"].features
    assert np.array_equal(agent.predict(X), X @ agent.w)
    assert agent.predict(([1], [2.0])) == 2 * agent.w[1]
    assert agent.predict(X[2]) == pytest.approx(X[2] @ agent.w)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"alpha": -1.0}, "'alpha' must be a positive number. Got -1"),
        ({"n_features": 0}, "'n_features' must be a whole number, 1 or more. Got 0."),
        ({"initial_w": [1.0]}, r"The shape of 'initial_w' must be \(\) or \(3,\)"),
        ({"seed": -1}, "'seed' must be a whole number, 0 or more. Got -1."),
    ],
)
def test_bad_options_are_refused(wrong, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        ShadowLearner(**({"n_features": 3} | wrong))


@pytest.mark.parametrize("bad", [{"reward": np.nan}, {"discount": 2}, {"rho": -1}, {"x": [1.0]}, {"x": ([5], [1.0])}])
def test_a_refused_update_changes_nothing(bad):
    agent = fed(TASKS["dense"], 60, alpha=0.05)
    before, updates = agent.w, agent.updates
    with pytest.raises(BadRequestError):
        agent.update(**({"x": np.ones(4), "reward": 1.0, "discount": 0.9, "x_next": np.ones(4)} | bad))
    assert np.array_equal(agent.w, before)
    assert agent.updates == updates


def test_divergence_is_said():
    agent = ShadowLearner(1, alpha=1e6)

    def feed():
        for _ in range(200):
            agent.update([1.0], 1.0, 0.5, [2.0], 3.0)

    with pytest.raises(DivergedError, match="Try a smaller alpha"):
        feed()


@pytest.mark.parametrize("alpha", [None, 0.3], ids=["wide", "narrow"])
def test_both_forms_still_agree_when_noise_decides(alpha):
    """Late in a run the bias is gone and the choice weighs it against the noise; every choice agrees."""
    task = TASKS["walk"]
    compiled = run_shadow_learner(task, alpha, steps=6000, every=50)
    agent, choices = ShadowLearner(task.n_features, alpha, initial_w=task.initial_weights), []
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    for o in Stream(task).take(6000):
        agent.update(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
        choices.append(agent.rungs.index(agent.choice))
    assert choices[49::50] == compiled.choices.tolist()
    assert np.array_equal(agent.w, compiled.w)


def blank_copies(kept, p=2, start=0.0):
    return ShadowCopies(kept, np.full(p, start), np.ones((p, ladder.STARTS)))


def test_an_average_moves_by_its_share_of_the_way_and_never_by_a_step():
    copies = blank_copies(ladder.WIDE)
    average = 15 * ladder.COPIES
    copies.w[:, 0] = 1.0
    copies.choose = lambda _: None
    for age in range(1, 7):
        before = copies.w[0, average]
        copies.end_block(1.0)
        assert copies.w[0, average] == before + min(1.0, ladder.AVERAGE / age) * (1.0 - before)
    assert ladder.WIDE.rungs[15].averages == 0
    assert copies.multiple[average] == 0


def test_a_rung_that_is_brought_back_waits_twice_as_long_each_time():
    """Without an alpha: the third rung is hopeless in every block, is copied, and then is best but must wait."""
    copies = blank_copies(ladder.WIDE)
    copies.blocks = 1
    for waited in (2, 4, 8):
        copies.squares[:] = ladder.BLOCK
        copies.squares[2 * ladder.COPIES :][: ladder.COPIES] *= 1e6
        copies.sums[:2] = ladder.BLOCK
        copies.choose(1.0)
        assert copies.waits[2] == waited
        assert copies.bias[2] == copies.bias[copies.chosen]
    copies.squares[:] = ladder.BLOCK
    copies.squares[2 * ladder.COPIES :][: ladder.COPIES] = 0.0
    for left in range(7, -1, -1):
        copies.choose(1.0)
        assert copies.chosen != 2
        assert copies.waits[2] == left
    copies.choose(1.0)
    assert copies.chosen == 2


def test_a_fall_of_a_level_is_averaged_and_a_rise_is_not_without_an_alpha():
    for kept, wanted in ((ladder.WIDE, 3.0), (ladder.NARROW, 1.2)):
        copies = blank_copies(kept)
        copies.blocks = 10
        assert copies.averaged(1.0, 3.0) == wanted
        assert copies.averaged(3.0, 1.0) == 2.8
    assert blank_copies(ladder.WIDE).averaged(1.0, np.nan) == ladder.HUGE
