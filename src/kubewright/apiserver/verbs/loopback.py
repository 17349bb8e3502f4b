"""`Loopback`: the requests this server makes of itself.

They pass the same steps as those of any client, admission included, and are written by one user: `system:apiserver`,
who is in `system:masters`, as the loopback client of kube-apiserver (staging/src/k8s.io/apiserver/pkg/server/config.go,
`AuthorizeClientBearerToken`). They skip the wire and the router, so nobody authorizes, counts or audits them. Writes
that no admission plugin may see, such as a status the server has worked out, are not made here but by the verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Tree, key_of
from kubewright.apiserver.storage.store import Store
from kubewright.apiserver.verbs.create import CreateHandler
from kubewright.apiserver.verbs.delete import DeleteHandler
from kubewright.apiserver.verbs.patch import PatchHandler
from kubewright.apiserver.verbs.update import UpdateHandler
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.negotiation import APPLY_YAML, JSON, MediaType
from kubewright.apiserver.wire.options import DeleteOptions, WriteOptions
from kubewright.apiserver.wire.requests import Peer, Request, RequestInfo
from kubewright.apiserver.wire.responses import encode_json
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import MASTERS, User

__all__ = ("LOOPBACK_USER", "Loopback")

LOOPBACK_USER: Final = User("system:apiserver", ("system:authenticated", MASTERS))
_MANAGER: Final = "kube-apiserver"


@final
class Loopback:
    """A client of the server for the server's own controllers. `manager` is the field manager of a write."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        *,
        creates: CreateHandler,
        updates: UpdateHandler,
        patches: PatchHandler,
        deletes: DeleteHandler,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._creates = creates
        self._updates = updates
        self._patches = patches
        self._deletes = deletes

    async def create(self, resource: Resource, tree: Tree, *, manager: str = _MANAGER) -> Tree:
        """Create an object; returns it as it is stored."""
        call = _call(resource, _key(resource, tree), "create", manager, tree=tree)
        created: Tree = decode_json((await self._creates.create(call)).body)
        return created

    async def update(self, resource: Resource, tree: Tree, *, manager: str = _MANAGER) -> None:
        """Replace an object."""
        await self._updates.update(_call(resource, _key(resource, tree), "update", manager, tree=tree))

    async def edit(
        self, resource: Resource, key: str, change: Callable[[Tree], Tree], *, manager: str = _MANAGER
    ) -> None:
        """Read an object, change it and write it, again if somebody else wrote it meanwhile."""
        await self._patches.edit(_call(resource, key, "update", manager), WriteOptions(manager=manager), change)

    async def apply(self, resource: Resource, tree: Tree, *, manager: str) -> None:
        """Apply an object server-side, with force."""
        query = {"fieldManager": manager, "force": "true"}
        call = _call(resource, _key(resource, tree), "patch", manager, tree=tree, content_type=APPLY_YAML, query=query)
        await self._patches.patch(call)

    async def delete(self, resource: Resource, key: str, *, manager: str = _MANAGER) -> None:
        """Delete an object, as a client does who gives no options."""
        await self._deletes.delete_key(_call(resource, key, "delete", manager), key, DeleteOptions())

    async def ensure(self, tree: Tree) -> Tree:
        """Create an object unless there is one of its name; returns the one that is there."""
        resource = self._catalog.of_kind(GroupVersionKind.of(tree["apiVersion"], tree["kind"]))
        assert resource is not None, f"no resource of kind {tree['kind']}"
        table, key = self._store.table(resource.table), _key(resource, tree)
        if table.get(key) is None:
            try:
                return await self.create(resource, tree)
            except StatusError as exc:
                if exc.reason != "AlreadyExists":
                    raise
        entry = table.get(key)
        assert entry is not None
        return await resource.tree_of(entry)


def _key(resource: Resource, tree: Tree) -> str:
    meta = tree["metadata"]
    return key_of(meta.get("namespace", "") if resource.namespaced else "", meta["name"])


def _call(
    resource: Resource,
    key: str,
    verb: str,
    manager: str,
    *,
    tree: Tree | None = None,
    content_type: str = JSON,
    query: Mapping[str, str] | None = None,
) -> Call:
    namespace, _, name = key.rpartition("/")
    kind = resource.kind
    info = RequestInfo(verb, "", kind.group, kind.version, resource.plural, "", namespace, name)
    headers = {"user-agent": manager, "content-type": content_type}
    body = encode_json(tree) if tree is not None else b""
    return Call(Request("", "", query or {}, headers, body, Peer()), info, resource, LOOPBACK_USER, MediaType())
