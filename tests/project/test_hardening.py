"""Findings of an attack, each as a test that failed before its mend."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import gradient_dd as gdd
from gradient_dd.arrays import MEMORY
from gradient_dd.errors import BadRequestError, GradientDDError
from gradient_dd.files import open_saved, replaced, write_file
from gradient_dd.studies import read_study
from gradient_dd.studies.sqlite_file import ResultsFile
from tests.command import call

SWEEP = ("sweep", "--task", "random_walk", "--learner", "td", "--alpha", "0.1", "--runs", "1", "--episodes", "2")


def together(work: Callable[[], Any], count: int = 8) -> list[BaseException]:
    """Return what was raised by threads that do the same work at once."""
    raised: list[BaseException] = []

    def one() -> None:
        try:
            for _ in range(10):
                work()
        except BaseException as error:
            raised.append(error)

    threads = [Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_threads_and_containers_of_one_pid_save_to_one_path(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 1)
    agent, file = gdd.Learner("td", 4, alpha=0.1), tmp_path / "agent.npz"

    def save_and_load() -> None:
        agent.save(file)
        gdd.Learner.load(file)

    assert together(save_and_load) == []
    assert [one.name for one in tmp_path.iterdir()] == ["agent.npz"]


def test_two_writers_of_one_file_share_no_temporary_name(tmp_path):
    file = tmp_path / "rows.parquet"
    with replaced(file) as one, replaced(file) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert file.read_text() == "one"
    assert [one.name for one in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path):
    file = tmp_path / "rows"
    file.write_text("old")

    def fail() -> None:
        with replaced(file) as part:
            part.write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("rows", "old")]


@pytest.fixture
def pipe(tmp_path):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    return place


def test_a_device_holds_no_results_and_gets_no_journal():
    with pytest.raises(BadRequestError, match=r"'/dev/null' must be a regular file. Got a pipe or a device"):
        ResultsFile("/dev/null", write=True)
    assert not Path("/dev/null-journal").exists()


def test_a_device_is_not_replaced_by_a_file(pipe):
    with pytest.raises(BadRequestError, match="must be a regular file"):
        gdd.AutoLearner(2).save(pipe)
    assert pipe.is_fifo()


@pytest.mark.parametrize("words", [SWEEP, ("play",)])
def test_a_pipe_as_out_is_refused_at_once(words, pipe):
    done = call(*words, "--out", pipe)
    assert done.returncode == 2
    assert "must be a regular file. Got a pipe or a device." in done.stderr
    assert [one.name for one in pipe.parent.iterdir()] == ["pipe"]


def test_no_threads_for_numba_is_a_bad_request(tmp_path):
    environment = os.environ | {"NUMBA_NUM_THREADS": "0"}
    code = "import gradient_dd as gdd; gdd.AutoLearner(1).update([1], 1.0, 0.0, [1])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "BadRequestError: NUMBA_NUM_THREADS must be a whole number, 1 or more. Got '0'." in done.stderr


def test_a_study_that_is_a_pipe_is_refused_at_once(pipe):
    with pytest.raises(BadRequestError, match="must be a regular file"):
        read_study(pipe)


@pytest.mark.parametrize("out", ["/dev/null", "pipe"])
def test_a_folder_of_results_that_is_no_folder_is_refused(out, pipe):
    done = call("reproduce", "walk-constant", "--out", out if out == "/dev/null" else pipe)
    assert done.returncode == 2
    assert done.stderr.endswith("Error: '--out' must be a folder. Got a file.\n")


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


def log_with(actions):
    """Return a log of 20 times these actions."""
    n = 20 * len(actions)
    seen = np.linspace(0, 1, n)[:, None]
    return {"obs": seen, "action": actions * 20, "reward": np.ones(n), "terminated": np.arange(n) % 10 == 9}


def even(seen, taken):
    return np.full(len(seen), 1 / 3)


def test_a_cell_that_cannot_be_shown_is_refused_in_a_sentence():
    with pytest.raises(BadRequestError, match=r"must be a number or text\. Got Unprintable that cannot be shown"):
        gdd.evaluate_log(log_with([Unprintable(), 1, 2]), target=even, discount=0.9)


@pytest.mark.parametrize("odd", [[1, 2], {"a": 1}])
def test_an_action_that_is_a_list_in_a_later_row_is_refused(odd):
    with pytest.raises(BadRequestError, match=r"An action must be a number or text\. Got"):
        gdd.evaluate_log(log_with(["a", odd, 2]), target=even, discount=0.9)


def test_an_action_id_of_any_length_is_an_action():
    assert gdd.evaluate_log(log_with([10**400, 1, 2]), target=even, discount=0.9).start_value > 0


def test_a_name_that_repeats_is_found_in_linear_time():
    names = [*(str(k) for k in range(100_000)), "99999"]
    questions, begin = [gdd.Question(name, 1.0, 0.5) for name in names], perf_counter()
    with pytest.raises(BadRequestError, match="'99999' twice"):
        gdd.Questions(questions, n_features=1, learner="td", alpha=0.1)
    assert perf_counter() - begin < 5  # over 110 seconds where each name is counted


def test_an_update_of_a_network_that_does_not_fit_in_memory_is_refused(monkeypatch):
    pytest.importorskip("jax")
    agent = gdd.NetworkLearner("td", gdd.Network(inputs=4), alpha=0.1)
    monkeypatch.setenv(MEMORY, "1e6")
    s = np.zeros((10_000, 4))
    with pytest.raises(BadRequestError, match=r"An update of 10000 rows must take at most 1 MB.* Got 85.1 MB"):
        agent.update(s, 0.0, 0.0, s)
    assert agent.updates == 0


@pytest.mark.parametrize("odd", [{"action": [0, 1]}, {"action": [0, 1, 7]}, {"next_observation": np.ones((2, 2))}])
def test_rows_of_which_one_is_odd_teach_action_values_nothing(odd):
    pytest.importorskip("jax")
    agent = gdd.NetworkControl("td", gdd.Network(2, (3,)), actions=2, alpha=0.1)
    rows = {"observation": np.ones((3, 2)), "action": [0, 1, 1], "reward": 1.0, "discount": 0.5}
    rows |= {"next_observation": np.ones((3, 2))}
    with pytest.raises(BadRequestError, match=r"'action'|'next_observation'"):
        agent.update_many(**rows | odd)
    assert agent.seen == 0
    agent.update_many(**rows)
    assert agent.seen == 3


def test_results_of_an_odd_place_or_task_are_refused(tmp_path):
    study = gdd.Study("s", ("five_state_walk",), (gdd.grid("td", alpha=[0.1, 0.2]),), episodes=5, runs=2)
    with pytest.raises(BadRequestError, match="The results file must be the path of a file"):
        gdd.Results(study, np.ones(2))
    results = gdd.run(study, tmp_path / "results.db")
    with pytest.raises(BadRequestError, match="must include"):
        results.selected(np.ones(2), "td")
    with pytest.raises(BadRequestError, match="The path of the page must be the path of a file"):
        results.report(3)


def test_a_number_beyond_single_precision_is_refused_and_warns_of_nothing():
    pytest.importorskip("jax")
    net, x = gdd.Network(2, (3,)), [1.0, 2.0]
    with pytest.raises(BadRequestError, match=r"'initial_w' must be numbers from -3\.4"):
        gdd.NetworkLearner("td", net, alpha=0.1, initial_w=np.full(net.n_weights, 1e39))
    for alpha, seen in ((1e300, x), (0.1, [1e300, 1.0])):
        agent = gdd.NetworkLearner("td", net, alpha=alpha)
        assert np.isfinite(agent.predict(seen))
        with pytest.raises(gdd.DivergedError):
            agent.update(seen, 1.0, 0.5, x)


FORKED = """
import os, warnings
warnings.simplefilter("ignore")
import numpy as np
import gradient_dd as gdd
{work}
work()
pid = os.fork()
if pid == 0:
    try:
        work()
        os._exit(0)
    except gdd.errors.GradientDDError as error:
        print(error, flush=True)
        os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
