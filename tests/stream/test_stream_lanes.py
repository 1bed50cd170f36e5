"""Lanes over a stream: each is a `Learner` alone, to the bit; questions of their own; divergence stays in its lane."""

import numpy as np
import pytest
import scipy.sparse as sp

from gradient_dd import LEARNERS, BadRequestError, DivergedError, Learner
from gradient_dd.engine.schedules import Schedule, tapered
from gradient_dd.stream.lanes import StreamLanes

P, N = 7, 150
# Not every form for every rule: each pair is a kernel to compile, which takes seconds.
TRIED = [("td", np.asarray), ("tdrc", np.asarray), ("gradient_dd", sp.csr_matrix), ("gradient_dd", np.asarray)]
TRACED = [("td", np.asarray), ("tdrc", sp.csr_matrix)]


def transitions(n=N, p=P, seed=0):
    """Return x, reward, discount, x_next and rho; some rows are ends of episodes, some features are zero."""
    rng = np.random.default_rng(seed)
    x, x_next = rng.normal(size=(2, n, p)) * (rng.random((2, n, p)) < 0.6)
    discount = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.5, 1.0, n))
    return x, rng.normal(size=n), discount, x_next, rng.exponential(size=n)


def settings_of(name, alphas=(0.001, 0.02, 0.05)):
    """Return settings that differ in all of a rule's parameters, and in rho_mode where it has one."""
    rule = LEARNERS[name]
    modes = ("R", "T") if rule.has_rho_mode else ("R",)
    own = {p.name: 0.7 * p.default for p in rule.parameters if p.name != "alpha"}
    changed = [{}, own]
    return [rule.setting(rho_mode=mode, alpha=a, **values) for a in alphas for mode in modes for values in changed]


def alone(setting, schedule=None, **options):
    """Return a learner with this setting."""
    more = {} if schedule is None else {"schedule": schedule}
    return Learner(setting.rule, P, rho_mode=setting.rho_mode, **setting.values, **more, **options)


def one_by_one(agent, x, reward, discount, x_next, rho):
    """Let a learner learn from each transition alone; nothing is compiled for that."""
    for row in range(len(reward)):
        pair = [(one[row].indices, one[row].data) if sp.issparse(one) else one[row] for one in (x, x_next)]
        agent.update(pair[0], reward[row], discount[row], pair[1], rho[row])


@pytest.mark.parametrize(("name", "form"), TRIED)
def test_each_lane_is_a_learner_alone_to_the_bit(name, form):
    x, reward, discount, x_next, rho = transitions()
    settings, schedule = settings_of(name), tapered(5)
    lanes = StreamLanes(settings, P, schedule=schedule, initial_w=0.3)
    for begin in range(0, N, 70):
        part = slice(begin, begin + 70)
        lanes.update_many(form(x[part]), reward[part], discount[part], form(x_next[part]), rho[part])
    for lane, setting in enumerate(settings):
        agent = alone(setting, schedule, initial_w=0.3)
        one_by_one(agent, form(x), reward, discount, form(x_next), rho)
        assert np.array_equal(lanes.w[lane], agent.w), setting
        assert np.array_equal(lanes.eta[lane], agent.eta), setting
    assert (lanes.updates, lanes.episodes) == (N, agent.episodes)


