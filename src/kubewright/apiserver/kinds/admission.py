"""The contract between the verbs that write and the admission plugins they ask.

`Attributes` is one write as a plugin sees it (kube-apiserver: `admission.Attributes`). `Chain` asks its plugins in
order. A plugin that changes objects has `mutate`, one that refuses objects has `validate`, some have both; one that
counts what is in the store has `check_commit`. The plugins are in the room `admission`; `admission_chain` orders them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, final, runtime_checkable

from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.wire.options import WriteOptions
from kubewright.apiserver.wire.status_errors import StatusError, forbidden
from kubewright.apiserver.wire.users import User
from kubewright.apiserver.wire.warning_recorder import WarningRecorder

__all__ = (
    "Attributes",
    "Chain",
    "CommitPlugin",
    "MutationPlugin",
    "Operation",
    "Plugin",
    "ValidationPlugin",
    "admission_forbidden",
    "write_attributes",
)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@final
@dataclass(slots=True, eq=False)
class Attributes:
    """One write. A plugin that mutates changes `object` in place, or replaces it."""

    operation: Operation
    resource: Resource
    namespace: str
    name: str
    object: Tree | None
    old: Tree | None
    user: User
    subresource: str = ""
    path_name: str = ""
    """The name in the path of the request, which a POST of a collection does not have."""
    dry_run: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    """CreateOptions, UpdateOptions, PatchOptions or DeleteOptions as a tree, with kind and apiVersion."""
    warnings: WarningRecorder = field(default_factory=WarningRecorder)
    annotations: dict[str, str] = field(default_factory=dict)
    """What plugins want to have in the audit log."""


@runtime_checkable
class MutationPlugin(Protocol):
    """A plugin that may change the object of a write."""

    def handles(self, attributes: Attributes) -> bool:
        """Whether the write concerns this plugin; called for every write, so it must be quick."""
        ...

    async def mutate(self, attributes: Attributes) -> None:
        """Change the object, or raise `StatusError`."""
        ...


@runtime_checkable
class ValidationPlugin(Protocol):
    """A plugin that may refuse a write once its object is final."""

    def handles(self, attributes: Attributes) -> bool:
        """Whether the write concerns this plugin; called for every write, so it must be quick."""
        ...

    async def validate(self, attributes: Attributes) -> None:
        """Raise `StatusError` to refuse the write; the object may not be changed any more."""
        ...


@runtime_checkable
class CommitPlugin(Protocol):
    """A plugin whose answer depends on what is in the store at the moment of the write."""

    def handles(self, attributes: Attributes) -> bool:
        """Whether the write concerns this plugin; called for every write, so it must be quick."""
        ...

    def check_commit(self, attributes: Attributes) -> None:
        """Raise `StatusError` to refuse the write. Not async: nothing runs between this check and the write."""
        ...


Plugin = MutationPlugin | ValidationPlugin | CommitPlugin


@final
class Chain:
    """Asks plugins in order: those that mutate; after validation, those that validate; at the write, the others."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self._mutating = tuple(plugin for plugin in plugins if isinstance(plugin, MutationPlugin))
        self._validating = tuple(plugin for plugin in plugins if isinstance(plugin, ValidationPlugin))
        self._committing = tuple(plugin for plugin in plugins if isinstance(plugin, CommitPlugin))

    async def mutate(self, attributes: Attributes) -> None:
        """Let each plugin change the object; the first that refuses ends it."""
        for plugin in self._mutating:
            if plugin.handles(attributes):
                await plugin.mutate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Let each plugin refuse the write; the first that does ends it."""
        for plugin in self._validating:
            if plugin.handles(attributes):
                await plugin.validate(attributes)

    def check_commit(self, attributes: Attributes) -> None:
        """Let each plugin refuse the write for what is in the store now; the caller writes at once."""
        for plugin in self._committing:
            if plugin.handles(attributes):
                plugin.check_commit(attributes)


def write_attributes(
    call: Call, operation: Operation, tree: Tree, old: Tree | None, options: WriteOptions
) -> Attributes:
    """The attributes of a create or an update. A patch is an update to admission, and so is an apply."""
    kind = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
    described: Tree = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if options.dry_run:
        described["dryRun"] = ["All"]
    if options.manager:
        described["fieldManager"] = options.manager
    if "fieldValidation" in call.request.query:
        described["fieldValidation"] = options.validation
    return Attributes(
        operation=operation,
        resource=call.resource,
        namespace=call.namespace,
        name=str(tree["metadata"].get("name", "")),
        object=tree,
        old=old,
        user=call.user,
        subresource=call.info.subresource,
        path_name=call.info.name,
        dry_run=options.dry_run,
        options=described,
        warnings=call.warnings,
        annotations=call.request.annotations,
    )


def admission_forbidden(attributes: Attributes, why: str) -> StatusError:
    """The refusal of a write by a plugin.

    As `admission.NewForbidden` in kube-apiserver: plugins that mutate run before a name is generated, so they name the
    object by its `generateName`.
    """
    meta = (attributes.object or {}).get("metadata") or {}
    name = attributes.name or meta.get("name") or meta.get("generateName") or "Unknown"
    return forbidden(attributes.resource.group_resource, str(name), why)
