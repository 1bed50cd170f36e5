"""Record which lines of the source each test executes: a plugin of pytest, and a hook for the processes it starts.

Every line runs in a scope: a test, a fixture, a test file while it is imported, a call of a function with `@cache`.
A test also has the lines of all scopes that it gets results from, e.g. of a fixture or a cached value that an earlier
test has computed. Kernels run no line of Python: a test that loads a kernel has every line of the functions that the
kernel is compiled from.
"""

import atexit
import functools
import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

FOLDER = "MUTANTS_RECORD"  # the environment variable with the folder for records
SCOPE = "MUTANTS_SCOPE"  # and with the name of the scope in which a process was started
ENOUGH = 20_000  # lines run in one function in one scope, after which all of its lines count as executed

Line = tuple[str, int]


class Scope:
    """The lines that were executed in one scope, and for each function those that were not."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: set[Line] = set()
        self.unseen: dict[CodeType, set[int]] = {}
        self.counts: dict[CodeType, int] = {}
        self.kernels: set[str] = set()

    def add(self, other: "Scope") -> None:
        """Add what another scope has executed."""
        self.lines |= other.lines
        self.kernels |= other.kernels


class Recorder:
    """Follows every thread of this process."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source, self.folder = str(source) + os.sep, folder
        self.base = Scope(os.environ.get(SCOPE, "start"))
        self.local = threading.local()
        self.scopes = 0

    def here(self) -> Scope:
        """Return the innermost scope of this thread."""
        stack = getattr(self.local, "stack", None)
        return stack[-1] if stack else self.base

    @contextmanager
    def scope(self, whole: bool = False) -> Iterator[Scope]:
        """Open a scope; `whole`: for all threads and for processes that are started in it, as for a test."""
        self.scopes += 1
        opened = Scope(f"{os.getpid()}-{self.scopes}")
        outer, stack = self.base, getattr(self.local, "stack", [])
        self.local.stack = [] if whole else [*stack, opened]
        if whole:
            self.base = opened
            os.environ[SCOPE] = opened.name
        try:
            yield opened
        finally:
            self.local.stack = stack
            if whole:
                self.base = outer
                os.environ[SCOPE] = outer.name
                self.read_processes(opened)
            self.here().add(opened)

    def read_processes(self, scope: Scope) -> None:
        """Add what the processes that were started in a scope, and have ended, executed."""
        for file in self.folder.glob(f"{scope.name}.*.lines"):
            scope.lines.update((name, line) for name, line in json.loads(file.read_text(encoding="utf-8")))
            file.unlink()

    def start(self) -> None:
        """Begin to follow."""
        threading.settrace(self.enter)
        sys.settrace(self.enter)

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Follow a function of the source until all of its lines were executed in this scope."""
        code = frame.f_code
        if not code.co_filename.startswith(self.source):
            return None
        unseen = self.here().unseen
        if code not in unseen:
            unseen[code] = {line for *_, line in code.co_lines() if line}
        return self.step if unseen[code] else None

    def step(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Note one line."""
        if event == "line":
            scope, code = self.here(), frame.f_code
            scope.lines.add((code.co_filename[len(self.source) :], frame.f_lineno))
            if unseen := scope.unseen.get(code):
                unseen.discard(frame.f_lineno)
                scope.counts[code] = count = scope.counts.get(code, 0) + 1
                if count > ENOUGH:
                    scope.lines |= {(code.co_filename[len(self.source) :], line) for line in unseen}
                    unseen.clear()
        return self.step

    def kernel(self, function: Callable[..., Any]) -> None:
        """Note every line of a function that is compiled, and of the functions that it calls."""
        self.here().kernels.add(f"{function.__module__}.{function.__qualname__}")
        found, wanted = set[CodeType](), [function]
        while wanted:
            one = wanted.pop()
            if one.__code__ not in found:
                found.add(one.__code__)
                self.note_all(one.__code__)
                wanted += called_by(one)

    def note_all(self, code: CodeType) -> None:
        """Note every line of a function and of those inside it."""
        for one in codes_in(code):
            if one.co_filename.startswith(self.source):
                name = one.co_filename[len(self.source) :]
                self.here().lines.update((name, line) for *_, line in one.co_lines() if line)


