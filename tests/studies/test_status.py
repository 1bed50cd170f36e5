"""Status, export and the closing table of a sweep: what a person reads, safe to print and to open."""

import csv
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gradient_dd.engine.lanes import LaneResults
from gradient_dd.errors import printable
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import Results, write_frame
from gradient_dd.studies.store import Store, Work, store_status
from gradient_dd.studies.sweep import run
from tests.command import call

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
STUDY = Study(
    f"first {ESCAPE}",
    tasks=(task("random_walk", n_states=3), task("random_walk", n_states=5)),
    grids=(grid("td", alpha=(0.1, 0.2)),),
    episodes=20,
    runs=3,
)
pytestmark = pytest.mark.xdist_group("kernels of td")


WORK = Work(0.1, {})


def made_of(errors):
    """Return results of one run with given errors."""
    table, zeros = np.array([errors]), np.zeros((1, len(errors)), int)
    return LaneResults(table, table, np.ones((1, len(errors), 20)), zeros, zeros, np.array([1]))


@pytest.fixture
def path(tmp_path):
    run(STUDY, tmp_path / "a.db")
    run(replace(STUDY, name="second", runs=5, tasks=STUDY.tasks[:1]), tmp_path / "a.db")
    return tmp_path / "a.db"


def test_status_has_every_study_and_how_much_of_it_is_done(path):
    with Store(path, write=True) as store:  # as if it had been stopped
        (last,) = (unit for unit in store.units() if unit.run == 2 and "n_states=5" in unit.facts["task"])
        with store.transaction():
            store.db.execute("DELETE FROM unit WHERE id = ?", [last.id])
            store.count_units(last.task_key)
    with Store(path) as store:
        first, second = store_status(store)["studies"]
    assert (first["name"], first["length"], first["runs"]) == (STUDY.name, "20 episodes", 3)
    assert (first["done"], first["total"], first["starts"]) == (10, 12, 1)
    assert (second["name"], second["done"], second["total"]) == ("second", 10, 10)


def test_a_study_that_is_started_again_stands_there_once(path):
    run(STUDY, path)
    with Store(path) as store:
        first, second = store_status(store)["studies"]
    assert (first["starts"], second["starts"]) == (2, 1)


def test_status_counts_what_is_whole_and_says_what_is_not(path):
    with Store(path) as store:
        facts = store_status(store)
    assert [(row["size"], row["settings"], row["runs"], row["results"]) for row in facts["tasks"]] == [
        (3, 2, 5, 10),
        (5, 2, 3, 6),
    ]
    assert facts["damaged"] == 0
    with Store(path, write=True) as store:
        store.db.execute("UPDATE unit SET checksum = 3 WHERE run = 0 AND facts LIKE '%n_states=3)%'")
    with Store(path) as store:
        facts = store_status(store)
    assert (facts["damaged"], facts["tasks"][0]["results"], facts["tasks"][0]["diverged"]) == (1, 8, 0)
    assert "1 damaged parts are not counted. Run: gradient-dd verify" in call("status", "--out", path).stdout


def test_no_text_of_a_file_commands_the_terminal(path):
    odd = "\x9b31m\u202e"
    with Store(path, write=True) as store:
        for row, facts in store.rows("SELECT id, facts FROM unit"):
            changed = json.dumps(json.loads(facts) | {"task": odd}, ensure_ascii=False)
            store.db.execute("UPDATE unit SET facts = ? WHERE id = ?", (changed, row))
        lanes = [(key, facts | {"reading": ESCAPE, "task": odd}) for key, _, facts in STUDY.lanes(STUDY.built_tasks[0])]
        store.add_settings(lanes)
        store.add_unit(
            replace(STUDY.built_tasks[0], name=odd), 9, [key for key, _ in lanes], made_of([1.0, 2.0]), WORK, {}
        )
    for arguments in (["status", "--out", path], ["verify", path]):
        result = call(*arguments)
        shown = result.stdout + result.stderr
        assert "\\x9b31m" in shown
        assert not {character for character in shown if not character.isprintable()} - {"\n"}
    assert json.loads(call("status", "--json", "--out", path).stdout)["studies"][0]["name"] == STUDY.name


def test_printable_writes_out_what_is_not_seen():
    assert printable("a\x1b[31mb\nc\t\u202e\x9b\ud800") == "a\\x1b[31mb\nc\\t\\u202e\\x9b\\ud800"
    assert printable("ζ = 1, κ → ∞") == "ζ = 1, κ → ∞"


