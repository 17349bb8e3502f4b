"""Validator: objects against the structural schema of their kind, with the API server's results and messages.

    validator = compile_schema(schema)
    for error in validator.check(tree):
        print(error.message)

Most objects are valid, so a compiled test (`check.quick_tests`) goes first; the slow `check.error_finder` runs only if
the test does not pass. CEL rules and the metadata of the object itself are not checked here. The embedded API server
calls this for custom resources, and for the defaults inside CRDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from kubewright._base.regexp import BoundedWork
from kubewright.api.field_errors import FieldError
from kubewright.api.patches import Json
from kubewright.schema.check.correlation import Correlation
from kubewright.schema.check.embedded import embedded_errors, has_embedded
from kubewright.schema.check.error_finder import ErrorFinder
from kubewright.schema.check.list_types import list_errors
from kubewright.schema.check.quick_tests import compile_test

__all__ = ("ABSENT", "Validator", "compile_schema")


@final
class _Absent:
    """No old object: this is a create."""


ABSENT: Final = _Absent()


@final
class Validator:
    """Checks values against one schema; changes none of them."""

    def __init__(self, schema: Mapping[str, Any], *, of_default: bool = False) -> None:
        self.schema = schema
        self._test = compile_test(schema, of_default=of_default)
        self._error_finder = ErrorFinder(schema, of_default=of_default)
        self._embeds = has_embedded(schema)

    def is_valid(self, value: Json) -> bool:
        """Whether a new value has no error."""
        with BoundedWork():
            return self._test(value) or not self.check(value)

    def check(self, value: Json, *, path: str = "", old: Json = ABSENT) -> list[FieldError]:
        """Every error, in the server's order: schema, embedded objects, sets and maps.

        `path` begins the paths of the errors. With `old`, an invalid but unchanged part passes if it can be correlated,
        and lists that already had duplicates are not checked.
        """
        with BoundedWork():
            if self._test(value):
                return []
        return [
            *self.check_schema(value, path=path, old=old),
            *self.check_embedded(value, path=path),
            *self.check_lists(value, path=path, old=old),
        ]

    def check_schema(self, value: Json, *, path: str = "", old: Json = ABSENT) -> list[FieldError]:
        """Only the errors of the schema itself."""
        with BoundedWork():
            if self._test(value):
                return []
        correlation = Correlation(value, old, self.schema) if old is not ABSENT else None
        with BoundedWork():
            return self._error_finder.find(value, prefix=path, correlation=correlation)

    def check_embedded(self, value: Json, *, path: str = "") -> list[FieldError]:
        """Only the embedded objects."""
        return embedded_errors(value, self.schema, path) if self._embeds else []

    def check_lists(self, value: Json, *, path: str = "", old: Json = ABSENT) -> list[FieldError]:
        """Only duplicates in sets and maps."""
        found = list_errors(value, self.schema, path)
        return [] if found and old is not ABSENT and list_errors(old, self.schema, path) else found


def compile_schema(schema: Mapping[str, Any], *, of_default: bool = False) -> Validator:
    """A validator for a structural schema; `of_default` checks as the server checks a default in a CRD."""
    return Validator(schema, of_default=of_default)
