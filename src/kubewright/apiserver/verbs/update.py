"""The verb update: from a body to a changed object, or a changed subresource of it.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/update.go. A patch and an apply of an object that is
there end in `update_object` too.
"""

from __future__ import annotations

from typing import Any, Final, final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.kinds.admission import write_attributes
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.kinds.system_metadata import meta_of
from kubewright.apiserver.storage.store import Entry
from kubewright.apiserver.verbs.create import CreateHandler
from kubewright.apiserver.verbs.decode import check_name, clear_version, decode_object, ensure_namespace
from kubewright.apiserver.verbs.field_tracking import track_update
from kubewright.apiserver.verbs.registry import OPTIMISTIC_LOCK_ERROR, Registry
from kubewright.apiserver.wire.options import WriteOptions, write_options
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.status_errors import conflict, invalid, not_found, status_error

__all__ = ("MAX_RETRIES", "UpdateHandler")

MAX_RETRIES: Final = 5
"""How often a write that states no version is tried while others write the same object."""


@final
class UpdateHandler:
    """Updates objects in a registry."""

    def __init__(self, registry: Registry, creates: CreateHandler) -> None:
        self._registry = registry
        self._creates = creates

    async def update(self, call: Call) -> Response:
        """Replace an object, or the part that a subresource is about, by the body.

        An update that states a version conflicts if that is not the present one. One that states none replaces
        whatever is there, so it is tried again when somebody else was faster.
        """
        options = write_options("UpdateOptions", call.request.query)
        tree = await decode_object(call, options)
        meta = meta_of(tree)
        check_name(call, meta)
        ensure_namespace(call, meta)
        has_version = meta.get("resourceVersion") not in (None, "", "0")
        entry = self._registry.find(call)
        if entry is None:
            if call.resource.strategy.allow_create_on_update and not call.info.subresource:
                clear_version(meta, options)
                return await self._creates.create_object(call, tree, options)
            raise not_found(call.resource.group_resource, call.info.name)
        for _ in range(MAX_RETRIES):
            old = await call.resource.tree_of(entry)
            _check_uid(call, old, meta_of(tree))
            response = await self.update_object(call, entry, old, tree, options)
            if response is not None:
                return response
            if has_version:
                break
            entry = self._registry.get(call)
            tree = await decode_object(call, options)  # the first try has changed the tree in place
            ensure_namespace(call, meta_of(tree))
        raise conflict(call.resource.group_resource, call.info.name, OPTIMISTIC_LOCK_ERROR)

    async def update_object(
        self, call: Call, entry: Entry, old: Tree, tree: Tree, options: WriteOptions, *, is_tracked: bool = False
    ) -> Response | None:
        """Replace the object in `entry`, which is `old`, by another.

        None when somebody else wrote it meanwhile. `is_tracked` says that managed fields are noted already.
        """
        registry = self._registry
        _check_version(call, entry, meta_of(tree))
        if not is_tracked:
            await track_update(call, old, tree, options, registry.clock.now())
        attributes = write_attributes(call, "UPDATE", tree, old, options)
        await registry.admission.mutate(attributes)
        return await registry.update(call, attributes, entry, options)


def _check_uid(call: Call, old: Tree, meta: dict[str, Any]) -> None:
    """Refuse an update of another object of the same name, in the words of etcd's precondition."""
    resource = call.resource
    uid = meta.get("uid")
    if uid and uid != old["metadata"]["uid"]:
        prefix = f"{resource.kind.group}/{resource.plural}" if resource.custom else resource.plural
        raise conflict(
            resource.group_resource,
            call.info.name,
            f"StorageError: invalid object, Code: 4, Key: /registry/{prefix}/{call.key},"
            " ResourceVersion: 0, AdditionalErrorMsg: Precondition failed:"
            f" UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}",
        )


def _check_version(call: Call, entry: Entry, meta: dict[str, Any]) -> None:
    resource = call.resource
    version = meta.get("resourceVersion")
    if version in (None, "", "0"):
        if not resource.strategy.allow_unconditional_update:
            error = FieldError("metadata.resourceVersion", "Invalid", "must be specified for an update", 0)
            # kube-apiserver has no kind at hand there and names the resource instead.
            about = GroupVersionKind(resource.kind.group, "", resource.plural)
            raise invalid(about, call.info.name, [error])
    elif not str(version).isdecimal():
        raise status_error(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    elif version != str(entry.version):
        raise conflict(resource.group_resource, call.info.name, OPTIMISTIC_LOCK_ERROR)
