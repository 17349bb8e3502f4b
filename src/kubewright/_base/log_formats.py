"""Log formats: one JSON object per line for machines, one line of text for people.

Both are formatters of the standard library and take any record, with `pairs` or without. Two rules hold for both.
No content leaks: of an object they print only kind and name, of bytes only the number, and never a value whose name
says password or token. And a KubewrightError is one sentence without a stack; the stack is added at level debug, and
always for any other error, from the first line of the user's code on. `logs` installs them.
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

_PACKAGE_FOLDER: Final = __file__.rpartition("_base")[0]
_STDLIB_FOLDER: Final = os.__file__.removesuffix("os.py")
_HIDDEN: Final = frozenset({"authorization", "client_key", "password", "private_key", "token"})
_MAX_ITEMS: Final = 20

_DIM, _RESET = "\x1b[2m", "\x1b[0m"
_COLOURS: Final = {
    logging.DEBUG: "\x1b[36m",
    logging.INFO: "\x1b[32m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[1;31m",
}


def plain(value: object) -> Any:
    """The value as JSON that is safe to print.

    An object whose class defines no `__str__` is printed as kind and name, or else as the name of its class: the
    default repr of a struct would print everything in it, such as the data of a Secret.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): hidden_or_plain(str(key), item) for key, item in list(value.items())[:_MAX_ITEMS]}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in list(value)[:_MAX_ITEMS]]
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
    """As `plain`, but hidden if the name says that the value is a secret."""
    return "***" if name.lower() in _HIDDEN else plain(value)


def stack_of(error: BaseException) -> str:
    """The stack of an error from the user's own code on; the frames before that are the same every time.

    If the error came from no user code, all frames are kept.
    """
    formatted = traceback.TracebackException.from_exception(error)
    user_frames = [number for number, frame in enumerate(formatted.stack) if not _is_internal(frame.filename)]
    if user_frames:
        del formatted.stack[: user_frames[0]]
    return "".join(formatted.format()).rstrip("\n")


def _is_internal(file: str) -> bool:
    """Whether a file belongs to Kubewright or to the standard library, which calls what runs in threads."""
    return file.startswith(_PACKAGE_FOLDER) or (file.startswith(_STDLIB_FOLDER) and "site-packages" not in file)


@final
class Message(str):
    """A constant message that includes its pairs where another formatter prints it, such as pytest's.

    Comparing and grouping use the constant alone; `str()`, which `record.getMessage()` calls, has all.
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
        pairs = (f"{name}={_format_value(hidden_or_plain(name, value))}" for name, value in self._pairs.items())
        return " ".join((self.constant, *pairs))


class _Formatter(logging.Formatter):
    """What both formats share: the pairs of a record, and the summary and stack of its error."""

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
        """The error in one line, and its stack if it is to be printed."""
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
        text = _format_value(value)
        return f"{_DIM}{name}={_RESET}{text}" if self._colour else f"{name}={text}"


def _one_line(text: str) -> str:
    """Escapes control characters, so that no value can forge a line or change the terminal's colours."""
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)[1:-1]


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str)
    if value and value.isprintable() and not any(mark in value for mark in ' "='):
        return value
    return json.dumps(value, ensure_ascii=False)
