"""FieldError: what is wrong with one field of an object, in the API server's words.

The embedded API server, schema validation and validating webhooks report lists of these; each becomes one cause of a
422 response. The wording is that of Kubernetes (apimachinery: pkg/util/validation/field/errors.go), which people search
for and scripts match: `spec.size: Invalid value: -1: must be greater than or equal to 0`. A path is written as
Kubernetes writes it: `spec.containers[0].name`, `metadata.labels[a/b]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal, final

from kubewright.api.go_text import as_maps, format_value, quoted

__all__ = ("FieldError", "FieldErrorType", "bad_value", "limited", "summary", "too_long", "too_many", "unsupported")

FieldErrorType = Literal[
    "NotFound",
    "Required",
    "Duplicate",
    "Invalid",
    "NotSupported",
    "Forbidden",
    "TooLong",
    "TooMany",
    "Internal",
    "TypeInvalid",
]

# The type, how a message begins, and the reason a cause gives.
_WORDS: Final[dict[FieldErrorType, tuple[str, str]]] = {
    "NotFound": ("Not found", "FieldValueNotFound"),
    "Required": ("Required value", "FieldValueRequired"),
    "Duplicate": ("Duplicate value", "FieldValueDuplicate"),
    "Invalid": ("Invalid value", "FieldValueInvalid"),
    "NotSupported": ("Unsupported value", "FieldValueNotSupported"),
    "Forbidden": ("Forbidden", "FieldValueForbidden"),
    "TooLong": ("Too long", "FieldValueTooLong"),
    "TooMany": ("Too many", "FieldValueTooMany"),
    "Internal": ("Internal error", "InternalError"),
    "TypeInvalid": ("Invalid value", "FieldValueTypeInvalid"),
}
_MAX_ERRORS: Final = 10_000
_MAX_TEXT: Final = 16 * 1024 * 1024
_WITHOUT_VALUE: Final = ("Required", "Forbidden", "TooLong", "Internal")


@final
class _OmitValueType:
    """The value of an error that shows none."""


OMITTED: Final = _OmitValueType()


@final
@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that breaks a rule."""

    path: str
    type: FieldErrorType
    detail: str = ""
    value: Any = OMITTED

    def __post_init__(self) -> None:
        made = _made.get()
        if made is not None:
            made.add(self)

    @property
    def reason(self) -> str:
        """The reason of the cause: `FieldValueInvalid` and so on."""
        return _WORDS[self.type][1]

    @property
    def body(self) -> str:
        """The message without the path, as in a cause."""
        text = _WORDS[self.type][0]
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {format_value(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def message(self) -> str:
        """The message with the path."""
        return f"{self.path}: {self.body}"

    def cause(self) -> dict[str, str]:
        """This error as one of `details.causes` of a Status."""
        return {"reason": self.reason, "message": self.body, "field": self.path}


class _TooManyErrors(Exception):
    """A validation has found more errors than anybody reads."""


@final
class _Made:
    """The errors that a validation has made so far."""

    __slots__ = ("errors", "left")

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.left = _MAX_TEXT

    def add(self, error: FieldError) -> None:
        self.errors.append(error)
        self.left -= len(error.path) + len(error.detail)
        if len(self.errors) >= _MAX_ERRORS or self.left < 0:
            raise _TooManyErrors


_made: ContextVar[_Made | None] = ContextVar("kubewright_field_errors", default=None)


def limited(validate: Callable[[], list[FieldError]]) -> list[FieldError]:
    """The errors of a validation, which ends when it has made very many.

    An object of 3 MB can have a million of them, which take a gigabyte. The validation is cut short from inside, where
    errors are made, since each of its hundreds of loops would have to count otherwise.
    """
    made = _Made()
    token = _made.set(made)
    try:
        return validate()
    except _TooManyErrors:
        return made.errors
    finally:
        _made.reset(token)


def summary(errors: Iterable[FieldError]) -> str:
    """All errors in one line: a single one as it is, several in brackets, without duplicates."""
    messages = list(dict.fromkeys(error.message for error in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def bad_value(path: str, kind: FieldErrorType, value: Any, detail: str = "") -> FieldError:
    """A field error that shows its value; the members of objects are sorted, as in a Go map."""
    return FieldError(path, kind, detail, as_maps(value))


def unsupported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """A value that is none of those supported, which are listed in the order given."""
    names = ", ".join(quoted(name) for name in supported)
    return FieldError(path, "NotSupported", f"supported values: {names}" if names else "", value)


def too_long(path: str, limit: int) -> FieldError:
    """A text above its limit; the text itself is not shown."""
    unit = "byte" if limit == 1 else "bytes"
    return FieldError(path, "TooLong", f"may not be more than {limit} {unit}")


def too_many(path: str, count: int, limit: int) -> FieldError:
    """A list or map above its limit."""
    unit = "item" if limit == 1 else "items"
    return FieldError(path, "TooMany", f"must have at most {limit} {unit}", count)
