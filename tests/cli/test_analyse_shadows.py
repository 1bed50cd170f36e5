"""`gradient-dd analyse --shadows`: exponents over a task and over a log, and how they are shown."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gradient_dd import tasks
from gradient_dd.cli.commands import cli
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.shadows import BLOCK, RewardlessRows, log_exponents
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.learners.rule import ALPHA, Rule
from gradient_dd.theory.advice.advise import TunedLearner, estimate
from gradient_dd.theory.analysis_page import growth_row
from gradient_dd.theory.limits import Limits, is_linear, log_growth, says, task_growth
from gradient_dd.theory.log import log_of


@pytest.fixture(scope="module")
def log():
    """A log of random transitions on which nothing is special."""
    rng = np.random.default_rng(0)
    x, x_next = rng.standard_normal((2, 2500, 3))
    return log_of(x, rng.standard_normal(2500), np.full(2500, 0.9), x_next, rng.uniform(0, 2, 2500))


@pytest.mark.parametrize("name", ["td", "gradient_dd"])
def test_a_log_gives_the_growth_of_the_reference_engine(log, name):
    """Shadows over a log, rescaled after every block, grow as weights of the reference engine do without rewards."""
    setting = LEARNERS[name].setting(alpha=0.05)
    growth = log_exponents(
        RewardlessRows(log.x, log.discount, log.x_next, log.rho), [setting], starts=1, seed=4
    ).growth[0, :, 0]
    start = np.random.default_rng(4).standard_normal((1, len(log.x))) @ log.x
    weights = Weights(setting, start[0] / np.linalg.norm(start))
    sizes = [0.0]
    for t in range(5 * BLOCK):
        weights.advance(setting, 1.0, log.x[t], 0.0, log.discount[t], log.x_next[t], log.rho[t])
        if (t + 1) % BLOCK == 0:
            sizes.append(np.log(np.sqrt(weights.w @ weights.w + weights.eta @ weights.eta)))
    assert np.allclose(growth[:5], np.diff(sizes) / BLOCK, rtol=0, atol=1e-10)


def test_settings_of_several_rules_keep_their_places(log):
    columns = log.x, log.discount, log.x_next, log.rho
    settings = [
        LEARNERS[name].setting(alpha=alpha) for name, alpha in (("td", 0.1), ("gradient_dd", 0.1), ("td", 0.01))
    ]
    together = log_exponents(RewardlessRows(*columns), settings).mean
    alone = [log_exponents(RewardlessRows(*columns), [setting]).mean[0] for setting in settings]
    assert np.allclose(together, alone, rtol=1e-12, atol=0)


def test_a_lane_that_left_the_finite_numbers_has_an_infinite_exponent(log):
    found = log_exponents(RewardlessRows(log.x, log.discount, log.x_next, log.rho), [LEARNERS["td"].setting(alpha=1e4)])
    assert found.mean[0] == np.inf


def test_natural_rules_have_no_shadows_over_a_log(log):
    with pytest.raises(BadRequestError, match="takes linear time"):
        log_exponents(RewardlessRows(log.x, log.discount, log.x_next, log.rho), [LEARNERS["natural_gtd2"].setting()])


def test_what_an_exponent_says():
    assert says(1e-3, 5e-4, 2e-3) == "grows"
    assert says(1e-3, -5e-4, 2e-3) == "too slow to tell"
    assert says(1e-6, 5e-7, 2e-6) == "too slow to tell"
    assert says(-1e-6, -2e-6, -5e-7) == "shrinks"
    assert says(-1e-6, -2e-6, 5e-7) == "too slow to tell"
    assert says(np.inf, np.inf, np.inf) == "grows"


def test_shadows_of_a_task_find_the_limit_of_one_state():
    """One state, one feature: TD multiplies the shadow by 1 − α(1 − γ), which grows beyond α = 2/(1 − γ) = 20."""
    task = tasks.from_tables(np.ones((1, 1, 1)), np.ones((1, 1, 1)), 0.9, np.ones((1, 1)))
    td = task_growth(task, [LEARNERS["td"].setting(alpha=1.0)], "trajectory")[0]
    assert td.growth == pytest.approx(np.log(0.9))
    assert td.says == "shrinks"
    assert 20 / 1.25 <= td.no_growth_up_to <= 20


def test_a_rule_that_is_not_linear_is_not_measured(log):
    def step(alpha, rho, delta):
        return (alpha * rho * max(min(delta, 1.0), -1.0),)

    clipped = Rule("clipped", "Clipped TD", step, ("w_x",), (ALPHA,), "Ours.", __name__).setting(alpha=0.1)
    assert is_linear(LEARNERS["gradient_dd"].setting())
    assert not is_linear(clipped)
    assert log_growth(log, [clipped]) == [None]
    one = TunedLearner(clipped, estimate(np.ones(2)), estimate(np.ones(2)), True, np.ones((2, 1)))
    assert growth_row(one, Limits(None, None, None), None)[2] == "not measured: not linear in w and η"


def test_the_command_prints_shadows_beside_the_exact_limits():
    words = ["analyse", "random_walk", "n_states=3", "--episodes", "50", "--learner", "td", "--shadows"]
    text = CliRunner().invoke(cli, words).stdout
    assert "no growth up to" in text
    row = next(line for line in text.splitlines() if "shrinks" in line)
    assert row.split()[0] == "td"
    facts = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    (td,) = facts["candidates"]
    assert td["shadow"]["low"] <= td["shadow"]["growth"] <= td["shadow"]["high"] < 0
    assert td["shadow"]["no growth up to"] == pytest.approx(td["safe"], rel=0.4)


def test_the_command_measures_shadows_of_a_log(log, tmp_path):
    np.savez(tmp_path / "log.npz", x=log.x, reward=log.reward, discount=log.discount, x_next=log.x_next, rho=log.rho)
    words = ["analyse", "--log", str(tmp_path / "log.npz"), "--steps", "300", "--learner", "td", "--shadows", "--json"]
    facts = json.loads(CliRunner().invoke(cli, words).stdout)
    assert facts["candidates"][0]["shadow"]["steps"] == 20_000
