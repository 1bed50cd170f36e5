"""A live view of a sweep: progress bars in a terminal, otherwise a plain line every ten seconds."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from gradient_dd.engine import lanes
from gradient_dd.errors import one_line
from gradient_dd.progress import Bars
from gradient_dd.studies import Study
from gradient_dd.studies.cluster import dask_executor
from gradient_dd.studies.sweep import Progress as SweepProgress

FRESH = "-fresh"  # suffix of the name of a study that runs selected settings on test runs


@contextmanager
def watched(out: str | Path, workers: int | None, dask: str | None) -> Iterator[dict[str, Any]]:
    """Yield keyword arguments with which a sweep, in this process or on a cluster, shows progress and notices.

    On Ctrl-C, the message of the KeyboardInterrupt names the results that are kept in `out`.
    """
    click.echo(f"Results go to {out}. Compiling kernels (first run only) …", err=True)
    try:
        with LiveView() as view, nullcontext() if dask is None else dask_executor(dask) as executor:
            yield {"workers": workers, "executor": executor, "on_progress": view, "on_notice": print_notice}
        for line in view.summary():
            click.echo(line, err=True)
    except KeyboardInterrupt:
        kept = f"Committed results are kept in {out}; run the same command to resume."
        raise KeyboardInterrupt(f"Stopped. {kept if Path(out).is_file() else 'There are no results yet.'}") from None


def print_notice(sentence: str) -> None:
    """Print a sentence to stderr."""
    click.echo(f"Note: {sentence}", err=True)


def name_of(study: Study) -> str:
    """Return the name of a study, as printed."""
    plain = one_line(study.name.removesuffix(FRESH))
    return f"{plain}, selected settings on test runs" if study.name.endswith(FRESH) else plain


class LiveView(Bars):
    """A view of a sweep on stderr: a bar for each study and task. The sweep calls the view with its progress."""

    def __init__(self) -> None:
        super().__init__(keep=True)
        self.seen: dict[int, SweepProgress] = {}
        self.begin = perf_counter()

    def line(self) -> str:
        """Return the progress of the work in one line."""
        running = [one for one in list(self.seen.values()) if one.cells[0] < one.cells[1]]
        parts = [
            f"{name_of(one.study)} {one.cells[0]:,} of {one.cells[1]:,}" for one in running if one.updates or one.done
        ]
        if parts:
            return f"Settings × runs done: {'; '.join(parts[:3])}" + (" …" if len(parts) > 3 else "")
        complete = f" Studies complete: {len(self.seen)}." if self.seen and not running else ""
        return f"Working; kernels compiled or loaded so far: {len(lanes.COMPILING)} …{complete}"

    def summary(self) -> list[str]:
        """Return a line per study with the work done, and the total time; empty if nothing was run."""
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
        speed = state.updates / (perf_counter() - state.begin)
        note = f"{speed:.2g} updates/s" + (f", {state.diverged} diverged" if state.diverged else "")
        self.show(name_of(state.study), done, total, note, key=id(state))
        for task in state.total:
            key, running = (id(state), task), done < total  # bars of all studies would fill the screen
            self.show(f"  {one_line(task)}", state.done[task], state.total[task], key=key, visible=running)
