"""An extension server, as its APIService describes it: where it is, whether it answers, and what it says it serves.

`ExtensionServer` is kept for as long as there is an APIService of that name, so that what was fetched from it is still
known after a change. It can be asked by this server itself (`fetch`); requests of clients are passed on by
`aggregation`, which also keeps the servers. Whether one answers is found out by `availability`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from functools import lru_cache
from typing import Final, final

from msgspec import Struct

from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.outbound.http_client import Destination, HttpClient, HttpClientError
from kubewright.apiserver.outbound.service_resolver import ServiceResolver
from kubewright.apiserver.storage.store import Entry
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.users import User

__all__ = ("ExtensionServer", "Fetched", "identity_headers")

_LARGEST: Final = 64 * 1024 * 1024
_AGGREGATED: Final = "as=APIGroupDiscoveryList"
_ACCEPT: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};{_AGGREGATED}" for version in ("v2", "v2beta1")
)
_DISCOVERY_SECONDS: Final = 5.0
_KNOWN_FOR: Final = 60.0
_AGGREGATOR: Final = User("system:kube-aggregator", ("system:masters",))
_UNPRIVILEGED: Final = User("system:kube-aggregator", ())


class Fetched(Struct, frozen=True):
    """An answer to this server itself. One that did not come has the code with which a client would learn of it."""

    code: int
    body: bytes = b""
    content_type: str = ""
    tag: str = ""


@final
class ExtensionServer:
    """One extension server and what is known of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.group = self.version = ""
        self.service = ("", "", 443)
        """Namespace, name and port."""
        self.revision = 0
        """The version of the APIService that was read."""
        self.destination = Destination("")
        self.problem = ""
        """Why no connection can be made at all."""
        self.available = False
        self.turn = 0
        """Grows whenever it may have something else to say: its APIService was changed, or it is back."""
        self.due = 0.0
        """When to look at it again."""
        self.failures = 0
        self._described: Tree | None = None
        self._described_at = (0, 0.0)
        self._tag = ""

    @property
    def path(self) -> str:
        """Where its group and version begins."""
        return f"/apis/{self.group}/{self.version}"

    def read(self, entry: Entry, tree: Tree, addresses: ServiceResolver, certificate: tuple[str, str]) -> None:
        """Learn from its APIService."""
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
            dial=lambda: addresses.resolve(namespace, name, port),
        )
        self.due, self.failures = 0.0, 0
        self.turn += 1

    # asking it

    async def fetch(
        self, outbound: HttpClient, path: str, *, user: User, seconds: float, accept: str = "", tag: str = ""
    ) -> Fetched:
        """What it answers to this server, on behalf of a user of its own."""
        if not self.available or self.problem:
            return Fetched(503 if not self.available else 500)
        headers = [*identity_headers(user), *self.forwarded(path)]
        headers += [("Accept", accept)] if accept else []
        headers += [("If-None-Match", tag)] if tag else []
        try:
            async with asyncio.timeout(seconds):
                incoming = await outbound.request(self.destination, "GET", path, headers=headers)
                body = await incoming.body(_LARGEST)
        except (HttpClientError, TimeoutError):
            return Fetched(503)
        return Fetched(incoming.code, body, incoming.header("content-type"), incoming.header("etag"))

    def forwarded(self, path: str) -> list[tuple[str, str]]:
        """The headers that say what was asked for, and where it really goes; none if it goes nowhere."""
        try:
            host, port = self.destination.address()
        except HttpClientError:
            return []
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return [
            ("Host", shown),
            ("X-Forwarded-Host", shown),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Uri", path),
        ]

    # discovery

    async def discover(self, outbound: HttpClient, now: float) -> bool:
        """Ask what it serves, unless that is known; whether it is something else than before."""
        turn, since = self._described_at
        if self._described is not None and turn == self.turn and now - since < _KNOWN_FOR:
            return False
        self._described_at = (self.turn, now)
        before, self._described = self._described, await self._asked(outbound)
        if self._described is None:
            self._tag = ""  # it may come back with what it had
        return before != self._described

    async def _asked(self, outbound: HttpClient) -> Tree | None:
        fetched = await self.fetch(
            outbound, "/apis", user=_AGGREGATOR, seconds=_DISCOVERY_SECONDS, accept=_ACCEPT, tag=self._tag
        )
        if fetched.code == 304:
            return self._described
        if fetched.code == 503:
            return None
        if fetched.code == 200 and _AGGREGATED in fetched.content_type.replace(" ", ""):
            self._tag = fetched.tag
            return self._own_part(_tree(fetched.body))
        self._tag = ""
        fetched = await self.fetch(
            outbound, self.path, user=_UNPRIVILEGED, seconds=_DISCOVERY_SECONDS, accept="application/json"
        )
        if fetched.code != 200:
            return None
        return {"version": self.version, "resources": _described(_tree(fetched.body).get("resources") or [])}

    def _own_part(self, tree: Tree) -> Tree:
        for group in tree.get("items") or ():
            if (group.get("metadata") or {}).get("name") == self.group:
                for version in group.get("versions") or ():
                    if version.get("version") == self.version:
                        return {key: value for key, value in version.items() if key != "freshness"}
        return {"version": self.version}

    def described(self) -> Tree:
        """Its version as discovery tells of it."""
        if not self.available or self._described is None:
            return {"version": self.version, "freshness": "Stale"}
        found = {key: value for key, value in self._described.items() if value}
        return {**found, "freshness": "Current"}


def identity_headers(user: User) -> list[tuple[str, str]]:
    """Who asks, as the front proxy says it."""
    found = [("X-Remote-User", user.name)]
    if user.uid:
        found.append(("X-Remote-Uid", user.uid))
    found.extend(("X-Remote-Group", group) for group in user.groups)
    for name, values in user.extra.items():
        escaped = "".join(one if one.isalnum() or one in "-_.!#$&'*+^`|~" else f"%{ord(one):02X}" for one in name)
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


def _tree(body: bytes) -> Tree:
    try:
        tree = decode_json(body)
    except StatusError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _described(resources: list[Tree]) -> list[Tree]:
    """Resources of the old form in the aggregated one."""
    found: dict[str, Tree] = {}
    for item in resources:
        name, _, sub = str(item.get("name") or "").partition("/")
        kind = {name: item.get(name) or "" for name in ("group", "version", "kind")}
        if sub:
            described = {"subresource": sub, "responseKind": kind, "verbs": item.get("verbs") or []}
            found.setdefault(name, {"resource": name}).setdefault("subresources", []).append(described)
            continue
        tree: Tree = {
            "resource": name,
            "responseKind": kind,
            "scope": "Namespaced" if item.get("namespaced") else "Cluster",
            "singularResource": item.get("singularName") or "",
            "verbs": item.get("verbs") or [],
        }
        tree.update({key: item[key] for key in ("shortNames", "categories") if item.get(key)})
        found[name] = {**found.get(name, {}), **tree}
    return list(found.values())
