"""Node: one place in a schema under construction, which remembers the attribute it came from.

A node is a dict, so it can be compared and encoded like the finished schema. `schema.builder` makes nodes,
`schema.structural` reads their subject to say in Python's words where a rule is broken, and `plain` turns them into
the dicts that callers get.
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
    """The attribute a schema came from, or the given words for one that was not made from a class."""
    return schema.subject if isinstance(schema, Node) else otherwise


def plain(value: Any) -> Any:
    """A deep copy of JSON with every node an ordinary dict."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
