"""An aggregated API server, as its APIService describes it: destination, availability and discovery.

An `AggregatedServer` lives as long as the APIService of its name, so that its discovery survives a change. `fetch`
sends requests of this server itself; `aggregator` keeps the servers and proxies requests of clients; `availability`
checks whether a server responds.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from functools import lru_cache
from string import ascii_letters, digits
from typing import Final, final

from msgspec import Struct

from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.outbound.http_client import Destination, HttpClient, HttpClientError
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.proxy.discovery_documents import aggregated_version, unaggregated_version
from kubewright.apiserver.storage.store import Entry
from kubewright.apiserver.wire.requests import encode_path
from kubewright.apiserver.wire.users import User

__all__ = ("AggregatedServer", "ServerResponse", "identity_headers")

_MAX_BODY: Final = 8 * 1024 * 1024
"""For a document of discovery or OpenAPI. That of all built-in kinds has less than four megabytes."""
_AGGREGATED: Final = "as=APIGroupDiscoveryList"
_ACCEPT: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};{_AGGREGATED}" for version in ("v2", "v2beta1")
)
_DISCOVERY_SECONDS: Final = 5.0
_DISCOVERY_TTL: Final = 60.0
_AGGREGATOR: Final = User("system:kube-aggregator", ("system:masters",))
_UNPRIVILEGED: Final = User("system:kube-aggregator", ())


_LEGAL: Final = frozenset(f"{ascii_letters}{digits}-_.!#$&'*+^`|~".encode())
"""Bytes that stand for themselves in the name of a header: its token characters, without the percent sign."""


class ServerResponse(Struct, frozen=True):
    """A response to this server itself. If none came, its code is the one a client would get."""

    code: int
    body: bytes = b""
    content_type: str = ""
    etag: str = ""


@final
class AggregatedServer:
    """One aggregated API server and its state."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.group = self.version = ""
        self.service = ("", "", 443)
        """Namespace, name and port."""
        self.revision = 0
        """The version of the APIService in `read`."""
        self.destination = Destination("")
        self.problem = ""
        """Why no connection can be made: an unusable caBundle."""
        self.available = False
        self.generation = 0
        """Increases when its documents may have changed: with its APIService, or when it becomes available again."""
        self.due = 0.0
        """When to sync it again."""
        self.failures = 0
        self._discovery: Tree | None = None
        self._discovered_at = (0, 0.0)
        self._etag = ""

    @property
    def path(self) -> str:
        """The path of its group and version."""
        return f"/apis/{self.group}/{self.version}"

    def read(self, entry: Entry, tree: Tree, resolver: ServiceResolver, certificate: tuple[str, str]) -> None:
        """Set destination and availability by its APIService."""
        spec = tree["spec"]
        service = spec["service"]
        namespace, name, port = str(service["namespace"]), str(service["name"]), int(service.get("port") or 443)
        self.revision = entry.version
        self.group, self.version = str(spec.get("group") or ""), str(spec.get("version") or "")
        self.service = (namespace, name, port)
        self.available = _is_available(tree)
        authorities = _decoded(spec.get("caBundle") or "")
        self.problem = "" if not authorities or _has_certificates(authorities) else _UNREADABLE
        self.destination = Destination(
            f"{name}.{namespace}.svc:{port}",
            f"{name}.{namespace}.svc",
            authorities=authorities,
            verify=not spec.get("insecureSkipTLSVerify"),
            certificate=certificate,
            dial=lambda: resolver.resolve(namespace, name, port),
        )
        self.due, self.failures = 0.0, 0
        self.generation += 1

    # requests

    async def fetch(
        self, outbound: HttpClient, path: str, *, user: User, seconds: float, accept: str = "", etag: str = ""
    ) -> ServerResponse:
        """GET a path of the server, as a user of this server's own."""
        if not self.available or self.problem:
            return ServerResponse(503 if not self.available else 500)
        headers = [*identity_headers(user), *self.forwarded_headers(path)]
        headers += [("Accept", accept)] if accept else []
        headers += [("If-None-Match", etag)] if etag else []
        try:
            async with asyncio.timeout(seconds):
                incoming = await outbound.request(self.destination, "GET", path, headers=headers)
                body = await incoming.body(_MAX_BODY)
        except (HttpClientError, TimeoutError):
            return ServerResponse(503)
        return ServerResponse(incoming.code, body, incoming.header("content-type"), incoming.header("etag"))

    def forwarded_headers(self, path: str) -> list[tuple[str, str]]:
        """The Host and X-Forwarded headers of a request; empty if the service does not resolve."""
        try:
            host, port = self.destination.address()
        except HttpClientError:
            return []
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return [
            ("Host", shown),
            ("X-Forwarded-Host", shown),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Uri", encode_path(path)),
        ]

    # discovery

    async def discover(self, outbound: HttpClient, now: float) -> bool:
        """Fetch its discovery unless it is known; returns whether it has changed."""
        generation, since = self._discovered_at
        if self._discovery is not None and generation == self.generation and now - since < _DISCOVERY_TTL:
            return False
        self._discovered_at = (self.generation, now)
        before, self._discovery = self._discovery, await self._fetch_discovery(outbound)
        if self._discovery is None:
            self._etag = ""  # a 304 later would refer to a document that is no longer kept
        return before != self._discovery

    async def _fetch_discovery(self, outbound: HttpClient) -> Tree | None:
        response = await self.fetch(
            outbound, "/apis", user=_AGGREGATOR, seconds=_DISCOVERY_SECONDS, accept=_ACCEPT, etag=self._etag
        )
        if response.code == 304:
            return self._discovery
        if response.code == 503:
            return None
        if response.code == 200 and _AGGREGATED in response.content_type.replace(" ", ""):
            self._etag = response.etag
            return aggregated_version(response.body, self.group, self.version)
        self._etag = ""
        response = await self.fetch(
            outbound, self.path, user=_UNPRIVILEGED, seconds=_DISCOVERY_SECONDS, accept="application/json"
        )
        if response.code != 200:
            return None
        return unaggregated_version(response.body, self.version)

    def discovery(self) -> Tree:
        """Its version in aggregated discovery; Stale if it is unavailable."""
        if not self.available or self._discovery is None:
            return {"version": self.version, "freshness": "Stale"}
        found = {key: value for key, value in self._discovery.items() if value}
        return {**found, "freshness": "Current"}


def identity_headers(user: User) -> list[tuple[str, str]]:
    """The X-Remote headers of the request-header authenticator (k8s.io/client-go/transport/round_trippers.go)."""
    found = [("X-Remote-User", user.name)]
    if user.uid:
        found.append(("X-Remote-Uid", user.uid))
    found.extend(("X-Remote-Group", group) for group in user.groups)
    for name, values in user.extra.items():
        escaped = "".join(chr(one) if one in _LEGAL else f"%{one:02X}" for one in name.encode())
        found.extend((f"X-Remote-Extra-{escaped}", value) for value in values)
    return found


_UNREADABLE: Final = "unable to load root certificates: unable to parse bytes as PEM block"


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b"unreadable"


@lru_cache(maxsize=64)
def _has_certificates(bundle: bytes) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=bundle.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError):
        return False
    return True


def _is_available(tree: Tree) -> bool:
    conditions = (tree.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Available" and item.get("status") == "True" for item in conditions)
