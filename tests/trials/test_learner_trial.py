"""`python -m trials.learner_trial`: its tasks, its numbers and its goals, on two made-up tasks in place of its own."""

import json

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.stream.learner import Learner
from trials import learner_tasks, learner_trial
from trials.auto_learner import cases, rivals, trial

FREE, RUNGS, TUNED = trial.AUTO


def row(task, kind, stable, measures):
    """Return a row of a trial with made-up measures: ours, of rivals as they are, and half of that averaged."""
    filled = dict(zip([FREE, RUNGS, TUNED, *trial.RIVALS], map(float, measures), strict=True))
    filled |= {name + trial.AVERAGED: filled[name] / 2 for name in trial.RIVALS}
    one = {
        "kind": kind,
        "task": task,
        "rules": str(trial.TrialRules(2, 3, 100)),
        "td_stable": stable,
        "start": 1.0,
        "ends": [0.5, 2.0],
        "peaks": [0.75, 4.0],
    }
    settings = {name: [value, 2 * value] for name, value in filled.items()}
    return one | {
        "measure": filled | {trial.STILL: 4.0, trial.LSTD: 2.0, trial.LSTD_TUNED: 1.5},
        "every_setting": settings,
    }


ROWS = [
    row("a", "ring", True, (0.9, 1.1, 0.8, 1, 2, 1.2, 3, 2, 1.5, 1.5, 1.5)),
    row("b", "greedy", False, (1.8, 1.1, 0.9, 9, 3, 3, 1, 2, 1.5, 1.5, 1.5)),
]


CASES = [cases.Case(one["kind"], one["task"], tasks.random_walk(3), 100) for one in ROWS]


