"""The lane engine: equal to the reference, and the same bits whatever the grouping, the pieces or the neighbours."""

from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernels.rows import measure, outcome_rows
from gradient_dd.engine.lanes import Block, LaneRun, LaneTask, run_lanes
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.learners.rule import ALPHA, Rule
from gradient_dd.testing import assert_alike, modes
from tests.rules import FEW, compiled_rules, with_kernels

STEP_LEFT_OR_RIGHT = np.zeros((6, 1, 6))
for state in range(1, 5):
    STEP_LEFT_OR_RIGHT[state, 0, [state - 1, state + 1]] = 0.5
STEP_LEFT_OR_RIGHT[0, 0, 0] = STEP_LEFT_OR_RIGHT[5, 0, 5] = 1
RIGHT_END = np.zeros((6, 1, 6))
RIGHT_END[4, 0, 5] = 1.0
# Two states share a feature: one-hot rows, and x' = x without a self loop.
PAIRS = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
AGGREGATED = tasks.from_tables(
    STEP_LEFT_OR_RIGHT, RIGHT_END, 0.9, np.ones((6, 1)), start=2, features=PAIRS, name="aggregated"
)

# Tasks of every kind of kernel: one-hot, two non-zeros, dense, and wide; episodic and continuing.
EPISODES, STEPS = Horizon(episodes=130), Horizon(steps=2500, every=50)
CASES = [
    (tasks.random_walk(10), EPISODES),
    (tasks.random_walk(10, features="linear"), EPISODES),
    (tasks.boyan_chain(5), EPISODES),
    (tasks.baird(7), STEPS),
    (tasks.baird(7, ratios="paper"), STEPS),
    (tasks.random_mdp(seed=1, episodic=True), EPISODES),
    (tasks.random_mdp(n_states=20, n_features=12, seed=2), STEPS),
    (AGGREGATED, EPISODES),
]
PLAIN = [name for name in compiled_rules() if LEARNERS[name].is_plain]
# Step sizes and schedules; with alpha = 1 TDRC forgets all of η at once.
SCHEDULES = [constant, tapered(50), tapered(50, per="step"), Schedule(lambda n: 1 / (1 + n % 7))]


def grid(name, count, top=0.5, **values):
    return [LEARNERS[name].setting(alpha=float(alpha), **values) for alpha in np.geomspace(top / 100, top, count)]


@pytest.mark.parametrize("name", with_kernels(PLAIN))
def test_lane_engine_is_the_reference_engine(name):
    """Every task, sampling and placement of ρ, over thousands of steps, to 1e-12 relative; schedules take turns."""
    rule = LEARNERS[name]
    turns = zip(product(CASES, ("trajectory", "iid")), cycle(SCHEDULES[:3]), strict=False)
    for ((task, horizon), sampling), schedule in turns:
        for mode in modes(rule) if task.name == "baird" else "R":
            alpha = 0.002 if task.name in ("baird", "random_mdp") else 0.02
            assert_alike(task, rule.setting(rho_mode=mode, alpha=alpha), horizon, schedule, sampling, seed=3)


@pytest.mark.xdist_group("kernels of tdrc")
@pytest.mark.parametrize("name", ["tdrc", "gtd"])
def test_an_eta_that_is_forgotten_at_every_step(name):
    for task, horizon in CASES[:3]:
        assert_alike(task, LEARNERS[name].setting(alpha=1.0), horizon)


@pytest.mark.xdist_group("kernels of tdrc")
@pytest.mark.parametrize("name", ["tdrc", "gtd"])
def test_an_eta_whose_scale_grows(name):
    """With |1 − β reg| > 1 the scale of η grows without bound while η may still be zero."""
    walk = tasks.random_walk(40)
    results = run_lanes(walk, [LEARNERS[name].setting(alpha=4.0)], Horizon(episodes=5))
    trace = reference.run(walk, name, episodes=5, alpha=4.0)
    assert results.diverged_step[0, 0] == (trace.diverged_at or 0)
    assert np.isfinite(trace.errors[0])
    assert results.curve[0, 0, 0] == pytest.approx(trace.errors[0], rel=1e-9)


