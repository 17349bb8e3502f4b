"""CustomResourceDefinitions as OpenAPI documents, as if a server had them installed.

Each version of each CRD becomes part of an OpenAPI document of its group-version, and a `Kind` with everything a CRD
has that discovery does not: the scale paths, the storage version, deprecation. `models.modules` then need not know
where its documents come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubewright.api.codec import from_tree
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.model import Model, field
from kubewright.errors import ConfigError, DecodeError
from kubewright.generate.models.openapi import Documents, Kind

__all__ = ("crd_documents",)

_GVK: Final = "x-kubernetes-group-version-kind"


class Names(Model):
    """The names of the kind."""

    kind: str
    plural: str
    singular: str | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class ScalePaths(Model):
    """The JSON paths of the scale subresource."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str | None = None


class Subresources(Model):
    """The subresources of a version."""

    status: dict[str, Any] | None = None
    scale: ScalePaths | None = None


class VersionSchema(Model):
    """The schema as it is."""

    structural: dict[str, Any] | None = field(default=None, name="openAPIV3Schema")


class Version(Model):
    """One version of the kind."""

    name: str
    schema: VersionSchema | None = None
    subresources: Subresources | None = None
    storage: bool = True
    deprecated: bool = False
    deprecation_warning: str | None = None


class DefinitionSpec(Model):
    """The spec of a CRD."""

    group: str
    names: Names
    versions: list[Version]
    scope: str = "Namespaced"


class CustomResourceDefinition(Model):
    """Only the fields that classes are made from. Not the built-in class, which this generator itself makes."""

    spec: DefinitionSpec


def crd_documents(manifests: Iterable[tuple[str, Any]]) -> Documents:
    """From pairs of a manifest's source and the manifest; a `List` is unpacked, other kinds are an error."""
    schemas: dict[str, dict[str, Any]] = {}
    kinds: list[Kind] = []
    for where, crd in _definitions(manifests):
        if not crd.names.kind.isidentifier():
            raise ConfigError(f"{where}: spec.names.kind is {crd.names.kind!r}; a kind is one CamelCase word")
        for version in crd.versions:
            kind = _kind(crd, version)
            if any(kind.gvk == known.gvk for known in kinds):
                raise ConfigError(f"{where}: {kind.gvk} is defined twice; pass each CRD once")
            kinds.append(kind)
            components = schemas.setdefault(kind.gvk.api_version, {})
            components[kind.schema] = _schema(where, version, kind.gvk)
    if not kinds:
        raise ConfigError("there is no CustomResourceDefinition in the files; pass at least one")
    documents = {
        group_version: {"openapi": "3.0.0", "paths": {}, "components": {"schemas": components}}
        for group_version, components in sorted(schemas.items())
    }
    return Documents(documents=documents, kinds=tuple(kinds))


def _definitions(manifests: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, DefinitionSpec]]:
    for where, manifest in manifests:
        if not isinstance(manifest, Mapping):
            raise ConfigError(f"{where}: a CustomResourceDefinition is expected; pass its YAML or JSON manifest")
        kind, api_version = manifest.get("kind"), manifest.get("apiVersion")
        if kind == "List":
            items = manifest.get("items")
            if not isinstance(items, list):
                raise ConfigError(f"{where}: items is not a list; correct the manifest")
            yield from _definitions((f"{where}, item {number}", item) for number, item in enumerate(items, 1))
            continue
        if kind != "CustomResourceDefinition":
            raise ConfigError(f"{where}: kind is {kind!r}; only a CustomResourceDefinition has a schema")
        if api_version != "apiextensions.k8s.io/v1":
            raise ConfigError(f"{where}: apiVersion is {api_version!r}; write it as apiextensions.k8s.io/v1")
        try:
            yield where, from_tree(CustomResourceDefinition, manifest).spec
        except (DecodeError, UnicodeEncodeError) as exc:  # YAML can write half of a surrogate pair
            raise ConfigError(f"{where}: {exc}; correct the manifest") from exc


def _kind(crd: DefinitionSpec, version: Version) -> Kind:
    subresources = version.subresources or Subresources()
    scale = subresources.scale
    paths = (scale.spec_replicas_path, scale.status_replicas_path, scale.label_selector_path) if scale else ()
    present = {"scale": scale, "status": subresources.status}
    return Kind(
        gvk=GroupVersionKind(crd.group, version.name, crd.names.kind),
        # The server's name of a component: the labels of the group in reverse order.
        schema=".".join((*reversed(crd.group.split(".")), version.name, crd.names.kind)),
        plural=crd.names.plural,
        singular=crd.names.singular or "",
        namespaced=crd.scope != "Cluster",
        short_names=tuple(crd.names.short_names or ()),
        categories=tuple(crd.names.categories or ()),
        subresources=tuple(name for name, value in present.items() if value is not None),
        scale=tuple(path.removeprefix(".") for path in paths if path),
        storage=version.storage,
        deprecated=(version.deprecation_warning or True) if version.deprecated else False,
    )


def _schema(where: str, version: Version, gvk: GroupVersionKind) -> dict[str, Any]:
    structural = version.schema.structural if version.schema else None
    if structural is None:
        raise ConfigError(
            f"{where}: version {gvk.version} has no schema.openAPIV3Schema; without it there are no types"
        )
    properties = structural.get("properties")
    metadata = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    return {
        **structural,
        "type": "object",
        "properties": {**(properties if isinstance(properties, Mapping) else {}), "metadata": metadata},
        _GVK: [{"group": gvk.group, "version": gvk.version, "kind": gvk.kind}],
    }
