"""Guidance: limits that hold, advice that follows from them, and the same from a log."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gradient_dd import tasks
from gradient_dd.cli import cli
from gradient_dd.cli.analysis import analyse_log, analyse_task, facts_page
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.engine.trajectories import Stream
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.theory.advice import candidates_of_log, doubt, recommended
from gradient_dd.theory.log import log_of, read_log
from gradient_dd.theory.stability import largest_stable_alpha


def sampled(task, n, seed=0):
    """Return n independent transitions of a task, as arrays."""
    outcome = Stream(task, seed, 0, "iid").take(n)
    row, next_row, reward, discount, rho, _ = (column[outcome] for column in task.transitions)
    features = task.row_features.toarray()
    return {"x": features[row], "reward": reward, "discount": discount, "x_next": features[next_row], "rho": rho}


@pytest.fixture(scope="module")
def walk():
    return analyse_task(tasks.random_walk(4), "trajectory", lambda said: None)


def test_what_is_recommended_converges_and_what_is_unsafe_does_not(walk):
    """Sampled runs at the recommended alpha stay bounded; beyond the mean's limit they diverge."""
    task = tasks.random_walk(4)
    for one in walk["candidates"]:
        rule, parameters = LEARNERS[one["learner"]], one["parameters"]
        settings = [rule.setting(**parameters, alpha=alpha) for alpha in (one["alpha"], 1.5 * one["stable"])]
        results = run_lanes(task, settings, Horizon(episodes=3000), runs=4)
        assert np.all(results.last100[:, 0] < 1), one
        assert np.all(np.isinf(results.last100[:, 1])), one
        assert one["safe"] <= 1.02 * one["stable"]
        assert one["alpha"] <= 0.5 * one["safe"] + 1e-12


def test_the_advice_is_the_fastest_candidate_and_says_so(walk):
    best = max(walk["candidates"], key=lambda one: one["rate"])
    assert walk["recommended"] == best
    page = facts_page(walk)
    assert f"Take {best['learner']}" in page
    assert "(A1) fails" in page
    assert "(A2) holds" in page
    json.dumps(walk)


def test_td_is_never_recommended_where_it_diverges():
    facts = analyse_task(tasks.baird(6), "iid", lambda said: None)
    td = next(one for one in facts["candidates"] if one["learner"] == "td")
    assert td["stable"] == 0
    assert facts["recommended"]["learner"] != "td"
    assert "not stable in the mean at any step size" in facts["TD"]
    assert "never" in facts_page(facts)


def test_a_large_log_says_what_the_tables_say():
    task = tasks.random_mdp(n_states=5, n_features=3, seed=1)
    for one in candidates_of_log(log_of(**sampled(task, 30_000))):
        exact = largest_stable_alpha(task, one.learner, "iid", **one.parameters)
        assert one.stable == pytest.approx(exact, rel=0.1), one.name


def test_doubt_shrinks_with_the_log():
    task = tasks.random_mdp(n_states=5, n_features=3, seed=1)
    widths = []
    for n in (200, 5000):
        log = log_of(**sampled(task, n))
        best = recommended(candidates_of_log(log))
        how = doubt(log, best)
        widths.append((how.rate[1] - how.rate[0]) / best.rate)
    assert how.stable == 1.0
    assert widths[1] < widths[0] / 2


def test_terminals_and_states_seen_once_do_not_mislead():
    """Features of x_next mean nothing where the episode ended, and a direction that x never shows has no say."""
    columns = sampled(tasks.random_walk(3), 2000)
    wide = {name: np.column_stack([columns[name], np.zeros(2000)]) for name in ("x", "x_next")}
    wide["x_next"][columns["discount"] == 0, -1] = 7.0
    plain, ended = (candidates_of_log(log_of(**(columns | given))) for given in ({}, wide))
    assert [one.stable for one in plain] == pytest.approx([one.stable for one in ended])
    wide["x_next"][0, -1] = 1.0  # a last state that is never left
    assert recommended(candidates_of_log(log_of(**(columns | wide)))).rate > 1e-4


def test_rare_large_ratios_bound_the_advice():
    columns = sampled(tasks.random_walk(3), 2000)
    columns["rho"] = np.where(np.arange(2000) % 200 == 0, 100.0, 0.5)
    assert all(one.alpha <= 0.005 for one in candidates_of_log(log_of(**columns)))


def test_logs_from_files_and_the_command_line(tmp_path):
    columns = sampled(tasks.baird(7), 3000)
    np.savez(tmp_path / "log.npz", **columns)
    p = columns["x"].shape[1]
    table = np.column_stack([columns["x"], columns["x_next"], columns["reward"], columns["discount"], columns["rho"]])
    names = [f"x{i}" for i in range(p)] + [f"next{i}" for i in range(p)] + ["reward", "discount", "rho"]
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(names), comments="")
    logs = [read_log(tmp_path / f"log.{ending}") for ending in ("npz", "csv")]
    assert np.allclose(logs[0].moments.A, logs[1].moments.A)
    facts = analyse_log(tmp_path / "log.npz")
    assert facts["doubt"]["td_stable"] == 0
    shown = CliRunner().invoke(cli, ["analyse", "--log", str(tmp_path / "log.csv")])
    assert shown.exit_code == 0
    assert "On bootstrap samples of the log" in shown.output
    shown = CliRunner().invoke(cli, ["analyse", "random_walk", "n_states=2", "--sampling", "iid", "--json"])
    assert json.loads(shown.stdout)["task"] == "random_walk(n_states=2)"


def test_what_cannot_be_analysed_gets_one_sentence(tmp_path):
    np.savez(tmp_path / "half.npz", x=np.ones((3, 2)), reward=np.ones(3))
    (tmp_path / "log.txt").write_text("")
    (tmp_path / "broken.npz").write_text("no zip")
    (tmp_path / "empty.csv").write_text("")
    one = np.ones((3, 2))
    for call, sentence in (
        (lambda: read_log(tmp_path / "none.npz"), "A log must be a file."),
        (lambda: read_log(tmp_path / "log.txt"), "A log must be a .npz or a .csv file. Got 'log.txt'."),
        (lambda: read_log(tmp_path / "half.npz"), "Got none called discount, x_next."),
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