@pytest.mark.parametrize(("name", "form"), TRACED)
def test_each_lane_with_a_trace_is_a_learner_alone_to_the_bit(name, form):
    """Lanes share a trace while their columns agree; from the batch on in which they differ, each has its own."""
    x, reward, discount, x_next, rho = transitions()
    settings = [LEARNERS[name].setting(alpha=alpha, lam=lam) for alpha in (0.001, 0.02) for lam in (0.5, 0.9)]
    lanes, schedule = StreamLanes(settings, P, schedule=tapered(5), initial_w=0.3), tapered(5)
    ratios = np.tile(rho[:, None], (1, 4))
    ratios[70:, 3] *= 0.5
    groups = []
    for begin in range(0, N, 70):
        part = slice(begin, begin + 70)
        ratio = rho[part] if begin == 0 else ratios[part]
        lanes.update_many(form(x[part]), reward[part], discount[part], form(x_next[part]), ratio)
        groups.append(int(lanes._group.max()) + 1)
    assert groups == [2, 3, 3]
    for lane, setting in enumerate(settings):
        agent = alone(setting, schedule, initial_w=0.3)
        one_by_one(agent, form(x), reward, discount, form(x_next), ratios[:, lane])
        assert np.array_equal(lanes.w[lane], agent.w), setting
        assert np.array_equal(lanes.eta[lane], agent.eta), setting
    with pytest.raises(BadRequestError, match="Lanes with a trace cannot take weights"):
        lanes.update_many(x, 0.0, 0.0, None, weight=1.0)


def test_questions_of_their_own():
    """Reward, discount, ratio and weight of each lane, and what is 0 for one lane goes on for another."""
    x, reward, discount, x_next, rho = transitions()
    rng = np.random.default_rng(1)
    rewards, ratios = reward[:, None] * [1, 2, -1], rho[:, None] * [1, 0.5, 0]
    discounts = np.column_stack([discount, np.where(rng.random(N) < 0.3, 0, 0.8), np.zeros(N)])
    settings = [LEARNERS["gradient_dd"].setting(alpha=0.03)] * 3
    lanes = StreamLanes(settings, P)
    lanes.update_many(x, rewards, discounts, x_next, ratios)
    for lane in range(3):
        agent = alone(settings[0])
        one_by_one(agent, x, rewards[:, lane], discounts[:, lane], x_next, ratios[:, lane])
        assert np.array_equal(lanes.w[lane], agent.w)


def test_a_weight_is_a_factor_on_alpha():
    x, reward, discount, x_next, rho = transitions()
    weight = np.random.default_rng(2).poisson(1.0, size=(N, 2)).astype(float)
    lanes = StreamLanes([LEARNERS["td"].setting(alpha=0.02)] * 2, P)
    lanes.update_many(x, reward, discount, x_next, rho, weight)
    for lane in range(2):
        agent = alone(lanes.settings[0], Schedule(lambda n, lane=lane: max(weight[n - 1, lane], 1e-300), per="step"))
        one_by_one(agent, x, reward, discount, x_next, rho)
        assert np.allclose(lanes.w[lane], agent.w, rtol=1e-12)


def test_a_lane_that_diverges_stops_alone():
    x, reward, discount, x_next, rho = transitions()
    settings = [LEARNERS["td"].setting(alpha=alpha) for alpha in (0.01, 1e6, 0.02)]
    lanes = StreamLanes(settings, P)
    lanes.update_many(x, reward, discount, x_next, rho)
    for lane in (0, 2):
        agent = alone(settings[lane])
        one_by_one(agent, x, reward, discount, x_next, rho)
        assert np.array_equal(lanes.w[lane], agent.w)
    agent = alone(settings[1])
    with pytest.raises(DivergedError, match=f"at update {lanes.diverged[1]}:"):
        one_by_one(agent, x, reward, discount, x_next, rho)
    assert np.array_equal(lanes.w[1], agent.w)
    assert (lanes.diverged > 0).tolist() == [False, True, False]


def test_forgetting_and_rescaling_eta():
    """Steps that shrink η by all of it, or below the range of its scale, as `Learner` makes them."""
    x, reward, discount, x_next, rho = transitions()
    x, x_next = 0.1 * x, 0.1 * x_next
    factor = Schedule(lambda n: 1.0 if n % 50 == 0 else 0.5, per="step")
    for zeta in (100.0, 190.0, 30.0):
        setting = LEARNERS["tdrc"].setting(alpha=0.01, zeta=zeta, reg=1.0)
        lanes, agent = StreamLanes([setting], P, schedule=factor), alone(setting, factor)
        lanes.update_many(x, reward, discount, x_next, rho)
        one_by_one(agent, x, reward, discount, x_next, rho)
        assert np.array_equal(lanes.w[0], agent.w)
        assert np.array_equal(lanes.eta[0], agent.eta)


