"""Node: a part of a schema under construction, with the attribute it came from.

A node is a dict, so it can be compared and encoded like the finished schema. `builder.builder` makes nodes,
`builder.structural` names their attribute in errors, and `plain` turns them into the dicts that callers get.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, final

__all__ = ("Node", "Schema", "plain", "subject_of")

Schema: TypeAlias = dict[str, Any]
"""An OpenAPI v3 schema as JSON."""


@final
class Node(dict[str, Any]):
    """A schema and the attribute it describes, such as `CacheSpec.size`."""

    __slots__ = ("subject",)

    def __init__(self, subject: str, schema: Mapping[str, Any]) -> None:
        super().__init__(schema)
        self.subject = subject


def subject_of(schema: Mapping[str, Any], otherwise: str) -> str:
    """The attribute a schema came from, or `otherwise` for one that was not made from a class."""
    return schema.subject if isinstance(schema, Node) else otherwise


def plain(value: Any) -> Any:
    """A deep copy of JSON with plain dicts instead of nodes."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
