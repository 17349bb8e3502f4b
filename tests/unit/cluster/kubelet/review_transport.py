"""The API server of a kubelet, without a network: it reviews tokens, and whether a user may."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any

from kubewright.client.transport.transport import HttpRequest, HttpResponse, HttpStream

__all__ = ("ReviewTransport",)


class ReviewTransport:
    """A `Transport` that answers TokenReviews and SubjectAccessReviews, and keeps their specs."""

    def __init__(self, *, users: dict[str, str] | None = None, rights: set[tuple[str, str, str]] | None = None) -> None:
        """`users` are the names behind tokens; `rights` are user, verb and subresource."""
        self.users = users or {}
        self.rights = rights or set()
        self.reviewed: list[dict[str, Any]] = []
        self.status = 201

    async def send(self, request: HttpRequest) -> HttpResponse:
        if request.method == "GET":
            return self._discovery(request.path)
        tree = json.loads(request.body or b"{}")
        spec = tree["spec"]
        self.reviewed.append(spec)
        if request.path.endswith("/tokenreviews"):
            name = self.users.get(spec["token"])
            tree["status"] = {"authenticated": name is not None, "user": {"username": name, "groups": ["g"]}}
        else:
            asked = spec["resourceAttributes"]
            tree["status"] = {"allowed": (spec["user"], asked["verb"], asked["subresource"]) in self.rights}
        return HttpResponse(status=self.status, headers={}, body=json.dumps(tree).encode())

    def _discovery(self, path: str) -> HttpResponse:
        raise AssertionError(f"unexpected GET {path}")

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpStream]:
        raise AssertionError(f"unexpected {request}")

    async def close(self) -> None:
        pass
