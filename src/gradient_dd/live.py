"""A live view of a sweep: a bar for the whole and one for each task; quiet where there is no terminal."""

import sys
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from gradient_dd.sweep import Progress as SweepProgress


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

    def worked_off(self) -> list[str]:
        """Return what was done for each study, in words; nothing for one that was all there."""
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
