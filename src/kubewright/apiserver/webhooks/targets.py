"""Where a webhook is: from the `clientConfig` of a configuration to a destination and a path."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, final
from urllib.parse import urlsplit

from msgspec import Struct

from kubewright.apiserver.outbound import Destination
from kubewright.apiserver.service_addresses import ServiceAddresses

__all__ = ("WebhookTarget", "target_of_client")


@final
class WebhookTarget(Struct, frozen=True):
    """A server and the path there."""

    destination: Destination
    path: str

    @property
    def url(self) -> str:
        """The whole address."""
        return f"{self.destination.url}{self.path}"


def target_of_client(client: Mapping[str, Any], addresses: ServiceAddresses) -> WebhookTarget:
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
    return WebhookTarget(destination, parts.path or "/")


def _of_service(service: Mapping[str, Any], authorities: bytes, addresses: ServiceAddresses) -> WebhookTarget:
    namespace, name, port = str(service["namespace"]), str(service["name"]), int(service.get("port") or 443)
    server_name = f"{name}.{namespace}.svc"

    def dial() -> tuple[str, int]:
        return addresses.resolve(namespace, name, port)

    destination = Destination(f"{server_name}:{port}", server_name, authorities=authorities, dial=dial)
    return WebhookTarget(destination, str(service.get("path") or "/"))
