"""The door every write passes: what is asked to change an object, and what is asked whether it may be written.

This module is the contract: `Attributes` is one write as admission sees it, `Chain` a chain of those who judge it.
The judges themselves are elsewhere: `lifecycle` (namespaces), `webhook_admission`, `policies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, final

from kubewright.apiserver.kinds.calls import User
from kubewright.apiserver.kinds.resources import Resource, Tree

__all__ = ("Attributes", "Chain", "Plugin", "Verb")

Verb = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@final
@dataclass(slots=True, eq=False)
class Attributes:
    """One write. Judges that mutate change `object` in place or replace it."""

    verb: Verb
    resource: Resource
    namespace: str
    name: str
    object: Tree | None
    old: Tree | None
    user: User
    subresource: str = ""
    dry_run: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    """CreateOptions, UpdateOptions, PatchOptions or DeleteOptions as a tree, with kind and apiVersion."""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """What judges want to have in the audit log."""


class Plugin(Protocol):
    """One member of the chain."""

    def handles(self, attributes: Attributes) -> bool:
        """Whether it has anything to say; asked for every write, so it must be quick."""
        ...

    async def mutate(self, attributes: Attributes) -> None:
        """Change the object, or raise `Refused`."""
        ...

    async def validate(self, attributes: Attributes) -> None:
        """Raise `Refused` if the object may not be written."""
        ...


@final
class Chain:
    """The judges, in order."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.plugins = list(plugins)

    async def mutate(self, attributes: Attributes) -> bool:
        """Let every judge change the object; says whether any was asked."""
        asked = False
        for judge in self.plugins:
            if judge.handles(attributes):
                await judge.mutate(attributes)
                asked = True
        return asked

    async def validate(self, attributes: Attributes) -> None:
        """Let every judge refuse."""
        for judge in self.plugins:
            if judge.handles(attributes):
                await judge.validate(attributes)
