"""Sweeps: only what is missing is run, and the store is the same however they were run or killed."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradient_dd.engine import reference
from gradient_dd.engine.schedules import tapered
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import Study, grid, task
from gradient_dd.studies.results import Results
from gradient_dd.studies.store import Store, StoreError
from gradient_dd.studies.sweep import run, run_all

ROOT = Path(__file__).parents[2]
SEARCHED = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # for modules, by a process of its own
COMMAND = str(Path(sys.executable).parent / "gradient-dd")
STUDY = Study(
    "s",
    tasks=(task("random_walk", n_states=3), task("random_walk", n_states=5)),
    grids=(grid("td", alpha=(0.1, 0.2)),),
    schedule=tapered(100),
    episodes=30,
    runs=3,
)
pytestmark = pytest.mark.xdist_group("kernels of td")


def content(path):
    """Return every result of a store, by what it is of."""
    found = []
    with Store(path) as store:
        for unit in store.units():
            curves = [points.tobytes() for points in store.curves(unit)]
            found += zip(unit.keys, [unit.run] * len(curves), unit.numbers.tolist(), curves, strict=True)
    return sorted(found)


def units(path):
    with Store(path) as store:
        return [(unit.facts["task"], unit.run, len(unit.keys)) for unit in store.units()]


@pytest.fixture
def whole(tmp_path):
    run(STUDY, tmp_path / "whole.db", workers=1)
    return content(tmp_path / "whole.db")


def test_results_are_the_reference_engine_s(tmp_path):
    results = run(STUDY, tmp_path / "a.db")
    for name, one in results.tasks.items():
        settings, errors = results.errors(name, "mean_error")
        for setting, row in zip(settings, errors, strict=True):
            for number, error in enumerate(row):
                trace = reference.run(one, "td", episodes=30, schedule=tapered(100), run=number, **setting.values)
                assert error == pytest.approx(trace.errors.mean(), rel=1e-12)


def test_the_seed_reaches_the_runs(tmp_path):
    """Another seed gives other trajectories, and those that the reference engine has for it."""
    one = replace(STUDY, tasks=STUDY.tasks[:1], grids=(grid("td", alpha=0.1),), runs=1)
    found = {}
    for seed in (0, 5):
        results = run(replace(one, seed=seed), tmp_path / "a.db")
        ((name, walk),) = results.tasks.items()
        found[seed] = results.errors(name, "mean_error")[1][0, 0]
        trace = reference.run(walk, "td", episodes=30, schedule=tapered(100), run=0, seed=seed, alpha=0.1)
        assert found[seed] == pytest.approx(trace.errors.mean(), rel=1e-12)
    assert found[0] != found[5]


def test_a_finished_study_runs_nothing(tmp_path, whole):
    run(STUDY, tmp_path / "whole.db")
    assert len(units(tmp_path / "whole.db")) == 6
    assert content(tmp_path / "whole.db") == whole


def test_extending_computes_exactly_what_is_new(tmp_path):
    path = tmp_path / "a.db"
    run(replace(STUDY, runs=10), path)
    assert len(units(path)) == 20
    run(replace(STUDY, runs=50), path)
    assert len(units(path)) == 100
    assert sorted(number for _, number, _ in units(path)[20:]) == sorted([*range(10, 50)] * 2)
    run(replace(STUDY, runs=50, grids=(grid("td", alpha=(0.1, 0.15, 0.2)),)), path)
    assert {settings for *_, settings in units(path)[100:]} == {1}
    assert len(units(path)) == 200
    run(replace(STUDY, runs=50, grids=(*STUDY.grids, grid("tdc", alpha=0.1))), path)
    assert {settings for *_, settings in units(path)[200:]} == {1}


def test_a_changed_definition_is_noticed_and_never_mixed(tmp_path):
    path, said = tmp_path / "a.db", []
    one = replace(STUDY, tasks=STUDY.tasks[:1])
    before = run(one, path).frame()

    def step(alpha, rho, delta):
        return (0.5 * alpha * rho * delta,)

    changed = replace(one, grids=(grid(replace(LEARNERS["td"], step=step), alpha=(0.1, 0.2)),))
    after = run(changed, path, on_notice=said.append).frame()
    assert "from another definition of a task, a rule or the engine" in said[0]
    assert not np.array_equal(before["mean_error_mean"], after["mean_error_mean"])
    assert Results(one, path).frame().equals(before)
    assert len(content(path)) == 12


def test_threads_and_executors_do_not_matter(tmp_path, whole):
    run(STUDY, tmp_path / "two.db", workers=2)
    with ThreadPoolExecutor(3) as pool:
        run(STUDY, tmp_path / "pool.db", executor=pool)
    assert content(tmp_path / "two.db") == content(tmp_path / "pool.db") == whole


def test_progress_counts_cells(tmp_path):
    seen = []
    path = tmp_path / "a.db"
    run(replace(STUDY, runs=1), path)
    run(STUDY, path, on_progress=lambda state: seen.append((state.cells, state.stored)))
    assert [done for (done, _), _ in seen] == [6, 8, 10, 12]
    assert seen[-1] == ((12, 12), 4)
    seen.clear()
    run(STUDY, path, on_progress=lambda state: seen.append((state.cells, state.stored)))
    assert seen == [((12, 12), 12)], "a study that was complete before is reported once"


def test_large_studies_are_cut_into_units_of_bounded_size(tmp_path, monkeypatch, whole):
    monkeypatch.setattr("gradient_dd.studies.sweep.MOST_SETTINGS", 1)
    run(STUDY, tmp_path / "a.db")
    assert len(units(tmp_path / "a.db")) == 12
    assert content(tmp_path / "a.db") == whole


def test_selection_and_fresh_runs(tmp_path):
    """Selected on three runs, evaluated on four others, all in one store."""
    results = run(STUDY, tmp_path / "a.db")
    name = "random_walk(n_states=5)"
    best = results.selected(name, "td", "mean_error")
    fresh = run(STUDY.fresh(4, [best]), tmp_path / "a.db")
    settings, errors = fresh.errors(name, "mean_error")
    assert settings == [best]
    assert errors.shape == (1, 4)
    assert not set(errors[0]) & set(results.errors(name, "mean_error")[1].ravel())


def test_a_failing_unit_leaves_the_others(tmp_path, monkeypatch):
    """The third unit to be written fails: two are kept, the next call goes on."""
    original, calls = Store.add_unit, []

    def failing(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise sqlite3.OperationalError("database or disk is full")
        original(self, *arguments)

    monkeypatch.setattr(Store, "add_unit", failing)
    with pytest.raises(sqlite3.OperationalError):
        run(STUDY, tmp_path / "a.db", workers=1)
    monkeypatch.undo()
    assert len(units(tmp_path / "a.db")) == 2
    run(STUDY, tmp_path / "a.db")
    assert len(units(tmp_path / "a.db")) == 6


def test_workers_must_be_some(tmp_path):
    with pytest.raises(BadRequestError, match=r"'workers' must be a whole number, 1 or more. Got 0."):
        run(STUDY, tmp_path / "a.db", workers=0)


def test_studies_that_overlap_share_their_cells(tmp_path):
    more = replace(STUDY, name="more", runs=STUDY.runs + 1)
    first, second = run_all([STUDY, more], tmp_path / "both.db")
    run(more, tmp_path / "one.db")
    assert content(tmp_path / "both.db") == content(tmp_path / "one.db")
    assert not any(np.isnan(results.errors(task)[1]).any() for results in (first, second) for task in results.tasks)


def test_studies_that_run_alike_share_their_units(tmp_path):
    """One trajectory and one commit for the settings of both; the progress of each counts its own."""
    small, large = (str(one) for one in STUDY.built_tasks)
    alike = replace(STUDY, name="alike", tasks=STUDY.tasks[1:], grids=(grid("td", alpha=(0.2, 0.4, 50.0)),), runs=2)
    other = replace(alike, name="other", schedule=tapered(50))
    seen, path = {}, tmp_path / "all.db"
    run_all([STUDY, alike, other], path, workers=1, on_progress=lambda state: seen.update({state.study.name: state}))
    shared = [(large, 0, 4), (large, 1, 4), (large, 2, 2)]  # 0.2 is in both studies
    wanted = [*((small, run, 2) for run in range(3)), *shared, (large, 0, 3), (large, 1, 3)]
    assert sorted(units(path)) == sorted(wanted)  # two that are done at once are committed in any order
    for study in (STUDY, alike, other):
        run(study, tmp_path / f"{study.name}.db")
        assert set(content(tmp_path / f"{study.name}.db")) <= set(content(path))
        state = seen[study.name]
        assert state.cells == (sum(state.total.values()),) * 2
        assert state.updates > 0
    assert seen["s"].diverged == 0
    assert seen["alike"].diverged == seen["other"].diverged == 2


def test_shared_units_are_of_bounded_size(tmp_path, monkeypatch, whole):
    monkeypatch.setattr("gradient_dd.studies.sweep.MOST_SETTINGS", 2)
    alike = replace(STUDY, name="alike", grids=(grid("td", alpha=(0.4, 0.5)),))
    run_all([STUDY, alike], tmp_path / "a.db", workers=1)
    assert {settings for *_, settings in units(tmp_path / "a.db")} == {2}
    assert set(whole) <= set(content(tmp_path / "a.db"))


# Killed ----------------------------------------------------------------------------------------------------

KILLED = """
import os, random, signal, sys, time
from contextlib import suppress
from dataclasses import replace
from tests.studies.test_sweep import STUDY, content, units
from gradient_dd.studies.sweep import run

