"""A live view of a sweep: a bar for each study and one for each of its tasks; quiet where there is no terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from gradient_dd.errors import extra
from gradient_dd.studies.cluster import dask_executor
from gradient_dd.studies.sweep import Progress as SweepProgress
from gradient_dd.studies.sweep import StoppedError

with extra("cli"):
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


@contextmanager
def watched(out: str | Path, workers: int | None, dask: str | None) -> Iterator[dict[str, Any]]:
    """Yield the keywords for a sweep that runs here or on a cluster, shows bars, and prints its notices.

    On Ctrl-C it says what is kept in `out`.
    """
    try:
        with LiveView() as view, nullcontext() if dask is None else dask_executor(dask) as executor:
            yield {"workers": workers, "executor": executor, "on_progress": view, "on_notice": print_notice}
        for line in view.summary():
            click.echo(line, err=True)
    except KeyboardInterrupt:
        raise StoppedError(f"Stopped. What was committed is kept in {out}; run the same command to resume.") from None


def print_notice(sentence: str) -> None:
    """Print a sentence worth reading to stderr."""
    click.echo(f"Note: {sentence}", err=True)


class LiveView:
    """Bars on stderr; call it with every progress of a sweep."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bars = Progress(
            *columns, TextColumn("{task.fields[note]}"), console=console, disable=not sys.stderr.isatty()
        )
        self.known: dict[Any, TaskID] = {}
        self.seen: dict[int, SweepProgress] = {}

    def __enter__(self) -> "LiveView":
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def summary(self) -> list[str]:
        """Return a line on what was run of each study; none for one that was complete before."""
        return [
            f"{one.study.name}: {one.updates:.3g} updates in {one.core_seconds:.1f} core-seconds"
            + (f", {one.diverged} settings × runs diverged" if one.diverged else "")
            for one in self.seen.values()
            if one.updates
        ]

    def __call__(self, state: SweepProgress) -> None:
        self.seen[id(state)] = state
        done, total = state.cells
        speed = state.updates / state.seconds if state.seconds else 0.0
        note = f"{speed:.2g} updates/s" + (f", {state.diverged} diverged" if state.diverged else "")
        self._show(id(state), state.study.name, done, total, note)
        for task in state.total:
            self._show((id(state), task), f"  {task}", state.done[task], state.total[task], "")
            self.bars.update(self.known[id(state), task], visible=done < total)  # many studies would fill the screen

    def _show(self, key: Any, name: str, done: int, total: int, note: str) -> None:
        if key not in self.known:
            self.known[key] = self.bars.add_task(name, total=total, note="")
        self.bars.update(self.known[key], completed=done, note=note)