EVALUATE = """
def work():
    n = 600
    log = {"observation": np.linspace(0, 1, n)[:, None], "action": np.arange(n) % 2, "reward": np.ones(n),
           "terminated": np.arange(n) % 10 == 9}
    gdd.evaluate_log(log, target=lambda seen, taken: np.full(len(seen), 0.5), discount=0.9)
"""
NETWORK = """
def work():
    agent = gdd.NetworkLearner("td", gdd.Network(inputs=1), alpha=0.1)
    agent.update(np.ones((512, 1)), 1.0, 0.0, None)
"""


def forked(work: str) -> list[str]:
    code = FORKED.format(work=work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.splitlines()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_an_evaluation_runs_in_a_child_made_by_fork():
    assert forked(EVALUATE) == ["0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_network_in_a_child_made_by_fork_is_refused_and_does_not_hang():
    pytest.importorskip("jax")
    sentence, code = forked(NETWORK)
    assert sentence.startswith("JAX was used before this process was forked")
    assert code == "3"


@pytest.mark.parametrize("task", ["random_walk:n_states", "baird:n_states", "boyan_chain:n_features", "rooms:question"])
def test_a_page_of_a_task_too_large_for_any_machine_is_refused(task, tmp_path):
    done = call("play", "--task", f"{task}={10**400}", "--out", tmp_path / "page.html")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "memory of this machine" in done.stderr or "must be a whole number from 0 to 7" in done.stderr
    assert list(tmp_path.iterdir()) == []


def resealed(value, number):
    """Return the same JSON with a number in place of every number of its type."""
    if isinstance(value, dict):
        return {name: resealed(one, number) for name, one in value.items()}
    if isinstance(value, list):
        return [resealed(one, number) for one in value]
    return number if type(value) is type(number) else value


@pytest.mark.parametrize("number", [2**63, 10**30, -1, 1e-320, 1e308])
@pytest.mark.parametrize("kind", ["Learner", "AutoLearner", "Questions", "NetworkLearner", "NetworkControl"])
def test_a_file_with_odd_numbers_and_a_right_checksum_is_refused_or_works(kind, number, tmp_path):
    made = {
        "Learner": lambda: gdd.Learner("gradient_dd", 2, alpha=0.1, lam=0.5, schedule=gdd.schedules.tapered(10)),
        "AutoLearner": lambda: gdd.AutoLearner(2),
        "Questions": lambda: gdd.Questions([gdd.Question("q", 1.0, 0.5)], n_features=2, learner="td", alpha=0.1),
        "NetworkLearner": lambda: gdd.NetworkLearner("tdrc", gdd.Network(2, (3,)), alpha=0.1, target_period=5),
        "NetworkControl": lambda: gdd.NetworkControl(
            "tdrc", gdd.Network(2, (3,), outputs=2), alpha=0.1, actions=2, replay=5
        ),
    }
    if kind.startswith("Network"):
        pytest.importorskip("jax")
    agent, file = made[kind](), tmp_path / "agent.npz"
    names = ("observation", "next_observation") if kind.startswith("Network") else ("x", "x_next")
    x = dict(zip(names, np.array([[1.0, 2.0], [2.0, 1.0]]), strict=True))
    rows = {} if kind == "Questions" else {"reward": 1.0, "discount": 0.5}
    rows |= {"action": 1} if kind == "NetworkControl" else {}
    agent.update(**x, **rows)
    agent.save(file)
    with open_saved(file, agent.file) as (header, arrays):
        contents = [
            {name: resealed(one, number) if name == part else one for name, one in header.items()} for part in header
        ]
        arrays = dict(arrays)
    for content in contents:
        write_file(file, agent.file, content, arrays)
        try:
            again = type(agent).load(file)
            again.update(**x, **rows)
            assert np.isfinite(getattr(again, "learner", again).w).all()
        except GradientDDError:  # a sentence; anything else fails
            continue


@pytest.mark.parametrize("learner", ["td", "gradient_dd"])
def test_a_file_of_questions_does_not_say_where_to_write(learner, tmp_path):
    """A place beyond the features, or more places than there are, would be written to: the process would crash."""
    setting = {"learner": learner, "alpha": 0.1} | ({"lam": 0.5} if learner == "td" else {})
    agent, file = gdd.Questions([gdd.Question("q", 1.0, 0.5)], n_features=4, **setting), tmp_path / "agent.npz"
    agent.update(np.eye(4)[0], x_next=np.eye(4)[1])
    agent.save(file)
    with open_saved(file, agent.file) as (header, arrays):
        saved = dict(arrays)
    names = ("listed", "listed_count") if learner == "td" else ("last_places", "last_count")
    odd = [(name, number) for name in names for number in (-1, 5)]
    for name, number in odd:
        write_file(file, agent.file, header, saved | {name: np.full_like(saved[name], number)})
        with pytest.raises(GradientDDError, match="must be questions saved by gradient-dd"):
            gdd.Questions.load(file)


@pytest.mark.parametrize("count", [-1.0, 0.5, 1e-320])
def test_a_file_of_an_auto_learner_has_whole_counts(count, tmp_path):
    agent, file = gdd.AutoLearner(2), tmp_path / "agent.npz"
    agent.update([1.0, 0.0], 1.0, 0.5, [0.0, 1.0])
    agent.save(file)
    with open_saved(file, agent.file) as (header, arrays):
        saved = dict(arrays)
    write_file(file, agent.file, header, saved | {"numbers": np.append(count, saved["numbers"][1:])})
    with pytest.raises(GradientDDError, match="must be an AutoLearner saved by gradient-dd"):
        gdd.AutoLearner.load(file)


@pytest.mark.parametrize("make", [gdd.tasks.collision, gdd.tasks.random_mdp, gdd.tasks.dann_mdp])
def test_a_seed_of_a_task_that_no_file_can_hold_is_refused(make):
    assert f"seed={2**63 - 1}" in repr(make(seed=2**63 - 1))
    with pytest.raises(BadRequestError, match="'seed' must be a whole number from 0 to"):
        make(seed=10**5000)
