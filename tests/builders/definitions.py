"""CustomResourceDefinitions of kinds that have no class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubewright.api.codec import from_tree
from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition

__all__ = ("definition", "definition_tree", "version_tree")

Tree = dict[str, Any]


def version_tree(name: str = "v1", *, schema: Mapping[str, Any] | None = None, **fields: Any) -> Tree:
    """A version `v1` that is served and stored, whose objects have no fields but those of every kind."""
    content = {"type": "object"} if schema is None else dict(schema)
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": content}, **fields}


def definition_tree(
    plural: str = "things",
    group: str = "example.io",
    *,
    kind: str = "",
    versions: Sequence[Mapping[str, Any]] = (),
    schema: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Tree:
    """The definition of things in namespaces, with one version (`version_tree`). `kind` is made from the plural."""
    fields = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind or plural.capitalize()},
        "versions": list(versions) or [version_tree(schema=schema)],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {**fields, **spec},
    }


def definition(plural: str = "things", group: str = "example.io", **options: Any) -> CustomResourceDefinition:
    """The same as an object; `options` are those of `definition_tree`."""
    return from_tree(CustomResourceDefinition, definition_tree(plural, group, **options))
