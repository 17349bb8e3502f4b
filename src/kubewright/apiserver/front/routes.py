"""The handlers of everything that is not a plain object in a table.

`Routes` holds them: resources that are answered and never stored, such as reviews; subresources with a handler of their
own; non-resource paths. The parts of a server register theirs while `server` puts it together; the router only looks
them up.
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
"""Answers every verb of a resource or a subresource."""

PathHandler = Callable[[Request, User], Awaitable[Reply] | Reply]
"""Answers a non-resource path and everything below it."""


@final
class Routes:
    """Handlers by resource, by subresource and by path."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], Handler] = {}
        self._subresources: dict[str, Handler] = {}
        self._paths: dict[str, PathHandler] = {}

    def add_resource(self, group: str, plural: str, handler: Handler, *, subresource: str = "") -> None:
        """Have a handler answer one resource, or one subresource of it, in every version."""
        self._resources[group, plural, subresource] = handler

    def add_subresource(self, name: str, handler: Handler) -> None:
        """Have a handler answer a subresource of every resource that has it."""
        self._subresources[name] = handler

    def add_path(self, name: str, handler: PathHandler) -> None:
        """Have a handler answer the non-resource paths that begin with a name; `""` is the path `/`."""
        self._paths[name] = handler

    def resource(self, info: RequestInfo) -> Handler | None:
        """The handler of a request for a resource, if it is not answered from a table."""
        found = self._resources.get((info.group, info.resource, info.subresource))
        return found or (self._subresources.get(info.subresource) if info.subresource else None)

    def path(self, name: str) -> PathHandler | None:
        """The handler of the paths that begin with a name."""
        return self._paths.get(name)
