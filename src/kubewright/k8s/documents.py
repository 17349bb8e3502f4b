"""The OpenAPI documents behind the generated kinds, for those who need more than types.

Strategic merge and server-side apply want merge keys and list types, `explain` wants descriptions, an API
server wants to serve the documents themselves. They are package data, compressed: one file per
group-version under `openapi/`, each component schema stored once, in the file of the module its class is
in. A file is read when first asked for, and kept.

What these functions return is shared: read it, do not change it.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from kubewright.api.codec import decode_tree
from kubewright.api.kinds import GroupVersionKind
from kubewright.errors import ConfigError
from kubewright.k8s.index import MODULES

__all__ = (
    "component",
    "component_name",
    "discovery",
    "field_extensions",
    "field_schema",
    "group_versions",
    "module_of",
    "openapi_document",
    "resolve",
    "schema_of",
)

_REFERENCE: Final = "#/components/schemas/"
_VERSION: Final = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?")
_PACKAGE: Final = "kubewright.k8s."


def group_versions() -> tuple[str, ...]:
    """Every group-version there is a document for, such as `apps/v1`; the core group's is `v1`."""
    return tuple(MODULES)


@cache
def openapi_document(group_version: str) -> Mapping[str, Any]:
    """The document a server of this version serves at `/openapi/v3/apis/<group-version>`."""
    if group_version not in MODULES:
        raise ConfigError(
            f"{group_version!r} is no built-in group-version; write it like apps/v1, or v1 for the core group"
        )
    stored = _stored(MODULES[group_version][0])
    schemas = {name: schema for name, schema in stored["schemas"].items() if name not in stored["lent"]}
    for module, names in stored["borrowed"].items():
        lender = _stored(module)["schemas"]
        schemas.update((name, lender[name]) for name in names)
    document = dict(stored["document"])
    document["components"] = {"schemas": dict(sorted(schemas.items())), **document["components"]}
    return document


@cache
def discovery() -> tuple[Mapping[str, Any], ...]:
    """The items of aggregated discovery (`APIGroupDiscovery`), the core group first."""
    return tuple(_stored("discovery")["items"])


def component(name: str) -> Mapping[str, Any] | None:
    """A component schema by its full name, such as `io.k8s.api.core.v1.PodSpec`."""
    module = module_of(name)
    if not any(module == known for known, _ in MODULES.values()) and module != "meta.v1":
        return None
    found: Mapping[str, Any] | None = _stored(module)["schemas"].get(name)
    return found


def component_name(model: type[object]) -> str | None:
    """The full name of the schema a generated class was made from; None for any other class."""
    if not model.__module__.startswith(_PACKAGE):
        return None
    return _component_names(model.__module__.removeprefix(_PACKAGE)).get(model.__name__)


def schema_of(gvk: GroupVersionKind) -> Mapping[str, Any] | None:
    """The schema of a built-in kind, with references to others inside; `resolve` follows one."""
    module, kinds = MODULES.get(gvk.api_version, ("", ()))
    return component(_component_names(module)[gvk.kind]) if gvk.kind in kinds else None


def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, or the one it refers to with what stands beside the reference laid over it."""
    whole = schema.get("allOf", ())
    named = schema if "$ref" in schema else whole[0] if len(whole) == 1 else {}
    reference = str(named.get("$ref", "")).removeprefix(_REFERENCE)
    if not reference:
        return schema
    beside = {name: value for name, value in schema.items() if name not in ("$ref", "allOf")}
    return {**resolve(component(reference) or {}), **beside}


def field_schema(gvk: GroupVersionKind, path: str) -> Mapping[str, Any] | None:
    """The schema of a field by its path on the wire, such as `spec.template.spec.containers.ports`.

    A step into a list is a step into its items; a step into a map is a step into its values, whatever the key.
    """
    schema = schema_of(gvk)
    for step in path.split(".") if path else ():
        if schema is None:
            return None
        schema = _inside(resolve(schema), step)
    return None if schema is None else resolve(schema)


def field_extensions(gvk: GroupVersionKind, path: str) -> Mapping[str, Any]:
    """Everything `x-kubernetes-...` said about a field: list type and map keys, merge key, patch strategy."""
    schema = field_schema(gvk, path) or {}
    return {name: value for name, value in schema.items() if name.startswith("x-kubernetes-")}


def module_of(name: str) -> str:
    """The module, within a package of generated kinds, that holds the class of a component: `apps.v1`."""
    *_, package, version, _class = ("", "", *name.split("."))
    # RawExtension and its like are of no version.
    if not package or (name.startswith("io.k8s.apimachinery.") and not _VERSION.fullmatch(version)):
        return "meta.v1"
    return f"{package}.{version}"


def _inside(schema: Mapping[str, Any], step: str) -> Mapping[str, Any] | None:
    while "items" in schema:
        schema = resolve(schema["items"])
    properties = schema.get("properties", {})
    if step in properties:
        return dict(properties[step])
    values = schema.get("additionalProperties")
    return values if isinstance(values, Mapping) else None


@cache
def _component_names(module: str) -> Mapping[str, str]:
    return {name.rpartition(".")[2]: name for name in _stored(module)["schemas"]}


@cache
def _stored(name: str) -> Mapping[str, Any]:
    file = resources.files("kubewright.k8s") / "openapi" / f"{name}.json.gz"
    tree: Mapping[str, Any] = decode_tree(gzip.decompress(file.read_bytes()))
    return tree
