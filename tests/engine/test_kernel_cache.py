"""Kernels on disk: compiled once, never stale, never trusted blindly, and in nobody's way."""

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from click.testing import CliRunner

from gradient_dd import tasks
from gradient_dd.cli.commands import cli
from gradient_dd.engine import kernel_folder
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.kernels import rules
from gradient_dd.engine.kernels.fused import fused_kernel
from gradient_dd.engine.kernels.rows import make_take_errors, outcome_rows
from gradient_dd.engine.kernels.traced import traced_kernel
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.learners import LEARNERS

pytestmark = pytest.mark.xdist_group("kernels on disk")  # one folder serves half of this file

SOURCE = Path(rules.__file__).parents[3]
KEY = "0123456789abcdef01234567"

# For each factor: TD whose step is multiplied by it, on one short run. Prints what came from disk, and the results.
PROGRAM = """
import sys
from dataclasses import replace
from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.learners import LEARNERS


def td_times(factor):
    def step(alpha, rho, delta):
        return (factor * alpha * rho * delta,)

    return replace(LEARNERS["td"], name=f"td_{factor}", step=step)


for factor in map(float, sys.argv[1:]):
    run = LaneRun(tasks.random_walk(3), [td_times(factor).setting(alpha=0.5)], Horizon(episodes=20))
    run.advance()
    hits = sum(run.blocks[0].kernel.stats.cache_hits.values())
    print(factor, hits, run.weights()[0].tolist(), run.results().diverged_step.tolist())
"""


