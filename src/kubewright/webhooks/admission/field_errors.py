"""FieldErrors and Warnings: what a validator reports, field by field.

    def validate_cache(cache: Cache, errors: FieldErrors, warnings: Warnings) -> None:
        if cache.spec.size % 2 == 0:
            errors.add("spec.size", "must be odd, for a majority")
        if cache.spec.image.endswith(":latest"):
            warnings.add("spec.image: a floating tag makes every restart an upgrade")

The response carries all errors of an object, so that people fix it in one go. A path is written as it stands in the
object's YAML: `spec.parts[0].name`, `metadata.labels[app]`. No I/O; a reconciler uses the same classes.
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
    """The errors found so far; false while there are none."""

    def __init__(self) -> None:
        self._errors: list[FieldError] = []

    def add(self, path: str, detail: str, *, value: Any = OMITTED, type: FieldErrorType = "Invalid") -> None:  # noqa: A002
        """Report an error in a field: `errors.add("spec.size", "must be odd")`.

        The response shows the object's own value at this path unless `value` is given.
        """
        self._errors.append(FieldError(path, type, detail, value))

    def required(self, path: str, detail: str = "") -> None:
        """Report a field that is missing."""
        self.add(path, detail, type="Required")

    def forbidden(self, path: str, detail: str) -> None:
        """Report a field that may not be set or changed."""
        self.add(path, detail, type="Forbidden")

    def duplicate(self, path: str, value: Any = OMITTED) -> None:
        """Report a value that must be unique and is in use already."""
        self.add(path, "", value=value, type="Duplicate")

    def unsupported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        """Report a value that is none of those supported."""
        self._errors.append(unsupported(path, value, supported))

    def extend(self, errors: Iterable[FieldError]) -> None:
        """Add several errors."""
        self._errors.extend(errors)

    def with_values_of(self, tree: Any) -> FieldErrors:
        """The same errors, each with the value at its path in `tree`, unless it has a value already."""
        result = FieldErrors()
        result._errors = [
            replace(error, value=value_at(tree, error.path)) if error.value is OMITTED else error
            for error in self._errors
        ]
        return result

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
    """Warnings for the client that sent the request, whether it is allowed or not; kubectl prints them."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Add a warning, on one line; duplicates are dropped."""
        line = " ".join(text.split())
        self._texts[line if len(line) <= _LONGEST_WARNING else f"{line[: _LONGEST_WARNING - 3]}..."] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def value_at(tree: Any, path: str) -> Any:
    """The value at a path of an object; `OMITTED` if there is none, or if it is too large to show."""
    for name, key in _STEP.findall(path):
        step = name or key
        if isinstance(tree, dict) and step in tree:
            tree = tree[step]
        elif isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
            tree = tree[int(step)]
        else:
            return OMITTED
    return OMITTED if isinstance(tree, dict | list) else tree
