"""List everything of a kind, page by page, as entries for the store; as client-go's tools/pager/pager.go.

The reflector calls it where the server offers no streaming list. Unlike `Client.list`, which returns all or nothing, it
reports an item that cannot be decoded and leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import msgspec

from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject, definition_of
from kubewright.cache.decoder import EventDecoder
from kubewright.cache.scope import Scope
from kubewright.cache.store import Entry
from kubewright.client.client import Client
from kubewright.client.lists import split_list
from kubewright.client.routes import Route, accept_header, list_query
from kubewright.errors import DecodeError, Expired

__all__ = ("ListResult", "list_entries")

PAGE_SIZE = 500


@final
class ListResult(msgspec.Struct, frozen=True):
    """Everything of a kind at one version."""

    items: dict[ObjectKey, Entry]
    version: str


async def list_entries(
    client: Client,
    kind: type[KubeObject],
    decoder: EventDecoder,
    *,
    namespace: str,
    scope: Scope,
    not_older_than: str = "",
    on_malformed: Callable[[DecodeError], None],
) -> ListResult:
    """Everything there is at the newest version or, if one is given, at that version or later."""
    path = (await _route(client, kind)).collection(namespace)
    accept = accept_header(definition_of(kind), listing=True)
    items: dict[ObjectKey, Entry] = {}
    token: str | None = None
    size: int | None = PAGE_SIZE
    while True:
        query = list_query(
            labels=scope.labels or None,
            fields=scope.fields or None,
            limit=size,
            continue_token=token,
            resource_version=not_older_than or None,
            version_match="NotOlderThan" if not_older_than else None,
        )
        try:
            response = await client.request("GET", path, query=query, accept=accept)
        except Expired:
            if token is None:
                raise
            # All pages are of one version, and the server has compacted it meanwhile. What is listed so far cannot be
            # completed: list everything again in one piece.
            items, token, size = {}, None, None
            continue
        metadata, raw_items = split_list(kind, response.body)
        _decode_into(items, raw_items, decoder, on_malformed)
        token = metadata.continue_
        if not token:
            return ListResult(items, metadata.resource_version)


def _decode_into(
    items: dict[ObjectKey, Entry],
    raw_items: list[msgspec.Raw],
    decoder: EventDecoder,
    on_malformed: Callable[[DecodeError], None],
) -> None:
    for raw in raw_items:
        try:
            decoded = decoder.decode_object(raw)
        except DecodeError as exc:
            on_malformed(exc)
            continue
        items[decoded.key] = decoded.entry


async def _route(client: Client, kind: type[KubeObject]) -> Route:
    definition = definition_of(kind)
    if not definition.needs_discovery:
        return Route.of(definition)
    resource = await client.discovery.find(definition.gvk)
    return Route(resource.gvr, resource.namespaced)