def start(folder, *factors, source=SOURCE, warnings="error"):
    variables = os.environ | {"GRADIENT_DD_CACHE": str(folder), "PYTHONPATH": str(source)}
    call = [sys.executable, "-W", warnings, "-c", PROGRAM, *map(str, factors)]
    return subprocess.Popen(call, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    """Return {factor: (whether it came from disk, the rest)} of a program, and what it wrote to stderr."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    lines = [line.split(maxsplit=2) for line in out.splitlines()]
    return {float(factor): (hits == "1", rest) for factor, hits, rest in lines}, errors


def run(folder, *factors, **how):
    return finish(start(folder, *factors, **how))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder that a process filled, and what it printed."""
    folder = tmp_path_factory.mktemp("kept") / "kernels"
    return folder, run(folder, 1.0)[0]


# Right --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_that_start_together_agree_and_leave_whole_entries(tmp_path):
    folder = tmp_path / "kernels"
    shown = [finish(process)[0] for process in [start(folder, 1.0) for _ in range(4)]]
    assert len({rest for one in shown for _, rest in one.values()}) == 1
    assert not list(folder.glob("*.unfinished"))
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_bytes().startswith(f"gradient-dd kernel 1\n{path.stem}\n".encode())


def test_a_later_process_compiles_nothing_and_gets_the_same_bits(filled):
    folder, shown = filled
    before = {path: path.stat().st_ino for path in folder.iterdir()}
    again, _ = run(folder, 1.0)
    assert again[1.0] == (True, shown[1.0][1])
    assert {path: path.stat().st_ino for path in folder.iterdir()} == before


def test_rules_that_differ_in_one_number_are_two_kernels(filled, tmp_path):
    """The number is an outer variable of the step; the source of the two steps is the same."""
    folder = shutil.copytree(filled[0], tmp_path / "kernels")
    folder.chmod(0o700)
    mixed, _ = run(folder, 2.0, 1.0)
    assert mixed[1.0] == (True, filled[1][1.0][1])
    assert not mixed[2.0][0]
    assert mixed[2.0][1] != mixed[1.0][1]


def test_the_same_step_in_another_module_is_another_kernel():
    """Kept code names the module of the step. It would be taken for damaged where there is no such module."""
    rule = LEARNERS["td"].plain
    elsewhere = FunctionType(rule.step.__code__, rule.step.__globals__, argdefs=rule.step.__defaults__)
    assert rules.describe_rule(replace(rule, step=elsewhere)) == rules.describe_rule(rule)
    elsewhere.__module__ = "json"
    assert rules.describe_rule(replace(rule, step=elsewhere)) not in (None, rules.describe_rule(rule))
    elsewhere.__module__ = "no such module"
    assert rules.describe_rule(replace(rule, step=elsewhere)) is None


def test_a_changed_file_of_the_engine_is_never_answered_with_old_code(filled, tmp_path):
    """The bound of divergence stands in another file than the kernels."""
    copy = shutil.copytree(SOURCE / "gradient_dd", tmp_path / "source/gradient_dd").parent
    horizon = copy / "gradient_dd/engine/horizon.py"
    text = horizon.read_text()
    assert "\nDIVERGED = 1e100" in text
    horizon.write_text(text.replace("\nDIVERGED = 1e100", "\nDIVERGED = 1e-3"))
    changed, _ = run(filled[0], 1.0, source=copy)
    assert not changed[1.0][0]
    assert filled[1][1.0][1].endswith("[[0]]")
    assert not changed[1.0][1].endswith("[[0]]")


def test_a_damaged_entry_is_compiled_anew_and_reported_once(filled, tmp_path):
    folder = shutil.copytree(filled[0], tmp_path / "kernels")
    folder.chmod(0o700)
    paths = sorted(folder.iterdir())
    for path in paths:
        text = bytearray(path.read_bytes())
        text[len(text) // 2] ^= 1
        path.write_bytes(text)
    shown, errors = run(folder, 1.0, warnings="always")
    assert shown[1.0] == (False, filled[1][1.0][1])
    assert errors.count("KernelFolderWarning: The kernel") == 1
    assert run(folder, 1.0)[0][1.0][0]  # and is whole again


# What a key holds ---------------------------------------------------------------------------------------------------

SCALE = 1.0


def helper(value):
    return value


def with_global(alpha, rho, delta):
    return (SCALE * alpha * rho * delta,)


def with_helper(alpha, rho, delta):
    return (helper(alpha * rho * delta),)


def with_math(alpha, rho, delta):
    return (alpha * rho * math.tanh(delta) * np.sqrt(1.0) * abs(1),)


def rule_of(step):
    return replace(LEARNERS["td"], name="mine", step=step)


def test_the_key_changes_with_every_number_a_rule_reads(monkeypatch):
    before = rules.describe_rule(rule_of(with_global))
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 2.0)
    after = rules.describe_rule(rule_of(with_global))
    assert None not in (before, after)
    assert before != after
    assert rules.describe_rule(rule_of(lambda alpha, rho, delta: (alpha * rho * delta,))) != rules.describe_rule(
        rule_of(lambda alpha, rho, delta: (alpha * rho * delta * 2,))
    )


def test_a_rule_that_calls_functions_of_its_own_is_not_kept():
    assert rules.describe_rule(rule_of(with_math)) is not None
    assert rules.describe_rule(rule_of(with_helper)) is None
    inner = rule_of(lambda alpha, rho, delta: ((lambda value: helper(value))(alpha * rho * delta),))
    assert rules.describe_rule(inner) is None


def test_no_two_compiled_functions_share_a_name():
    """Code from disk is linked by name, so functions made by one line of Python need names that differ."""
    walk, chain, dense = tasks.random_walk(3), tasks.boyan_chain(3), tasks.random_mdp(n_states=12, n_features=12)
    made = [(LEARNERS[name], outcome_rows(task, "R")[1]) for name in ("td", "gtd2") for task in (walk, chain, dense)]
    functions = [fused_kernel(rule, shape, k) for rule, shape in made for k in (1, 2)]
    functions += [traced_kernel(LEARNERS[name]) for name in ("td", "gtd2", "natural_gtd2")]
    functions += [make_take_errors(k) for k in (1, 2)]
    assert len({function.py_func.__qualname__ for function in functions}) == len(functions)


def test_every_learner_is_kept_under_a_key_of_its_own():
    described = [rules.describe_kernel("fused", rule, 1) for rule in LEARNERS.values()]
    assert None not in described
    assert len(set(described)) == len(LEARNERS)


# The folder ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr(kernel_folder, "WARNED", set())
    return tmp_path / "kernels"


def test_what_is_written_is_read(folder):
    assert kernel_folder.read(KEY) is None
    kernel_folder.write(KEY, b"code")
    assert kernel_folder.read(KEY) == b"code"
    assert kernel_folder.summary() == (1, (folder / f"{KEY}.kernel").stat().st_size)


@pytest.mark.parametrize("place", [0, 25, 60, -1])
def test_any_flipped_byte_is_noticed(folder, place):
    kernel_folder.write(KEY, b"code")
    path = folder / f"{KEY}.kernel"
    text = bytearray(path.read_bytes())
    text[place] ^= 4
    path.write_bytes(text)
    with pytest.warns(kernel_folder.KernelFolderWarning, match="is damaged or foreign"):
        assert kernel_folder.read(KEY) is None


def test_an_entry_under_the_wrong_name_is_noticed(folder):
    kernel_folder.write(KEY, b"code")
    (folder / f"{KEY}.kernel").rename(folder / f"{KEY[::-1]}.kernel")
    with pytest.warns(kernel_folder.KernelFolderWarning):
        assert kernel_folder.read(KEY[::-1]) is None


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_is_open_to_others_is_refused(folder, mode):
    kernel_folder.write(KEY, b"code")
    folder.chmod(mode)
    with pytest.warns(kernel_folder.KernelFolderWarning, match="must belong to you, and nobody else may have access"):
        assert kernel_folder.read(KEY) is None
    kernel_folder.write(KEY, b"other")  # without a second warning, which would be an error here
    folder.chmod(0o700)
    assert kernel_folder.read(KEY) == b"code"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_an_entry_that_others_may_write_is_refused(folder):
    kernel_folder.write(KEY, b"code")
    (folder / f"{KEY}.kernel").chmod(0o666)
    with pytest.warns(kernel_folder.KernelFolderWarning):
        assert kernel_folder.read(KEY) is None


def test_beyond_the_limit_the_entries_used_last_stay(folder, monkeypatch):
    for number in range(4):
        kernel_folder.write(f"{number}" * 24, bytes(100))
        os.utime(folder / f"{str(number) * 24}.kernel", (number, number))
    kernel_folder.read("0" * 24)  # used now
    size = (folder / f"{'0' * 24}.kernel").stat().st_size
    monkeypatch.setattr(kernel_folder, "LIMIT", 3 * size)
    kernel_folder.write("9" * 24, bytes(100))
    assert sorted(path.stem[0] for path in folder.iterdir()) == ["0", "3", "9"]


def test_what_a_dead_process_left_is_removed(folder):
    kernel_folder.write(KEY, b"code")
    old, new = folder / "old.unfinished", folder / "new.unfinished"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    kernel_folder.write(KEY, b"code")
    assert new.exists()
    assert not old.exists()


def no_home(tmp_path, monkeypatch):
    """A container: the user has no name and no home."""
    monkeypatch.delenv("GRADIENT_DD_CACHE", raising=False)
    for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)


