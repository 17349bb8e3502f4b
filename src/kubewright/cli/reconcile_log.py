"""ReconcileLog: one line for each reconcile, for the developer of an operator, and the stack of an error once.

    12:30:01 cache default/web  3.1 ms  ok  because: Cache default/web added
    12:30:04 cache default/web  0.2 ms  KeyError: 'size'  because: Cache default/web updated
    Traceback (most recent call last): ...

The line is printed when the reconcile has ended and its status is written. A bug fails again at every retry: its line
is printed each time, its stack only when it is new. What is printed here is left out of the log (`ReconcileLog` is a
filter for its handler), and so is what Kubewright and other libraries log below a warning; what the operator's own code
logs stays. `kubewright dev` uses it; nothing of it is for production.
"""

from __future__ import annotations

import inspect
import logging
import sysconfig
import time
from asyncio import CancelledError
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import click

from kubewright._base.log_formats import stack_of
from kubewright.cli.terminals import visible
from kubewright.errors import KubewrightError

if TYPE_CHECKING:
    from kubewright.controllers.controller import Controller, ReconcileRecord
    from kubewright.controllers.declaration import Declaration

__all__ = ("ReconcileLog",)

_OURS: Final = str(Path(__file__).parents[1])
_LIBRARIES: Final = tuple({path for name, path in sysconfig.get_paths().items() if name.endswith("lib")})
_FAILED: Final = "reconcile failed"


@final
class _Call:
    """A call of `reconcile` or `finalize`, from its begin until its reconcile has ended."""

    def __init__(self, what: str, ctx: Any) -> None:
        self.what = what
        self.causes = ", ".join(dict.fromkeys(str(cause) for cause in ctx.causes)) or "it is time"
        self.error: BaseException | None = None


@final
class ReconcileLog(logging.Filter):
    """Prints the reconciles of an operator, and of each new version of its code after a reload."""

    def __init__(self, own: Path | None = None) -> None:
        """`own` is the folder of the operator's code, wherever it is installed."""
        super().__init__()
        self._own = None if own is None else str(own)
        self._stacks: set[str] = set()
        self._calls: dict[str, _Call] = {}
        """By reconcileID."""

    def follow(self, declarations: Iterable[Declaration[Any]]) -> None:
        """Print the calls of these from now on; the stacks printed before they were loaded are forgotten."""
        self._stacks.clear()
        self._calls.clear()
        for declaration in declarations:
            declaration.reconcile = self._wrapped("", declaration.reconcile)
            if declaration.finalize is not None:
                declaration.finalize = self._wrapped("finalize  ", declaration.finalize)

    def attend(self, controllers: Iterable[Controller]) -> None:
        """Be told by the controllers of those declarations when a reconcile has ended."""
        for controller in controllers:
            controller.subscribe(partial(self._print, controller.name))

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the log shows a record."""
        if not record.pathname.startswith(_OURS):
            return record.levelno >= logging.WARNING or not self._is_of_a_library(record)
        if record.levelno < logging.WARNING:
            return False
        if not record.getMessage().startswith(_FAILED):
            return True
        call = self._calls.get(getattr(record, "pairs", {}).get("reconcileID", ""))
        if call is None:
            return True
        if record.exc_info:  # also what failed after the call, such as the write of the status
            call.error = record.exc_info[1]
        return False

    def _is_of_a_library(self, record: logging.LogRecord) -> bool:
        if self._own is not None and record.pathname.startswith(self._own):
            # A virtual environment may be in the folder of the project.
            return "site-packages" in record.pathname.removeprefix(self._own)
        return record.pathname.startswith(_LIBRARIES)

    def _wrapped(self, what: str, function: Any) -> Any:
        """The same function, each call of which is noted; async if that is."""

        async def awaited(obj: Any, ctx: Any) -> Any:
            call = self._calls[ctx.reconcile_id] = _Call(what, ctx)
            try:
                return await function(obj, ctx)
            except BaseException as error:
                call.error = error
                raise

        def called(obj: Any, ctx: Any) -> Any:
            call = self._calls[ctx.reconcile_id] = _Call(what, ctx)
            try:
                return function(obj, ctx)
            except BaseException as error:
                call.error = error
                raise

        return awaited if inspect.iscoroutinefunction(function) else called

    def _print(self, name: str, record: ReconcileRecord) -> None:
        call = self._calls.pop(record.reconcile_id, None)
        if call is None:  # the object was gone before the reconcile began
            return
        error = call.error
        failure = record.error or ""
        if error is not None:
            failure = f"{type(error).__name__}: {error}"
        end = click.style(visible(" ".join(failure.split())), fg="red") if failure else click.style("ok", fg="green")
        subject = f"{name} {record.key}  {call.what}"
        begin = f"{time.strftime('%H:%M:%S')} {visible(subject)}{record.seconds * 1000:.1f} ms"
        click.echo(f"{begin}  {end}  because: {visible(call.causes)}", err=True)
        # The sentence of an error of our own tree needs no stack.
        if error is not None and not isinstance(error, KubewrightError | CancelledError):
            stack = stack_of(error)
            if stack not in self._stacks:
                self._stacks.add(stack)
                click.echo(visible(stack), err=True)
