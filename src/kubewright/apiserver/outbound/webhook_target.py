"""Where a webhook is: from the `clientConfig` of a configuration to a destination and a path."""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Mapping
from typing import Any, Final, final
from urllib.parse import quote, unquote, urljoin, urlsplit

from msgspec import Struct

from kubewright.apiserver.outbound.http_client import Destination
from kubewright.apiserver.outbound.service_resolver import ServiceResolver

__all__ = ("WebhookTarget", "target_of_client")

_PLAIN: Final = "-_.~$&+,/:;=@"


@final
class WebhookTarget(Struct, frozen=True):
    """A server and the path there."""

    destination: Destination
    path: str

    @property
    def url(self) -> str:
        """The whole address."""
        return f"{self.destination.url}{self.path}"

    def elsewhere(self, location: str) -> WebhookTarget:
        """Where an answer from here says to ask instead. Connections to a Service stay connections to it."""
        parts = urlsplit(urljoin(self.url, location))
        here = self.destination
        destination = Destination(
            parts.netloc.rpartition("@")[2],
            here.server_name if here.dial is not None else parts.hostname or "",
            secure=parts.scheme != "http",
            authorities=here.authorities,
            dial=here.dial,
        )
        return WebhookTarget(destination, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


def target_of_client(client: Mapping[str, Any], addresses: ServiceResolver) -> WebhookTarget:
    """The server a `clientConfig` names by url or by service."""
    try:
        authorities = base64.b64decode(client.get("caBundle") or "", validate=False)
    except (binascii.Error, ValueError):
        authorities = b"unreadable"
    service = client.get("service")
    if service is not None:
        return _of_service(service, authorities, addresses)
    parts = urlsplit(str(client.get("url") or ""))
    host = parts.netloc.rpartition("@")[2]
    destination = Destination(host, parts.hostname or "", authorities=authorities)
    return WebhookTarget(destination, _cleaned(unquote(parts.path)))


def _cleaned(path: str) -> str:
    """The shortest way to say a path, which is how a real server says it: no slash at the end, none twice, no dots."""
    return quote(posixpath.normpath("/" + path.lstrip("/")), safe=_PLAIN)


def _of_service(service: Mapping[str, Any], authorities: bytes, addresses: ServiceResolver) -> WebhookTarget:
    namespace, name, port = str(service["namespace"]), str(service["name"]), int(service.get("port") or 443)
    server_name = f"{name}.{namespace}.svc"

    def dial() -> tuple[str, int]:
        return addresses.resolve(namespace, name, port)

    destination = Destination(f"{server_name}:{port}", server_name, authorities=authorities, dial=dial)
    return WebhookTarget(destination, _cleaned(str(service.get("path") or "/")))
