"""Validates an intent against its field type, with the errors of sigs.k8s.io/structured-merge-diff typed/validate.go.

Server-side apply rejects a field that the schema does not declare, a value of another type, and two items with the same
keys: their owners could not be recorded. This is not the validation of the kind; it does not look at values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.path_elements import ManagedFieldsError, item_path_element, path_element_text
from kubewright.apiserver.managedfields.types import FieldType, ListType, MapType, Scalar

__all__ = ("validate",)


def validate(kind: FieldType, value: Json) -> str:
    """The errors of an object, as one text; empty if it is valid."""
    found = [f"{path}: {what}" if path else what for path, what in _validate(kind, value, "")]
    if len(found) < 2:
        return "".join(found)
    return "errors:" + "".join(f"\n  {line}" for line in found)


def _validate(kind: FieldType, value: Json, path: str) -> Iterator[tuple[str, str]]:
    sort = type(value)
    if sort is dict and kind.map is not None:
        yield from _validate_map(kind.map, value, path)
    elif sort is list and kind.items is not None:
        yield from _validate_list(kind.items, value, path)
    elif value is None:
        return
    elif kind.map is not None and (sort in (dict, list) or kind.scalar is None):
        yield path, f"expected map, got &{{{_go_value(value)}}}"
    elif kind.scalar is not None:
        what = _scalar_error(kind.scalar, value)
        if what:
            yield path, what
    else:
        yield path, f"expected list, got &{{{_go_value(value)}}}"


def _validate_map(kind: MapType, value: dict[str, Json], path: str) -> Iterator[tuple[str, str]]:
    for name, inner in value.items():
        field = kind.fields.get(name, kind.element)
        if field is None:
            # validate.go looks no further in this map.
            yield f"{path}.{name}", "field not declared in schema"
            return
        yield from _validate(field, inner, f"{path}.{name}")


def _validate_list(kind: ListType, items: list[Json], path: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if kind.atomic:
            yield from _validate(kind.element, item, f"{path}[{index}]")
            continue
        try:
            step = item_path_element(kind, item)
        except ManagedFieldsError as error:
            yield path, f"element {index}: {error}"
            return
        if step in seen:
            yield path, f"duplicate entries for key {path_element_text(step)}"
        seen.add(step)
        yield from _validate(kind.element, item, path + path_element_text(step))


def _scalar_error(kind: Scalar, value: Json) -> str:
    sort = type(value)
    if kind == "numeric":
        matches, wanted = sort in (int, float), f"numeric (int or float), got {_go_type(value)}"
    elif kind == "string":
        matches, wanted = sort is str, f"string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    elif kind == "boolean":
        matches, wanted = sort is bool, f"boolean, got &{{{_go_value(value)}}}"
    else:
        matches, wanted = sort in (int, float, str, bool), f"any scalar, got &{{{_go_value(value)}}}"
    return "" if matches else f"expected {wanted}"


def _go_type(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"


def _go_value(value: Json) -> str:
    """A value as Go prints it with %v."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go_value(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_value, value))}]"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "<nil>" if value is None else json.dumps(value)


def _go_syntax(value: Json) -> str:
    """A value as Go prints it with %#v."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "interface {}(nil)" if value is None else json.dumps(value)
