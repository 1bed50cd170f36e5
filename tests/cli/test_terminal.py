"""What a long command shows: something at once, a plain line now and then, the finding before the table."""

import os
import subprocess
import sys
from time import perf_counter
from types import SimpleNamespace

import click
import pytest

from gradient_dd.cli import live
from gradient_dd.cli.commands.reproduce import coloured


def progress(name, done, total):
    study = SimpleNamespace(name=name)
    return SimpleNamespace(study=study, cells=(done, total), updates=1.0, done={"t": done}, total={"t": total},
                           begin=perf_counter() - 1.0, diverged=0, core_seconds=1.0)  # fmt: skip


def test_without_a_terminal_a_plain_line_tells_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr("gradient_dd.progress.EVERY", 0.05)
    with live.LiveView() as view:
        view(progress("walk", 3, 1200))
        view(progress("walk-fresh", 1, 2))
        view(progress("boyan", 5, 5))
        view.closed.wait(0.3)
    lines = capsys.readouterr().err.splitlines()
    wanted = "Settings × runs done: walk 3 of 1,200; walk, selected settings on test runs 1 of 2"
    assert lines.count(wanted) >= 2
    assert set(lines) == {wanted}


def test_bars_of_tasks_are_hidden_once_their_study_is_complete():
    view, state = live.LiveView(), progress("walk", 3, 5)
    view(state)
    study, task = view.bars.tasks
    assert (study.description, study.completed, study.total) == ("walk", 3, 5)
    assert (task.description, task.completed, task.total, task.visible) == ("  t", 3, 5, True)
    assert study.fields["note"] == "1 updates/s"
    state.cells, state.done["t"], state.diverged = (5, 5), 5, 2
    view(state)
    assert len(view.bars.tasks) == 2
    assert (study.completed, task.completed, task.visible) == (5, 5, False)
    assert study.fields["note"] == "1 updates/s, 2 diverged"
    line, whole = view.summary()
    assert line == "walk: 1 updates in 1.0 core-seconds, 2 settings × runs diverged"
    assert whole.startswith("Total time, including compilation: ")
    assert view.line().endswith("Studies complete: 1.")
    state.updates = 0.0
    assert view.summary() == []


def test_more_than_three_studies_are_cut_short_in_a_line():
    view = live.LiveView()
    for state in [progress(name, 1, 2) for name in "abcd"]:
        view(state)
        assert (" …" in view.line()) == (len(view.seen) > 3)
    assert view.line() == "Settings × runs done: a 1 of 2; b 1 of 2; c 1 of 2 …"


def test_before_the_first_result_the_line_tells_of_kernels(monkeypatch):
    monkeypatch.setattr(live.lanes, "COMPILING", dict.fromkeys(range(12)))
    assert live.LiveView().line() == "Working; kernels compiled or loaded so far: 12 …"


def test_verdicts_have_colours_unless_they_are_not_wanted(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = "a  holds (1 / 0 / 0)\nb  does not hold (0 / 0 / 1)\nc  partly holds (1 / 0 / 1)\nd  undecided (0 / 1 / 0)"
    shown = coloured(text)
    colours = {"holds": "green", "does not hold": "red", "partly holds": "yellow", "undecided": "cyan"}
    for word, colour in colours.items():
        assert click.style(word, fg=colour) in shown
    assert click.unstyle(shown) == text
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("a  holds") == "a  holds"


@pytest.mark.xdist_group("kernels of td")
def test_a_command_says_at_once_where_its_results_go(tmp_path):
    flags = ["--task", "random_walk:n_states=3", "--learner", "td", "--alpha", "0.1", "--episodes", "5", "--runs", "1"]
    call = [sys.executable, "-m", "gradient_dd.cli", "sweep", *flags, "--out", str(tmp_path / "r.db")]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env={**os.environ, "NO_COLOR": "1"})
    said = done.stderr.splitlines()
    assert any(line.startswith("Results go to ") for line in said)
    assert "\x1b" not in done.stdout + done.stderr


def test_reproduce_says_what_it_does_before_it_loads_anything_heavy():
    """Loading NumPy and Numba takes a second on an idle machine and longer on a busy one."""
    code = """
import sys, click
def first(text, **how):
    print(text, "numpy" in sys.modules, "numba" in sys.modules)
    raise SystemExit
click.echo = first
from gradient_dd.cli.commands import cli
cli(["reproduce", "walk"], standalone_mode=False)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "Reproducing walk … False False\n"
