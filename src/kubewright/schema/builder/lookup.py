"""The schema at a JSONPath, for printer columns, scale paths and selectable fields.

Parses the paths Kubernetes uses there: `.status.ready`, `.metadata.labels['app']`, `.status.conditions[?(@.type==
"Ready")].status`. A path through a part that preserves unknown fields leads to the empty schema. `generate.crds` calls
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.errors import SchemaError
from kubewright.schema.builder.node import Schema

__all__ = ("json_path", "schema_at")

_STEP: Final = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\\])+)        # .name, with \. for a dot in it
      | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]
      | (?P<items>\[(?:\*|-?\d*:?-?\d*|\?\(.*?\))\])""",
    re.VERBOSE,
)

# The schema of a kind has only `type: object` for metadata; the server knows its fields.
_DATE_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        **{
            name: {"type": "string"}
            for name in ("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink")
        },
        **{name: {"type": "integer"} for name in ("generation", "deletionGracePeriodSeconds")},
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _DATE_TIME),
        **{name: {"type": "object", "additionalProperties": {"type": "string"}} for name in ("labels", "annotations")},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "ownerReferences": {"type": "array", "items": {}},
        "managedFields": {"type": "array", "items": {}},
    },
}


def json_path(path: str) -> str:
    """A path with the leading dot that the server requires; people may write `spec.size`."""
    return path if path.startswith((".", "[")) else f".{path}"


def schema_at(schema: Schema, path: str, *, subject: str) -> Schema:
    """The schema of a kind at a path; a SchemaError, beginning with `subject`, if there is none."""
    current, seen = schema, ""
    for name in _steps(json_path(path), subject):
        if name == "metadata" and not seen:
            current = _METADATA
        elif (child := _child(current, name)) is not None:
            current = child
        elif current.get("x-kubernetes-preserve-unknown-fields") or not current:
            return {}
        else:
            known = ", ".join(current.get("properties", ())) or "no fields"
            raise SchemaError(f"{subject}: {path} does not exist: {seen or 'the object'} has {known}; correct the path")
        seen += "[]" if name is None else f".{name}"
    return current


def _child(schema: Schema, name: str | None) -> Schema | None:
    if name is None:
        items: Schema | None = schema.get("items")
        return items
    found: Schema | None = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
    return found


def _steps(path: str, subject: str) -> Iterator[str | None]:
    """The names along a path; None for a step into a list."""
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise SchemaError(f"{subject}: {path} is no JSONPath at {path[position:]!r}; write it as .spec.size")
        position = match.end()
        name = match["name"] or match["key"]
        yield re.sub(r"\\(.)", r"\1", name) if name is not None else None
