"""CustomResourceDefinitions from classes.

One document for one kind, from one class per version. The keywords of the class statement (`api.resource.Definition`)
become names, scope, subresources and columns; `schema.builder` makes the schema. The document is plain JSON and the
same every time. This writes no file and calls no server; `kubewright generate crds`, `install_crds` and tests call it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kubewright.api.fields import Field
from kubewright.api.names import dns1035_label_errors, dns1123_subdomain_errors
from kubewright.api.resource import Column, Definition, KubeObject, Scale, definition_of
from kubewright.errors import SchemaError
from kubewright.schema.builder.builder import schema_for_kind
from kubewright.schema.builder.lookup import json_path, schema_at
from kubewright.schema.builder.markers import apply
from kubewright.schema.builder.node import Node, Schema

__all__ = ("crd_file_name", "crd_for")

_COLUMN_TYPES: Final = ("string", "integer", "number", "boolean", "date")
_MAX_SELECTABLE_FIELDS: Final = 8


def crd_for(
    *kinds: type[KubeObject], conversion: Mapping[str, Any] | None = None, max_description: int | None = None
) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind, given the class of each of its versions.

    `conversion` is the value of `spec.conversion`, as `webhooks.registration.manifests` makes it; without it the server
    only changes the apiVersion of an object. Descriptions are cut at `max_description` characters; with 0 there are
    none.
    """
    definitions = [_definition(kind) for kind in kinds]
    _check_versions(definitions)
    first = definitions[0]
    ordered = sorted(zip(definitions, kinds, strict=True), key=lambda pair: pair[0].gvk.version)
    versions = [_version(definition, kind) for definition, kind in ordered]
    if max_description is not None:
        for version in versions:
            _shorten(version["schema"]["openAPIV3Schema"], max_description)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": _metadata(definitions),
        "spec": {
            **({"conversion": dict(conversion)} if conversion else {}),
            "group": first.gvk.group,
            "names": _names(definitions),
            "scope": "Namespaced" if first.namespaced else "Cluster",
            "versions": versions,
        },
    }


def crd_file_name(crd: Mapping[str, Any]) -> str:
    """The name of the file of a CRD: `cache.example.io_caches.yaml`."""
    return f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml"


def _metadata(definitions: Sequence[Definition]) -> dict[str, Any]:
    """The CRD's own metadata, merged from all versions."""
    first = definitions[0]
    metadata: dict[str, Any] = {}
    for name in ("annotations", "labels"):
        words = {key: word for item in definitions for key, word in getattr(item, f"crd_{name}").items()}
        if words:
            metadata[name] = dict(sorted(words.items()))
    metadata["name"] = f"{first.plural}.{first.gvk.group}"
    return metadata


def _definition(kind: type[KubeObject]) -> Definition:
    definition = definition_of(kind)
    if definition.partial or definition.metadata_only or definition.needs_discovery:
        raise SchemaError(
            f"{kind.__name__}: the class knows only a part of its kind, and a CRD made from it would drop the rest; "
            "use the full class"
        )
    group = definition.gvk.group
    if "." not in group or dns1123_subdomain_errors(group):
        raise SchemaError(
            f"{kind.__name__}: the group {group!r} is no domain; give a custom resource one of your own, "
            'as in group="cache.example.io"'
        )
    if group.endswith((".k8s.io", ".kubernetes.io")):
        raise SchemaError(
            f"{kind.__name__}: the group {group} is reserved for the Kubernetes project; use a domain of your own"
        )
    if problems := dns1035_label_errors(definition.gvk.version):
        raise SchemaError(
            f"{kind.__name__}: the version {definition.gvk.version!r} cannot be used; write it like v1 or v1alpha1: "
            f"{problems[0]}"
        )
    return definition


def _check_versions(definitions: Sequence[Definition]) -> None:
    """Several classes are one kind only if they agree on everything but the version."""
    if not definitions:
        raise SchemaError("crd_for needs at least one class; pass the class of the kind")
    first = definitions[0]
    kind, versions = first.kind, [definition.gvk.version for definition in definitions]
    for other in definitions[1:]:
        for fact in ("group", "kind"):
            if getattr(other.gvk, fact) != getattr(first.gvk, fact):
                raise SchemaError(f"{kind}: {first.gvk} and {other.gvk} are different kinds; make one CRD for each")
        for fact in ("plural", "singular", "list_kind", "namespaced"):
            if getattr(other, fact) != getattr(first, fact):
                raise SchemaError(
                    f"{kind}: versions {first.gvk.version} and {other.gvk.version} differ in {fact}; a kind has one"
                )
    for fact in ("short_names", "categories"):
        declaring = [definition for definition in definitions if getattr(definition, fact)]
        for other in declaring[1:]:
            if getattr(other, fact) != getattr(declaring[0], fact):
                raise SchemaError(
                    f"{kind}: versions {declaring[0].gvk.version} and {other.gvk.version} differ in {fact}; "
                    "declare it in one"
                )
    if len(set(versions)) != len(versions):
        raise SchemaError(f"{kind}: two classes say version {versions[0]}; give each its own")
    stored = [definition.gvk.version for definition in definitions if definition.storage]
    if len(stored) != 1:
        raise SchemaError(
            f"{kind}: exactly one version is stored, not {', '.join(stored) or 'none'}; say storage=False on the others"
        )
    if not any(definition.served for definition in definitions):
        raise SchemaError(f"{kind}: no version is served; drop served=False from one")