def called_by(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield the compiled functions that a compiled function may call."""
    names = {name for code in codes_in(function.__code__) for name in code.co_names}
    values = [function.__globals__.get(name) for name in names]
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    for value in values:
        for one in value if isinstance(value, tuple) else (value,):
            if hasattr(one, "py_func"):
                yield one.py_func


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def record_caches(recorder: Recorder, ours: str) -> None:
    """Let `functools.cache` and its relatives, where files below `ours` use them, remember the lines of each value."""
    plain = functools.lru_cache, functools.cached_property

    def is_ours() -> bool:
        return sys._getframe(2).f_code.co_filename.startswith(ours)

    def remembering(function: Callable[..., Any], **options: Any) -> Any:
        @plain[0](**options)
        def both(*arguments: Any, **named: Any) -> Any:
            with recorder.scope() as scope:
                return function(*arguments, **named), scope

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            value, scope = both(*arguments, **named)
            recorder.here().add(scope)
            return value

        call.cache_clear, call.cache_info = both.cache_clear, both.cache_info  # type: ignore[attr-defined]
        return call

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if not is_ours():
            return plain[0](maxsize, typed)
        if callable(maxsize):
            return remembering(maxsize, typed=typed)
        return lambda function: remembering(function, maxsize=maxsize, typed=typed)

    def cache(function: Callable[..., Any]) -> Any:
        return remembering(function, maxsize=None) if is_ours() else plain[0](maxsize=None)(function)

    class CachedProperty(plain[1]):  # type: ignore[misc, valid-type, name-defined]
        """Remembers the lines of each value; has `__set__`, so that Python asks it before the object's dictionary."""

        def __get__(self, one: Any, owner: Any = None) -> Any:
            if one is None or self.attrname in vars(one):
                scope = scopes.get((id(one), self.attrname))
                if one is not None and scope:
                    recorder.here().add(scope)
                return self if one is None else vars(one)[self.attrname]
            with recorder.scope() as scope:
                value = super().__get__(one, owner)
            scopes[id(one), self.attrname] = scope
            return value

        def __set__(self, one: Any, value: Any) -> None:
            vars(one)[self.attrname] = value

        def __delete__(self, one: Any) -> None:
            del vars(one)[self.attrname]

    scopes: dict[Any, Scope] = {}
    functools.lru_cache, functools.cache = lru_cache, cache
    functools.cached_property = CachedProperty  # type: ignore[misc]


def record_kernels(recorder: Recorder) -> Callable[[], None]:
    """Let the compiler tell which kernels are loaded; return a function that lets every kernel be loaded again."""
    from numba.core.dispatcher import Dispatcher

    plain, loaded = Dispatcher.compile, []

    def compile_and_note(self: Any, signature: Any) -> Any:
        tracing = sys.gettrace()
        if tracing is None:  # inside another one
            return plain(self, signature)
        sys.settrace(None)
        try:
            return plain(self, signature)
        finally:
            sys.settrace(tracing)
            recorder.kernel(self.py_func)
            loaded.append(self)

    def forget() -> None:
        for dispatcher in loaded:
            if type(dispatcher._cache).__name__ == "KeptCode":  # it comes back from disk
                dispatcher._reset_overloads()
        loaded.clear()

    Dispatcher.compile = compile_and_note
    return forget


def seconds() -> float:
    """Return the processor seconds of this process and of those it has started and seen end."""
    return sum(os.times()[:4])


def masks(lines: set[Line]) -> dict[str, str]:
    """Return for each file the executed lines, as the bits of a hexadecimal number."""
    found: dict[str, int] = defaultdict(int)
    for name, line in lines:
        found[name] |= 1 << line
    return {name: f"{mask:x}" for name, mask in found.items()}


class Plugin:
    """Records every test of a session of pytest, and the processor seconds that it takes."""

    def __init__(self, recorder: Recorder, forget: Callable[[], None]) -> None:
        self.recorder, self.forget = recorder, forget
        self.shared: dict[Any, Scope] = {}  # by fixture, and by the path of a test file
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_make_collect_report(self, collector: Any) -> Any:
        """Note what a test file executes while it is imported."""
        with self.recorder.scope() as scope:
            outcome = yield
        self.shared.setdefault(str(collector.path), scope).add(scope)
        return outcome

    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Note what a fixture executes."""
        with self.recorder.scope(whole=True) as scope:
            outcome = yield
        self.shared[fixturedef] = scope
        return outcome

    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Note what a test executes."""
        self.forget()
        test = self.tests.setdefault(item.nodeid, {"failed": False})
        begin = seconds()
        with self.recorder.scope(whole=True) as scope:
            outcome = yield
        scope.add(self.shared.get(str(item.path), scope))
        fixtures = [one for some in item._fixtureinfo.name2fixturedefs.values() for one in some]
        for fixture in fixtures:
            scope.add(self.shared.get(fixture, scope))
        test |= {"seconds": seconds() - begin, "kernels": len(scope.kernels), "lines": masks(scope.lines)}
        test["shares"] = any(fixture.scope in ("class", "module") for fixture in fixtures)
        return outcome

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note whether a test failed."""
        self.tests[report.nodeid]["failed"] |= report.failed


def plugin(source: Path, folder: Path, ours: Path) -> Plugin:
    """Return the plugin, following this process from now on."""
    import pytest

    recorder = Recorder(source, folder)
    record_caches(recorder, str(ours))
    forget = record_kernels(recorder)
    for name in ("pytest_make_collect_report", "pytest_fixture_setup", "pytest_runtest_protocol"):
        setattr(Plugin, name, pytest.hookimpl(wrapper=True)(getattr(Plugin, name)))
    recorder.start()
    return Plugin(recorder, forget)


def record_process(source: str) -> None:
    """Record this process, which a test has started, and write the lines at its end."""
    folder, scope = os.environ.get(FOLDER), os.environ.get(SCOPE)
    if not folder or not scope:
        return
    recorder = Recorder(Path(source), Path(folder))
    recorder.start()

    def write() -> None:
        sys.settrace(None)
        lines = sorted(recorder.base.lines)
        (Path(folder) / f"{scope}.{os.getpid()}.lines").write_text(json.dumps(lines), encoding="utf-8")

    atexit.register(write)
