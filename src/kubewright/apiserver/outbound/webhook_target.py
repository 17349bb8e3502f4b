"""The destination and the path of a webhook, from the `clientConfig` of a webhook configuration or of a CRD.

It follows `ClientManager.HookClient` of k8s.io/apiserver/pkg/util/webhook/client.go.
"""

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

__all__ = ("WebhookTarget", "target_of_client_config")

_PLAIN: Final = "-_.~$&+,/:;=@"


@final
class WebhookTarget(Struct, frozen=True):
    """A destination and a path."""

    destination: Destination
    path: str

    @property
    def url(self) -> str:
        """The whole URL."""
        return f"{self.destination.url}{self.path}"

    def redirected(self, location: str) -> WebhookTarget:
        """The target of a redirect from here. A webhook of a Service stays there: its dialer ignores the new host."""
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


def target_of_client_config(client_config: Mapping[str, Any], resolver: ServiceResolver) -> WebhookTarget:
    """The target that a `clientConfig` names by url or by service."""
    try:
        authorities = base64.b64decode(client_config.get("caBundle") or "", validate=False)
    except (binascii.Error, ValueError):
        authorities = b"unreadable"
    service = client_config.get("service")
    if service is not None:
        return _service_target(service, authorities, resolver)
    parts = urlsplit(str(client_config.get("url") or ""))
    host = parts.netloc.rpartition("@")[2]
    destination = Destination(host, parts.hostname or "", authorities=authorities)
    return WebhookTarget(destination, _clean_path(unquote(parts.path)))


def _clean_path(path: str) -> str:
    """The path as Go's path.Join makes it: without a slash at the end, doubled slashes and dots."""
    return quote(posixpath.normpath("/" + path.lstrip("/")), safe=_PLAIN)


def _service_target(service: Mapping[str, Any], authorities: bytes, resolver: ServiceResolver) -> WebhookTarget:
    namespace, name, port = str(service["namespace"]), str(service["name"]), int(service.get("port") or 443)
    server_name = f"{name}.{namespace}.svc"

    def dial() -> tuple[str, int]:
        return resolver.resolve(namespace, name, port)

    destination = Destination(f"{server_name}:{port}", server_name, authorities=authorities, dial=dial)
    return WebhookTarget(destination, _clean_path(str(service.get("path") or "/")))
