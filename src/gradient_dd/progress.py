"""Progress of long computations on stderr: bars in a terminal or Jupyter, otherwise a line every few seconds."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from gradient_dd.errors import boolean

EVERY = 10.0  # seconds between plain lines
PATIENCE = 1.0  # seconds of work before bars appear

Told = Callable[[int, int], Any]  # called with the work done and the total; a total of 0 is not known yet


class Bars:
    """Named progress bars for a `with` block; short work shows no bars."""

    def __init__(self, keep: bool = False) -> None:
        """Create the bars; `keep` leaves them on the screen at the end."""
        self.console = Console(stderr=True)  # without colours if NO_COLOR is set
        self.is_live = self.console.is_terminal or (self.console.is_jupyter and find_spec("ipywidgets") is not None)
        name, note = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[note]}")
        columns = name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note
        self.bars = Progress(*columns, console=self.console, disable=not self.is_live, transient=not keep)
        self.known: dict[Any, TaskID] = {}
        self.closed = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.closed.set()
        self.watcher.join()
        self.bars.stop()

    def _watch(self) -> None:
        """Start the bars after a moment, or print a plain line every few seconds until the block ends."""
        if self.is_live:
            if not self.closed.wait(PATIENCE):
                self.bars.start()
            return
        while not self.closed.wait(EVERY):
            if line := self.line():
                self.say(line)

    def say(self, line: str) -> None:
        """Print a line, above the bars if there are any."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def line(self) -> str:
        """Return the progress of the unfinished work in one line."""
        parts = []
        for bar in self.bars.tasks:
            if bar.finished:
                continue
            part, left = f"{bar.description}: {bar.completed:,}", bar.time_remaining
            part += "" if bar.total is None else f" of {bar.total:,}"
            part += f", about {f'{left:.0f} s' if left < 100 else f'{left / 60:.0f} min'} left" if left else ""
            parts.append(part)
        return "; ".join(parts)

    def show(self, name: str, done: int, total: int, note: str = "", key: Any = None, visible: bool = True) -> None:
        """Add or update a bar; `key` identifies the bar if several bars have the same name."""
        key = name if key is None else key
        if key not in self.known:
            self.known[key] = self.bars.add_task(name, total=None, note="")
        self.bars.update(self.known[key], completed=done, total=total or None, note=note, visible=visible)


@contextmanager
def shown(progress: bool | Told, name: str) -> Iterator[Told]:
    """Yield a function of the work done and the total: `progress` itself, or a function that may show a bar.

    >>> with shown(False, "rows") as told:
    ...     told(1, 2)
    """
    if callable(progress):
        yield progress
    elif boolean("'progress'", progress):
        with Bars() as bars:
            yield partial(bars.show, name)
    else:
        yield lambda done, total: None
