"""The user of a request: name, groups, uid and extra, as kube-apiserver's `user.Info`.

`auth` authenticates requests; authorization, admission, audit and the verbs read the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

__all__ = ("ADMIN", "ANONYMOUS", "MASTERS", "User", "node_name")

MASTERS: Final = "system:masters"
"""The group that every authorizer allows everything."""
_NODES: Final = "system:nodes"
_NODE_PREFIX: Final = "system:node:"


class User(Struct, frozen=True):
    """An authenticated or impersonated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    def tree(self) -> dict[str, Any]:
        """The user as UserInfo of authentication.k8s.io/v1, without empty fields."""
        info: dict[str, Any] = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        info["extra"] = {name: list(self.extra[name]) for name in sorted(self.extra)}
        return {name: value for name, value in info.items() if value}


ADMIN: Final = User("kubernetes-admin", (MASTERS, "system:authenticated"))
ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))


def node_name(user: User) -> str | None:  # hot
    """The name of the node that a user is; None if it is none (pkg/auth/nodeidentifier/default.go)."""
    if not user.name.startswith(_NODE_PREFIX) or _NODES not in user.groups:
        return None
    return user.name.removeprefix(_NODE_PREFIX)
