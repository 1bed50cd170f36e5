"""Benchmarks: what they compare is the same work, and they print their tables. Nothing here is timed."""

import numpy as np
import pytest

from benchmarks import engine, jax, networks, questions, scaling, stream, traced
from gradient_dd import Learner, tasks
from gradient_dd.engine.trajectories import OutcomeSampler
from tools.programs import print_table


@pytest.mark.parametrize("k", [8, 1])
def test_the_c_of_a_stream_does_the_same_work(k):
    log = stream.shuffled_log(3000, k, 50)
    call = stream.c_call(log, 50)
    if call is None:
        pytest.skip("no C compiler on this machine")
    agent = Learner("gradient_dd", 50, alpha=stream.ALPHA)
    agent.update_many(*log.arguments)
    assert np.allclose(call(), agent.w, rtol=1e-9, atol=1e-12)
    assert np.abs(agent.w).max() > 1e-3


def test_the_stream_table_names_what_is_missing(monkeypatch, capsys):
    def none_here(log, p):
        raise ImportError

    for name, value in (("CASES", {8: 200}), ("SINGLE", 20), ("REPEATS", 1), ("FEATURES", 100)):
        monkeypatch.setattr(stream, name, value)
    monkeypatch.setattr(stream, "OTHERS", {"another learn": ("another", none_here, True)})
    stream.main([])
    shown = capsys.readouterr().out
    assert "another is not installed" in shown
    ours = [line.split() for line in shown.splitlines() if "update" in line]
    assert [line[1] for line in ours] == ["update_many", "update"]
    assert all(float(line[2].replace(",", "")) > 0 for line in ours)


def test_the_baselines_of_questions_do_the_same_work(monkeypatch):
    work = questions.make_work(questions.Case(questions=70, features=60, active=7, changing=0.3), 60)
    monkeypatch.setattr(questions, "NUMPY_STEPS", 60)
    ours, horde = questions.our_call(work)
    plain, w = questions.numpy_call(work)
    ours()
    plain()
    assert np.allclose(horde.w, w, rtol=1e-4, atol=1e-6)
    assert np.abs(w).max() > 0.1
    if (in_c := questions.c_call(work)) is not None:
        in_c[0]()
        assert np.allclose(horde.w, in_c[1](), rtol=1e-5, atol=1e-6)


def test_the_bench_of_questions_prints_a_row_for_each_case(monkeypatch, capsys):
    for name, value in (("STEPS", 4), ("REPEATS", 1), ("CASES", (questions.Case(70, 60, 7),))):
        monkeypatch.setattr(questions, name, value)
    questions.main([])
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["70", "60", "7"]


@pytest.mark.parametrize("name", traced.NAMES)
@pytest.mark.parametrize("task", traced.CASES, ids=str)
def test_the_baselines_with_a_trace_do_the_same_work(task, name):
    column = OutcomeSampler(task).take(401)
    block = traced.fresh_block(task, name)
    traced.engine_call(block, column)()
    ours = block.lanes.w.reshape(-1, traced.LANES)[: task.n_features]
    plain = traced.plain_call(task, name, column[:-1], float(traced.ALPHAS[20]))()
    assert np.allclose(ours[:, 20], plain, rtol=1e-10)
    if (in_c := traced.c_call(task, name, column)) is not None:
        in_c[0]()
        assert np.allclose(in_c[1][: task.n_features], ours, rtol=1e-10)


def test_the_bench_of_traces_prints_a_row_for_each_case(monkeypatch, capsys):
    for name, value in (("STEPS", 64), ("PLAIN_STEPS", 20), ("REPEATS", 1), ("NAMES", ("td",)), ("has_jax", bool)):
        monkeypatch.setattr(traced, name, value)
    monkeypatch.setattr(traced, "CASES", traced.CASES[:1])
    traced.main([])
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("task")
    assert row.startswith("collision(seed=1)")


@pytest.mark.xdist_group("kernels of gradient_dd")
def test_scaling_measures_an_update_by_the_number_of_features(monkeypatch):
    for module in (engine, scaling):
        monkeypatch.setattr(module, "STEPS", 500)
    monkeypatch.setattr(scaling, "REPEATS", 1)
    (row,) = scaling.by_size((tasks.boyan_chain(5),), 0.1)
    assert row[0] == "5"
    assert float(row[2]) > 0


def test_the_comparison_with_jax_needs_jax(monkeypatch):
    monkeypatch.setattr(jax, "has_jax", lambda: False)
    with pytest.raises(SystemExit, match="JAX is not installed"):
        jax.main([])


def test_a_table_has_aligned_columns(capsys):
    print_table(("a", "b"), [("long", "1"), ("x", "22")])
    assert capsys.readouterr().out == "a     b\nlong  1\nx     22\n"


def test_the_numpy_loop_of_networks_does_the_same_work():
    by_hand, agent = networks.numpy_call(10), networks.learner_call(10)
    assert np.allclose(by_hand[0], agent.w, atol=1e-6)
    assert np.allclose(by_hand[2], agent.eta, atol=1e-6)
    assert np.abs(agent.w - networks.network().first_w(0)).max() > 1e-3
