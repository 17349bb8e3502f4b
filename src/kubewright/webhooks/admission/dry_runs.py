"""A client whose writes are dry-runs, for handlers that answer a dry-run request.

A handler that writes to the cluster thereby keeps the promise of `side_effects="NoneOnDryRun"` without code of its own.
Reads are unchanged. `admission.handler` passes this client as the argument `client`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Final, final

import msgspec

from kubewright.api.codec import decode_tree, encode_tree
from kubewright.client.client import Client
from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream, Transport

__all__ = ("dry_run_client",)

_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def dry_run_client(client: Client) -> Client:
    """The same client, except that the server stores none of its writes."""
    return Client(
        _DryRunTransport(client.transport),
        namespace=client.namespace,
        field_manager=client.field_manager,
        field_validation=client.field_validation,
        timeout=client.timeout,
    )


@final
class _DryRunTransport:
    """A transport that marks every write as a dry-run."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self._transport.send(_as_dry_run(request) if request.method in _WRITES else request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        return self._transport.stream(request)

    async def close(self) -> None:
        """The connections belong to the client this one was made from."""


def _as_dry_run(request: HttpRequest) -> HttpRequest:
    query = (*(pair for pair in request.query if pair[0] != "dryRun"), ("dryRun", "All"))
    body = request.body
    if request.method == "DELETE" and body:
        # kube-apiserver reads DeleteOptions from the body if there is one, and then ignores the query
        # (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/delete.go).
        options: Any = decode_tree(body)
        body = encode_tree({**options, "dryRun": ["All"]})
    return msgspec.structs.replace(request, query=query, body=body)
