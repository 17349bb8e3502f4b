"""The handlers of the manager's HTTP servers: /healthz and /readyz, /metrics, /debug.

Each function makes the handler of one `Server`. Pure but for the checks they run; sockets are in `server`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from kubewright._base.http.messages import Request, Response
from kubewright._base.log_formats import plain
from kubewright._base.metrics import CONTENT_TYPE, Metrics
from kubewright.manager.addresses import is_loopback
from kubewright.manager.endpoints.debug import DebugProvider
from kubewright.manager.endpoints.healthz import Checks
from kubewright.manager.endpoints.server import Handler

if TYPE_CHECKING:
    from kubewright.manager.endpoints.metrics_authorizer import MetricsAuthorizer

__all__ = ("debug_handler", "health_handler", "metrics_handler")

_READS: Final = ("GET", "HEAD")
_NOT_ALLOWED: Final = Response(code=405, body=b"only GET and HEAD are allowed\n", headers={"Allow": "GET, HEAD"})


def health_handler(*groups: Checks) -> Handler:
    """`/healthz`, `/readyz` and so on, one for each group of checks by its title."""
    by_title = {checks.title: checks for checks in groups}

    async def answer(request: Request) -> Response:
        if request.method not in _READS:
            return _NOT_ALLOWED
        title, _, rest = request.path.removeprefix("/").partition("/")
        checks = by_title.get(title)
        if checks is None:
            return Response.text(f"not found; there is {', '.join(f'/{title}' for title in by_title)}\n", code=404)
        status, text = await checks.answer(rest, request.parameters)
        return Response.text(text, code=status)

    return answer


def metrics_handler(metrics: Metrics, *, authorizer: MetricsAuthorizer | None = None) -> Handler:
    """`/metrics`; with an `authorizer`, only for users that the cluster allows to read it."""

    async def answer(request: Request) -> Response:
        if request.path != "/metrics":
            return Response.text("not found; there is /metrics\n", code=404)
        if request.method not in _READS:
            return _NOT_ALLOWED
        if authorizer is not None:
            refusal = await authorizer.refusal(request)
            if refusal is not None:
                return refusal
        return Response(body=metrics.exposition(), content_type=CONTENT_TYPE)

    return answer


def debug_handler(providers: Mapping[str, DebugProvider]) -> Handler:
    """`/debug` with everything, `/debug/<name>` with one part, as JSON.

    Only for this machine: the server listens on loopback, and it refuses a request with another Host, so that a web
    page cannot read it through a browser (DNS rebinding).
    """

    async def answer(request: Request) -> Response:
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        if not is_loopback(host):
            return Response.text("use localhost or 127.0.0.1 as the host\n", code=403)
        if request.method not in _READS:
            return _NOT_ALLOWED
        top, _, name = request.path.strip("/").partition("/")
        if top != "debug" or (name and name not in providers):
            names = ", ".join(f"/debug/{name}" for name in providers)
            return Response.text(f"not found; there is /debug, and {names}\n", code=404)
        shown = {part: providers[part]() for part in providers} if not name else providers[name]()
        body = msgspec.json.format(msgspec.json.encode(shown, enc_hook=plain), indent=2)
        return Response(body=body + b"\n", content_type="application/json")

    return answer
