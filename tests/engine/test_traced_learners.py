"""Learners with traces in use: their settings and keys, what is refused by name, saved and loaded traces."""

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.learners.rule import ALPHA, LAM
from gradient_dd.learners.trace import B, Trace, Z
from gradient_dd.stream import Learner
from gradient_dd.stream.question import Question
from gradient_dd.stream.questions import Questions
from gradient_dd.theory import SampleMaps
from tests.rules import with_kernels

COLLISION, ROOM = tasks.collision(2), tasks.rooms(0)
TRACED = [name for name, rule in LEARNERS.items() if rule.traced.traces]


def test_without_lambda_a_learner_is_found_under_its_old_key():
    """No lam = 0 stands in the key or the values, so that results stored before there were traces are found."""
    assert LEARNERS["td"].setting(alpha=0.1, lam=0) == LEARNERS["td"].setting(alpha=0.1)
    assert dict(LEARNERS["td"].setting(alpha=0.1, lam=0.0).values) == {"alpha": 0.1}
    keys = {name: LEARNERS[name].setting().rule.key for name in ("td", "gtd2", "tdrc", "gradient_dd")}
    assert keys == {
        "td": "5ccc2943d89283ed9ab4d51d",
        "gtd2": "7fc966a26819d2626ef18177",
        "tdrc": "893637648164cdd0a7191fc1",
        "gradient_dd": "607fc214b85aa401e5d9da13",
    }
    traced = LEARNERS["td"].setting(lam=0.5)
    assert traced.rule.key not in keys.values()
    assert traced.rule.name == "td"


def test_with_lambda_the_ratio_comes_through_the_trace():
    assert LEARNERS["gtd2"].setting(lam=0.5).rho_mode == "T"
    assert LEARNERS["gtd2"].setting(rho_mode="T", lam=0.5).rho_mode == "T"
    assert LEARNERS["tdc"].setting(lam=0.5).rho_mode == "R"
    with pytest.raises(BadRequestError, match="tdc has no 'rho_mode'"):
        LEARNERS["tdc"].setting(rho_mode="T", lam=0.5)


@pytest.mark.parametrize("lam", [-0.1, 1.1, float("nan"), "much"])
def test_lambda_has_bounds(lam):
    with pytest.raises(BadRequestError, match=r"'lam' of td must be in \[0, 1\]"):
        Learner("td", 3, lam=lam)


def rule_with(**fields):
    given = {
        "step": lambda alpha, delta: (alpha * delta,),
        "moves": ("w_z",),
        "traces": (Z,),
        "parameters": (ALPHA, LAM),
    }
    return Rule("mine", "mine", reference="A test.", module="", **given | fields)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"traces": ()}, "The traces of the rule 'mine' must include 'z', because the rule uses 'w_z'"),
        ({"traces": (B,)}, "The traces of the rule 'mine' must include 'z'"),
        ({"parameters": (ALPHA,)}, "Unknown argument of the trace 'z' of the rule 'mine': 'lam'"),
        ({"natural": True}, "The rule 'mine' must have no trace, because it is natural"),
        ({"traces": (Trace("z", lambda lam, gamma: (lam, gamma)),)}, "Unknown argument of the trace 'z'"),
    ],
)
def test_a_broken_traced_rule_is_refused_when_it_is_made(fields, sentence):
    rule_with()
    with pytest.raises(BadRequestError, match=sentence):
        rule_with(**fields)


@pytest.mark.parametrize(
    "use", [reference.run, lambda *a, **k: LaneRun(a[0], [LEARNERS["etd"].setting()], Horizon(steps=5), sampling="iid")]
)
def test_independent_draws_are_refused(use):
    with pytest.raises(BadRequestError, match="'sampling' for etd must be 'trajectory', because it keeps a trace"):
        use(COLLISION, "etd", steps=5, sampling="iid")


