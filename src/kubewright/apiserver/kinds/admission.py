"""The door every write passes: what is asked to change an object, and what is asked whether it may be written.

This module is the contract: `Operation` is one write as admission sees it, `Admission` a chain of those who judge it.
The judges themselves are elsewhere: `lifecycle` (namespaces), `webhook_admission`, `policies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, final

from kubewright.apiserver.kinds.calls import User
from kubewright.apiserver.kinds.resources import Resource, Tree

__all__ = ("Admission", "Judge", "Operation", "Verb")

Verb = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@final
@dataclass(slots=True, eq=False)
class Operation:
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


class Judge(Protocol):
    """One member of the chain."""

    def concerns(self, operation: Operation) -> bool:
        """Whether it has anything to say; asked for every write, so it must be quick."""
        ...

    async def mutate(self, operation: Operation) -> None:
        """Change the object, or raise `Refused`."""
        ...

    async def validate(self, operation: Operation) -> None:
        """Raise `Refused` if the object may not be written."""
        ...


@final
class Admission:
    """The judges, in order."""

    def __init__(self, judges: Sequence[Judge] = ()) -> None:
        self.judges = list(judges)

    async def mutate(self, operation: Operation) -> bool:
        """Let every judge change the object; says whether any was asked."""
        asked = False
        for judge in self.judges:
            if judge.concerns(operation):
                await judge.mutate(operation)
                asked = True
        return asked

    async def validate(self, operation: Operation) -> None:
        """Let every judge refuse."""
        for judge in self.judges:
            if judge.concerns(operation):
                await judge.validate(operation)
