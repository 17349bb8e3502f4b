"""Client: every verb of the Kubernetes API, typed.

    async with connect() as client:
        pod = await client.get(Pod, "web-0", namespace="shop")
        pod.metadata.labels["tier"] = "front"
        await client.patch(pod)                      # sends {"metadata": {"labels": {"tier": "front"}}}
        for pod in await client.list(Pod, labels="app=web"):
            ...

How to write: `apply` for objects you own (server-side apply), `patch` for a change to an object you read. `update`
replaces the whole object. None of them drops a field the class does not know. Reads and writes go to the server each
time; `kubewright.cache` is another layer. Objects passed in are never changed; each call returns the server's response.

Namespaces: a call about one object takes its namespace from the object, else from `namespace=`, else the client's own;
`list` and `watch` cover every namespace unless one is named, as `"*"` does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, final, overload

import msgspec

from kubewright._base.deep_json import DeepDecoder
from kubewright.api.changes import merge_patch_since_read, status_patch_since_read, whole_tree
from kubewright.api.codec import encode, encode_tree, is_partial, origin_of, read
from kubewright.api.metadata import ListMeta
from kubewright.api.names import ObjectKey
from kubewright.api.resource import Definition, KubeObject, definition_of
from kubewright.api.selectors import FieldSelector, Selector
from kubewright.client.discovery import Discovery
from kubewright.client.lists import ObjectList, decode_list
from kubewright.client.pods import Pods
from kubewright.client.routes import (
    ALL_NAMESPACES,
    FieldValidation,
    PatchType,
    Propagation,
    Query,
    Route,
    VersionMatch,
    accept_header,
    delete_options,
    list_query,
    patch_content_type,
    write_query,
)
from kubewright.client.scales import Scales
from kubewright.client.transport.responses import check
from kubewright.client.transport.transport import HttpRequest, HttpResponse, Transport
from kubewright.client.watch import Bookmark, MalformedHandler, Watch, WatchEvent
from kubewright.errors import BadRequest, ConfigError, Expired, Forbidden, Invalid, NotFound

__all__ = ("Client",)

K = TypeVar("K", bound=KubeObject)
Labels = str | Mapping[str, str] | Selector
Fields = str | Mapping[str, str] | FieldSelector

PAGE_SIZE = 500
WATCH_IDLE_TIMEOUT = 300.0
"""Servers send a bookmark about once a minute; a connection silent for this long is dead."""

_MAX_WARNINGS = 256

_log = logging.getLogger("kubewright.client")


class _KindOnly(msgspec.Struct, gc=False):
    kind: str = ""


_KINDS: DeepDecoder[_KindOnly] = DeepDecoder(_KindOnly)


@final
class Client:
    """Talks to one cluster through a transport. `connect` makes one; a test makes one on any transport."""

    def __init__(
        self,
        transport: Transport,
        *,
        namespace: str = "default",
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        timeout: float = 30.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.transport = transport
        self.namespace = namespace
        self.field_manager = field_manager
        self.field_validation = field_validation
        self.timeout = timeout
        self.discovery = Discovery(transport)
        self.pods = Pods(self)
        self.scales = Scales(self)
        self._on_warning = on_warning or _WarningLog()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self.transport.close()

    # --- reads ---

    async def get(
        self,
        kind: type[K],
        name: str | ObjectKey,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> K:
        """One object; NotFound if there is none.

        `resource_version="0"` allows a response from the server's own cache, which may be slightly old.
        """
        definition = definition_of(kind)
        query = (("resourceVersion", resource_version),) if resource_version is not None else ()
        path = await self._path(definition, name, namespace, subresource)
        response = await self.request("GET", path, query=query, accept=accept_header(definition), timeout=timeout)
        return read(kind, response.body)

    async def find(self, kind: type[K], name: str | ObjectKey, *, namespace: str | None = None) -> K | None:
        """As `get`, but None if there is no such object."""
        try:
            return await self.get(kind, name, namespace=namespace)
        except NotFound:
            return None

    async def list(
        self,
        kind: type[K],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        limit: int | None = None,
        continue_token: str | None = None,
        resource_version: str | None = None,
        version_match: VersionMatch | None = None,
        page_size: int = PAGE_SIZE,
        timeout: float | None = None,
    ) -> ObjectList[K]:
        """All objects that match, of every namespace unless one is named; `"*"` is all as well.

        Fetched page by page; with `limit`, at most so many, and a token to go on. If a page's token expires on the way,
        everything is listed again in one response, so that the list is consistent.
        """
        definition = definition_of(kind)
        path = (await self._route(definition)).listing(namespace)

        async def page(size: int | None, token: str | None) -> ObjectList[K]:
            query = list_query(
                labels=labels,
                fields=fields,
                limit=size,
                continue_token=token,
                resource_version=resource_version,
                version_match=version_match,
            )
            accept = accept_header(definition, listing=True)
            response = await self.request("GET", path, query=query, accept=accept, timeout=timeout)
            return decode_list(kind, response.body)

        if limit is not None:
            return await page(limit, continue_token)
        result = await page(page_size or None, continue_token)
        while token := result.continue_token:
            try:
                following = await page(page_size, token)
            except Expired:
                return await page(None, None)
            result.items.extend(following.items)
            result.metadata = following.metadata
        return result

    async def list_streaming(
        self,
        kind: type[K],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        timeout: float | None = None,
    ) -> ObjectList[K]:
        """As `list`, over a watch that sends the current state first (WatchList), which costs the server less memory.

        If the server does not support it, an ordinary list is made.
        """
        items: dict[ObjectKey, K] = {}
        try:
            async with self.watch(
                kind, namespace=namespace, labels=labels, fields=fields, initial_events=True, bookmarks=True,
                timeout=timeout or self.timeout,
            ) as events:  # fmt: skip
                async for event in events:
                    if isinstance(event, Bookmark):
                        if event.initial_events_end:
                            metadata = ListMeta(resource_version=event.resource_version)
                            return ObjectList([*items.values()], metadata)
                    elif event.type == "DELETED":
                        items.pop(event.object.key, None)
                    else:
                        items[event.object.key] = event.object
        except (BadRequest, Forbidden, Invalid) as exc:
            _log.debug("no streaming list, listing instead: %s", exc)
        return await self.list(kind, namespace=namespace, labels=labels, fields=fields, timeout=timeout)

    @overload
    def watch(
        self,
        kind: type[K],
        *,
        namespace: str | None = ...,
        labels: Labels | None = ...,
        fields: Fields | None = ...,
        resource_version: str | None = ...,
        initial_events: bool = ...,
        bookmarks: Literal[False] = ...,
        timeout: float | None = ...,
        idle_timeout: float | None = ...,
        on_malformed: MalformedHandler | None = ...,
    ) -> Watch[K, WatchEvent[K]]: ...

    @overload
    def watch(
        self,
        kind: type[K],
        *,
        namespace: str | None = ...,
        labels: Labels | None = ...,
        fields: Fields | None = ...,
        resource_version: str | None = ...,
        initial_events: bool = ...,
        bookmarks: Literal[True],
        timeout: float | None = ...,
        idle_timeout: float | None = ...,
        on_malformed: MalformedHandler | None = ...,
    ) -> Watch[K, WatchEvent[K] | Bookmark]: ...

    def watch(
        self,
        kind: type[K],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str | None = None,
        initial_events: bool = False,
        bookmarks: bool = False,
        timeout: float | None = None,
        idle_timeout: float | None = WATCH_IDLE_TIMEOUT,
        on_malformed: MalformedHandler | None = None,
    ) -> Watch[K, Any]:
        """Changes as they happen, from `resource_version` on (from now on if none is given); see `client.watch`.

        In every namespace unless one is named; `"*"` is all as well. `timeout` is after how long the *server* ends the
        watch; `initial_events=True` sends the current state first and then a bookmark that marks its end.
        """
        definition = definition_of(kind)
        query = (
            *list_query(
                labels=labels,
                fields=fields,
                resource_version=resource_version if resource_version is not None or not initial_events else "",
                version_match="NotOlderThan" if initial_events else None,
            ),
            ("watch", "true"),
            # Requested even if the caller does not want to see them: they keep WATCH_IDLE_TIMEOUT from expiring.
            ("allowWatchBookmarks", "true"),
            *((("sendInitialEvents", "true"),) if initial_events else ()),
            *((("timeoutSeconds", str(max(1, round(timeout)))),) if timeout is not None else ()),
        )

        async def request() -> HttpRequest:
            return HttpRequest(
                method="GET",
                path=(await self._route(definition)).listing(namespace),
                query=query,
                headers=(("Accept", accept_header(definition)),),
                timeout=self.timeout,
                idle_timeout=idle_timeout,
            )

        return Watch(self.transport, request, kind, bookmarks=bookmarks, on_malformed=on_malformed)

    # --- writes ---

    async def create(
        self,
        obj: K,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        timeout: float | None = None,
    ) -> K:
        """Create an object; AlreadyExists if the name is taken."""
        definition = definition_of(type(obj))
        route = await self._route(definition)
        response = await self.request(
            "POST",
            route.collection(obj.metadata.namespace or namespace or self.namespace),
            query=self._write_query(dry_run, field_manager, field_validation),
            body=encode(obj, with_status=not definition.status),
            timeout=timeout,
        )
        return read(type(obj), response.body)

    async def update(
        self,
        obj: K,
        *,
        subresource: str | None = None,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        timeout: float | None = None,
    ) -> K:
        """Replace the whole object; Conflict if it was changed since it was read.

        Fields the class does not know are sent as they were read. Prefer `patch` or `apply`, which send only what
        changes.
        """
        definition = definition_of(type(obj))
        if is_partial(obj):
            raise ConfigError(
                f"{definition.kind} {obj.key}: this {type(obj).__name__} has only a part of the object's fields, "
                "so an update would remove the others; use patch or apply"
            )
        response = await self.request(
            "PUT",
            await self._path(definition, obj.key, namespace, subresource),
            query=self._write_query(dry_run, field_manager, field_validation),
            body=encode(obj) if origin_of(obj) is None else encode_tree(whole_tree(obj)),
            timeout=timeout,
        )
        return read(type(obj), response.body)

    async def patch(
        self,
        obj: K,
        *,
        subresource: str | None = None,
        optimistic_lock: bool = False,
        namespace: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        timeout: float | None = None,
    ) -> K:
        """Send the changes made to an object since it was read, as the smallest merge patch; no request if there are
        none.

        Go on with the object that is returned. The one given still knows what was read: patched once more, it would
        send its earlier changes again, and not send a value that is back where it was.

        Status is a subresource: its changes are sent with `subresource="status"`, all others without.
        `optimistic_lock=True` adds the resourceVersion, so that it is a Conflict if anybody else wrote in between.
        """
        definition = definition_of(type(obj))
        changes = status_patch_since_read(obj) if subresource == "status" else merge_patch_since_read(obj)
        if subresource is None and definition.status:
            changes.pop("status", None)
        if not changes:
            return obj
        if optimistic_lock:
            changes.setdefault("metadata", {})["resourceVersion"] = obj.metadata.resource_version
        return await self.patch_by_name(
            type(obj),
            obj.key,
            changes,
            subresource=subresource,
            namespace=namespace,
            dry_run=dry_run,
            field_manager=field_manager,
            field_validation=field_validation,
            timeout=timeout,
        )

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
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        timeout: float | None = None,
    ) -> K:
        """Send a patch as it is: a merge patch, a JSON patch (a list of operations) or a strategic merge patch."""
        query = self._write_query(dry_run, field_manager, field_validation)
        path = await self._path(definition_of(kind), name, namespace, subresource)
        return await self._patch(kind, path, encode_tree(patch), patch_type, query, timeout)

    async def apply(
        self,
        obj: K,
        *,
        field_manager: str | None = None,
        force: bool = False,
        subresource: str | None = None,
        namespace: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> K:
        """Server-side apply: set these fields and own them; create the object if it does not exist.

        Fields this manager applied before and leaves out now are removed. Conflict, naming the other manager, if a
        field belongs to another manager and `force` is not set.
        """
        definition = definition_of(type(obj))
        manager = field_manager or self.field_manager
        if not manager:
            raise ConfigError(f"apply of {obj.kind} {obj.key} needs a field_manager: give one here or to the client")
        wanted = obj
        if obj.metadata.managed_fields:  # the server rejects an apply that has them
            wanted = msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, managed_fields=[]))
        body = encode(wanted, with_status=subresource is not None or not definition.status)
        # No fieldValidation: an apply always validates strictly, because it is converted by the schema.
        query = write_query(dry_run=dry_run, field_manager=manager, force=force)
        path = await self._path(definition, obj.key, namespace, subresource)
        return await self._patch(type(obj), path, body, "apply", query, timeout)

    @overload
    async def delete(
        self, kind: K, /, *, namespace: str | None = ..., propagation: Propagation | None = ...,
        grace_period: int | None = ..., uid: str | None = ..., resource_version: str | None = ...,
        dry_run: bool = ..., timeout: float | None = ...,
    ) -> K | None: ...  # fmt: skip

    @overload
    async def delete(
        self, kind: type[K], name: str | ObjectKey, /, *, namespace: str | None = ...,
        propagation: Propagation | None = ..., grace_period: int | None = ..., uid: str | None = ...,
        resource_version: str | None = ..., dry_run: bool = ..., timeout: float | None = ...,
    ) -> K | None: ...  # fmt: skip

    async def delete(
        self,
        kind: K | type[K],
        name: str | ObjectKey | None = None,
        /,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> K | None:
        """Delete an object, or the object of a kind and a name.

        Returns the object if it still exists (a finalizer or a grace period holds it), else None. An object passed in
        is deleted only if it is that very one: its uid is a precondition, so a new object of the same name is safe
        (Conflict).
        """
        if isinstance(kind, KubeObject):
            name, uid, kind = kind.key, uid or kind.metadata.uid, type(kind)
        if name is None:
            raise ConfigError(f"delete of {kind.__name__}: say which one, by name or by giving the object")
        options = delete_options(propagation, grace_period, uid, resource_version, dry_run=dry_run)
        path = await self._path(definition_of(kind), name, namespace, None)
        response = await self.request("DELETE", path, body=encode_tree(options), timeout=timeout)
        return None if _KINDS.decode(response.body).kind == "Status" else read(kind, response.body)

    async def delete_collection(
        self,
        kind: type[K],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Delete all objects of a kind in a namespace that match."""
        definition = definition_of(kind)
        if definition.namespaced and (not namespace or namespace == ALL_NAMESPACES):
            raise ConfigError(
                f"delete_collection of {kind.__name__} needs a namespace; "
                "servers do not delete across namespaces, so call it for each"
            )
        await self.request(
            "DELETE",
            (await self._route(definition)).collection(namespace),
            query=list_query(labels=labels, fields=fields),
            body=encode_tree(delete_options(propagation, grace_period, None, None, dry_run=dry_run)),
            timeout=timeout,
        )

    # --- any other request ---

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes | None = None,
        accept: str = "application/json",
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> HttpResponse:
        """Send any request; an error status raises an ApiError."""
        headers: tuple[tuple[str, str], ...] = (("Accept", accept),)
        if body is not None:
            headers = (*headers, ("Content-Type", content_type))
        request = HttpRequest(
            method=method, path=path, query=query, headers=headers, body=body, timeout=timeout or self.timeout
        )
        response = await self.transport.send(request)
        for warning in response.warnings:
            self._on_warning(warning)
        check(response, request)
        return response

    async def object_path(
        self,
        kind: type[KubeObject],
        name: str | ObjectKey,
        *,
        namespace: str | None,
        subresource: str | None = None,
    ) -> str:
        """The path of an object, or of a subresource of it."""
        return await self._path(definition_of(kind), name, namespace, subresource)

    async def namespaced(self, kind: type[KubeObject]) -> bool:
        """Whether a kind is namespaced; for a dynamic kind the server's discovery says so, once."""
        return (await self._route(definition_of(kind))).namespaced

    async def _route(self, definition: Definition) -> Route:
        if not definition.needs_discovery:
            return Route.of(definition)
        resource = await self.discovery.find(definition.gvk)
        return Route(resource.gvr, resource.namespaced)

    async def _path(
        self, definition: Definition, name: str | ObjectKey, namespace: str | None, subresource: str | None
    ) -> str:
        if isinstance(name, ObjectKey):
            namespace, name = name.namespace or namespace, name.name
        return (await self._route(definition)).object(namespace or self.namespace, name, subresource)

    async def _patch(
        self, kind: type[K], path: str, body: bytes, patch_type: PatchType, query: Query, timeout: float | None
    ) -> K:
        response = await self.request(
            "PATCH",
            path,
            query=query,
            body=body,
            accept=accept_header(definition_of(kind)),
            content_type=patch_content_type(patch_type),
            timeout=timeout,
        )
        return read(kind, response.body)

    def _write_query(self, dry_run: bool, field_manager: str | None, field_validation: FieldValidation | None) -> Query:
        return write_query(
            dry_run=dry_run,
            field_manager=field_manager or self.field_manager,
            field_validation=field_validation or self.field_validation,
        )


class _WarningLog:
    """Logs each warning once: the server repeats it in every response to which it applies."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def __call__(self, text: str) -> None:
        if text not in self._logged and len(self._logged) < _MAX_WARNINGS:
            self._logged.add(text)
            _log.warning("warning from the server: %s", text)