def _names(definitions: Sequence[Definition]) -> dict[str, Any]:
    """The names of the kind; one version is enough to declare short names and categories."""
    first = definitions[0]
    names: dict[str, Any] = {
        "kind": first.kind,
        "listKind": first.list_kind,
        "plural": first.plural,
        "singular": first.singular,
    }
    for name, fact in (("shortNames", "short_names"), ("categories", "categories")):
        if words := next(filter(None, (getattr(definition, fact) for definition in definitions)), None):
            names[name] = list(words)
    return names


def _version(definition: Definition, kind: type[KubeObject]) -> dict[str, Any]:
    schema = schema_for_kind(kind)
    if definition.object_names is not None:
        schema["properties"]["metadata"]["properties"] = {"name": _object_names(definition.object_names, kind.__name__)}
    version: dict[str, Any] = {
        "name": definition.gvk.version,
        "served": definition.served,
        "storage": definition.storage,
        "schema": {"openAPIV3Schema": schema},
    }
    if definition.deprecated:
        version["deprecated"] = True
        if isinstance(definition.deprecated, str):
            version["deprecationWarning"] = definition.deprecated
    subresources: dict[str, Any] = {"status": {}} if definition.status else {}
    if definition.scale is not None:
        subresources["scale"] = _scale(definition.scale, schema, kind.__name__)
    if subresources:
        version["subresources"] = subresources
    if definition.columns:
        version["additionalPrinterColumns"] = [
            _column(title, column, schema, kind.__name__) for title, column in definition.columns.items()
        ]
    if definition.selectable_fields:
        version["selectableFields"] = _selectable(definition.selectable_fields, schema, kind.__name__)
    return version


def _shorten(schema: dict[str, Any], max_length: int) -> None:
    """Cut the descriptions of a schema, in place; a property may itself be called description."""
    text = schema.pop("description", "")
    if len(text) > max_length:
        text = f"{text[: max_length - 3].rpartition(' ')[0]}..." if max_length > 3 else ""
    if text:
        schema["description"] = text
    children = [schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()]
    for child in children:
        if isinstance(child, dict):
            _shorten(child, max_length)


def _object_names(marker: Field, subject: str) -> dict[str, Any]:
    """The schema of `metadata.name`, the only part of metadata for which the server accepts constraints."""
    allowed = ("description", "enum", "format", "max_length", "min_length", "pattern")
    for option in msgspec.structs.fields(Field):
        if option.name not in allowed and getattr(marker, option.name) != option.default:
            raise SchemaError(f"{subject}: object_names says {option.name}; a name has only {', '.join(allowed)}")
    node = Node(f"{subject}: object_names", {"type": "string"})
    apply(marker, node)
    return dict(node)


def _scale(scale: Scale, schema: Schema, name: str) -> dict[str, str]:
    subject = f"{name}: scale"
    paths = {"specReplicasPath": json_path(scale.spec_path), "statusReplicasPath": json_path(scale.status_path)}
    for path, root in zip(paths.values(), (".spec.", ".status."), strict=True):
        if not path.startswith(root):
            raise SchemaError(
                f"{subject}: {path} must be below {root[:-1]}; name the field with the number of replicas"
            )
        if schema_at(schema, path, subject=subject).get("type") != "integer":
            raise SchemaError(f"{subject}: {path} is no integer; name the field with the number of replicas")
    if scale.selector_path is not None:
        path = json_path(scale.selector_path)
        if (
            not path.startswith((".spec.", ".status."))
            or schema_at(schema, path, subject=subject).get("type") != "string"
        ):
            raise SchemaError(
                f"{subject}: {path} is no string below .spec or .status; name the field with the selector"
            )
        paths["labelSelectorPath"] = path
    return paths


def _column(title: str, column: Column, schema: Schema, name: str) -> dict[str, Any]:
    subject = f"{name}: column {title}"
    found = schema_at(schema, column.path, subject=subject)
    if column.type is not None and column.type not in _COLUMN_TYPES:
        raise SchemaError(f"{subject}: {column.type} is no column type; use one of {', '.join(_COLUMN_TYPES)}")
    written: dict[str, Any] = {
        "name": title,
        "type": column.type or _column_type(found),
        "jsonPath": json_path(column.path),
    }
    if column.description is not None:
        written["description"] = column.description
    if column.format is not None:
        written["format"] = column.format
    if column.priority:
        written["priority"] = column.priority
    return written


def _column_type(schema: Schema) -> str:
    """How to print a field: a time as an age, and as text whatever has no column type of its own."""
    if schema.get("format") == "date-time":
        return "date"
    kind = schema.get("type")
    return kind if kind in _COLUMN_TYPES else "string"


def _selectable(paths: Sequence[str], schema: Schema, name: str) -> list[dict[str, str]]:
    if len(paths) > _MAX_SELECTABLE_FIELDS:
        raise SchemaError(
            f"{name}: a kind has at most {_MAX_SELECTABLE_FIELDS} selectable fields, not {len(paths)}; drop some"
        )
    written = []
    for path in paths:
        subject = f"{name}: selectable field {path}"
        found = schema_at(schema, path, subject=subject)
        if json_path(path).startswith(".metadata.") or found.get("type") not in ("string", "boolean", "integer"):
            raise SchemaError(f"{subject}: it is no string, boolean or integer of the kind's own; choose another field")
        written.append({"jsonPath": json_path(path)})
    return written
