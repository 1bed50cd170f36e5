"""Advice as users get it: good on fresh runs, honest where there is none, from a task and from a log."""

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
from gradient_dd.engine.trajectories import Stream
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.stream import Learner
from gradient_dd.tasks.exact import mspbe
from gradient_dd.theory.advice import advise, advise_from_log
from gradient_dd.theory.advice.from_log import LogPilot
from gradient_dd.theory.advice.space import spaces_of
from gradient_dd.theory.analysis import AnalysisRequest, analyse_log, analyse_task
from gradient_dd.theory.analysis_page import page_lines
from gradient_dd.theory.limits import Limits
from gradient_dd.theory.log import log_of, read_log

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


def sampled(task, n, seed=0):
    """Return n independent transitions of a task, as arrays."""
    outcome = Stream(task, seed, 0, "iid").take(n)
    row, next_row, reward, discount, rho, _ = (column[outcome] for column in task.transitions)
    features = task.row_features.toarray()
    return {"x": features[row], "reward": reward, "discount": discount, "x_next": features[next_row], "rho": rho}


# Advice for a task


@pytest.mark.parametrize(("measure", "schedule"), [("area", constant), ("last100", tapered(100))], ids=str)
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
    assert predicted.mean == pytest.approx(errors[-1], abs=4 * predicted.doubt + 0.02 * errors[-1])
    assert advice.beats_standing_still
    assert advice.initial_error == WALK.rmsve(WALK.initial_weights)


def test_advice_depends_on_the_measure_and_the_length_as_it_must():
    """With a constant step size a longer run, and the error of its end, want smaller steps."""
    alphas = [
        advise(WALK, Horizon(episodes=episodes), measure=measure, learners=["td"], budget=QUICK).best.setting.values[
            "alpha"
        ]
        for episodes, measure in ((60, "area"), (400, "area"), (400, "last100"), (3000, "last100"))
    ]
    assert alphas[0] > 1.3 * alphas[1] > 1.69 * alphas[2] > 2.2 * alphas[3]


def test_advice_is_the_same_every_time_and_answers_for_every_learner():
    one, two = (advise(WALK, EPISODES, budget=QUICK) for _ in range(2))
    assert [(row.setting, row.area) for row in one.candidates] == [(row.setting, row.area) for row in two.candidates]
    answered = {row.setting.rule.name for row in one.candidates} | set(one.left_out)
    assert answered == set(LEARNERS)
    assert set(one.left_out.values()) == {"not among the learners to try"}


def test_where_the_initial_weights_are_best_the_advice_says_so():
    solved = replace(WALK, initial_weights=WALK.fixed_point)
    advice = advise(solved, EPISODES, learners=["td"], budget=QUICK)
    assert not advice.beats_standing_still
    assert advice.best.area.mean < 1e-3  # and it hardly moves
    found = analyse_task(solved, AnalysisRequest(episodes=50, learners=("td",)))
    assert found.facts()["advice"]["beats standing still"] is False
    assert "Nothing that was tried has a smaller error than the initial weights" in text_of(page_lines(found))


def test_no_error_cannot_be_beaten_and_no_advice_beats_nothing():
    columns = sampled(WALK, 60)
    columns["reward"] = 0 * columns["reward"]  # w = 0 is the solution
    advice, doubt = advise_from_log(log_of(**columns), learners=["td"], budget=0.05)
    assert advice.initial_error == advice.best.last100.mean == 0
    assert not advice.beats_standing_still
    assert doubt.improves == 0
    assert not replace(advice, best=None).beats_standing_still


def test_long_runs_are_extrapolated_and_it_is_said():
    advice = advise(WALK, Horizon(episodes=100_000), learners=["td"], budget=0.05, measure="last100")
    assert advice.pilot_horizon.points < 100_000 / 2
    assert advice.horizon == Horizon(episodes=100_000)
    pilot = advice.candidates[0]
    assert advice.best.setting.values["alpha"] < pilot.setting.values["alpha"]
    assert advice.best.last100.mean < pilot.last100.mean


def test_off_policy_td_is_not_recommended_where_it_diverges():
    horizon = Horizon(steps=20_000, every=100)
    advice = advise(tasks.baird(7), horizon, measure="last100", learners=["td", "tdrc"], budget=QUICK)
    assert advice.best.setting.rule.name == "tdrc"
    assert advice.beats_standing_still


# Advice for a log


