"""Keeps an APIService for each group and version that CustomResourceDefinitions serve.

kube-apiserver: the CRD registration controller (pkg/controlplane/controller/crdregistration). The router finds custom
resources in the catalog; these objects are there for clients that list them. The controller restores one that a client
edits or deletes, and deletes it with the last definition that serves its version. One without its label, which a client
created, stays as it is. The APIServices of the built-in groups are among the objects a server starts with.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.loopback import Loopback
from kubewright.apiserver.verbs.table_controller import TableController
from kubewright.apiserver.wire.decoding import decode_json

__all__ = ("Autoregistration",)

_LABEL: Final = "kube-aggregator.kubernetes.io/automanaged"
_GROUP_PRIORITY: Final = 1000
_VERSION_PRIORITY: Final = 100


@final
class Autoregistration:
    """Watches definitions and APIServices, and writes the APIServices of definitions."""

    def __init__(self, store: Store, catalog: Catalog, loopback: Loopback) -> None:
        self._resource = catalog.builtin("apiregistration.k8s.io", "apiservices")
        definitions = catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
        self._definitions = store.table(definitions.table)
        self._services = store.table(self._resource.table)
        self._loopback = loopback
        self._served: dict[str, tuple[str, ...]] = {}
        """The names of the APIServices each definition wants."""
        self._definition_controller = TableController("autoregistration of definitions", self._sync_definition)
        self._definition_controller.watch(self._definitions)
        self._service_controller = TableController("autoregistration", self._sync_service)
        self._service_controller.watch(self._services)

    def start(self) -> None:
        """Start, with every object in the store."""
        # Know all definitions before the first APIService is handled: none may go for want of one not read yet.
        for entry in self._definitions.entries():
            self._served[entry.key] = _served(decode_json(entry.value)["spec"])
        self._definition_controller.start()
        self._service_controller.start()

    async def stop(self) -> None:
        """Stop watching."""
        await self._definition_controller.stop()
        await self._service_controller.stop()

    @property
    def running(self) -> bool:
        """Whether it watches definitions and APIServices."""
        return self._definition_controller.running and self._service_controller.running

    async def _sync_definition(self, key: str) -> None:
        entry = self._definitions.get(key)
        served = () if entry is None else _served(decode_json(entry.value)["spec"])
        for name in (*self._served.pop(key, ()), *served):
            self._service_controller.add(name)
        if entry is not None:
            self._served[key] = served

    async def _sync_service(self, name: str) -> None:
        entry = self._services.get(name)
        wanted = any(name in served for served in self._served.values())
        version, _, group = name.partition(".")
        spec: Tree = {
            "group": group,
            "groupPriorityMinimum": _GROUP_PRIORITY,
            "version": version,
            "versionPriority": _VERSION_PRIORITY,
        }
        if entry is None:
            if wanted:
                await self._create(name, spec)
            return
        tree = decode_json(entry.value)
        if (tree["metadata"].get("labels") or {}).get(_LABEL) != "true":
            return
        if not wanted:
            await self._loopback.delete(self._resource, name)
        elif tree["spec"] != spec:
            await self._loopback.update(self._resource, {**tree, "spec": spec})

    async def _create(self, name: str, spec: Tree) -> None:
        metadata = {"name": name, "labels": {_LABEL: "true"}}
        api_version = self._resource.kind.api_version
        tree = {"apiVersion": api_version, "kind": "APIService", "metadata": metadata, "spec": spec}
        await self._loopback.create(self._resource, tree)


def _served(spec: Tree) -> tuple[str, ...]:
    return tuple(f"{version['name']}.{spec['group']}" for version in spec["versions"] if version["served"])
