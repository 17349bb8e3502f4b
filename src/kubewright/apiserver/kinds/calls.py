"""One request for a resource, as the verbs see it.

`Call` has what every verb needs: the request, its meaning, the resource, the user, the negotiated media type, and the
warnings for the client. The router makes one for each request; `verbs.loopback` makes those of the server itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.wire.negotiation import MediaType
from kubewright.apiserver.wire.requests import Request, RequestInfo
from kubewright.apiserver.wire.users import User
from kubewright.apiserver.wire.warning_recorder import WarningRecorder

__all__ = ("Call",)


@final
@dataclass(slots=True, eq=False)
class Call:
    """A request for a resource."""

    request: Request
    info: RequestInfo
    resource: Resource
    user: User
    output: MediaType
    warnings: WarningRecorder = field(default_factory=WarningRecorder)
    stored_size: int = 0
    """Bytes of the object that the request is about, once the registry has found it."""

    @property
    def key(self) -> str:
        """The key of the object the request is for, in its table."""
        info = self.info
        return f"{info.namespace}/{info.name}" if self.resource.namespaced else info.name

    @property
    def size(self) -> int:
        """Bytes that there are to work on: of the body, and of the object that it is about."""
        return len(self.request.body) + self.stored_size

    @property
    def namespace(self) -> str:
        """The namespace of the request; empty for a cluster-scoped resource."""
        return self.info.namespace if self.resource.namespaced else ""

    def warn(self, text: str) -> None:
        """Send the client a warning, once."""
        self.warnings.add(text)

    def headers(self) -> dict[str, str]:
        """The response headers with the warnings."""
        return {"Warning": self.warnings.header()} if self.warnings else {}