def test_the_average_is_that_of_the_weights_after_every_so_many_updates():
    x, reward, discount, x_next, rho = transitions()
    lanes = StreamLanes(settings_of("tdrc"), P)
    assert np.array_equal(lanes.averages, lanes.w)
    lanes.update_many(x[:20], reward[:20], discount[:20], x_next[:20], rho[:20])
    lanes.average_from_now(every=5)
    seen = []
    for begin in range(20, N, 7):
        part = slice(begin, begin + 7)
        lanes.update_many(x[part], reward[part], discount[part], x_next[part], rho[part])
    twin = StreamLanes(settings_of("tdrc"), P)
    for begin in range(0, N, 5):
        part = slice(begin, begin + 5)
        twin.update_many(x[part], reward[part], discount[part], x_next[part], rho[part])
        seen += [twin.w] if begin >= 20 else []
    assert np.allclose(lanes.averages, np.mean(seen, axis=0), rtol=1e-12)


def test_single_precision_is_near_and_half_as_large():
    x, reward, discount, x_next, rho = transitions()
    settings = [LEARNERS["tdrc"].setting(alpha=0.02, zeta=20.0), LEARNERS["tdrc"].setting(alpha=0.01)]
    double, single = (StreamLanes(settings, P, precision=kind) for kind in ("float64", "float32"))
    for lanes in (double, single):
        for _ in range(20):  # long enough for the scale of η to leave single precision
            lanes.update_many(x, reward, discount, x_next, rho)
    assert not single.diverged.any()
    assert single._memory.memory.nbytes * 2 == double._memory.memory.nbytes
    assert np.allclose(single.w, double.w, rtol=1e-3, atol=1e-5)
    assert not np.array_equal(single.w, double.w)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"reward": np.ones((4, 3))}, "The shape of 'reward' must be (4,), or (4, 2) with one number for each lane."),
        ({"discount": np.full((4, 2), 2.0)}, "'discount' in row 0 must be in [0, 1]. Got 2."),
        ({"rho": [1, 1, -1, 1]}, "'rho' in row 2 must be a number that is zero or more. Got -1."),
        ({"x_next": None}, "'discount' in row 0 must be 0 where 'x_next' is None. Got 1."),
        ({"weight": -1.0}, "'weight' in row 0 must be a number that is zero or more. Got -1."),
        ({"x_next": np.ones((3, P))}, "'x_next' must have the form of 'x', with 4 rows. Got 3 rows."),
    ],
)
def test_a_bad_batch_gets_one_sentence_and_changes_nothing(change, sentence):
    lanes = StreamLanes([LEARNERS["td"].setting()] * 2, P)
    good = {"x": np.ones((4, P)), "reward": 1.0, "discount": 1.0, "x_next": np.ones((4, P)), "rho": 1.0}
    with pytest.raises(BadRequestError) as caught:
        lanes.update_many(**good | change)
    assert str(caught.value).startswith(sentence)
    assert lanes.updates == 0
    assert not lanes.w.any()


def test_lanes_are_of_one_linear_rule():
    two = [LEARNERS["td"].setting(), LEARNERS["gtd2"].setting()]
    for settings, sentence in (
        (two, "The lanes of a stream must be settings of one rule. Got td and gtd2."),
        ([], "'settings' must be one Setting or more. Got []."),
        ([LEARNERS["natural_tdc"].setting()], "The rule of lanes must be one whose step takes linear time."),
    ):
        with pytest.raises(BadRequestError) as caught:
            StreamLanes(settings, P)
        assert str(caught.value).startswith(sentence)
