"""What a validator finds wrong, field by field, and the warnings it gives.

    def validate_cache(cache: Cache, errors: FieldErrors, warnings: Warnings) -> None:
        if cache.spec.size % 2 == 0:
            errors.add("spec.size", "must be odd, for a majority")
        if cache.spec.image.endswith(":latest"):
            warnings.add("spec.image: a floating tag makes every restart an upgrade")

All errors are collected before anything is answered, so that people mend an object in one go. A path is written as it
stands in the object's YAML: `spec.parts[0].name`, `metadata.labels[app]`. No I/O: a reconciler uses the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, final

from kubewright.api.field_errors import OMITTED, FieldError, FieldErrorType, summary, unsupported

__all__ = ("FieldErrors", "Warnings", "value_at")

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")
_LONGEST_WARNING: Final = 256
"""The API server cuts a longer one, and drops all of them once they are 4096 characters together."""


@final
class FieldErrors:
    """The errors found so far. Empty, and so false, while all is well."""

    def __init__(self) -> None:
        self._errors: list[FieldError] = []

    def add(self, path: str, detail: str, *, value: Any = OMITTED, type: FieldErrorType = "Invalid") -> None:  # noqa: A002
        """This field is wrong: `errors.add("spec.size", "must be odd")`.

        The value that is shown is the object's own unless another is given.
        """
        self._errors.append(FieldError(path, type, detail, value))

    def required(self, path: str, detail: str = "") -> None:
        """The field must be given."""
        self.add(path, detail, type="Required")

    def forbidden(self, path: str, detail: str) -> None:
        """The field may not be set, or not be changed, here."""
        self.add(path, detail, type="Forbidden")

    def duplicate(self, path: str, value: Any = OMITTED) -> None:
        """The value is in use already where it must be unique."""
        self.add(path, "", value=value, type="Duplicate")

    def unsupported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        """The value is none of those allowed."""
        self._errors.append(unsupported(path, value, supported))

    def extend(self, errors: Iterable[FieldError]) -> None:
        """All of these too."""
        self._errors.extend(errors)

    def with_values_of(self, tree: Any) -> FieldErrors:
        """The same errors, each with the value that stands at its path, where none was given."""
        filled = FieldErrors()
        filled._errors = [
            replace(error, value=value_at(tree, error.path)) if error.value is OMITTED else error
            for error in self._errors
        ]
        return filled

    def __iter__(self) -> Iterator[FieldError]:
        return iter(self._errors)

    def __len__(self) -> int:
        return len(self._errors)

    def __str__(self) -> str:
        return summary(self._errors) if self._errors else ""

    def __repr__(self) -> str:
        return f"<FieldErrors {self}>"


@final
class Warnings:
    """What whoever sent the request is told, although the answer may be yes; kubectl prints it."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Say this, in one line; the same text is said once."""
        line = " ".join(text.split())
        self._texts[line if len(line) <= _LONGEST_WARNING else f"{line[: _LONGEST_WARNING - 3]}..."] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def value_at(tree: Any, path: str) -> Any:
    """What stands at a path of an object; `OMITTED` if there is nothing, or if it is too large to show."""
    for name, key in _STEP.findall(path):
        step = name or key
        if isinstance(tree, dict) and step in tree:
            tree = tree[step]
        elif isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
            tree = tree[int(step)]
        else:
            return OMITTED
    return OMITTED if isinstance(tree, dict | list) else tree
