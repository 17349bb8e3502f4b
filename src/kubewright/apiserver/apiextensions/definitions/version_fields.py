"""Validates the fields of a CRD version besides its schema: printer columns, scale, selectable fields, deprecation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubewright.api.field_errors import FieldError, bad_value, too_many
from kubewright.apiserver.apiextensions.definitions.field_paths import InvalidPathError, resolve, simple_path_errors

__all__ = ("column_errors", "selectable_errors", "subresource_errors", "warning_errors")

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE_FIELDS: Final = 8


def column_errors(column: Mapping[str, Any], path: str) -> list[FieldError]:
    """The errors of a printer column."""
    found: list[FieldError] = []
    if not column.get("name"):
        found.append(FieldError(f"{path}.name", "Required"))
    kind, format_, where = column.get("type"), column.get("format"), column.get("jsonPath")
    text = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        found.append(FieldError(f"{path}.type", "Required", text))
    elif kind not in _COLUMN_TYPES:
        found.append(bad_value(f"{path}.type", "Invalid", kind, text))
    if format_ and format_ not in _COLUMN_FORMATS:
        found.append(bad_value(f"{path}.format", "Invalid", format_, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not where:
        found.append(FieldError(f"{path}.JSONPath", "Required"))
    else:
        found.extend(simple_path_errors(where, f"{path}.JSONPath"))
    return found


def subresource_errors(subresources: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    """The errors of the scale subresource of a version."""
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    found: list[FieldError] = []
    for name, under in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        where, here = scale.get(name) or "", f"{path}.scale.{name}"
        if not where:
            found.append(FieldError(here, "Required"))
        elif errors := simple_path_errors(where, here):
            found.extend(errors)
        elif not where.startswith(under):
            found.append(bad_value(here, "Invalid", where, f"should be a json path under {under.removesuffix('.')}"))
    where, here = scale.get("labelSelectorPath") or "", f"{path}.scale.labelSelectorPath"
    if where and (errors := simple_path_errors(where, here)):
        found.extend(errors)
    elif where and not where.startswith((".spec.", ".status.")):
        found.append(bad_value(here, "Invalid", where, "should be a json path under either .spec or .status"))
    return found


def selectable_errors(
    fields: list[Mapping[str, Any]], schema: Mapping[str, Any], path: str, *, any_number: bool
) -> list[FieldError]:
    """The errors of the selectable fields of a version; `any_number` lifts the limit."""
    found: list[FieldError] = []
    seen: set[tuple[str, ...]] = set()
    for i, field in enumerate(fields):
        where, here = field.get("jsonPath") or "", f"{path}[{i}].jsonPath"
        if not where:
            found.append(FieldError(here, "Required"))
            continue
        try:
            names, _, target = resolve(where, schema, brackets=False)
        except InvalidPathError as exc:
            found.append(bad_value(here, "Invalid", where, f"is an invalid path: {exc}"))
            continue
        if names[:1] == ("metadata",):
            found.append(bad_value(here, "Invalid", where, "must not point to fields in metadata"))
        if target.get("type") not in ("string", "boolean", "integer"):
            text = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            found.append(bad_value(here, "Invalid", where, text))
        if names in seen:
            found.append(bad_value(here, "Duplicate", where))
        seen.add(names)
    if len(seen) > _MAX_SELECTABLE_FIELDS and not any_number:
        found.append(too_many(path, len(seen), _MAX_SELECTABLE_FIELDS))
    return found


def warning_errors(version: Mapping[str, Any], path: str) -> list[FieldError]:
    """The errors of the deprecation warning of a version."""
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    return [
        bad_value(f"{path}.deprecationWarning", "Invalid", warning, text) for text in _warning_texts(version, warning)
    ]


def _warning_texts(version: Mapping[str, Any], warning: str) -> list[str]:
    if not version.get("deprecated"):
        return ["can only be set for deprecated versions"]
    texts: list[str] = []
    if len(warning.encode()) > 256:
        texts.append("must be <= 256 characters long")
    if not warning:
        texts.append("must not be an empty string")
    at = 0
    for char in warning:
        if not char.isprintable():
            text = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            return [*texts, text]
        at += len(char.encode())
    return texts