def unknown_user(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_CACHE", "~nobody-of-this-name/kernels")


def long_path(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_CACHE", str(tmp_path / ("x" * 300)))


def file_in_the_way(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GRADIENT_DD_CACHE", str(tmp_path / "file" / "kernels"))


def open_parent(tmp_path, monkeypatch):
    (tmp_path / "open" / "kernels").mkdir(mode=0o700, parents=True)
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("GRADIENT_DD_CACHE", str(tmp_path / "open" / "kernels"))


@pytest.mark.skipif(os.name == "nt", reason="Windows has other users and permissions")
@pytest.mark.parametrize("prepare", [no_home, unknown_user, long_path, file_in_the_way, open_parent])
def test_without_a_usable_folder_nothing_is_kept_nothing_stops_and_one_sentence_says_so(prepare, tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_folder, "WARNED", set())
    prepare(tmp_path, monkeypatch)
    with pytest.warns(kernel_folder.KernelFolderWarning, match=r"^Compiled kernels are not stored: "):
        kernel_folder.write(KEY, b"code")
    assert kernel_folder.read(KEY) is None  # without a second warning, which would be an error here
    assert kernel_folder.summary() == (0, 0)
    assert kernel_folder.clear() == 0
    shown = CliRunner().invoke(cli, ["cache"])
    assert (shown.exit_code, shown.exception) == (0, None)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_parent_that_all_may_write_but_only_owners_may_rename_is_safe(folder):
    folder.parent.chmod(0o1777)  # as /tmp
    kernel_folder.write(KEY, b"code")
    assert kernel_folder.read(KEY) == b"code"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no FIFOs")
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "FIFO"])
def test_what_is_no_file_is_not_taken_for_a_kernel(folder, make):
    folder.mkdir(mode=0o700)
    make(folder / f"{KEY}.kernel")
    with pytest.warns(kernel_folder.KernelFolderWarning, match="is damaged or foreign"):
        assert kernel_folder.read(KEY) is None
    assert kernel_folder.summary() == (0, 0)
    assert kernel_folder.clear() == 0
    kernel_folder.write(KEY, b"code")
    assert kernel_folder.read(KEY) in (None, b"code")
    assert [path.name for path in folder.iterdir()] == [f"{KEY}.kernel"]


@pytest.mark.xdist_group("kernels of td")
def test_switched_off_nothing_is_read_or_written(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rule = replace(LEARNERS["td"], name="not_kept")
    LaneRun(tasks.random_walk(3), [rule.setting()], Horizon(episodes=3)).advance()
    assert kernel_folder.folder() is None
    assert not list(tmp_path.iterdir())
    shown = CliRunner().invoke(cli, ["cache"]).stdout
    assert shown == "No kernels are stored: GRADIENT_DD_CACHE is off, or there is no home folder.\n"


def test_the_command_shows_and_clears(folder):
    kernel_folder.write(KEY, b"code")
    facts = json.loads(CliRunner().invoke(cli, ["cache", "--json"]).stdout)
    assert facts == {"folder": str(folder), "kernels": 1, "bytes": kernel_folder.summary()[1], "limit": 256 * 2**20}
    assert f"1 kernels, 0.0 MB of at most 268 MB, in {folder}." in CliRunner().invoke(cli, ["cache"]).stdout
    assert "1 kernels removed" in CliRunner().invoke(cli, ["cache", "--clear"]).stdout
    assert json.loads(CliRunner().invoke(cli, ["cache", "--clear", "--json"]).stdout)["removed"] == 0
    assert not list(folder.iterdir())
