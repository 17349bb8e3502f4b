"""The parameter objects of a policy binding: by name or by selector, namespaced or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from kubewright.api.kinds import GroupVersion, GroupVersionKind
from kubewright.api.selectors import Selector
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Resource, Tree, key_of
from kubewright.apiserver.storage.store import Entry, Store

__all__ = ("ConfigurationError", "Parameters")


@final
class ConfigurationError(Exception):
    """A policy or a binding refers to something that does not exist."""


@final
class Parameters:
    """Finds parameter objects in the store."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog

    def resource(self, kind: Mapping[str, Any]) -> Resource:
        """The resource of a `paramKind`."""
        version = GroupVersion.parse(str(kind["apiVersion"]))
        wanted = GroupVersionKind(version.group, version.version, str(kind["kind"]))
        found = self._catalog.of_kind(wanted)
        if found is None:
            described = f"{version.api_version if version.group else '/' + version.version}, Kind={wanted.kind}"
            raise ConfigurationError(f"failed to find resource referenced by paramKind: '{described}'")
        return found

    async def collect(
        self, kind: Mapping[str, Any] | None, reference: Mapping[str, Any] | None, namespace: str
    ) -> list[Tree | None]:
        """The parameters a policy is evaluated with, one at a time; a policy without parameters has one, None."""
        if kind is None or reference is None:
            return [None]
        resource = self.resource(kind)
        where = self._namespace(resource, reference, namespace)
        entries = self._entries(resource, reference, where)
        found: list[Tree | None] = [await resource.tree_of(entry) for entry in entries]
        if reference.get("selector") is not None:
            selector = Selector.from_structured(reference["selector"])
            found = [tree for tree in found if tree and selector.matches(tree["metadata"].get("labels") or {})]
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    def _namespace(self, resource: Resource, reference: Mapping[str, Any], namespace: str) -> str:
        named = str(reference.get("namespace") or "")
        if not resource.namespaced:
            if named:
                raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            return ""
        if not named and not namespace:
            raise ConfigurationError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        return named or namespace

    def _entries(self, resource: Resource, reference: Mapping[str, Any], namespace: str) -> list[Entry]:
        table = self._store.table(resource.table)
        name = reference.get("name")
        if name:
            entry = table.get(key_of(namespace, str(name)))
            return [] if entry is None else [entry]
        return list(table.entries(namespace or None))
