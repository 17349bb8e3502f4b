"""ReconcileLog: one line for each reconcile, for the developer of an operator, and the stack of an error once.

    12:30:01 cache default/web  3.1 ms  ok  because: Cache default/web added
    12:30:04 cache default/web  0.2 ms  KeyError: 'size'  because: Cache default/web updated
    Traceback (most recent call last): ...

A bug fails again at every retry: its line is printed each time, its stack only when it is new. What is printed here is
left out of the log (`ReconcileLog` is a filter for its handler), and so is what Kubewright itself logs below a warning;
what the operator's own code logs stays. `kubewright dev` uses it; nothing of it is for production.
"""

from __future__ import annotations

import inspect
import logging
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import click

from kubewright._base.log_formats import stack_of
from kubewright.cli.terminals import visible
from kubewright.errors import KubewrightError

if TYPE_CHECKING:
    from kubewright.controllers.declaration import Declaration

__all__ = ("ReconcileLog",)

_OURS: Final = str(Path(__file__).parents[1])
_FAILED: Final = "reconcile failed"
_MAX_ERRORS: Final = 100


@final
class ReconcileLog(logging.Filter):
    """Prints the reconciles of an operator, and of each new version of its code after a reload."""

    def __init__(self) -> None:
        super().__init__()
        self._stacks: set[str] = set()
        self._printed: deque[str] = deque(maxlen=_MAX_ERRORS)

    def follow(self, controllers: Iterable[Declaration[Any]]) -> None:
        """Print the reconciles of these from now on; the stacks printed before they were loaded are forgotten."""
        self._stacks.clear()
        for declaration in controllers:
            declaration.reconcile = self._wrapped(declaration.name, "", declaration.reconcile)
            if declaration.finalize is not None:
                declaration.finalize = self._wrapped(declaration.name, "finalize  ", declaration.finalize)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the log shows a record."""
        if not record.pathname.startswith(_OURS):
            return True
        if record.levelno < logging.WARNING:
            return False
        if not record.getMessage().startswith(_FAILED):
            return True
        error = record.exc_info[1] if record.exc_info else getattr(record, "pairs", {}).get("error")
        return str(error) not in self._printed

    def _wrapped(self, name: str, what: str, function: Any) -> Any:
        """The same function, each call of which is printed; async if that is."""

        async def awaited(obj: Any, ctx: Any) -> Any:
            begun, error = time.monotonic(), None
            try:
                return await function(obj, ctx)
            except BaseException as exc:
                error = exc
                raise
            finally:
                self._print(f"{name} {obj.key}  {what}", ctx, begun, error)

        def called(obj: Any, ctx: Any) -> Any:
            begun, error = time.monotonic(), None
            try:
                return function(obj, ctx)
            except BaseException as exc:
                error = exc
                raise
            finally:
                self._print(f"{name} {obj.key}  {what}", ctx, begun, error)

        return awaited if inspect.iscoroutinefunction(function) else called

    def _print(self, subject: str, ctx: Any, begun: float, error: BaseException | None) -> None:
        took = (time.monotonic() - begun) * 1000
        causes = ", ".join(dict.fromkeys(str(cause) for cause in ctx.causes)) or "it is time"
        if error is None:
            end = click.style("ok", fg="green")
        else:
            self._printed.append(str(error))
            end = click.style(visible(" ".join(f"{type(error).__name__}: {error}".split())), fg="red")
        begin = f"{time.strftime('%H:%M:%S')} {visible(subject)}{took:.1f} ms"
        click.echo(f"{begin}  {end}  because: {visible(causes)}", err=True)
        # The sentence of an error of our own tree needs no stack.
        if error is not None and not isinstance(error, KubewrightError | CancelledError):
            stack = stack_of(error)
            if stack not in self._stacks:
                self._stacks.add(stack)
                click.echo(visible(stack), err=True)
