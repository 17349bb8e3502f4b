"""What an operator under test did and said: its last reconciles, its log, and the exceptions of its code.

`running` keeps an `OperatorLog` for each operator, and waits show those of all that run when time is up. It is told
apart from the cluster and the other operators of the same process by the context of its tasks: whatever they log is
the operator's. What Kubewright logs with an exception that is not of its own tree is a mistake in the operator's code,
be it in a reconciler, a mapping function, an index, a gauge or a webhook; `running` fails the test for it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, final

from kubewright._base.log_formats import ReadableText, stack_of
from kubewright.controllers.controller import Controller, ReconcileRecord
from kubewright.errors import KubewrightError

__all__ = ("OperatorLog", "shown_logs")

_OURS: Final = str(Path(__file__).parents[1])
_LAST_LINES: Final = 50
_LAST_RECONCILES: Final = 10
"""Of each controller."""
_MAX_ERRORS: Final = 100
_MAX_SHOWN: Final = 5

_speaking: ContextVar[OperatorLog | None] = ContextVar("operator under test", default=None)
_open: list[OperatorLog] = []


@final
class OperatorLog(logging.Handler):
    """Keeps the end of the log of one operator, and the exceptions of its code."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.operator = name
        self.errors: list[Exception] = []
        """What the operator's code raised and nobody caught, oldest first."""
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._controllers: Sequence[Controller] = ()
        self.setFormatter(ReadableText())

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Until the block ends, the log is kept, and waits show it."""
        logging.getLogger().addHandler(self)
        _open.append(self)
        try:
            yield
        finally:
            _open.remove(self)
            logging.getLogger().removeHandler(self)

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """What is started in the block, and whatever that starts later, is the operator."""
        token = _speaking.set(self)
        try:
            yield
        finally:
            _speaking.reset(token)

    def follow(self, controllers: Sequence[Controller]) -> None:
        """Show the last reconciles of these."""
        self._controllers = controllers

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record if the operator wrote it."""
        if _open[:1] == [self]:
            _print_unhandled(record)
        if _speaking.get() is not self:
            return
        self._lines.append(self.format(record))
        error = record.exc_info[1] if record.exc_info else None
        # What the operator's own code logs with a stack it has caught.
        if not isinstance(error, Exception) or isinstance(error, KubewrightError):
            return
        if _is_ours(record) and len(self.errors) < _MAX_ERRORS:
            self.errors.append(error)

    def unexpected(self, expected: tuple[type[Exception], ...]) -> list[Exception]:
        """The errors that are of none of these classes, one of each kind: a mistake raises again at every retry."""
        found = {stack_of(error): error for error in self.errors if not isinstance(error, expected)}
        return list(found.values())[:_MAX_SHOWN]

    def text(self) -> str:
        """The last reconciles and the end of the log, for people."""
        done = [_line(each.name, one) for each in self._controllers for one in list(each.recent)[-_LAST_RECONCILES:]]
        parts = [f"the operator {self.operator} has reconciled nothing"]
        if done:
            parts = ["\n  ".join((f"the last reconciles of the operator {self.operator}:", *done))]
        if self._lines:
            lines = [inner for line in self._lines for inner in line.splitlines()]
            parts.append("\n  ".join((f"the end of the log of {self.operator}:", *lines)))
        return "\n".join(parts)


def shown_logs() -> str:
    """What all operators under test did and said, to be appended to an error; empty if none runs."""
    return "".join(f"\n{log.text()}" for log in _open)


def _print_unhandled(record: logging.LogRecord) -> None:
    """What the standard library prints while a program has not set up logging, which our handlers do not do for it."""
    last = logging.lastResort
    alone = all(isinstance(handler, OperatorLog) for handler in logging.getLogger().handlers)
    if alone and last is not None and record.levelno >= last.level:
        last.handle(record)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.pathname.startswith(_OURS)


def _line(controller: str, record: ReconcileRecord) -> str:
    again = "" if record.requeue_after is None else f", again in {record.requeue_after:g} s"
    error = "" if record.error is None else f": {' '.join(record.error.split())}"
    writes = f"  wrote: {', '.join(record.writes)}" if record.writes else ""
    causes = f"  because: {', '.join(record.causes)}" if record.causes else ""
    return f"{controller} {record.key}  {record.result}{error}{again}{writes}{causes}"
