"""An APIService for each group and version that custom resource definitions serve.

Requests find their way through the catalog; these objects only say so to whoever lists them, as those of the built-in
groups do, which are among the objects a server starts with. Each is put back when it is edited or deleted, and goes
with the last definition that serves its version. One that somebody else made under such a name is left alone.
"""

from __future__ import annotations

from typing import Final, final

from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.delete import DeleteHandler
from kubewright.apiserver.verbs.loopback import TableController, loopback_call, resource_of
from kubewright.apiserver.verbs.write import WriteHandler
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.negotiation import JSON
from kubewright.apiserver.wire.options import DeleteOptions

__all__ = ("Autoregistration",)

_MANAGER: Final = "kube-apiserver"
_LABEL: Final = "kube-aggregator.kubernetes.io/automanaged"
_GROUP_PRIORITY: Final = 1000
_VERSION_PRIORITY: Final = 100


@final
class Autoregistration:
    """Follows definitions, and keeps their APIServices."""

    def __init__(self, store: Store, catalog: Catalog, writes: WriteHandler, deletes: DeleteHandler) -> None:
        self._resource = resource_of(catalog, "apiregistration.k8s.io", "apiservices")
        definitions = resource_of(catalog, "apiextensions.k8s.io", "customresourcedefinitions")
        self._definitions = store.table(definitions.table)
        self._services = store.table(self._resource.table)
        self._writes = writes
        self._deletes = deletes
        self._served: dict[str, tuple[str, ...]] = {}
        """What each definition serves, as names of APIServices."""
        self._followers = [
            TableController(store, definitions.table, self._definitions_changed),
            TableController(store, self._resource.table, self._services_changed),
        ]

    def start(self) -> None:
        """Begin; what is there already is looked at."""
        # All definitions are known before the first APIService is judged: none may go for want of one not read yet.
        for entry in self._definitions.entries():
            self._served[entry.key] = _served(decode_json(entry.value)["spec"])
        for follower in self._followers:
            follower.start()

    async def stop(self) -> None:
        """End."""
        for follower in self._followers:
            await follower.stop()

    @property
    def running(self) -> bool:
        """Whether definitions and APIServices are followed."""
        return all(follower.running for follower in self._followers)

    async def _definitions_changed(self, keys: tuple[str, ...]) -> None:
        names: list[str] = []
        for key in keys:
            entry = self._definitions.get(key)
            served = () if entry is None else _served(decode_json(entry.value)["spec"])
            names += (*self._served.pop(key, ()), *served)
            if entry is not None:
                self._served[key] = served
        await self._services_changed(tuple(names))

    async def _services_changed(self, keys: tuple[str, ...]) -> None:
        for name in dict.fromkeys(keys):
            await self._settle(name)

    async def _settle(self, name: str) -> None:
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
            await self._delete(name)
        elif tree["spec"] != spec:
            await self._update({**tree, "spec": spec})

    async def _create(self, name: str, spec: Tree) -> None:
        metadata = {"name": name, "labels": {_LABEL: "true"}}
        tree = {"apiVersion": self._resource.kind.api_version, "kind": "APIService", "metadata": metadata, "spec": spec}
        call = loopback_call(self._resource, name, verb="create", manager=_MANAGER, tree=tree, content_type=JSON)
        await self._writes.create(call)

    async def _update(self, tree: Tree) -> None:
        name = tree["metadata"]["name"]
        call = loopback_call(self._resource, name, verb="update", manager=_MANAGER, tree=tree, content_type=JSON)
        await self._writes.update(call)

    async def _delete(self, name: str) -> None:
        call = loopback_call(self._resource, name, verb="delete", manager=_MANAGER)
        await self._deletes.delete_key(call, name, DeleteOptions())


def _served(spec: Tree) -> tuple[str, ...]:
    return tuple(f"{version['name']}.{spec['group']}" for version in spec["versions"] if version["served"])
