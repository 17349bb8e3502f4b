"""Which columns a kind has: name, type, format, priority and what they mean.

Those of built-in kinds are package data (`columns.json.gz`), as kube-apiserver sends them: under `kinds` a row of
name, type, format, priority and the place of its text in `descriptions` for each column. The two columns under the
empty name are those of every other kind. Those of a custom resource are in its definition. Priority 0 is always shown,
anything above only on request (`kubectl get -o wide`).
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from kubewright.api.codec import decode_tree
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.printers.custom import readable_columns

__all__ = ("column_definitions", "scale_columns")

_OTHERS: Final = ""


def column_definitions(resource: Resource) -> list[dict[str, Any]]:
    """The columns of a resource. The list is the caller's, what is in it is shared."""
    if not resource.custom:
        known = _builtin()
        return list(known.get(resource.kind.kind) or known[_OTHERS])
    found = [_builtin()[_OTHERS][0]]
    for column in readable_columns(resource.columns):
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
    name, created = _builtin()[_OTHERS]
    texts = ("Number of desired replicas", "Number of actual replicas")
    numbers = [{**column, "description": text} for column, text in zip(found[1:3], texts, strict=True)]
    return [name, *numbers, {**created, "name": "Age"}]


def _definition(name: str, kind: str, form: str, priority: int, description: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "format": form, "description": description, "priority": priority}


@cache
def _builtin() -> Mapping[str, list[dict[str, Any]]]:
    file = resources.files(__package__) / "columns.json.gz"
    stored = decode_tree(gzip.decompress(file.read_bytes()))
    texts = stored["descriptions"]
    return {
        kind: [_definition(name, type_, form, priority, texts[text]) for name, type_, form, priority, text in columns]
        for kind, columns in stored["kinds"].items()
    }
