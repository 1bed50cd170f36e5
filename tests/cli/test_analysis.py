"""Advice as users get it: good on fresh runs, honest where there is none, word by word."""

import json
import subprocess
import sys
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from click.testing import CliRunner

from gradient_dd import tasks
from gradient_dd.cli.commands import cli
from gradient_dd.cli.options import text_of
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.engine.schedules import constant, tapered
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.theory.advice import advise
from gradient_dd.theory.analysis import analyse_task, page_lines
from gradient_dd.theory.stability import Limits

pytestmark = pytest.mark.xdist_group("kernels of the walk")  # two kernels serve nearly all of this file

WALK, EPISODES = tasks.random_walk(4), Horizon(episodes=400)
QUICK = 0.3  # core seconds of a search

RULE = '''"""TD with a limit on its error.

    w ← w + α ρ max(min(δ, clip), −clip) x
"""

from gradient_dd.learners.rule import ALPHA, Parameter, Rule


def step(alpha, clip, rho, delta):
    return (alpha * rho * max(min(delta, clip), -clip),)


CLIP = Parameter("clip", "limit of δ", 1.0)
CLIPPED = Rule("clipped", "Clipped TD", step, ("w_x",), (ALPHA, CLIP), "Ours.", __name__)
'''


@pytest.fixture
def rule_file(tmp_path):
    (tmp_path / "clipped_td.py").write_text(RULE)
    return f"{tmp_path / 'clipped_td.py'}:CLIPPED"


# Advice for a task


@pytest.mark.parametrize(("measure", "schedule"), [("mean_error", constant), ("last100", tapered(100))], ids=str)
def test_advice_is_as_good_as_a_grid_on_runs_it_has_not_seen(measure, schedule):
    advice = advise(WALK, EPISODES, schedule, measure=measure, budget=QUICK)
    grid = [
        LEARNERS["tdrc"].setting(alpha=alpha, zeta=zeta)
        for alpha in 10.0 ** np.arange(-4, 0.1, 0.25)
        for zeta in (0, 1)
    ]
    results = run_lanes(WALK, [*grid, advice.best.setting], EPISODES, schedule=schedule, seed=5, runs=100)
    errors = getattr(results, measure).mean(axis=0)
    assert errors[-1] <= 1.15 * errors[:-1].min()
    predicted = getattr(advice.best, measure)
    assert predicted.mean == pytest.approx(errors[-1], abs=4 * predicted.standard_error + 0.02 * errors[-1])
    assert advice.beats_standing_still
    assert advice.initial_error == WALK.rmsve(WALK.initial_weights)


def test_advice_depends_on_the_measure_and_the_length_as_it_must():
    """With a constant step size a longer run, and the error of its end, want smaller steps."""
    alphas = [
        advise(WALK, Horizon(episodes=episodes), measure=measure, learners=["td"], budget=QUICK).best.setting.values[
            "alpha"
        ]
        for episodes, measure in ((60, "mean_error"), (400, "mean_error"), (400, "last100"), (3000, "last100"))
    ]
    assert alphas[0] > 1.3 * alphas[1] > 1.69 * alphas[2] > 2.2 * alphas[3]


def test_advice_is_the_same_every_time_and_answers_for_every_learner():
    one, two = (advise(WALK, EPISODES, budget=QUICK) for _ in range(2))
    assert [(row.setting, row.mean_error) for row in one.candidates] == [
        (row.setting, row.mean_error) for row in two.candidates
    ]
    answered = {row.setting.rule.name for row in one.candidates} | set(one.left_out)
    assert answered == set(LEARNERS)
    assert set(one.left_out.values()) == {"not tried"}


def test_where_the_initial_weights_are_best_the_advice_says_so():
    solved = replace(WALK, initial_weights=WALK.fixed_point)
    advice = advise(solved, EPISODES, learners=["td"], budget=QUICK)
    assert not advice.beats_standing_still
    assert advice.best.mean_error.mean < 1e-3  # and it hardly moves
    found = analyse_task(solved, episodes=50, learners=("td",))
    assert found.facts()["advice"]["beats standing still"] is False
    assert "No setting has a lower error than the initial weights" in text_of(page_lines(found))


def test_off_policy_td_is_not_recommended_where_it_diverges():
    horizon = Horizon(steps=20_000, every=100)
    advice = advise(tasks.baird(7), horizon, measure="last100", learners=["td", "tdrc"], budget=QUICK)
    assert advice.best.setting.rule.name == "tdrc"
    assert advice.beats_standing_still


def test_a_long_run_is_cut_and_its_advice_is_for_the_pilot():
    advice = advise(WALK, Horizon(episodes=100_000), learners=["td"], budget=0.05, measure="last100")
    assert advice.horizon == Horizon(episodes=100_000)
    assert advice.pilot_horizon.points < 100_000 / 2
    assert advice.is_cut
    assert advice.best is advice.candidates[0]


# The command