@pytest.mark.slow
@pytest.mark.xdist_group("kernels of gradient_dd")
def test_a_natural_rule_may_use_the_change():
    """Natural Gradient-DD, which the registry does not have, on one-hot, sparse and aggregated features."""
    ours = LEARNERS["gradient_dd"].plain
    parameters = (*ours.parameters, LEARNERS["natural_gtd2"].parameters[-1])
    natural = replace(ours, name="natural_gdd", natural=True, parameters=parameters)
    for task, horizon in (CASES[0], CASES[2], CASES[-1]):
        assert_alike(task, natural.setting(alpha=0.01), horizon)


@pytest.mark.xdist_group("kernels of gradient_dd")
@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda alpha, rho, delta: (alpha * float(f"{delta:.3f}"),), "format spec in f-strings not supported yet"),
        (lambda alpha, rho, delta: (alpha * np.clip(delta, -1.0, 1.0),), r"line \d+ of test_lanes.py: \(lambda alpha"),
    ],
)
def test_a_rule_that_numba_cannot_compile_gets_one_sentence(step, reason):
    rule = replace(LEARNERS["td"], name="odd", step=step)
    words = "The step of the rule 'odd' must be arithmetic on scalars that Numba can compile. Got "
    with pytest.raises(BadRequestError, match=words + reason):
        LaneRun(tasks.random_walk(3), [rule.setting()], EPISODES)


@pytest.mark.xdist_group("kernels of td")
def test_a_rule_that_raises_leaves_the_thread_as_it_was():
    def step(alpha, rho, delta):
        if delta < -0.4:
            raise ValueError("too large")
        return (alpha * rho * delta,)

    run = LaneRun(tasks.random_walk(3), [replace(LEARNERS["td"], name="raises", step=step).setting()], EPISODES)
    with pytest.raises(ValueError, match="too large"):
        run.advance()
    assert np.float64(2.0**-1022) * np.float64(0.5) > 0


