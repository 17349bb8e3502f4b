"""Shows the progress of long work: a bar on a terminal, else one line for each new step.

Implements `kubewright.cluster.processes.progress.Progress` for the command line. Everything goes to standard error, so
that standard output has only what a script reads.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = ("Display", "display")


@final
class Display:
    """Called with a step and its progress; draws it."""

    def __init__(self, console: Console, *, after: float = 0.0) -> None:
        """Nothing is shown before `after` seconds."""
        self._console = console
        self._begins = time.monotonic() + after
        self._what = ""
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __call__(self, what: str, done: int = 0, total: int = 0, /) -> None:
        if not what:
            self.close()
        elif time.monotonic() < self._begins:
            return
        elif not self._console.is_terminal:
            if what != self._what:
                self._console.print(f"{what} ...", markup=False, highlight=False, soft_wrap=True)
        else:
            self._draw(what, done, total)
        self._what = what

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None

    def _draw(self, what: str, done: int, total: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        if self._bar is None:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._bar.start()
        if self._task is None or what != self._what:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(what, total=total or None)
        self._bar.update(self._task, completed=done, total=total or None)


@contextlib.contextmanager
def display(*, after: float = 0.0) -> Iterator[Display]:
    """A display on standard error that is removed afterwards, whatever happens.

    With `after`, only for work that takes longer than that many seconds.
    """
    shown = Display(Console(stderr=True), after=after)
    try:
        yield shown
    finally:
        shown.close()
