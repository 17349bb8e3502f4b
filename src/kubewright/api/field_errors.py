"""What is wrong with one field of an object, in the API server's own words.

The embedded API server, schema validation and validating webhooks all say "no" with a list of these; each becomes
one cause of a 422 answer. The wording is that of Kubernetes, which people search for and scripts match:
`spec.size: Invalid value: -1: must be greater than or equal to 0`. A path is written as Kubernetes writes it:
`spec.containers[0].name`, `metadata.labels[a/b]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, final

__all__ = ("FieldError", "FieldErrorType", "summary", "unsupported")

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
_WITHOUT_VALUE: Final = ("Required", "Forbidden", "TooLong", "Internal")


@final
class _Omitted:
    """The value of an error that shows none."""


OMITTED: Final = _Omitted()


@final
@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is not as it must be."""

    path: str
    type: FieldErrorType
    detail: str = ""
    value: Any = OMITTED

    @property
    def reason(self) -> str:
        """The reason of the cause: `FieldValueInvalid` and so on."""
        return _WORDS[self.type][1]

    @property
    def body(self) -> str:
        """The message without the path, as it stands in a cause."""
        text = _WORDS[self.type][0]
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {_shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def message(self) -> str:
        """The whole sentence."""
        return f"{self.path}: {self.body}"

    def cause(self) -> dict[str, str]:
        """This error as one of `details.causes` of a Status."""
        return {"reason": self.reason, "message": self.body, "field": self.path}


def summary(errors: Iterable[FieldError]) -> str:
    """All errors in one line: a single one as it is, several in brackets, each said once."""
    messages = list(dict.fromkeys(error.message for error in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def unsupported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """A value that is not among those allowed, which are listed in order."""
    names = ", ".join(_shown(name) for name in sorted(supported))
    return FieldError(path, "NotSupported", f"supported values: {names}" if names else "", value)


def _shown(value: Any) -> str:
    # Go prints strings quoted, simple values plainly, and all else as JSON.
    return "null" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
