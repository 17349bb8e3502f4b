"""RestClient: what `client.pods` and `client.scales` need of a client, like client-go's rest.Interface.

`client.client.Client` implements it and makes both, so neither imports `Client`.
"""

from __future__ import annotations

from typing import Protocol

from kubewright.api.names import ObjectKey
from kubewright.api.resource import KubeObject
from kubewright.client.routes import Query
from kubewright.client.transport.transport import HttpResponse, Transport

__all__ = ("RestClient",)


class RestClient(Protocol):
    """Requests by path, with their errors raised."""

    @property
    def transport(self) -> Transport: ...

    @property
    def namespace(self) -> str:
        """For calls that name no namespace."""
        ...

    @property
    def timeout(self) -> float: ...

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
        """Send a request; an error status raises an ApiError."""
        ...

    async def object_path(
        self,
        kind: type[KubeObject],
        name: str | ObjectKey,
        *,
        namespace: str | None,
        subresource: str | None = None,
    ) -> str:
        """The path of an object, or of a subresource of it."""
        ...
