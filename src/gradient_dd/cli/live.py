"""A live view of a sweep: progress bars in a terminal, a plain line every ten seconds elsewhere."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from gradient_dd.engine import blocks
from gradient_dd.errors import one_line
from gradient_dd.studies import Study
from gradient_dd.studies.cluster import dask_executor
from gradient_dd.studies.sweep import Progress as SweepProgress

EVERY = 10.0  # seconds between plain lines
FRESH = "-fresh"  # suffix of the names of studies that run selected settings on test runs


@contextmanager
def watched(out: str | Path, workers: int | None, dask: str | None) -> Iterator[dict[str, Any]]:
    """Yield the keywords for a sweep that runs here or on a cluster, shows its progress, and prints its notices.

    On Ctrl-C the KeyboardInterrupt says which results are kept in `out`.
    """
    click.echo(f"Results go to {out}. Compiling kernels (first run only) …", err=True)
    try:
        with LiveView() as view, nullcontext() if dask is None else dask_executor(dask) as executor:
            yield {"workers": workers, "executor": executor, "on_progress": view, "on_notice": print_notice}
        for line in view.summary():
            click.echo(line, err=True)
    except KeyboardInterrupt:
        kept = f"Committed results are kept in {out}; run the same command to resume."
        raise KeyboardInterrupt(f"Stopped. {kept}") from None


def print_notice(sentence: str) -> None:
    """Print a sentence to stderr."""
    click.echo(f"Note: {sentence}", err=True)


def name_of(study: Study) -> str:
    """Return the name of a study, as printed."""
    plain = one_line(study.name.removesuffix(FRESH))
    return f"{plain}, selected settings on test runs" if study.name.endswith(FRESH) else plain


class LiveView:
    """A view of a sweep on stderr: bars or plain lines. The sweep calls the view with its progress."""

    def __init__(self) -> None:
        console = Console(stderr=True)  # without colours if NO_COLOR is set
        name, note = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[note]}")
        columns = name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note
        self.is_terminal = sys.stderr.isatty()
        self.bars = Progress(*columns, console=console, disable=not self.is_terminal)
        self.known: dict[Any, TaskID] = {}
        self.seen: dict[int, SweepProgress] = {}
        self.begin = perf_counter()
        self.closed = threading.Event()
        self.printer = threading.Thread(target=self._print_lines, daemon=True)

    def __enter__(self) -> "LiveView":
        self.bars.start()
        if not self.is_terminal:
            self.printer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.closed.set()
        self.bars.stop()

    def _print_lines(self) -> None:
        """Print a plain line every few seconds until the view is closed."""
        while not self.closed.wait(EVERY):
            click.echo(self.line(), err=True)

    def line(self) -> str:
        """Return the progress of the work in one line."""
        running = [one for one in list(self.seen.values()) if one.cells[0] < one.cells[1]]
        parts = [
            f"{name_of(one.study)} {one.cells[0]:,} of {one.cells[1]:,}" for one in running if one.updates or one.done
        ]
        if parts:
            return f"Settings × runs done: {'; '.join(parts[:3])}" + (" …" if len(parts) > 3 else "")
        complete = f" Studies complete: {len(self.seen)}." if self.seen and not running else ""
        return f"Working; kernels compiled or loaded so far: {len(blocks.COMPILING)} …{complete}"

    def summary(self) -> list[str]:
        """Return a line per study with the work done, and the total time; nothing if all was complete before."""
        lines = [
            f"{name_of(one.study)}: {one.updates:.3g} updates in {one.core_seconds:.1f} core-seconds"
            + (f", {one.diverged} settings × runs diverged" if one.diverged else "")
            for one in self.seen.values()
            if one.updates
        ]
        whole = f"Total time, including compilation: {perf_counter() - self.begin:.1f} s"
        return [*lines, whole] if lines else []

    def __call__(self, state: SweepProgress) -> None:
        self.seen[id(state)] = state
        done, total = state.cells
        speed = state.updates / state.seconds if state.seconds else 0.0
        note = f"{speed:.2g} updates/s" + (f", {state.diverged} diverged" if state.diverged else "")
        self._show(id(state), name_of(state.study), done, total, note)
        for task in state.total:
            self._show((id(state), task), f"  {one_line(task)}", state.done[task], state.total[task], "")
            self.bars.update(self.known[id(state), task], visible=done < total)  # many studies would fill the screen

    def _show(self, key: Any, name: str, done: int, total: int, note: str) -> None:
        if key not in self.known:
            self.known[key] = self.bars.add_task(name, total=total, note="")
        self.bars.update(self.known[key], completed=done, note=note)