def shown(*arguments):
    result = CliRunner().invoke(cli, ["analyse", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_the_command_prints_advice_as_json_and_reports_progress():
    result = shown(
        "random_walk", "n_states=3", "--episodes", "60", "--schedule", "tapered(10)", "--measure", "area", "--json"
    )
    facts = json.loads(result.stdout)
    advice = facts["advice"]
    rule = LEARNERS[advice["learner"]]
    rule.setting(**{parameter.name: advice[parameter.name] for parameter in rule.plain.parameters})
    assert advice["predicted error"] == advice["mean_error"]["mean"] < facts["initial error"]
    assert advice["standard_error"] > 0
    assert facts["measure"] == "mean_error"
    assert (facts["horizon"], facts["schedule"]) == ("60 episodes", "tapered(10) per episode")
    curve = facts["curve"]
    assert curve["at"][-1] == 60
    assert np.mean(curve["mean"]) == pytest.approx(advice["mean_error"]["mean"])
    low, mean, high = (np.array(curve[name]) for name in ("low", "mean", "high"))
    assert (low <= mean * (1 + 1e-12)).all()
    assert (mean <= high * (1 + 1e-12)).all()
    assert {row["learner"] for row in facts["candidates"]} | set(facts["left out"]) == set(LEARNERS)
    assert "  0%  pilot runs on random_walk(n_states=3): at most about" in result.stderr
    assert "judge: " in result.stderr


def test_the_page_says_what_was_found_and_what_its_signs_mean():
    found = analyse_task(tasks.random_walk(3), episodes=60, measure="last100")
    advice, best = found.advice, found.advice.best
    page = text_of(page_lines(found))
    assert f"Use {best.setting.rule.name} with alpha {best.setting.values['alpha']:.3g}" in page
    assert f"initial weights  {advice.initial_error:.4g}" in page
    untried = ", ".join(advice.left_out)
    assert f"{untried}: not tried. Add --learner NAME to try one." in page
    assert "(A1) fails" in page
    assert "stable, safe: below this alpha" in page
    assert "The pilot ran" not in page
    assert "This alpha is above" not in page
    tried = [replace(advice.candidates[0], refined=False), *advice.candidates[1:]]
    limits = [Limits(1.0, None, 0.1), Limits(inf, 0.0, 0.1), *found.limits[2:]]
    cut = replace(advice, candidates=tried, horizon=Horizon(episodes=6000))
    page = text_of(page_lines(replace(found, advice=cut, limits=limits)))
    said = "The pilot ran 60 episodes instead of 6,000 episodes, and all errors are for that length."
    for words in ("?: not computed", "*: error far above", "never", "any", said):
        assert words in page
    risky = [one._replace(safe=best.setting.values["alpha"] / 2) for one in found.limits]
    assert "This alpha is above" in text_of(page_lines(replace(found, limits=risky)))
    assert "so there is no advice" in text_of(page_lines(replace(found, advice=replace(advice, best=None))))


def test_a_rule_of_the_user_s_own_is_analysed_and_shown(rule_file):
    facts = json.loads(
        shown("random_walk", "n_states=3", "--episodes", "60", "--learner", "td", "--rule", rule_file, "--json").stdout
    )
    rows = {row["learner"]: row for row in facts["candidates"]}
    assert set(rows) == {"td", "clipped"}
    assert rows["clipped"]["clip"] > 0
    assert rows["clipped"]["mean_error"]["mean"] < facts["initial error"]
    page = CliRunner().invoke(cli, ["show", "--rule", rule_file])
    assert page.exit_code == 0
    for words in ("learner: clipped", "w ← w + α ρ max(min(δ, clip), −clip) x", "clip: limit of δ", "clipped_td.py"):
        assert words in page.stdout


def test_theory_loads_no_compiler_until_something_is_run():
    program = "import sys, gradient_dd.theory.analysis; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["random_walk", "--measure", "mean"], "'measure' must be 'mean_error' or 'last100'. Got 'mean'."),
        (["random_walk", "--episodes", "9", "--steps", "9"], "A run must have either 'episodes' or 'steps'."),
        (["baird", "--episodes", "9"], "must be given in 'steps', because its episodes never end."),
        (["random_walk", "--sampling", "some"], "'sampling' must be 'trajectory' or 'iid'. Got 'some'."),
        (["random_walk", "--learner", "tdd"], "Unknown learner 'tdd'. Did you mean 'td'?"),
        (["random_walk", "--rule", "x.py"], "A rule must be given as FILE.py:NAME. Got 'x.py'."),
    ],
)
def test_a_bad_request_gets_one_sentence(arguments, sentence):
    result = CliRunner().invoke(cli, ["analyse", *arguments])
    assert isinstance(result.exception, BadRequestError)
    assert sentence in str(result.exception)


def test_what_cannot_be_shown_gets_one_sentence():
    for arguments, got in (([], "neither"), (["td", "--rule", "x.py:X"], "both")):
        result = CliRunner().invoke(cli, ["show", *arguments])
        assert str(result.exception) == f"'show' must be given a name or a rule. Got {got}."
