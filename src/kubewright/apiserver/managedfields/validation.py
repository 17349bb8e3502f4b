"""Whether an object is what its type says, in the words of the real server.

Server-side apply refuses an intent with a field its schema does not declare, with a value of another sort, or with
two items of the same key: it could not say who owns what. This is not validation; values are not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from kubewright.api.patches import Json
from kubewright.apiserver.managedfields.path_elements import Misfit, item_step, step_text
from kubewright.apiserver.managedfields.types import FieldType, ListType, MapType, Scalar

__all__ = ("misfits",)


def misfits(kind: FieldType, value: Json) -> str:
    """What is wrong with an object, as one text; empty if nothing is."""
    found = [f"{path}: {what}" if path else what for path, what in _misfits(kind, value, "")]
    if len(found) < 2:
        return "".join(found)
    return "errors:" + "".join(f"\n  {line}" for line in found)


def _misfits(kind: FieldType, value: Json, path: str) -> Iterator[tuple[str, str]]:
    sort = type(value)
    if sort is dict and kind.map is not None:
        yield from _in_map(kind.map, value, path)
    elif sort is list and kind.items is not None:
        yield from _in_list(kind.items, value, path)
    elif value is None:
        return
    elif kind.map is not None and (sort in (dict, list) or kind.scalar is None):
        yield path, f"expected map, got &{{{_shown(value)}}}"
    elif kind.scalar is not None:
        what = _scalar_misfit(kind.scalar, value)
        if what:
            yield path, what
    else:
        yield path, f"expected list, got &{{{_shown(value)}}}"


def _in_map(kind: MapType, value: dict[str, Json], path: str) -> Iterator[tuple[str, str]]:
    for name, inner in value.items():
        field = kind.fields.get(name, kind.element)
        if field is None:
            # The real server looks no further in this map.
            yield f"{path}.{name}", "field not declared in schema"
            return
        yield from _misfits(field, inner, f"{path}.{name}")


def _in_list(kind: ListType, items: list[Json], path: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if kind.atomic:
            yield from _misfits(kind.element, item, f"{path}[{index}]")
            continue
        try:
            step = item_step(kind, item)
        except Misfit as misfit:
            yield path, f"element {index}: {misfit}"
            return
        if step in seen:
            yield path, f"duplicate entries for key {step_text(step)}"
        seen.add(step)
        yield from _misfits(kind.element, item, path + step_text(step))


def _scalar_misfit(kind: Scalar, value: Json) -> str:
    sort = type(value)
    if kind == "numeric":
        fits, wanted = sort in (int, float), f"numeric (int or float), got {_go_type(value)}"
    elif kind == "string":
        fits, wanted = sort is str, f"string, got &value.valueUnstructured{{Value:{_source(value)}}}"
    elif kind == "boolean":
        fits, wanted = sort is bool, f"boolean, got &{{{_shown(value)}}}"
    else:
        fits, wanted = sort in (int, float, str, bool), f"any scalar, got &{{{_shown(value)}}}"
    return "" if fits else f"expected {wanted}"


def _go_type(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"


def _shown(value: Json) -> str:
    """A value as the real server prints it for people."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_shown(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_shown, value))}]"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "<nil>" if value is None else json.dumps(value)


def _source(value: Json) -> str:
    """A value as the real server prints it for its own programmers."""
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(name)}:{_source(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_source, value))}}}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "interface {}(nil)" if value is None else json.dumps(value)
