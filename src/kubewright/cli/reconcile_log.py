"""Runs of reconcilers, told to whoever develops them: one line for each, and the stack of a mistake once.

    12:30:01 cache default/web  3.1 ms  ok  because: Cache default/web added
    12:30:04 cache default/web  0.2 ms  KeyError: 'size'  because: Cache default/web updated
    Traceback (most recent call last): ...

A mistake in the code fails again at every retry: its line comes each time, its stack only when it is new. What is told
here is taken out of the log (`ReconcileLog` is a filter for its handler), and so is what Kubewright itself says below a
warning; what the operator's own code logs stays. `kubewright dev` uses it; nothing of it is for production.
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
from kubewright.errors import KubewrightError

if TYPE_CHECKING:
    from kubewright.controllers.declaration import Declaration

__all__ = ("ReconcileLog",)

_OURS: Final = str(Path(__file__).parents[1])
_FAILED: Final = "reconcile failed"
_REMEMBERED: Final = 100


@final
class ReconcileLog(logging.Filter):
    """Tells the runs of one generation of an operator after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._stacks: set[str] = set()
        self._told: deque[str] = deque(maxlen=_REMEMBERED)

    def follow(self, controllers: Iterable[Declaration[Any]]) -> None:
        """Tell the runs of these from now on; what went wrong before they were loaded is forgotten."""
        self._stacks.clear()
        for declaration in controllers:
            declaration.reconcile = self._wrapped(declaration.name, "", declaration.reconcile)
            if declaration.finalize is not None:
                declaration.finalize = self._wrapped(declaration.name, "finalize  ", declaration.finalize)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is to be shown."""
        if not record.pathname.startswith(_OURS):
            return True
        if record.levelno < logging.WARNING:
            return False
        if not record.getMessage().startswith(_FAILED):
            return True
        error = record.exc_info[1] if record.exc_info else getattr(record, "pairs", {}).get("error")
        return str(error) not in self._told

    def _wrapped(self, name: str, what: str, function: Any) -> Any:
        """The same function, each call of which is told; async if that is."""

        async def awaited(obj: Any, ctx: Any) -> Any:
            begun, error = time.monotonic(), None
            try:
                return await function(obj, ctx)
            except BaseException as exc:
                error = exc
                raise
            finally:
                self._tell(f"{name} {obj.key}  {what}", ctx, begun, error)

        def called(obj: Any, ctx: Any) -> Any:
            begun, error = time.monotonic(), None
            try:
                return function(obj, ctx)
            except BaseException as exc:
                error = exc
                raise
            finally:
                self._tell(f"{name} {obj.key}  {what}", ctx, begun, error)

        return awaited if inspect.iscoroutinefunction(function) else called

    def _tell(self, subject: str, ctx: Any, begun: float, error: BaseException | None) -> None:
        took = (time.monotonic() - begun) * 1000
        causes = ", ".join(dict.fromkeys(str(cause) for cause in ctx.causes)) or "it is time"
        if error is None:
            end = click.style("ok", fg="green")
        else:
            self._told.append(str(error))
            end = click.style(" ".join(f"{type(error).__name__}: {error}".split()), fg="red")
        click.echo(f"{time.strftime('%H:%M:%S')} {subject}{took:.1f} ms  {end}  because: {causes}", err=True)
        # An error of our own tree says it all in its sentence.
        if error is not None and not isinstance(error, KubewrightError | CancelledError):
            stack = stack_of(error)
            if stack not in self._stacks:
                self._stacks.add(stack)
                click.echo(stack, err=True)
