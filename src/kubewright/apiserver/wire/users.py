"""The user of a request: name, groups, uid and extra, as kube-apiserver's `user.Info`.

Who authenticates a request is `kinds.access` and the room `auth`; everything that answers one reads the user here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

__all__ = ("ADMIN", "ANONYMOUS", "MASTERS", "User")

MASTERS: Final = "system:masters"
"""The group that may do everything, whatever roles say."""


class User(Struct, frozen=True):
    """An authenticated or impersonated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}

    def tree(self) -> dict[str, Any]:
        """The user as a `UserInfo`, which objects and reviews contain."""
        info: dict[str, Any] = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        info["extra"] = {name: list(values) for name, values in self.extra.items()}
        return {name: value for name, value in info.items() if value}


ADMIN: Final = User("kubernetes-admin", (MASTERS, "system:authenticated"))
ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))