study = replace(STUDY, runs=60, episodes=6000)
folder = sys.argv[1]
run(replace(study, runs=1), folder + "/warm.db", workers=2)          # compiles
begin = time.perf_counter()
run(study, folder + "/whole.db", workers=2)                          # what the killed one must equal
length = time.perf_counter() - begin
begin = time.perf_counter()
run(study, folder + "/whole.db", workers=2)                          # nothing left to do
idle = time.perf_counter() - begin
total = len(content(folder + "/whole.db"))
random.seed(0)
kept, kills, midway = 0, 0, 0
while kills < 20:
    child = os.fork()
    if child == 0:
        run(study, folder + "/killed.db", workers=2)
        os._exit(0)
    time.sleep(random.uniform(0, idle + length / 6))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    kills += 1
    try:
        now = len(content(folder + "/killed.db"))
    except Exception as error:
        assert "no such file" in str(error) or "another program" in str(error), error
        now = 0
    assert now >= kept, "something committed was lost"
    assert now % 2 == 0, "half a unit was committed"
    midway += kept < now < total
    kept = now
run(study, folder + "/killed.db", workers=2)
assert content(folder + "/killed.db") == content(folder + "/whole.db")
assert len({(task, number) for task, number, _ in units(folder + "/killed.db")}) == len(units(folder + "/killed.db"))
print(midway, "kills while it was making headway;", kept, "of", total, "kept before the last call")
assert midway >= 3
"""


def test_kill_9_at_twenty_moments_loses_nothing_committed(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    environment = os.environ | {"PYTHONPATH": SEARCHED, "PYTHONWARNINGS": "ignore"}
    call = [sys.executable, str(script), str(tmp_path)]
    result = subprocess.run(call, capture_output=True, text=True, env=environment, check=False, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr


def test_ctrl_c_stops_soon_and_says_what_is_kept(tmp_path):
    path = tmp_path / "a.db"
    study = ["--task", "random_walk:n_states=20", "--learner", "td", "--alpha", "1e-3..1:64", "--episodes", "2000"]
    sweep = [COMMAND, "sweep", *study, "--runs", "10000", "--out", str(path)]
    own = ["env", "--default-signal=INT"]  # a job in the background ignores it
    process = subprocess.Popen([*own, *sweep], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        time.sleep(0.2)
        with suppress(StoreError):  # there is none yet, or it is being made
            if len(units(path)) > 2:
                break
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - begin < 20  # all runs take minutes
    assert process.returncode == 1
    assert f"Stopped. Committed results are kept in {path}; run the same command to resume." in said
    assert "Traceback" not in said
    kept = len(content(path))
    assert kept > 0
    assert kept % 64 == 0


RULE = """
from gradient_dd.learners import Rule
from gradient_dd.learners.rule import ALPHA

