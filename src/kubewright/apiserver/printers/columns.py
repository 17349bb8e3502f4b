"""The column definitions of a kind: name, type, format, priority and description.

Those of built-in kinds are package data (`columns.json.gz`), as kube-apiserver sends them: for each column a row of
name, type, format, priority and the index of its text in `descriptions`. The two columns of the empty kind are those
of kinds without a printer. Those of a custom resource come from its CRD. kubectl always shows priority 0, and higher
ones with `-o wide`.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from kubewright.api.codec import decode_tree
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.printers.custom import valid_columns

__all__ = ("column_definitions", "scale_columns")

_DEFAULT_KIND: Final = ""


def column_definitions(resource: Resource) -> list[dict[str, Any]]:
    """The columns of a resource. The caller may change the list, but not the columns."""
    if not resource.custom:
        known = _builtin()
        return list(known.get(resource.kind.kind) or known[_DEFAULT_KIND])
    found = [_builtin()[_DEFAULT_KIND][0]]
    for column in valid_columns(resource.columns):
        meaning = f"Custom resource definition column (in JSONPath format): {column.json_path}"
        found.append(
            _definition(column.name, column.type, column.format, column.priority, column.description or meaning)
        )
    return found


def scale_columns(resource: Resource) -> list[dict[str, Any]]:
    """The columns of the Scale of a resource."""
    found = _builtin()["Scale"]
    if not resource.custom:
        return list(found)
    name, created = _builtin()[_DEFAULT_KIND]
    texts = ("Number of desired replicas", "Number of actual replicas")
    numbers = [{**column, "description": text} for column, text in zip(found[1:3], texts, strict=True)]
    return [name, *numbers, {**created, "name": "Age"}]


def _definition(name: str, kind: str, format_: str, priority: int, description: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "format": format_, "description": description, "priority": priority}


@cache
def _builtin() -> Mapping[str, list[dict[str, Any]]]:
    file = resources.files(__package__) / "columns.json.gz"
    stored = decode_tree(gzip.decompress(file.read_bytes()))
    texts = stored["descriptions"]
    return {
        kind: [
            _definition(name, type_, format_, priority, texts[text]) for name, type_, format_, priority, text in columns
        ]
        for kind, columns in stored["kinds"].items()
    }
