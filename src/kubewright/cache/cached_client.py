"""CachedClient: reads from the cache, writes to the server, and never reads anything older than its own writes.

A reconciler gets it as `ctx.client`. A kind is read from the cache if it is watched anyway; any other kind is read
live, so that a single `get` never starts a watch behind your back nor needs more permissions than `get`
(controller-runtime's client starts an informer instead). The answer to every write is recorded in the cache
at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, final

from kubewright.api.codec import encode, origin_of
from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.cache import Cache
from kubewright.cache.reader import CacheReader
from kubewright.cache.scope import in_scope
from kubewright.client.client import Client, Fields, Labels
from kubewright.client.lists import ObjectList
from kubewright.client.routes import Propagation
from kubewright.errors import NotFound

__all__ = ("CachedClient",)

K = TypeVar("K", bound=KubeObject)


@final
class CachedClient:
    """The verbs of `Client`, with cached reads. `live` is the client itself, for everything else.

    In a reconcile, reads that name no namespace are in that of the object. `live` knows no object: its `get` is in the
    namespace of the client, and its `list` of every namespace.
    """

    def __init__(
        self, live: Client, cache: Cache, *, namespace: str | None = None, reader: CacheReader | None = None
    ) -> None:
        """`namespace` is that of calls that name none; without it, that of `live`, and every one for a list.

        `reader` is one in other scopes than the cache's own.
        """
        self._home = namespace or ""
        self.live = live
        self._cache = cache
        self._reader = reader or cache.reader
        self.namespace = namespace or live.namespace

    def in_namespace(self, namespace: str) -> CachedClient:
        """The same client, with another namespace for calls that name none; with none, it is as at first."""
        return CachedClient(self.live, self._cache, namespace=namespace, reader=self._reader)

    async def get(self, kind: type[K], name: str | ObjectKey, *, namespace: str | None = None) -> K:
        """One object, yours to change, in the object's namespace unless another is named; NotFound if there is none."""
        key = self._key(kind, name, namespace)
        if self._reader.watches(kind):
            return self._reader.get(kind, key)
        return await self.live.get(kind, key)

    async def get_fresh(self, kind: type[K], name: str | ObjectKey, *, namespace: str | None = None) -> K:
        """As `get`, read from the server; an object outside the cache's scope is not found there either."""
        key = self._key(kind, name, namespace)
        obj = await self.live.get(kind, key)
        informer = self._reader.informer_for(kind, key.namespace) if self._reader.watches(kind) else None
        if informer is not None and not in_scope(informer.scope, obj.key, origin_of(obj) or encode(obj)):
            raise NotFound(f'{kind.kind} "{key}" is not in the scope of the cache', code=404, reason="NotFound")
        return obj

    async def find(self, kind: type[K], name: str | ObjectKey, *, namespace: str | None = None) -> K | None:
        """As `get`, with None where there is no such object."""
        try:
            return await self.get(kind, name, namespace=namespace)
        except NotFound:
            return None

    async def find_hidden(self, kind: type[K], name: str | ObjectKey, *, namespace: str | None = None) -> K | None:
        """As `find`, but an object outside the cache's scope is read from the server: for a check before a write."""
        key = self._key(kind, name, namespace)
        informer = self._reader.informer_for(kind, key.namespace) if self._reader.watches(kind) else None
        if informer is not None:
            found = informer.store.get(key)
            if found is not None or not informer.scope.is_selective:
                return found
        return await self.live.find(kind, key)

    async def list(
        self,
        kind: type[K],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        index: tuple[str, str] | None = None,
    ) -> ObjectList[K]:
        """All that match, each yours to change; of the object's namespace unless another is named, as for `get`.

        `namespace="*"` is every namespace. That is also what an object without a namespace gets, or the client of a
        controller outside a reconcile. `index=("config", "limits")` uses an index of the cache.
        """
        chosen = self._home if namespace is None else namespace
        home = chosen if chosen and await self.live.namespaced(kind) else None
        if self._reader.watches(kind):
            return self._reader.list(kind, namespace=home, labels=labels, fields=fields, index=index)
        return await self.live.list(kind, namespace=home, labels=labels, fields=fields)

    async def create(self, obj: K, *, dry_run: bool = False) -> K:
        """A new object; see `Client.create`."""
        return self._recorded(await self.live.create(obj, namespace=self.namespace, dry_run=dry_run), dry_run)

    async def update(self, obj: K, *, subresource: str | None = None, dry_run: bool = False) -> K:
        """Replace the whole object; see `Client.update`."""
        answer = await self.live.update(obj, subresource=subresource, namespace=self.namespace, dry_run=dry_run)
        return self._recorded(answer, dry_run)

    async def patch(
        self, obj: K, *, subresource: str | None = None, optimistic_lock: bool = False, dry_run: bool = False
    ) -> K:
        """Send what was changed since the object was read; see `Client.patch`."""
        answer = await self.live.patch(
            obj, subresource=subresource, optimistic_lock=optimistic_lock, namespace=self.namespace, dry_run=dry_run
        )
        return answer if answer is obj else self._recorded(answer, dry_run)

    async def patch_by_name(
        self,
        kind: type[K],
        name: str | ObjectKey,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        patch_type: Literal["json", "merge", "strategic"] = "merge",
        subresource: str | None = None,
        namespace: str | None = None,
        dry_run: bool = False,
    ) -> K:
        """Send a patch as it is; see `Client.patch_by_name`."""
        key = self._key(kind, name, namespace)
        answer = await self.live.patch_by_name(
            kind, key, patch, patch_type=patch_type, subresource=subresource, dry_run=dry_run
        )
        return self._recorded(answer, dry_run)

    async def apply(
        self,
        obj: K,
        *,
        field_manager: str | None = None,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> K:
        """Server-side apply; see `Client.apply`."""
        answer = await self.live.apply(
            obj,
            field_manager=field_manager,
            force=force,
            subresource=subresource,
            namespace=self.namespace,
            dry_run=dry_run,
        )
        return self._recorded(answer, dry_run)

    async def delete(
        self, obj: K, *, propagation: Propagation | None = None, grace_period: int | None = None, dry_run: bool = False
    ) -> K | None:
        """Delete this very object; see `Client.delete`. That it is gone already is fine."""
        try:
            left = await self.live.delete(
                obj, propagation=propagation, grace_period=grace_period, namespace=self.namespace, dry_run=dry_run
            )
        except NotFound:
            left = None
        if dry_run:
            return left
        if left is None:
            self._cache.record_deletion(type(obj), obj.key, obj.metadata.uid)
            return None
        return self._recorded(left, dry_run)

    async def namespaced(self, kind: type[KubeObject]) -> bool:
        """Whether a kind is namespaced; see `Client.namespaced`."""
        return await self.live.namespaced(kind)

    def _recorded(self, obj: K, dry_run: bool) -> K:
        if not dry_run:
            # Not marked as own: the answer to a write that changed nothing has the version of somebody else's write.
            # `controllers.self_writes` proves which changes are a reconcile's own.
            self._cache.record_write(obj, own=False)
        return obj

    def _key(self, kind: type[KubeObject], name: str | ObjectKey, namespace: str | None) -> ObjectKey:
        if not isinstance(name, ObjectKey):
            name = ObjectKey(namespace or "", name)
        definition = definition_of(kind)
        if definition.needs_discovery and not self._cache.namespaced(kind):
            return ObjectKey("", name.name)
        if name.namespace or not definition.namespaced:
            return name
        return ObjectKey(namespace or self.namespace, name.name)