SHARE = {share}

def half(delta, alpha):
    return (SHARE * alpha * delta,)

HALF = Rule("{name}", "Half", half, ("w_x",), (ALPHA,), "a test", __name__)
"""
DASK = """
import os, signal, sys
sys.path.append(sys.argv[1])
from dataclasses import replace
from pathlib import Path
import imported_rule
from tests.studies.test_sweep import STUDY, content
from gradient_dd.studies.cluster import dask_executor
from gradient_dd.studies import grid, load_rule
from gradient_dd.studies.sweep import run

if __name__ == "__main__":
    folder, address = sys.argv[1:]
    rules = load_rule(folder + "/rule_in_a_file.py:HALF"), imported_rule.HALF, HALF
    studies = [replace(STUDY, tasks=STUDY.tasks[:1], grids=(grid(rule, alpha=0.1),), runs=6) for rule in rules]
    killed = []

    def kill_one(state):
        if not killed:
            killed.append(victims[0])
            os.kill(victims[0], signal.SIGKILL)

    for study in studies:
        run(study, folder + "/threads.db")
    with dask_executor(address) as executor:
        victims = list(executor._executor._client.run(os.getpid).values())
        for study in studies:  # each alone: a rule of the script would make Dask send all by value
            watch = kill_one if study is studies[-1] else print
            run(study, folder + "/dask.db", executor=executor, workers=2, on_progress=watch)
    assert len(victims) == 2 and killed
    assert content(folder + "/dask.db") == content(folder + "/threads.db")
    print("same", len(content(folder + "/dask.db")))
"""


def test_rules_of_a_user_run_on_dask_even_if_a_worker_is_killed(tmp_path):
    """Rules from a file, from an imported module and from the script; workers can import none of them."""
    (tmp_path / "rule_in_a_file.py").write_text(RULE.format(name="from_a_file", share=0.5))
    (tmp_path / "imported_rule.py").write_text(RULE.format(name="imported", share=0.25))
    script = tmp_path / "on_dask.py"
    script.write_text(RULE.format(name="in_the_script", share=0.125) + DASK)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address, dask = f"tcp://127.0.0.1:{port}", [sys.executable, "-m", "dask"]
    started = [[*dask, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]]
    started += [
        [
            *dask,
            "worker",
            address,
            "--no-nanny",
            "--nthreads",
            "1",
            "--no-dashboard",
            "--local-directory",
            str(tmp_path),
        ]
    ] * 2
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}
    processes = [subprocess.Popen(call, **quiet) for call in started]
    try:
        wait_for(int(port))
        environment = os.environ | {"PYTHONPATH": SEARCHED}
        call = [sys.executable, str(script), str(tmp_path), address]
        result = subprocess.run(call, capture_output=True, text=True, env=environment, check=False, timeout=120)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert result.returncode == 0, result.stderr
    assert "\nsame" in result.stdout


def wait_for(port):
    """Return when something listens at a port of this machine."""
    for _ in range(120):
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.5)
