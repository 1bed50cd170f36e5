"""The benchmarks of the engine: what they compare is the same work, and they print it. Nothing here is timed."""

import json

import numpy as np
import pytest

from benchmarks import engine, paper
from benchmarks.baselines import LEARNERS_IN_C, c_call, library, plain_call
from gradient_dd.engine import reference
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import Study, grid, task

LIKE_OTHERS = {name: [pytest.mark.slow] for name in ("gtd2", "tdc")}  # Gradient-DD and TDRC do the same and more
cases = pytest.mark.parametrize("case", engine.CASES, ids=lambda case: case[0].name)


@cases
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.xdist_group(f"kernels of {name}"), *LIKE_OTHERS.get(name, ())])
        for name in LEARNERS_IN_C
    ],
)
def test_the_hand_written_c_does_the_same_work(name, case):
    """Compiled without fused multiply-add, which rounds once where two operations round twice: the same bits."""
    if library(engine.LANES, True, fused_multiply_add=False) is None:
        pytest.skip("no C compiler on this machine")
    task, top = case
    column, segments = engine.piece(task, 20_000)
    ours, theirs = (engine.fresh_block(task, name, top) for _ in range(2))
    ours.advance(column, segments)
    one_hot = task.name == "random_walk"
    c_call(library(engine.LANES, one_hot, fused_multiply_add=False), theirs, column, segments)()
    assert np.array_equal(ours.lanes.w, theirs.lanes.w)
    assert np.array_equal(ours.errors.curve, theirs.errors.curve)


@cases
@pytest.mark.parametrize("name", LEARNERS_IN_C)
def test_the_plain_loop_does_the_same_work(name, case):
    task, top = case
    column, _ = engine.piece(task, 500)
    w = plain_call(task, name, column[:500], top / 30)()
    assert np.allclose(w, reference.run(task, name, steps=500, alpha=top / 30).w, rtol=1e-10, atol=1e-12)


@pytest.mark.xdist_group("kernels of td")
def test_the_output_has_the_promised_form(monkeypatch, capsys):
    for name, value in (("STEPS", 2000), ("REPEATS", 1), ("PLAIN_STEPS", 50)):
        monkeypatch.setattr(engine, name, value)
    monkeypatch.setattr(engine, "LEARNERS", {"td": LEARNERS["td"]})
    engine.main(["--task", "random_walk", "--json"])
    output = json.loads(capsys.readouterr().out)
    assert set(output) == {"engine", "baselines", "sampling", "machine"}
    (row,) = output["engine"]
    assert {"learner", "task", "lanes", "ns_per_update"} <= set(row)
    assert row["lanes"] == 64
    assert row["ns_per_update"] > 0
    assert {row["kind"] for row in output["baselines"]} <= {"C", "C, same bits", "numpy"}
    engine.main(["--task", "random_walk"])
    assert "random_walk(n_states=40)" in capsys.readouterr().out


@pytest.mark.xdist_group("kernels of td")
def test_the_paper_bench_compares_studies_with_c(monkeypatch, capsys):
    """Tiny studies stand for those of the paper; natural rules and tables of any width have a counterpart in C."""
    small = {
        "one": Study("one", (task("random_walk", n_states=5),), (grid("td", alpha=(0.1, 0.2)),), episodes=100, runs=3),
        "two": Study(
            "two",
            (task("random_walk", n_states=20, features="linear"), task("baird", n_states=7)),
            (grid("gtd2", alpha=0.001),),
            steps=500,
        ),
        "three": Study("three", (task("random_walk", n_states=5),), (grid("natural_tdc", alpha=0.1),), episodes=10),
    }
    none = Study("none", (task("random_walk", n_states=5),), (grid("htd", alpha=0.1),), episodes=10)
    monkeypatch.setattr(paper, "STUDIES", small | {"none": none})
    monkeypatch.setattr(paper, "STEPS", 500)
    monkeypatch.setattr(paper, "REPEATS", 1)
    paper.main(["--json"])
    output = json.loads(capsys.readouterr().out)
    assert set(output) == {"studies", "ratio", "shared", "no_baseline_in_c"}
    assert output["no_baseline_in_c"] == {"none": ["htd"]}
    assert output["shared"]["updates"] == pytest.approx(sum(row["updates"] for row in output["studies"]))
    assert [row["study"] for row in output["studies"]] == list(small)
    for row in output["studies"]:
        assert set(row) == {"study", "updates", "engine_seconds", "c_seconds", "ratio"}
        assert row["updates"] == small[row["study"]].estimate()["updates"]
        assert row["engine_seconds"] > 0
    if library(8, True, 2) is None:
        assert output["ratio"] is None
    else:
        ours, theirs = (sum(row[name] for row in output["studies"]) for name in ("engine_seconds", "c_seconds"))
        assert output["ratio"] == pytest.approx(ours / theirs)
        assert output["studies"][0]["ratio"] == pytest.approx(
            output["studies"][0]["engine_seconds"] / output["studies"][0]["c_seconds"]
        )


def test_the_quick_bench_covers_every_study_of_the_paper(capsys):
    """Each study is measured, or named with the learners that have no counterpart in C."""
    paper.main(["--quick"])
    lines = capsys.readouterr().out.splitlines()[1:]
    skipped = [line.split()[4] for line in lines if line.startswith("No baseline in C: ")]
    *rows, whole, shared = lines[: len(lines) - len(skipped)]
    measured = [row.split()[0] for row in rows]
    assert sorted([*measured, *skipped]) == sorted(STUDIES)
    assert skipped == [name for name in STUDIES if name.endswith("-fully")]
    assert "No baseline in C: walk-fully (gtd2_to_td)" in lines
    assert whole.startswith("all ")
    assert shared.startswith("all, each setting once")


def test_shared_studies_are_what_a_sweep_runs():
    """Runs 0 and 1 have the settings of both studies, run 2 those of one; no setting is there twice."""
    walk, chain = task("random_walk", n_states=5), task("boyan_chain", n_features=3)
    one = Study("one", (walk,), (grid("td", alpha=(0.1, 0.2)),), episodes=10, runs=3)
    two = Study("two", (walk, chain), (grid("td", alpha=(0.2, 0.4)), grid("gtd2", alpha=0.1)), episodes=10, runs=2)
    other = Study("other", (walk,), (grid("td", alpha=0.1),), episodes=20)
    shared = paper.shared_studies([one, two, other])
    found = [(str(*study.tasks), study.episodes, study.n_settings, study.run_numbers) for study in shared]
    assert found == [
        (str(walk), 10, 4, range(2)),
        (str(walk), 10, 2, range(2, 3)),
        (str(chain), 10, 3, range(2)),
        (str(walk), 20, 1, range(1)),
    ]
