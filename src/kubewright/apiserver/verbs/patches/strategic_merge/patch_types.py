"""The Go types of built-in kinds as strategic merge sees them: patch strategies and merge keys of their fields.

Read from the OpenAPI documents of the built-in kinds, which have the struct tags as extensions. Custom resources have
no such tags, hence no strategic merge.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.verbs.patches.strategic_merge.merge_errors import failed
from kubewright.k8s.documents import component, resolve, schema_of
from kubewright.k8s.index import MODULES

__all__ = ("PatchField", "PatchType", "type_of_kind")

_REFERENCE: Final = "#/components/schemas/"


class PatchField(NamedTuple):
    """One field of a struct."""

    type: PatchType
    """The type of its value; for a list, of its elements."""
    strategy: str
    """`merge`, `replace` or empty; `retainKeys` matters only to the client that makes the patch."""
    merge_key: str


@final
class PatchType:
    """One type: a struct with fields, a map, or anything else, which has nothing to merge."""

    def __init__(self, schema: Mapping[str, Any], name: str) -> None:
        self._schema = schema
        self.name = name
        self.kind = _kind(schema, name)
        self._members: dict[str, PatchField] | None = None

    def member(self, key: str) -> PatchField:
        """A field by its JSON name; if there is none, Go ignores the case."""
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
def type_of_kind(gvk: GroupVersionKind) -> PatchType | None:
    """The struct of a built-in kind; None for kinds without strategic merge."""
    schema = schema_of(gvk)
    if schema is None:
        # Kinds of subresources, such as Scale, are in the documents but in no list of kinds.
        module = MODULES.get(gvk.api_version, ("", ()))[0]
        schema = component(f"io.k8s.api.{module}.{gvk.kind}") if module else None
    return None if schema is None else PatchType(schema, gvk.kind)


@cache
def _component_type(name: str) -> PatchType:
    return PatchType(resolve(component(name) or {}), name.rpartition(".")[2])


def _member(schema: Mapping[str, Any]) -> PatchField:
    strategies = str(schema.get("x-kubernetes-patch-strategy", "")).split(",")
    strategy = next((one for one in strategies if one != "retainKeys"), "")
    type_ = _type(schema)
    if "items" in type_._schema and type_.kind == "slice":
        type_ = _type(type_._schema["items"])
    return PatchField(type_, strategy, str(schema.get("x-kubernetes-patch-merge-key", "")))


def _type(schema: Mapping[str, Any]) -> PatchType:
    whole = schema.get("allOf", ())
    named = schema if "$ref" in schema else whole[0] if len(whole) == 1 else {}
    reference = str(named.get("$ref", "")).removeprefix(_REFERENCE)
    return _component_type(reference) if reference else PatchType(schema, "")


def _kind(schema: Mapping[str, Any], name: str) -> str:
    if schema.get("type") == "array":
        return "slice"
    if "properties" in schema:
        return "struct"
    if "additionalProperties" in schema:
        return "map"
    # A struct of any JSON, such as JSONSchemaProps.default, has a name but no properties.
    return "struct" if name else str(schema.get("type", "string"))