def test_what_cannot_run_a_trace_says_so_by_name():
    traced = LEARNERS["td"].setting(lam=0.5)
    for use, reader in (
        (lambda: Questions([Question("q", 1.0, 0.9)], 3, learner="pgtd2", lam=0.5), "The lane engine of streams"),
        (lambda: SampleMaps(tasks.random_walk(3), traced), "The theory"),
    ):
        with pytest.raises(BadRequestError, match=f"{reader} does not know the (move|signal) '.*' of the rule"):
            use()


# `Learner` -----------------------------------------------------------------------------------------------------------


def test_learners_that_need_the_probabilities_ask_for_them():
    for name, missing in (("tree_backup", "pi"), ("abtd", "pi")):
        agent = Learner(name, 3)
        with pytest.raises(BadRequestError, match=f"{name} needs '{missing}', the probability of the action"):
            agent.update([1, 0, 0], 1.0, 0.9, [0, 1, 0], rho=2.0)
        assert agent.updates == 0
    agent = Learner("abtd", 3)
    with pytest.raises(BadRequestError, match="abtd needs 'mu'"):
        agent.update([1, 0, 0], 1.0, 0.9, [0, 1, 0], rho=2.0, pi=0.5)
    with pytest.raises(BadRequestError, match=r"'rho' must be pi / mu, which is 2. Got 1."):
        agent.update([1, 0, 0], 1.0, 0.9, [0, 1, 0], pi=0.5, mu=0.25)
    with pytest.raises(BadRequestError, match=r"'mu' must be a probability above 0. Got 0."):
        agent.update([1, 0, 0], 1.0, 0.9, [0, 1, 0], rho=2.0, pi=0.5, mu=0.0)
    agent.update([1, 0, 0], 1.0, 0.9, [0, 1, 0], rho=2.0, pi=0.5, mu=0.25)


@pytest.mark.parametrize("name", with_kernels(TRACED, ("gradient_dd", "etd", "abtd")))
def test_a_learner_with_a_trace_is_saved_and_goes_on(name, tmp_path):
    rng = np.random.default_rng(0)
    lam = {"bootstrap": 0.7} if name == "abtd" else {"lam": 0.7}
    agent = Learner(name, 4, alpha=0.05, **lam)

    def feed(one, rows):
        for x, x_next, reward, discount in rows:
            one.update(x, reward, discount, x_next, rho=2.0, pi=0.5, mu=0.25)

    rows = [(*rng.standard_normal((2, 4)), rng.standard_normal(), rng.choice([0.0, 0.9])) for _ in range(30)]
    feed(agent, rows[:17])
    agent.save(tmp_path / "a.npz")
    again = Learner.load(tmp_path / "a.npz")
    feed(agent, rows[17:])
    feed(again, rows[17:])
    assert np.array_equal(agent.w, again.w)
    assert np.array_equal(agent.eta, again.eta)
    many = Learner(name, 4, alpha=0.05, **lam)
    x, x_next, reward, discount = (np.array(column) for column in zip(*rows, strict=True))
    many.update_many(x, reward, discount, x_next, rho=2.0, pi=0.5, mu=0.25)
    assert np.array_equal(many.w, agent.w)


def test_a_refused_step_leaves_the_trace_as_it_was():
    agent, other = (Learner("td", 2, alpha=0.1, lam=0.9) for _ in range(2))
    for one in (agent, other):
        one.update([1, 0], 1.0, 0.9, [0, 1])
    with pytest.raises(BadRequestError):
        agent.update([1, np.nan], 1.0, 0.9, [0, 1])
    for one in (agent, other):
        one.update([0, 1], 1.0, 0.9, [1, 0])
    assert np.array_equal(agent.w, other.w)


def test_the_end_of_an_episode_clears_the_trace():
    agent = Learner("td", 2, alpha=0.1, lam=1.0)
    agent.update([1, 0], 0.0, 0.0, None)
    agent.update([0, 1], 1.0, 0.9, [0, 1])
    assert agent.w[0] == 0
    assert agent.w[1] > 0