def test_a_replay_makes_the_steps_of_a_learner_and_its_error_is_the_mspbe():
    log = log_of(**sampled(tasks.random_mdp(seed=3), 300))
    spaces = spaces_of([LEARNERS[name] for name in ("tdrc", "gradient_dd")], 1.0, 100.0, True)
    pilot = LogPilot(log, Horizon(steps=40, every=10), tapered(5), spaces)
    for name, mode in (("tdrc", "R"), ("gradient_dd", "T"), ("gradient_dd", "R")):
        setting = LEARNERS[name].setting(rho_mode=mode, alpha=0.02, zeta=0.7)
        order = pilot.order(pilot.horizon, 2)
        errors, weights = pilot.replay([setting, setting], pilot.horizon, order)
        agent = Learner(name, log.n_features, alpha=0.02, zeta=0.7, schedule=tapered(5, "step"), rho_mode=mode)
        for one in order[:, 1]:
            x, reward, discount, x_next, rho = (getattr(pilot.replayed, part)[one] for part in LOG)
            agent.update(x, reward, discount, x_next, rho)
        assert weights[1, 0] == pytest.approx(agent.w, rel=1e-9)
        A, b, _ = pilot.held_out.moments
        assert errors[1, 1, -1] == pytest.approx(mspbe(agent.w, A, b, log.moments.C) ** 0.5)
    assert len(pilot.held_out.reward) + len(pilot.replayed.reward) == 300


LOG = ("x", "reward", "discount", "x_next", "rho")


def test_advice_from_a_log_learns_and_its_interval_shrinks_with_the_log():
    widths = []
    for n in (300, 6000):
        advice, doubt = advise_from_log(log_of(**sampled(WALK, n)), 300, learners=["td", "gtd2"], budget=0.2)
        assert advice.beats_standing_still
        low, high = doubt.error
        widths.append(high - low)
    assert widths[1] < widths[0] / 2
    assert doubt.improves == doubt.td_stable == 1.0
    assert doubt.solution < advice.initial_error / 2


def test_an_unstable_td_is_seen_in_a_log():
    columns = sampled(tasks.baird(7), 3000)
    columns["reward"] = columns["reward"] + 1.0
    advice, doubt = advise_from_log(log_of(**columns), 2000, budget=0.2)
    assert doubt.td_stable == 0
    assert advice.best.setting.rule.name != "td"


def test_terminals_and_states_seen_once_do_not_mislead():
    """Features of x_next mean nothing where the episode ended, and a direction that x never shows is not learnt."""
    columns = sampled(tasks.random_walk(3), 400)
    wide = {name: np.column_stack([columns[name], np.zeros(400)]) for name in ("x", "x_next")}
    wide["x_next"][columns["discount"] == 0, -1] = 7.0
    plain, ended = (
        advise_from_log(log_of(**(columns | given)), 200, learners=["td"], budget=0.05)[0] for given in ({}, wide)
    )
    assert plain.best.last100.mean == pytest.approx(ended.best.last100.mean)


def test_a_rule_with_branches_cannot_be_replayed_and_it_is_said(rule_file):
    from gradient_dd.studies import load_rule

    with pytest.raises(BadRequestError, match="'clipped' must be arithmetic without branches"):
        advise_from_log(log_of(**sampled(WALK, 50)), learners=[load_rule(rule_file)])
    with pytest.raises(BadRequestError, match=r"linear time\. Got 'natural_gtd2'"):
        advise_from_log(log_of(**sampled(WALK, 50)), learners=["natural_gtd2"])
    with pytest.raises(BadRequestError, match=r"at least 10 transitions for advice\. Got 9"):
        advise_from_log(log_of(**sampled(WALK, 9)))


# The command


