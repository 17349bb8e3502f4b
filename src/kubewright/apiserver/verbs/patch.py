"""The verb patch: applies a patch to the live object and updates it with the result.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go. How each type of patch changes an object
is in `patches`; a server-side apply goes on to `apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import final

from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.kinds.system_metadata import meta_of
from kubewright.apiserver.verbs.apply import ApplyHandler
from kubewright.apiserver.verbs.decode import check_name, check_type, ensure_namespace, normalize
from kubewright.apiserver.verbs.decode_errors import check_patched_type
from kubewright.apiserver.verbs.patches.patchers import (
    APPLY_TYPES,
    apply_patch,
    duplicate_warnings,
    patch_type,
    patched_object_error,
)
from kubewright.apiserver.verbs.registry import OPTIMISTIC_LOCK_ERROR, Registry
from kubewright.apiserver.verbs.update import MAX_RETRIES, UpdateHandler
from kubewright.apiserver.wire.decoding import type_meta_error
from kubewright.apiserver.wire.options import WriteOptions, write_options
from kubewright.apiserver.wire.responses import Response
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, conflict

__all__ = ("PatchHandler",)


@final
class PatchHandler:
    """Patches objects in a registry."""

    def __init__(self, registry: Registry, updates: UpdateHandler, applies: ApplyHandler) -> None:
        self._registry = registry
        self._updates = updates
        self._applies = applies

    async def patch(self, call: Call) -> Response:
        """Change an object by the patch in the body, of any type."""
        kind = patch_type(call)
        is_apply = kind in APPLY_TYPES
        options = write_options("PatchOptions", call.request.query, is_apply=is_apply, is_patch=True)
        if is_apply:
            return await self._applies.apply(call, options)
        body = call.request.body
        return await self.edit(call, options, lambda live: apply_patch(call.resource, kind, body, live), patch=kind)

    async def edit(
        self, call: Call, options: WriteOptions, change: Callable[[Tree], Tree], *, patch: str = ""
    ) -> Response:
        """Read an object, change it and write it. `patch` is the type of the patch, if the change is one.

        A patch says what to change, not what the object was: if somebody else wrote it meanwhile, the patch is applied
        again to what is there now. A version in the patch itself is a precondition and conflicts at once.
        """
        resource = call.resource
        for _ in range(MAX_RETRIES):
            entry = self._registry.get(call)
            old = await resource.tree_of(entry)
            # Decoded once more: what a patch returns shares parts with its argument and is changed in place below.
            tree = await _changed(call, change, await resource.tree_of(entry))
            try:
                await off_loop(call.size, partial(_check_patched, call, tree, options, patch))
            except StatusError as exc:
                if not patch:
                    raise
                # The error shows the patched object as it was before unknown fields were dropped.
                tree = await _changed(call, change, await resource.tree_of(entry))
                raise patched_object_error(resource, patch, call.request.body, tree, exc) from None
            meta = meta_of(tree)
            check_name(call, meta)
            version = meta.get("resourceVersion")
            ensure_namespace(call, meta)
            meta["resourceVersion"] = version or old["metadata"]["resourceVersion"]
            response = await self._updates.update_object(call, entry, old, tree, options)
            if response is not None:
                return response
        raise conflict(resource.group_resource, call.info.name, OPTIMISTIC_LOCK_ERROR)


async def _changed(call: Call, change: Callable[[Tree], Tree], live: Tree) -> Tree:
    return await off_loop(call.size, lambda: change(live))


def _check_patched(call: Call, tree: Tree, options: WriteOptions, patch: str) -> None:
    if patch and call.resource.custom:
        check_patched_type(call, tree)
    elif patch and (wrong := type_meta_error(tree)):
        kind = call.resource.kind
        raise bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {wrong}')
    check_type(call.resource, tree)
    duplicates = duplicate_warnings(patch, call.request.body) if patch else []
    normalize(call, tree, options, duplicates, is_patched=True)