@pytest.mark.xdist_group("kernels of gradient_dd")
def test_parameters_of_every_kind_are_lanes_of_one_call():
    rule = LEARNERS["gradient_dd"]
    chosen = [rule.setting(alpha=a, zeta=z, kappa=k) for a, z, k in product((0.01, 0.1), (0.25, 4.0), (0.0, 2.0))]
    run = LaneRun(CASES[0][0], chosen, EPISODES)
    assert len(run.blocks) == 1
    run.advance()
    for setting, w in zip(chosen, run.weights()[0], strict=True):
        trace = reference.run(CASES[0][0], rule, episodes=130, **setting.values)
        assert np.allclose(w, trace.w, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", with_kernels((name for name in PLAIN if not LEARNERS[name].natural), FEW))
def test_one_hot_kernel_is_the_sparse_kernel_bit_for_bit(name):
    task = tasks.random_walk(10)
    stay = tasks.from_tables(LAZY_WALK, LAZY_REWARD, 0.9, behaviour=np.ones((6, 1)), start=2)  # with self loops
    for one in (task, stay):
        weights = []
        for use_one_hot in (True, False):
            table, shape = outcome_rows(one, "R", use_one_hot)
            assert shape.one_hot is use_one_hot
            read = LaneTask(table, shape, measure(one), one.initial_weights, EPISODES.bins, one.action_probabilities)
            block = Block(grid(name, 20), 24, read)
            run = LaneRun(one, grid(name, 20), EPISODES, tapered(50))
            run.blocks[0] = block
            run.advance()
            weights.append(np.concatenate([*run.weights(), run.results().curve[0]], axis=1))
        assert np.array_equal(*weights)


LAZY_WALK = np.zeros((6, 1, 6))
for state in range(1, 5):
    LAZY_WALK[state, 0, state - 1 : state + 2] = 0.25, 0.5, 0.25
LAZY_WALK[0, 0, 0] = LAZY_WALK[5, 0, 5] = 1
LAZY_REWARD = np.zeros((6, 1, 6))
LAZY_REWARD[4, 0, 5] = 1.0


def everything(results):
    return {name: getattr(results, name) for name in results.__dataclass_fields__}


def assert_same_bits(left, right):
    for name, array in everything(left).items():
        assert np.array_equal(array, getattr(right, name)), name


@pytest.mark.xdist_group("kernels of gradient_dd")
@pytest.mark.parametrize("runs", [1, 3])
def test_the_number_of_workers_does_not_matter(runs):
    chosen = [*grid("gradient_dd", 70), *grid("gradient_dd", 70, kappa=2.0), *grid("td", 9)]
    one, two = (run_lanes(CASES[0][0], chosen, EPISODES, runs=runs, workers=workers) for workers in (1, 2))
    assert_same_bits(one, two)
    assert one.curve.shape == (runs, len(chosen), 130)


@pytest.mark.xdist_group("kernels of gradient_dd")
@settings(max_examples=8)
@given(data=st.data())
def test_grouping_order_and_padding_of_lanes_do_not_matter(data):
    """Any choice of lanes, in any order, gives each lane the bits it has among all."""
    chosen = [*grid("gradient_dd", 12), *grid("td", 5)]
    task, horizon = data.draw(st.sampled_from([CASES[0], CASES[2]]))
    whole = run_lanes(task, chosen, horizon, schedule=tapered(50), workers=1)
    picked = data.draw(st.lists(st.integers(0, len(chosen) - 1), min_size=1, max_size=20))
    part = run_lanes(task, [chosen[i] for i in picked], horizon, schedule=tapered(50), workers=1)
    for name, array in everything(part).items():
        wanted = getattr(whole, name)
        assert np.array_equal(array, wanted if name == "steps" else wanted[:, picked]), name


@pytest.mark.xdist_group("kernels of gradient_dd")
@settings(max_examples=15)
@given(
    cuts=st.lists(st.integers(1, 900), max_size=6),
    schedule=st.sampled_from(SCHEDULES),
    case=st.sampled_from([CASES[0], CASES[3]]),
    sampling=st.sampled_from(["trajectory", "iid"]),
)
def test_pieces_do_not_matter(cuts, schedule, case, sampling):
    """Advanced in any pieces, a run gives the same bits."""
    task, horizon = case
    chosen = [*grid("gradient_dd", 5, top=0.01), *grid("td", 2, top=0.01)]
    whole = LaneRun(task, chosen, horizon, schedule, sampling)
    whole.advance()
    run = LaneRun(task, chosen, horizon, schedule, sampling)
    for cut in cuts:
        run.advance(cut)
    run.advance()
    assert_same_bits(run.results(), whole.results())
    assert all(np.array_equal(*pair) for pair in zip(run.weights(), whole.weights(), strict=True))


@pytest.mark.xdist_group("kernels of td")
def test_divergence_is_recorded_and_leaves_the_neighbours_alone():
    task, horizon = tasks.baird(7), Horizon(steps=4000, every=10)
    calm = grid("td", 6, top=1e-3)
    wild = LEARNERS["td"].setting(alpha=1.0)
    alone = run_lanes(task, calm, horizon)
    mixed = run_lanes(task, [calm[0], wild, *calm[1:]], horizon)
    for name, array in everything(mixed).items():
        if name != "steps":
            assert np.array_equal(np.delete(array, 1, axis=1), getattr(alone, name)), name
    trace = reference.run(task, "td", steps=4000, every=10, alpha=1.0)
    assert mixed.diverged_step[0, 1] == trace.diverged_at
    assert mixed.diverged_episode[0, 1] == 1
    assert np.isinf([mixed.last100[0, 1], mixed.mean_error[0, 1], mixed.curve[0, 1, -1]]).all()
    bins = horizon.bin_of(np.arange(1, 401))
    assert np.isfinite(mixed.curve[0, 1]).tolist() == [np.isfinite(trace.errors[bins == b]).all() for b in range(200)]
    assert not alone.diverged_step.any()


@pytest.mark.xdist_group("kernels of td")
def test_divergence_is_recorded_with_its_episode():
    """A walk whose values explode: TD with alpha = 2.5 and more."""
    walk = tasks.random_walk(3)
    results = run_lanes(walk, grid("td", 4, top=250.0), Horizon(episodes=300))
    for lane, alpha in enumerate(np.geomspace(2.5, 250, 4)):
        trace = reference.run(walk, "td", episodes=300, alpha=float(alpha))
        assert results.diverged_step[0, lane] == (trace.diverged_at or 0)
        if trace.diverged_at:
            known = np.isfinite(trace.errors).sum()
            assert results.diverged_episode[0, lane] == known + 1
    assert results.diverged_step.any()


@pytest.mark.xdist_group("kernels of td")
def test_subnormal_numbers_become_zero_inside_and_stay_outside():
    """Rewards and values of zero: w halves at each visit, thousands of times, and stops short of 2.2e-308."""
    P = np.zeros((2, 1, 2))
    P[0, 0, 0], P[0, 0, 1], P[1, 0, 1] = 0.5, 0.5, 1
    task = tasks.from_tables(P, 0.0, 0.0, behaviour=np.ones((2, 1)), start=0, initial_weights=1.0)
    run = LaneRun(task, [LEARNERS["td"].setting(alpha=alpha) for alpha in (0.5, 0.25, 0.1)], Horizon(steps=20_000))
    run.advance(3000)
    w = run.weights()[0]
    assert w[0] < 1e-300  # 2⁻³⁰⁰⁰ is no double
    run.advance()
    w = np.abs(run.weights()[0])
    assert np.all(w < 1e-300)
    assert not np.any((w > 0) & (w < np.finfo(float).tiny))
    half = np.float64(2.0**-1022) * np.float64(0.5)
    assert 0 < half < np.finfo(float).tiny  # this thread computes with them as before


@pytest.mark.parametrize("name", ["td", "gradient_dd"])
def test_one_feature_that_is_always_one(name):
    tables = np.array([[[0.5, 0.3, 0.2]], [[0.4, 0.4, 0.2]], [[0, 0, 1]]]), 1.0 - np.eye(3)[:, None, :], 0.9
    for P, R, discount in (tables, (tables[0][:2, :, :2] / tables[0][:2, :, :2].sum(2, keepdims=True), 1.0, 0.9)):
        states = len(P)
        task = tasks.from_tables(P, R, discount, behaviour=np.ones((states, 1)), features=np.ones((states, 1)))
        horizon = Horizon(episodes=60) if task.episodic else Horizon(steps=400)
        assert_alike(task, LEARNERS[name].setting(alpha=0.1), horizon)


def test_a_rule_may_move_along_the_next_state_without_its_discount():
    """Nothing moves along a terminal, whatever the rule returns; along a self loop everything does."""
    bold = Rule(
        name="bold",
        label="bold",
        step=lambda alpha, delta: (alpha * delta, 0.3 * alpha * delta),
        moves=("w_x", "w_next"),
        parameters=(ALPHA,),
        reference="",
        module=__name__,
    )
    loops = tasks.from_tables(LAZY_WALK, LAZY_REWARD, 0.9, behaviour=np.ones((6, 1)), start=2)
    for task in (tasks.random_walk(3), loops, tasks.boyan_chain(4)):
        assert_alike(task, bold.setting(alpha=0.1), Horizon(episodes=50))


@pytest.mark.xdist_group("kernels of td")
def test_what_cannot_be_run_gets_one_sentence():
    walk, lanes = tasks.random_walk(3), grid("td", 2)
    for call, sentence in (
        (lambda: run_lanes(walk, [], EPISODES), "Settings must be one or more settings"),
        (lambda: run_lanes(walk, ["td"], EPISODES), "Got 'td'."),
        (lambda: run_lanes(walk, lanes, EPISODES, runs=0), "'runs' must be a whole number, 1 or more. Got 0."),
        (lambda: run_lanes(walk, lanes, EPISODES, workers=-1), "'workers' must be a whole number, 1 or more."),
        (lambda: run_lanes(tasks.baird(7), lanes, EPISODES), "A run of baird must be given in 'steps'"),
        (lambda: run_lanes(walk, lanes, EPISODES, schedule="x"), "'schedule' must be 'constant', 'tapered(1000)'"),
        (lambda: LaneRun(walk, lanes, EPISODES).results(), "A run must finish before its results are read. Got 0"),
        (lambda: LaneRun(walk, lanes, EPISODES).advance(-3), "'steps' must be a whole number, 1 or more. Got -3."),
        (lambda: Horizon(episodes=5, every=10), "'every' must be omitted if the run is counted in episodes."),
    ):
        with pytest.raises(BadRequestError) as caught:
            call()
        assert sentence in str(caught.value)
