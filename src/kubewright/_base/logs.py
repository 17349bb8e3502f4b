"""Structured logs: a constant message and key-value pairs.

    log = Logger("shop.operator", controller="web")
    log.info("reconciled", key=key, took=0.1)
    log.error("reconcile failed", key=key, error=exc)

Built on the standard library's logging: a record carries its pairs in `record.pairs`, so records of other libraries and
of plain `logging.getLogger` users go through the same handlers and look the same. The owner of the process calls
`configure` once; a library, or a test with its own logging, does not need it. `log_formats` formats the records.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Final, Literal, TextIO, final

from kubewright._base.log_formats import JsonLines, Message, ReadableText
from kubewright.errors import ConfigError

__all__ = ("LEVELS", "Logger", "configure", "get_logger")

LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

_HANDLER: Final = "kubewright"


@final
class Logger:
    """Writes to the standard logger of its name, each record with the pairs it was bound to."""

    __slots__ = ("_logger", "_pairs")

    def __init__(self, name: str = "kubewright", /, **pairs: Any) -> None:
        self._logger = logging.getLogger(name)
        self._pairs = pairs

    @property
    def name(self) -> str:
        return self._logger.name

    def bind(self, **pairs: Any) -> Logger:
        """A logger with these pairs added."""
        return Logger(self._logger.name, **{**self._pairs, **pairs})

    def enabled(self, level: Literal["debug", "info", "warning", "error"]) -> bool:
        """Whether records of this level are written: check before computing a costly pair."""
        return self._logger.isEnabledFor(LEVELS[level])

    def debug(self, message: str, /, **pairs: Any) -> None:  # hot
        if self._logger.isEnabledFor(logging.DEBUG):
            self._write(logging.DEBUG, message, pairs)

    def info(self, message: str, /, **pairs: Any) -> None:  # hot
        if self._logger.isEnabledFor(logging.INFO):
            self._write(logging.INFO, message, pairs)

    def warning(self, message: str, /, **pairs: Any) -> None:
        if self._logger.isEnabledFor(logging.WARNING):
            self._write(logging.WARNING, message, pairs)

    def error(self, message: str, /, **pairs: Any) -> None:
        """Pass the exception as `error=exc`: its message is printed, and its stack unless it is a KubewrightError."""
        if self._logger.isEnabledFor(logging.ERROR):
            self._write(logging.ERROR, message, pairs)

    def exception(self, message: str, /, **pairs: Any) -> None:
        """As `error`, about the exception being handled unless another is given."""
        if self._logger.isEnabledFor(logging.ERROR):
            pairs.setdefault("error", sys.exception())
            self._write(logging.ERROR, message, pairs)

    def _write(self, level: int, message: str, pairs: dict[str, Any]) -> None:
        error = pairs.get("error")
        trace = error if isinstance(error, BaseException) else None
        if trace is not None:
            del pairs["error"]  # it goes to record.exc_info, where other handlers look for it
        merged = {**self._pairs, **pairs} if self._pairs else pairs
        # stacklevel: the caller of info() is two frames up.
        self._logger.log(level, Message(message, merged), exc_info=trace, extra={"pairs": merged}, stacklevel=3)


def get_logger(name: str, /, **pairs: Any) -> Logger:
    """A logger of that name, each record with these pairs."""
    return Logger(name, **pairs)


def configure(
    *,
    format: Literal["auto", "json", "text"] = "auto",  # noqa: A002 - the word people know
    level: Literal["debug", "info", "warning", "error"] = "info",
    stream: TextIO | None = None,
    only: logging.Filter | None = None,
) -> None:
    """Send every record of the process to `stream` (standard error), in one format.

    `auto` is text if the stream is a terminal, else JSON lines. `only` filters the records. Called again, it replaces
    its own handler and leaves others alone.
    """
    if level not in LEVELS:
        raise ConfigError(f"the log level {level!r} is unknown; use one of {', '.join(LEVELS)}")
    if format not in ("auto", "json", "text"):
        raise ConfigError(f"the log format {format!r} is unknown; use auto, json or text")
    stream = stream or sys.stderr
    terminal = stream.isatty()
    verbose = LEVELS[level] <= logging.DEBUG
    handler = logging.StreamHandler(stream)
    handler.set_name(_HANDLER)
    if only is not None:
        handler.addFilter(only)
    if format == "json" or (format == "auto" and not terminal):
        handler.setFormatter(JsonLines(verbose=verbose))
    else:
        colour = terminal and not os.environ.get("NO_COLOR")
        handler.setFormatter(ReadableText(verbose=verbose, colour=colour))
    root = logging.getLogger()
    for present in list(root.handlers):
        if present.get_name() == _HANDLER:
            root.removeHandler(present)
    root.addHandler(handler)
    root.setLevel(LEVELS[level])