# Export ---------------------------------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd", "@SUM(A1)", "=", "-"]
HIDDEN = {"\t=1": "\\t=1", "\r=1": "\\r=1", "a\nb": "a\\nb"}
HARMLESS = ["random_walk", "-3.5", "+1e-3", "ratios=paper", "", "a-b"]


def test_no_cell_of_an_exported_table_is_a_formula(tmp_path):
    texts = [*FORMULAS, *HARMLESS, *HIDDEN]
    frame = pd.DataFrame({"=name": texts, "value": np.arange(len(texts)) - 7.0})
    write_frame(frame, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        head, *rows = list(csv.reader(file))
    assert head == ["'=name", "value"]
    assert [row[0] for row in rows] == [*(f"'{text}" for text in FORMULAS), *HARMLESS, *HIDDEN.values()]
    assert float(rows[0][1]) == -7.0
    assert frame["=name"].tolist() == texts, "the frame itself is as it was"
    write_frame(frame, tmp_path / "t.parquet")
    assert pd.read_parquet(tmp_path / "t.parquet")["=name"].tolist() == texts


def test_a_learner_with_a_name_like_a_formula_is_exported_as_text(tmp_path):
    rule = replace(LEARNERS["td"], name="=HYPERLINK(1)")
    run(replace(STUDY, grids=(grid(rule, alpha=0.1),), runs=1), tmp_path / "a.db")
    assert call("export", tmp_path / "t.csv", "--out", tmp_path / "a.db").returncode == 0
    assert set(pd.read_csv(tmp_path / "t.csv")["learner"]) == {"'=HYPERLINK(1)"}


# The closing table ------------------------------------------------------------------------------------------------


def made_up(path, errors, study):
    """Write a study's results with given errors, {(alpha, kappa): (run 0, run 1)}."""
    (walk,) = study.built_tasks
    lanes = list(study.lanes(walk))
    with Store(path, write=True) as store:
        store.add_settings((key, facts) for key, _, facts in lanes)
        for number in range(study.runs):
            values = [errors[s.values["alpha"], s.values["kappa"]][number] for _, s, _ in lanes]
            store.add_unit(walk, number, [key for key, *_ in lanes], made_of(values), WORK, {})


def test_the_best_setting_is_chosen_as_everywhere_and_shows_what_varies(tmp_path):
    """One that diverged in a run is not the best, however small its other error; a setting not run yet neither."""
    study = Study(
        "s",
        (task("random_walk", n_states=3),),
        (grid("gradient_dd", alpha=(0.1, 0.2), kappa=(1, 2)),),
        episodes=20,
        runs=2,
    )
    wild = {(0.1, 1.0): (0.01, np.inf), (0.1, 2.0): (0.5, 0.7), (0.2, 1.0): (0.4, 0.6), (0.2, 2.0): (0.9, 0.9)}
    made_up(tmp_path / "a.db", wild, study)
    best = Results(study, tmp_path / "a.db").best_frame()
    assert best.columns.tolist() == [
        *("task", "size", "reading", "learner", "alpha", "kappa"),
        *("last100_mean", "last100_sem", "mean_error_mean", "diverged_runs"),
    ]
    assert best[["alpha", "kappa", "last100_mean"]].to_numpy().tolist() == [[0.2, 1.0, 0.5]]
    more = replace(study, grids=(grid("gradient_dd", alpha=(0.05, 0.1, 0.2), kappa=(1, 2)),))
    assert Results(more, tmp_path / "a.db").best_frame()["alpha"].tolist() == [0.2]
    for error in wild:
        wild[error] = (np.inf, wild[error][0])
    made_up(tmp_path / "b.db", wild, study)
    assert Results(study, tmp_path / "b.db").best_frame()[["alpha", "kappa"]].to_numpy().tolist() == [[0.1, 1.0]]


def test_both_placements_of_the_ratio_have_their_own_best(tmp_path):
    grids = (grid("gtd2", alpha=(0.01, 0.02)), grid("gtd2", alpha=(0.01, 0.02), rho_mode="T"))
    results = run(Study("s", (task("baird"),), grids, steps=50, runs=1), tmp_path / "a.db")
    assert results.best_frame()["reading"].tolist() == ["default", "rho_mode=T"]
