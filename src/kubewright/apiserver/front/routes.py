"""The handlers of everything that is not simply stored.

`Routes` has them: resources that are never stored, such as reviews; subresources with a handler of their own;
non-resource paths. `server` and `identities` register them, and the router looks them up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import final

from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.wire.requests import Request, RequestInfo
from kubewright.apiserver.wire.responses import Reply
from kubewright.apiserver.wire.users import User

__all__ = ("Handler", "PathHandler", "Routes")

Handler = Callable[[Call], Awaitable[Reply]]
"""Handles every verb of a resource or a subresource."""

PathHandler = Callable[[Request, User], Awaitable[Reply] | Reply]
"""Handles a non-resource path and everything below it."""


@final
class Routes:
    """Handlers by resource, by subresource and by path."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], Handler] = {}
        self._subresources: dict[str, Handler] = {}
        self._paths: dict[str, PathHandler] = {}

    def add_resource(self, group: str, plural: str, handler: Handler, *, subresource: str = "") -> None:
        """Register the handler of a resource, or of one of its subresources, in every version."""
        self._resources[group, plural, subresource] = handler

    def add_subresource(self, name: str, handler: Handler) -> None:
        """Register the handler of a subresource of all resources."""
        self._subresources[name] = handler

    def add_path(self, name: str, handler: PathHandler) -> None:
        """Register the handler of the non-resource paths that begin with a name; `""` is the path `/`."""
        self._paths[name] = handler

    def resource(self, info: RequestInfo) -> Handler | None:
        """The handler of a request for a resource; None if the verbs handle it."""
        found = self._resources.get((info.group, info.resource, info.subresource))
        return found or (self._subresources.get(info.subresource) if info.subresource else None)

    def path(self, name: str) -> PathHandler | None:
        """The handler of the paths that begin with a name."""
        return self._paths.get(name)
