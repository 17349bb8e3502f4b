"""One request to a resource on its way through the server, and who makes it.

`Call` gathers what every verb needs: the request, what it means, the resource, the user, the form of the answer and the
warnings that come up. `User` is an identity, whoever established it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from msgspec import Struct

from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.wire.negotiation import MediaType
from kubewright.apiserver.wire.requests import Request, RequestInfo

__all__ = ("ADMIN", "ANONYMOUS", "MASTERS", "Call", "User")

MASTERS: Final = "system:masters"
"""The group that may do everything, whatever roles say."""


class User(Struct, frozen=True):
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    def tree(self) -> dict[str, Any]:
        """As objects and reviews write a user down."""
        said: dict[str, Any] = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        said["extra"] = {name: list(values) for name, values in self.extra.items()}
        return {name: value for name, value in said.items() if value}


ADMIN: Final = User("kubernetes-admin", (MASTERS, "system:authenticated"))
ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))


@final
@dataclass(slots=True, eq=False)
class Call:
    """A request to a resource."""

    request: Request
    target: RequestInfo
    resource: Resource
    user: User
    output: MediaType
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The key of the object meant."""
        target = self.target
        return f"{target.namespace}/{target.name}" if self.resource.namespaced else target.name

    @property
    def namespace(self) -> str:
        """The namespace of the object meant; none for a resource that is in no namespace."""
        return self.target.namespace if self.resource.namespaced else ""

    def warn(self, text: str) -> None:
        """Tell the client something that is no error, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def headers(self) -> dict[str, str]:
        """The headers the warnings make."""
        if not self.warnings:
            return {}
        return {"Warning": "\n".join(f'299 - "{_quoted(text)}"' for text in self.warnings)}


def _quoted(text: str) -> str:
    clean = "".join(character if character.isprintable() else " " for character in text)
    return clean.replace("\\", "\\\\").replace('"', '\\"')
