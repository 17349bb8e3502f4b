"""The admission chain of a server, on a store that a test fills with objects: what the plugins make of an object."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from typing import Any

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.admission.crd_termination import TerminatingCrds
from kubewright.apiserver.admission_chain import admission_chain
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.access import OpenAccess
from kubewright.apiserver.kinds.admission import Attributes, Operation
from kubewright.apiserver.kinds.resources import key_of
from kubewright.apiserver.outbound.http_client import HttpClient
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.outbound.webhook_client import WebhookClient
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.wire.users import ADMIN
from kubewright.testing.clock import VirtualClock

Tree = dict[str, Any]

CATALOG = Catalog(ServiceAllocator())


class Admission:
    """A namespace with the service account `default`, and the chain of a server that has nothing else."""

    def __init__(self, namespace: str = "shop") -> None:
        self.store = Store()
        self._namespace = namespace
        self._chain = admission_chain(
            self.store,
            CATALOG,
            OpenAccess(),
            VirtualClock(),
            webhooks=WebhookClient(HttpClient()),
            addresses=ServiceResolver(self.store),
            terminating_crds=TerminatingCrds(),
        )
        self.put("v1", "Namespace", {"metadata": {"name": namespace}})
        self.put("v1", "ServiceAccount", {"metadata": {"name": "default"}})

    def put(self, api_version: str, kind: str, tree: Tree) -> None:
        """Have an object in the store."""
        resource = CATALOG.of_kind(GroupVersionKind.of(api_version, kind))
        assert resource is not None
        key = key_of(self._namespace if resource.namespaced else "", tree["metadata"]["name"])
        self.store.table(resource.table).put(key, json.dumps(tree).encode(), self.store.next_version())

    def attributes(
        self, gvk: GroupVersionKind, tree: Tree, *, old: Tree | None = None, subresource: str = ""
    ) -> Attributes:
        """A create of an object, or an update of `old`."""
        resource = CATALOG.of_kind(gvk)
        assert resource is not None
        operation: Operation = "CREATE" if old is None else "UPDATE"
        namespace = self._namespace if resource.namespaced else ""
        name = str(tree["metadata"].get("name", ""))
        return Attributes(operation, resource, namespace, name, tree, old, ADMIN, subresource=subresource)

    def mutate(self, gvk: GroupVersionKind, tree: Tree, *, old: Tree | None = None, subresource: str = "") -> Tree:
        """The object as all plugins have changed it, in place."""
        attributes = self.attributes(gvk, tree, old=old, subresource=subresource)
        finish(self._chain.mutate(attributes))
        return tree

    def validate(self, gvk: GroupVersionKind, tree: Tree, *, old: Tree | None = None, subresource: str = "") -> None:
        """Let all plugins refuse the object."""
        finish(self._chain.validate(self.attributes(gvk, tree, old=old, subresource=subresource)))


def finish(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run what has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise AssertionError("a plugin waits")