def test_the_program_prints_tables_and_goals_and_goes_on_from_the_rows_it_has(tmp_path, monkeypatch, capsys):
    """A line that was cut off is run again, tasks that are done are not."""
    monkeypatch.setattr(learner_trial, "whole", lambda: CASES)
    again = []
    known = {one["task"]: one for one in ROWS}
    monkeypatch.setattr(trial, "shown", lambda case, *_: again.append(case.name) or known[case.name])
    rows, words = tmp_path / "a.rows", ["--out", str(tmp_path / "a"), "--steps", "100"]
    learner_trial.main(words)
    assert sorted(again) == ["a", "b"]
    rows.write_text(rows.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    (cut,) = {"a", "b"} - {row["task"] for row in trial.read_rows(rows)}
    again.clear()
    capsys.readouterr()
    learner_trial.main(words)
    assert again == [cut]
    shown = capsys.readouterr().out
    assert "nothing tuned                             1.273, goal 0.95: not reached" in shown
    assert "alpha tuned                               0.849, goal 0.88: reached" in shown
    assert shown.count(": reached") == 2
    facts = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert facts["ends"] == {"runs": 4, "above 1": 2, "above 3": 0, "worst": 2.0}
    assert facts["peaks"] == {"runs": 4, "above 1.5": 2, "worst": 4.0}
    assert "largest over initial error within a run   4.000, goal 1.50: not reached" in shown


def test_ratios_are_to_the_best_rival_of_each_task():
    assert trial.ratios(ROWS, FREE, averaged=False) == pytest.approx([0.9, 1.8])
    assert trial.ratios(ROWS, FREE, averaged=True) == pytest.approx([1.8, 3.6])
    assert trial.tables(ROWS)["all tasks"][FREE]["geometric_mean"] == pytest.approx(np.sqrt(0.9 * 1.8))
    assert trial.tables(ROWS)["TD unstable"][TUNED]["worst"] == pytest.approx(0.9)
    assert trial.averaging(ROWS)["geometric_mean"] == pytest.approx(0.5)
    assert trial.pair(ROWS, FREE, TUNED)["geometric_mean"] == pytest.approx(np.sqrt(0.9 / 0.8 * 2))
    assert trial.best_fixed(ROWS) == (f"GTD2{trial.AVERAGED}", 0, pytest.approx(0.75))


def test_every_kind_of_task_can_be_made():
    made = [*cases.small_cases(2, 5_000_000)]
    assert len({case.name for case in made}) == len(made)
    assert {case.kind for case in made} == set(cases.KINDS)
    assert {case.steps for case in made} == {cases.USUAL}
    assert {case.task.n_features for case in made if "feature" in case.kind} == {1, 2}
    torus = cases.torus(1, 4, 16, 0.9)
    assert torus.n_features == 16
    assert (torus.features.sum(axis=1) == 8).all()
    assert cases.td_is_stable(cases.aimed_at_the_fixed_point(torus))
    assert not cases.td_is_stable(tasks.baird(7))


def test_every_kind_of_the_whole_trial_can_be_made():
    made = [
        *learner_tasks.small_cases(5_000_000, 1),
        *learner_tasks.large_cases(5_000_000),
        learner_tasks.long_case(5_000_000),
    ]
    assert len({case.name for case in made}) == len(made) == len(learner_tasks.KINDS) + 4
    assert not set(learner_tasks.KINDS) & set(cases.KINDS)
    for case in made:
        assert cases.first_error(cases.aimed_at_the_fixed_point(case.task)) > 0


def test_rivals_and_their_averages_are_those_of_single_learners():
    """TD in lanes, the average of its weights at the end of each part, and the error of LSTD, against plain loops."""
    task = cases.aimed_at_the_fixed_point(tasks.random_mdp(6, 2, 3, 0.9, seed=4))
    road = rivals.Road(task, 400, 0)
    found = rivals.rival_errors(road, "TD")
    alpha, place = rivals.ALPHAS[5] * road.unit, 5
    td, kept, plain, averaged, turn = Learner("td", 3, alpha=alpha), [], [], [], rivals.FIRST_TURN
    older, newer = [], []
    for part in road.parts():
        for x, x_next, reward, discount, rho in zip(*part, strict=True):
            td.update(x, reward, discount, x_next, rho)
        newer.append(td.w.copy())
        kept = older + newer
        plain.append(task.rmsve(td.w))
        averaged.append(task.rmsve(np.mean(kept, axis=0)))
        if td.updates >= turn:
            older, newer, turn = newer, [], 2 * td.updates
    assert found.plain[place] == pytest.approx(np.mean(plain))
    assert found.averaged[place] == pytest.approx(np.mean(averaged))
    assert road.unit == pytest.approx(1 / float(task.visits @ (task.features**2).sum(axis=1)))
    lstd = rivals.lstd_errors(road)
    assert lstd.shape == (4,)
    assert lstd[1] < lstd[3] < task.rmsve(task.initial_weights)  # a ridge of 1,000 hardly moves
    assert rivals.auto_run(road).mean_error < task.rmsve(task.initial_weights)
    assert rivals.auto_run(road, quadratic=False).mean_error != rivals.auto_run(road, alpha=0.1).mean_error


def test_a_rival_may_keep_a_trace_or_taper_its_steps():
    task = cases.aimed_at_the_fixed_point(tasks.random_mdp(6, 2, 3, 0.9, seed=4))
    road = rivals.Road(task, 400, 0)
    found = {name: rivals.rival_errors(road, name) for name in ("HTD", "TD", "TD, tapered")}
    assert found["HTD"].plain.shape == found["HTD"].averaged.shape == (30,)
    assert found["HTD"].averaged.min() < task.rmsve(task.initial_weights)
    late = found["TD, tapered"].plain < found["TD"].plain  # large steps gain by the taper, small ones lose by it
    assert late[0]
    assert not late[-1]


@pytest.mark.slow
def test_a_small_trial():
    """Rivals are compared with the best of them, which therefore has ratio 1."""
    case = cases.Case("one", "walk", tasks.random_walk(3), 1000)
    rows = trial.run_trial([case], trial.TrialRules(1, 1))
    table = trial.tables(rows)["all tasks"]
    assert min(table[name]["worst"] for name in trial.RIVALS) == 1
    assert {*trial.AUTO, trial.LSTD, trial.STILL} < set(table)
    assert any("geometric mean" in line for line in trial.lines(trial.tables(rows, averaged=True)))


def test_a_trial_measures_the_distance_to_the_fixed_point():
    task = tasks.random_mdp(seed=1)
    aimed = cases.aimed_at_the_fixed_point(task)
    assert aimed.rmsve(task.fixed_point) == pytest.approx(0, abs=1e-12)
    assert task.rmsve(task.fixed_point) > 0.1
    assert aimed.digest == task.digest
