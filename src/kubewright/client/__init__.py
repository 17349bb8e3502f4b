"""The client of a cluster: configuration, transport, every verb of the API, watches and discovery.

The names are imported when they are used: reading the configuration alone does not load the HTTP library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewright._base.lazy import lazy

if TYPE_CHECKING:
    from kubewright.client.client import Client
    from kubewright.client.config.config import Config
    from kubewright.client.config.credentials import ClientCertificate, StaticToken, TokenFile
    from kubewright.client.conflicts import retry_on_conflict
    from kubewright.client.connection import connect
    from kubewright.client.lists import ObjectList
    from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport
    from kubewright.client.watch import Bookmark, WatchEvent
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "kubewright.client.client": ("Client",),
            "kubewright.client.config.config": ("Config",),
            "kubewright.client.config.credentials": ("ClientCertificate", "StaticToken", "TokenFile"),
            "kubewright.client.conflicts": ("retry_on_conflict",),
            "kubewright.client.connection": ("connect",),
            "kubewright.client.lists": ("ObjectList",),
            "kubewright.client.transport.transport": ("HttpRequest", "HttpResponse", "HttpStream", "Transport"),
            "kubewright.client.watch": ("Bookmark", "WatchEvent"),
        },
    )

__all__ = (
    "Bookmark",
    "Client",
    "ClientCertificate",
    "Config",
    "HttpRequest",
    "HttpResponse",
    "HttpStream",
    "ObjectList",
    "StaticToken",
    "TokenFile",
    "Transport",
    "WatchEvent",
    "connect",
    "retry_on_conflict",
)
