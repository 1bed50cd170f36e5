"""Run tests on copies of the project: workers that have imported NumPy, Numba and pytest, and a child for each job.

Each worker has a copy of the whole project, so that tests see one source wherever they look. Compiled kernels are
linked into a folder of the child's own; a child whose job changes the engine, which is part of the key of every
kernel, begins with an empty one.
"""

import compileall
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from traceback import print_exc
from types import ModuleType
from typing import Any, NamedTuple

from tools import recorder
from tools.mutations import ROOT

WORK = ROOT / ".pytest_cache" / "mutants"
KERNELS = WORK / "kernels"
NOT_COPIED = ".git", ".venv", "site", "results", "results-quick", "*_cache", ".hypothesis", "__pycache__"
WARM = (
    "numpy",
    "scipy.linalg",
    "scipy.sparse",
    "numba",
    "pandas",
    "pyarrow",
    "gymnasium",
    "click",
    "hypothesis",
    "pytest",
)
MEMORY = 12 * 2**30  # bytes that a process may take
COLLECTING = 60.0  # processor seconds before the first test
WAITING = 10.0  # a test that takes so many times its limit by the clock waits for ever
CHUNKS = 40, 400  # tests of the first sessions of pytest: a mutant that a quick test catches needs few test files
WORDS = "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning", "--tb=no"


class Job(NamedTuple):
    """Tests to run in this order, on a file with another text, with the processor seconds that each may take.

    Without limits the tests, one file or all, are recorded.
    """

    tests: list[str]
    file: str = ""
    text: str = ""
    limits: list[float] | None = None


class Outcome(NamedTuple):
    """How the tests of a job ended: with one that failed or not; whether any was run; and what was recorded."""

    caught: bool = False
    test: str = ""
    ran: bool = False
    record: dict[str, Any] | None = None


