"""Where a merge is: the struct, map or list of the kind, and how its fields want to be merged.

Read from the OpenAPI documents of the built-in kinds, which carry the tags of the Go structs; each component is worked
out once. Custom resources have no such tags, hence no strategic merge.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.verbs.patches.strategic_merge.wording import failed
from kubewright.k8s.documents import component, resolve, schema_of
from kubewright.k8s.index import MODULES

__all__ = ("Member", "Place", "place_of_kind")

_REFERENCE: Final = "#/components/schemas/"


class Member(NamedTuple):
    """One field of a struct."""

    inside: Place
    """Where its value is; for a list, where its elements are."""
    strategy: str
    """`merge`, `replace` or empty; retainKeys asks nothing of the server."""
    merge_key: str


@final
class Place:
    """A type in the kind: a struct with members, a map, or anything else, which has nothing to merge."""

    def __init__(self, schema: Mapping[str, Any], name: str) -> None:
        self._schema = schema
        self.name = name
        self.kind = _kind(schema, name)
        self._members: dict[str, Member] | None = None

    def member(self, key: str) -> Member:
        """A field by its name in JSON, which Go matches without regard to case if need be."""
        if self.kind != "struct":
            raise failed(f"merging an object in json but data type is not struct, instead is: {self.kind}")
        if self._members is None:
            self._members = {name: _member(part) for name, part in self._schema.get("properties", {}).items()}
        found = self._members.get(key)
        if found is None:
            folded = key.casefold()
            found = next((member for name, member in self._members.items() if name.casefold() == folded), None)
        if found is None:
            raise failed(f'unable to find api field in struct {self.name} for the json field "{key}"')
        return found


@cache
def place_of_kind(gvk: GroupVersionKind) -> Place | None:
    """The struct of a built-in kind; None for what has no strategic merge."""
    schema = schema_of(gvk)
    if schema is None:
        # Kinds of subresources, such as Scale, are in the documents but in no list of kinds.
        module = MODULES.get(gvk.api_version, ("", ()))[0]
        schema = component(f"io.k8s.api.{module}.{gvk.kind}") if module else None
    return None if schema is None else Place(schema, gvk.kind)


@cache
def _component_place(name: str) -> Place:
    return Place(resolve(component(name) or {}), name.rpartition(".")[2])


def _member(schema: Mapping[str, Any]) -> Member:
    strategies = str(schema.get("x-kubernetes-patch-strategy", "")).split(",")
    strategy = next((one for one in strategies if one != "retainKeys"), "")
    inside = _place(schema)
    if "items" in inside._schema and inside.kind == "slice":
        inside = _place(inside._schema["items"])
    return Member(inside, strategy, str(schema.get("x-kubernetes-patch-merge-key", "")))


def _place(schema: Mapping[str, Any]) -> Place:
    whole = schema.get("allOf", ())
    named = schema if "$ref" in schema else whole[0] if len(whole) == 1 else {}
    reference = str(named.get("$ref", "")).removeprefix(_REFERENCE)
    return _component_place(reference) if reference else Place(schema, "")


def _kind(schema: Mapping[str, Any], name: str) -> str:
    if schema.get("type") == "array":
        return "slice"
    if "properties" in schema:
        return "struct"
    if "additionalProperties" in schema:
        return "map"
    # A struct that holds any JSON has a name and no fields that a document could list.
    return "struct" if name else str(schema.get("type", "string"))
