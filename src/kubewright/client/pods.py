"""Pods: the subresources that only pods have, eviction, logs and ephemeral containers.

Reached as `client.pods`. Pods are addressed by name, so that the generated kinds need not be imported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, final

from kubewright.api.codec import encode_tree, to_tree
from kubewright.api.model import Model
from kubewright.api.names import ObjectKey
from kubewright.client.lines import LineSplitter
from kubewright.client.rest import RestClient
from kubewright.client.routes import Query, Route, delete_options, patch_content_type, pods_route
from kubewright.client.transport.responses import check_stream
from kubewright.client.transport.transport import HttpRequest

__all__ = ("Pods",)


@final
class Pods:
    """The verbs of pods beyond those of every object."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._route: Route = pods_route()

    async def evict(
        self,
        name: str | ObjectKey,
        *,
        namespace: str | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for a pod's eviction; TooManyRequests while a PodDisruptionBudget does not allow it."""
        key = self._key(name, namespace)
        options = delete_options(None, grace_period, uid, None, dry_run=dry_run)
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "deleteOptions": options,
        }
        path = self._route.object(key.namespace, key.name, "eviction")
        await self._client.request("POST", path, body=encode_tree(body))

    async def add_ephemeral_container(
        self, name: str | ObjectKey, container: Model | Mapping[str, Any], *, namespace: str | None = None
    ) -> None:
        """Start a container in a running pod, for debugging; it cannot be changed or removed again."""
        key = self._key(name, namespace)
        tree = to_tree(container) if isinstance(container, Model) else dict(container)
        await self._client.request(
            "PATCH",
            self._route.object(key.namespace, key.name, "ephemeralcontainers"),
            # A strategic merge patch adds to the list by name; a merge patch would have to repeat all containers.
            body=encode_tree({"spec": {"ephemeralContainers": [tree]}}),
            content_type=patch_content_type("strategic"),
        )

    async def read_logs(
        self,
        name: str | ObjectKey,
        *,
        namespace: str | None = None,
        container: str | None = None,
        previous: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> str:
        """The log of a container so far."""
        key = self._key(name, namespace)
        response = await self._client.request(
            "GET",
            self._route.object(key.namespace, key.name, "log"),
            query=_log_query(container, False, previous, tail_lines, since_seconds, timestamps, limit_bytes),
            accept="*/*",
        )
        return response.body.decode(errors="replace")

    @asynccontextmanager
    async def follow_logs(
        self,
        name: str | ObjectKey,
        *,
        namespace: str | None = None,
        container: str | None = None,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        timestamps: bool = False,
        idle_timeout: float | None = None,
    ) -> AsyncIterator[AsyncIterator[str]]:
        """The lines of a container's log as it writes them: `async with ... as lines: async for line in lines`.

        A quiet container is not an error, so there is no idle timeout unless `idle_timeout` sets one.
        """
        key = self._key(name, namespace)
        request = HttpRequest(
            method="GET",
            path=self._route.object(key.namespace, key.name, "log"),
            query=_log_query(container, True, False, tail_lines, since_seconds, timestamps, None),
            headers=(("Accept", "*/*"),),
            timeout=self._client.timeout,
            idle_timeout=idle_timeout,
        )
        async with self._client.transport.stream(request) as stream:
            await check_stream(stream, request)
            yield _text_lines(stream.chunks())

    def _key(self, name: str | ObjectKey, namespace: str | None) -> ObjectKey:
        key = name if isinstance(name, ObjectKey) else ObjectKey(namespace or "", name)
        return key if key.namespace else ObjectKey(namespace or self._client.namespace, key.name)


async def _text_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    splitter = LineSplitter()
    async for chunk in chunks:
        for line in splitter.feed(chunk):
            yield line.decode(errors="replace")
    if splitter.rest:
        yield splitter.rest.decode(errors="replace")


def _log_query(
    container: str | None,
    follow: bool,
    previous: bool,
    tail_lines: int | None,
    since_seconds: int | None,
    timestamps: bool,
    limit_bytes: int | None,
) -> Query:
    wanted = {
        "container": container,
        "follow": "true" if follow else None,
        "previous": "true" if previous else None,
        "tailLines": tail_lines,
        "sinceSeconds": since_seconds,
        "timestamps": "true" if timestamps else None,
        "limitBytes": limit_bytes,
    }
    return tuple((name, str(value)) for name, value in wanted.items() if value is not None)