def shown(*arguments):
    result = CliRunner().invoke(cli, ["analyse", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_the_command_prints_advice_as_json_and_reports_progress():
    result = shown("random_walk", "n_states=3", "--episodes", "60", "--schedule", "tapered(10)", "--json")
    facts = json.loads(result.stdout)
    advice = facts["advice"]
    rule = LEARNERS[advice["learner"]]
    rule.setting(**{parameter.name: advice[parameter.name] for parameter in rule.plain.parameters})
    assert advice["predicted error"] == advice["area"]["mean"] < facts["initial error"]
    assert advice["doubt"] > 0
    assert (facts["horizon"], facts["schedule"], facts["measure"]) == ("60 episodes", "tapered(10) per episode", "area")
    curve = facts["curve"]
    assert curve["at"][-1] == 60
    assert np.mean(curve["mean"]) == pytest.approx(advice["area"]["mean"])
    low, mean, high = (np.array(curve[name]) for name in ("low", "mean", "high"))
    assert (low <= mean * (1 + 1e-12)).all()
    assert (mean <= high * (1 + 1e-12)).all()
    assert {row["learner"] for row in facts["candidates"]} | set(facts["left out"]) == set(LEARNERS)
    assert "  0%  a pilot on random_walk(n_states=3): at most about" in result.stderr
    assert "judge: " in result.stderr


def test_the_page_says_what_was_found_and_what_its_signs_mean():
    found = analyse_task(tasks.random_walk(3), AnalysisRequest(episodes=60, measure="last100"))
    advice, best = found.advice, found.advice.best
    page = text_of(page_lines(found))
    assert f"Take {best.setting.rule.name} with alpha {best.setting.values['alpha']:.3g}" in page
    assert f"initial weights  {advice.initial_error:.4g}" in page
    untried = ", ".join(advice.left_out)
    assert f"{untried}: not among the learners to try. Add --learner NAME to try one." in page
    assert "(A1) fails" in page
    assert "stable, safe: below this alpha" in page
    assert "The pilot ran" not in page
    assert "This alpha is above" not in page
    tried = [replace(advice.candidates[0], refined=False), *advice.candidates[1:]]
    limits = [Limits(1.0, None, 0.1), Limits(inf, 0.0, 0.1), *found.limits[2:]]
    cut = replace(advice, candidates=tried, horizon=Horizon(episodes=6000))
    page = text_of(page_lines(replace(found, advice=cut, limits=limits)))
    said = "The pilot ran 60 episodes. For 6,000 episodes alpha and the predicted error are extrapolated."
    for words in ("?: not computed", "*: far behind", "never", "any", said):
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
    assert rows["clipped"]["area"]["mean"] < facts["initial error"]
    page = CliRunner().invoke(cli, ["show", "--rule", rule_file])
    assert page.exit_code == 0
    for words in ("learner: clipped", "w ← w + α ρ max(min(δ, clip), −clip) x", "clip: limit of δ", "clipped_td.py"):
        assert words in page.stdout


def test_logs_from_files_and_the_command_line(tmp_path):
    columns = sampled(tasks.random_walk(3), 200)
    np.savez(tmp_path / "log.npz", **columns)
    p = columns["x"].shape[1]
    table = np.column_stack([columns["x"], columns["x_next"], columns["reward"], columns["discount"], columns["rho"]])
    names = [f"x{i}" for i in range(p)] + [f"next{i}" for i in range(p)] + ["reward", "discount", "rho"]
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(names), comments="")
    logs = [read_log(tmp_path / f"log.{ending}") for ending in ("npz", "csv")]
    assert np.allclose(logs[0].moments.A, logs[1].moments.A)
    facts = analyse_log(tmp_path / "log.npz", AnalysisRequest(steps=100, learners=("td",))).facts()
    assert facts["advice"]["learner"] == "td"
    assert facts["measure"] == "last100"
    page = shown("--log", str(tmp_path / "log.csv"), "--steps", "100", "--learner", "td").output
    assert "On bootstrap samples of the log" in page
    assert "not the unknown error of the values" in page


def test_theory_loads_no_compiler_until_something_is_run():
    program = "import sys, gradient_dd.theory.analysis_page; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "'analyse' must be given a task or a log. Got neither."),
        (["random_walk", "--log", "x.npz"], "'analyse' must be given a task or a log. Got both."),
        (["random_walk", "--measure", "mean"], "'measure' must be 'area' or 'last100'. Got 'mean'."),
        (["random_walk", "--episodes", "9", "--steps", "9"], "A run must have either 'episodes' or 'steps'."),
        (["baird", "--episodes", "9"], "must be given in 'steps', for its episodes never end."),
        (["random_walk", "--sampling", "some"], "'sampling' must be 'trajectory' or 'iid'. Got 'some'."),
        (["random_walk", "--learner", "tdd"], "Unknown learner 'tdd'. Did you mean 'td'?"),
        (["--log", "x.npz", "--episodes", "9"], "'--episodes' must be left out with a log"),
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


def test_what_cannot_be_read_gets_one_sentence(tmp_path):
    np.savez(tmp_path / "half.npz", x=np.ones((3, 2)), reward=np.ones(3))
    (tmp_path / "log.txt").write_text("")
    (tmp_path / "broken.npz").write_text("no zip")
    (tmp_path / "empty.csv").write_text("")
    one = np.ones((3, 2))
    for call, sentence in (
        (lambda: read_log(tmp_path / "none.npz"), "A log must be a file."),
        (lambda: read_log(tmp_path / "log.txt"), "A log must be a .parquet, .csv, .npz or .npy file"),
        (lambda: read_log(tmp_path / "half.npz"), "'discount' must be given where the log has no column of discounts."),
        (lambda: log_of(one, 1.0, 0.9, one[:2]), "'x' and 'x_next' must have one row for each transition"),
        (lambda: log_of(np.ones(3), 1.0, 0.9, np.ones(3)), "Got (3,) and (3,)."),
        (lambda: log_of([["a"]], 1.0, 0.9, [["b"]]), "'x' must be numbers. Got [['a']]."),
        (lambda: log_of(0 * one, 1.0, 0.9, one), "'x' must have a feature that is not zero."),
        (lambda: read_log(tmp_path / "broken.npz"), "The log broken.npz must be readable."),
        (lambda: read_log(tmp_path / "empty.csv"), "The log empty.csv must be readable."),
        (lambda: log_of(one, [1.0, 2.0], 0.9, one), "'reward' must have one number for each of 3 transitions."),
        (lambda: log_of(one, 1.0, 1.5, one), "'discount' must be between 0 and 1. Got 1.5 to 1.5."),
        (lambda: log_of(one, 1.0, 0.9, one, -1.0), "'rho' must be between 0 and inf."),
        (lambda: log_of(one * np.nan, 1.0, 0.9, one), "'x' must be finite."),
    ):
        with pytest.raises(BadRequestError) as caught:
            call()
        assert sentence in str(caught.value)
