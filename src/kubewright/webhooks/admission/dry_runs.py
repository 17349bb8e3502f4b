"""A client whose writes are trials: what a handler gets while the request it answers is a dry-run.

So that a handler which reads and writes the cluster keeps the promise of `side_effects="NoneOnDryRun"` without
having to think of it. Reads are as ever.
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
    """The same client, but the server stores nothing of what it writes."""
    return Client(
        _DryRuns(client.transport),
        namespace=client.namespace,
        field_manager=client.field_manager,
        field_validation=client.field_validation,
        timeout=client.timeout,
    )


@final
class _DryRuns:
    """A transport that marks every write as a dry-run."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self._transport.send(_marked(request) if request.method in _WRITES else request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        return self._transport.stream(request)

    async def close(self) -> None:
        """The connections belong to the client this one was made from."""


def _marked(request: HttpRequest) -> HttpRequest:
    query = (*(pair for pair in request.query if pair[0] != "dryRun"), ("dryRun", "All"))
    body = request.body
    if request.method == "DELETE" and body:
        # The options of a deletion are read from its body where it has one, and then nowhere else.
        options: Any = decode_tree(body)
        body = encode_tree({**options, "dryRun": ["All"]})
    return msgspec.structs.replace(request, query=query, body=body)
