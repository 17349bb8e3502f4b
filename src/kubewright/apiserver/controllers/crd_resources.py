"""The resources a CustomResourceDefinition serves: one for each served version.

Pure: from the definition to what the catalog holds. `crds` calls it when a definition is established or changes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.apiextensions.resource_strategy import Converter, CustomResourceStrategy
from kubewright.apiserver.apiextensions.versions import CustomVersion, versions_of
from kubewright.apiserver.kinds.resources import Resource, Subresource, Tree
from kubewright.apiserver.managedfields.types import FieldType, type_of_schema
from kubewright.apiserver.wire.responses import encode_json

__all__ = ("resources_of",)

_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_READ_WRITE: Final = ("get", "patch", "update")
_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")


def resources_of(crd: Tree, converter: Converter | None, *, compiled: bool = False) -> list[Resource]:
    """The resources of the versions a definition serves.

    With `compiled` they are ready for requests. Otherwise the first request compiles what it needs of the schema, on
    the event loop: most definitions of a cluster are never used.
    """
    versions = versions_of(crd)
    storage = next(version for version in versions if version.storage)
    types = {
        version.gvk.api_version: type_of_schema(version.schema, preserve_unknown=version.preserves_unknown)
        for version in versions
    }
    return [
        _resource(crd, version, storage, converter, types, compiled=compiled) for version in versions if version.served
    ]


def _resource(
    crd: Tree,
    version: CustomVersion,
    storage: CustomVersion,
    converter: Converter | None,
    types: Mapping[str, FieldType],
    *,
    compiled: bool,
) -> Resource:
    names = crd["spec"]["names"]
    kind, storage_version = version.gvk, storage.gvk.api_version
    strategy = CustomResourceStrategy(
        version, kind=kind, storage_version=storage_version, converter=converter, field_types=types
    )
    if compiled:
        strategy.compile()
    subresources = {}
    if version.has_status:
        subresources["status"] = Subresource("status", kind, _READ_WRITE)
    if version.scale is not None:
        subresources["scale"] = Subresource("scale", _SCALE, _READ_WRITE)
    return Resource(
        kind=kind,
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=version.namespaced,
        verbs=_VERBS,
        strategy=strategy,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        subresources=subresources,
        storage_version=storage_version,
        schema_id=_schema_id(version),
        storage_schema=_schema_id(storage),
        custom=True,
        columns=version.columns,
        deprecation=version.warning,
        scale=version.scale,
    )


def _schema_id(version: CustomVersion) -> int:
    """A number for the bytes written under this schema: the same schema, the same number."""
    return 2 + zlib.crc32(encode_json([version.gvk.api_version, version.schema]))