class Chosen:
    """A plugin of pytest that runs the tests of a job in their order, each with its limit."""

    def __init__(self, limits: dict[str, float], started: Path) -> None:
        self.limits, self.started = limits, started

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave the chosen tests, in their order."""
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self.limits if test in found]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which test begins, and set its limit."""
        limit = self.limits.get(nodeid, COLLECTING)
        self.started.write_text(f"{nodeid}\n{limit}", encoding="utf-8")
        soft = int(time.process_time() + limit) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Say which test failed."""
        if report.failed:
            self.started.with_name("failed").write_text(report.nodeid, encoding="utf-8")


def link_or_copy(source: str, target: str) -> None:
    """Give a file a second name, or copy it where that is not possible."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def run(job: Job, copy: Path) -> Outcome:
    """Run the tests of a job in a child of this process; return how they ended."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "started").write_text(f"\n{COLLECTING}", encoding="utf-8")
        if job.limits is not None and not job.file.startswith("engine/") and KERNELS.exists():
            shutil.copytree(KERNELS, folder / "kernels", copy_function=link_or_copy)
        (folder / "kernels").mkdir(mode=0o700, exist_ok=True)
        (folder / "kernels").chmod(0o700)
        child = os.fork()
        if child == 0:
            try:
                os._exit(tests_in_this_process(job, copy, folder))
            except BaseException:
                print_exc()
            finally:
                os._exit(70)
        status = None
        try:
            status = ended(child, folder / "started")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what the tests have left behind, and they themselves if they wait
            if status is None:
                os.waitpid(child, 0)
        return outcome_of(status, folder)


def judge(job: Job, copy: Path) -> Outcome:
    """Run the tests of a job; a test that fails must fail once more alone, or the others go on without it."""
    outcome = run(job, copy)
    while outcome.caught and outcome.test in job.tests:
        place = job.tests.index(outcome.test)
        limits = job.limits or []
        if run(job._replace(tests=[outcome.test], limits=limits[place : place + 1]), copy).caught:
            return outcome
        job = job._replace(tests=job.tests[place + 1 :], limits=limits[place + 1 :])
        outcome = run(job, copy)
    return outcome


def outcome_of(status: int | None, folder: Path) -> Outcome:
    """Return how a child ended, from its status and what it wrote."""
    test = (folder / "started").read_text(encoding="utf-8").partition("\n")[0]
    if (folder / "record.json").exists():
        return Outcome(ran=True, record=json.loads((folder / "record.json").read_text(encoding="utf-8")))
    if status is None or os.WIFSIGNALED(status):
        return Outcome(True, test, True)  # it hangs, or takes the whole process down
    if os.waitstatus_to_exitcode(status) == 0:
        return Outcome(ran=True)
    if (folder / "failed").exists():
        return Outcome(True, (folder / "failed").read_text(encoding="utf-8"), True)
    printed = (folder / "output").read_text(encoding="utf-8", errors="replace")
    return Outcome(True, "", True, {"printed": printed[-2000:]})  # a test file that cannot be imported, for example


def ended(child: int, started: Path) -> int | None:
    """Wait for a child; return its status, or None if one of its tests waits for ever."""
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        limit = float(started.read_text(encoding="utf-8").rpartition("\n")[2] or COLLECTING)
        if time.time() - started.stat().st_mtime > WAITING * limit:
            return None
        time.sleep(0.02)


def tests_in_this_process(job: Job, copy: Path, folder: Path) -> int:
    """Run the tests of a job on a copy of the project; return the exit code."""
    os.setsid()  # what the tests start ends with them
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.dup2(os.open(folder / "output", os.O_CREAT | os.O_WRONLY), 1)
    os.dup2(1, 2)
    os.chdir(copy)
    sys.modules["__main__"] = ModuleType("__main__")  # processes that a test spawns would run this program
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    kernels, searched = folder / "kernels", [str(copy / "src"), str(copy)]
    sys.path[:] = [*searched, *(place for place in sys.path if place not in ("", str(ROOT), str(ROOT / "src")))]
    if job.limits is None:
        kernels = KERNELS
        (folder / "sitecustomize.py").write_text(
            f"from tools.recorder import record_process\nrecord_process({str(copy / 'src' / 'gradient_dd')!r})\n"
        )
        searched.insert(0, str(folder))
        os.environ[recorder.FOLDER] = str(folder)
    else:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": os.pathsep.join(searched), "GRADIENT_DD_CACHE": str(kernels)}
    return recorded_tests(job, copy, folder) if job.limits is None else chosen_tests(job, folder)


def chosen_tests(job: Job, folder: Path) -> int:
    """Run tests in their order, in sessions that become larger, until one fails; return the exit code."""
    import pytest

    limits, begin = list(zip(job.tests, job.limits or (), strict=True)), 0
    for number, size in enumerate((*CHUNKS, len(limits))):
        chunk = dict(limits[begin : begin + size])
        begin += size
        if chunk:
            files = list(dict.fromkeys(test.partition("::")[0] for test in chunk))
            words = [*WORDS, f"--basetemp={folder}/tmp{number}", *files]
            code = int(pytest.main(words, [Chosen(chunk, folder / "started")]))
            if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                return code
    return 0


def recorded_tests(job: Job, copy: Path, folder: Path) -> int:
    """Run all tests of some files and write what they execute; return the exit code."""
    import pytest

    (folder / "started").write_text("\n1e9", encoding="utf-8")
    plugin = recorder.plugin(copy / "src" / "gradient_dd", folder, copy)
    code = int(pytest.main([*WORDS[1:], f"--basetemp={folder}/tmp", *job.tests], [plugin]))
    sys.settrace(None)
    if plugin.tests or code == pytest.ExitCode.NO_TESTS_COLLECTED:
        (folder / "part").write_text(json.dumps(plugin.tests), encoding="utf-8")
        (folder / "part").rename(folder / "record.json")
    return code


def work(jobs: Any, answers: Any) -> None:
    """Run jobs until there are no more, and put (number, outcome) for each."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("MPLBACKEND", "agg")
    for name in WARM:
        with suppress(ImportError):
            import_module(name)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end the child of the moment
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        compileall.compile_dir(copy / "src", quiet=1)
        while (one := jobs.get()) is not None:
            number, job = one
            if not job.file:
                answers.put((number, run(job, copy)))
                continue
            target = copy / "src" / "gradient_dd" / job.file
            whole = target.read_bytes()
            for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
                compiled.unlink()
            target.write_text(job.text, encoding="utf-8")
            answers.put((number, judge(job, copy)))
            target.write_bytes(whole)


class Workers:
    """Several workers; a context that ends them."""

    def __init__(self, count: int) -> None:
        context = get_context("fork")
        self.jobs, self.answers = context.Queue(), context.Queue()
        self.processes = [context.Process(target=work, args=(self.jobs, self.answers)) for _ in range(count)]

    def __enter__(self) -> "Workers":
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            if error[0]:
                process.terminate()
            self.jobs.put(None)
        for process in self.processes:
            process.join()

    def outcomes(self, jobs: list[Job]) -> Iterator[tuple[int, Outcome]]:
        """Yield (number of the job, outcome) as they come."""
        for one in enumerate(jobs):
            self.jobs.put(one)
        for _ in jobs:
            yield self.answer()

    def answer(self) -> tuple[int, Outcome]:
        """Return the next answer of a worker."""
        while True:
            try:
                return self.answers.get(timeout=5)
            except Empty:
                if not all(process.is_alive() for process in self.processes):
                    raise SystemExit("A worker has ended before its jobs.") from None
