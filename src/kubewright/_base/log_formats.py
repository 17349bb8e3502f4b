"""How a log record looks: one JSON object per line for machines, one line of text for people.

Both are formatters of the standard library and take any record, with `pairs` or without. Two rules hold for both.
No content leaks: of an object only its kind and name are shown, of bytes only their number, and what is named like
a password is never shown. And an error of our own tree is one sentence, since the sentence says it all; the stack is
added at level debug, and always for an error nobody expected, from the line on where the user's code was called.
`logs` installs them.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, final

import msgspec

from kubewright.errors import KubewrightError

__all__ = ("JsonLines", "Message", "ReadableText", "plain", "stack_of")

_OURS: Final = __file__.rpartition("_base")[0]
_PYTHON: Final = os.__file__.removesuffix("os.py")
_HIDDEN: Final = frozenset({"authorization", "client_key", "password", "private_key", "token"})
_MOST_ITEMS: Final = 20

_DIM, _RESET = "\x1b[2m", "\x1b[0m"
_COLOURS: Final = {
    logging.DEBUG: "\x1b[36m",
    logging.INFO: "\x1b[32m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[1;31m",
}


def plain(value: object) -> Any:
    """The value as JSON that is safe to show.

    An object whose class has no text form of its own is shown by kind and name, or else by its class alone: the
    automatic text form of a struct would print everything in it, such as the data of a Secret.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): hidden_or_plain(str(key), item) for key, item in list(value.items())[:_MOST_ITEMS]}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in list(value)[:_MOST_ITEMS]]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, type):
        return value.__name__
    kind, key = getattr(value, "kind", None), getattr(value, "key", None)
    if isinstance(kind, str) and key is not None:
        return f"{kind} {key}"
    if type(value).__str__ is not object.__str__ or isinstance(value, BaseException):
        return str(value)
    return f"<{type(value).__name__}>"


def hidden_or_plain(name: str, value: object) -> Any:
    """As `plain`, unless the name says that the value is nobody's business."""
    return "***" if name.lower() in _HIDDEN else plain(value)


def stack_of(error: BaseException) -> str:
    """The stack of an error, from the user's own code on: how that came to be called is the same every time.

    An error that never came that far is shown with everything.
    """
    told = traceback.TracebackException.from_exception(error)
    theirs = [number for number, frame in enumerate(told.stack) if not _is_ours(frame.filename)]
    if theirs:
        del told.stack[: theirs[0]]
    return "".join(told.format()).rstrip("\n")


def _is_ours(file: str) -> bool:
    """Whether a file is Kubewright's or one of the standard library, which calls what runs in threads."""
    return file.startswith(_OURS) or (file.startswith(_PYTHON) and "site-packages" not in file)


@final
class Message(str):
    """A constant message that says its pairs too where the formatter is somebody else's, such as pytest's.

    Compared and grouped it is the constant alone; `str()`, which is what `record.getMessage()` asks for, has all.
    """

    __slots__ = ("_pairs",)
    _pairs: Mapping[str, Any]

    def __new__(cls, constant: str, pairs: Mapping[str, Any]) -> Message:
        message = super().__new__(cls, constant)
        message._pairs = pairs
        return message

    @property
    def constant(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        said = (f"{name}={_shown(hidden_or_plain(name, value))}" for name, value in self._pairs.items())
        return " ".join((self.constant, *said))


class _Formatter(logging.Formatter):
    """What both forms share: the pairs of a record and the words for its error."""

    def __init__(self, *, verbose: bool = False) -> None:
        super().__init__()
        self._verbose = verbose

    def _message(self, record: logging.LogRecord) -> str:
        return record.msg.constant if isinstance(record.msg, Message) else record.getMessage()

    def _pairs(self, record: logging.LogRecord) -> dict[str, Any]:
        pairs = getattr(record, "pairs", None)
        if not isinstance(pairs, dict):
            return {}
        return {name: hidden_or_plain(name, value) for name, value in pairs.items()}

    def _error(self, record: logging.LogRecord) -> tuple[str, str]:
        """The error in one line, and its stack if it is to be shown."""
        if not record.exc_info or record.exc_info[1] is None:
            return "", record.stack_info or ""
        error = record.exc_info[1]
        summary = " ".join(f"{type(error).__name__}: {error}".split())
        if self._verbose:
            return summary, self.formatException(record.exc_info)
        return summary, "" if isinstance(error, KubewrightError) else stack_of(error)


@final
class JsonLines(_Formatter):
    """`{"ts": ..., "level": "info", "logger": ..., "msg": "reconciled", "key": "shop/web"}`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": self._message(record),
        }
        for name, value in self._pairs(record).items():
            line[f"{name}_" if name in line else name] = value
        summary, stack = self._error(record)
        if summary:
            line["error"] = summary
        if stack:
            line["stacktrace"] = stack
        return msgspec.json.encode(line, enc_hook=str).decode(errors="replace")


@final
class ReadableText(_Formatter):
    """`12:30:01.250 info  reconciled  controller=web key=shop/web took=0.1`, in colour on a terminal."""

    def __init__(self, *, verbose: bool = False, colour: bool = False) -> None:
        super().__init__(verbose=verbose)
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        level = f"{record.levelname.lower():<7}"
        head = f"{moment}.{int(record.msecs):03d}"
        if self._colour:
            head = f"{_DIM}{head}{_RESET}"
            level = f"{_COLOURS.get(record.levelno, '')}{level}{_RESET}"
        parts = [head, level, _one_line(self._message(record))]
        pairs = self._pairs(record)
        summary, stack = self._error(record)
        if summary:
            pairs["error"] = summary
        if not record.name.startswith("kubewright"):
            pairs["logger"] = record.name
        parts.extend(self._pair(name, value) for name, value in pairs.items())
        line = " ".join(parts)
        return f"{line}\n{stack}" if stack else line

    def _pair(self, name: str, value: Any) -> str:
        text = _shown(value)
        return f"{_DIM}{name}={_RESET}{text}" if self._colour else f"{name}={text}"


def _one_line(text: str) -> str:
    """Control characters made visible, so that no value can forge a line or paint the terminal."""
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)[1:-1]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str)
    if value and value.isprintable() and not any(mark in value for mark in ' "='):
        return value
    return json.dumps(value, ensure_ascii=False)
