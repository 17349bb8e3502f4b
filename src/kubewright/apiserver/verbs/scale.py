"""The scale subresource: get, update and patch of an `autoscaling/v1` Scale, for built-in kinds and custom resources.

The Scale is made from the object. A write of it changes the replicas of the object, through the same steps as any
other update.
"""

from __future__ import annotations

from typing import Any, final

from kubewright.api.field_errors import FieldError
from kubewright.api.kinds import GroupResource
from kubewright.apiserver.builtin.scale import scale_of, with_scale
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.verbs.apply import decode_applied
from kubewright.apiserver.verbs.patch import PatchHandler
from kubewright.apiserver.verbs.patches.patchers import APPLY_TYPES, apply_patch, patch_type, patched_object_error
from kubewright.apiserver.verbs.registry import OPTIMISTIC_LOCK_ERROR, Registry
from kubewright.apiserver.verbs.transform import respond_scale
from kubewright.apiserver.verbs.transient_kinds import SCALE, as_kind, decode_transient
from kubewright.apiserver.wire.decoding import decode_json, decode_json_body
from kubewright.apiserver.wire.options import WriteOptions, write_options
from kubewright.apiserver.wire.responses import Reply, encode_json
from kubewright.apiserver.wire.status_errors import (
    StatusError,
    bad_request,
    conflict,
    invalid,
    method_not_allowed,
)

__all__ = ("ScaleHandler", "scale_of_object", "with_replicas")


@final
class ScaleHandler:
    """Get, update and patch of `/scale`."""

    def __init__(self, registry: Registry, patches: PatchHandler) -> None:
        self._registry = registry
        self._patches = patches

    async def answer(self, call: Call) -> Reply:
        """Answer a request for a scale, of any verb."""
        if call.info.verb == "get":
            return respond_scale(call, scale_of_object(call.resource, await self._live(call)))
        if call.info.verb == "update":
            tree = decode_transient(call.request, SCALE)
            return await self._write(call, lambda _live: tree, "UpdateOptions")
        if call.info.verb == "patch":
            kind = patch_type(call)
            if kind in APPLY_TYPES:
                return await self._write(call, lambda live: {**live, **_applied_spec(call)}, "PatchOptions")
            return await self._write(call, lambda live: _patch(call, kind, live), "PatchOptions")
        raise method_not_allowed()

    async def _live(self, call: Call) -> Tree:
        return await call.resource.tree_of(self._registry.get(call))

    async def _write(self, call: Call, change: Any, kind: str) -> Reply:
        is_apply = kind == "PatchOptions" and patch_type(call) in APPLY_TYPES
        options = write_options(kind, call.request.query, is_apply=is_apply)
        wanted: Tree = {}

        def edit(live: Tree) -> Tree:
            nonlocal wanted
            scale = scale_of_object(call.resource, live)
            wanted = change(decode_json(encode_json(scale)))
            _check(call, wanted, scale)
            replicas = (wanted.get("spec") or {}).get("replicas", 0)
            return with_replicas(call.resource, decode_json(encode_json(live)), replicas)

        await self._patches.edit(call, options, edit)
        live = await self._live(call)
        if options.dry_run:
            live = with_replicas(call.resource, live, (wanted.get("spec") or {}).get("replicas", 0))
        return respond_scale(call, scale_of_object(call.resource, live))


def _patch(call: Call, kind: str, live: Tree) -> Tree:
    result = apply_patch(call.resource, kind, call.request.body, live)
    try:
        return as_kind(result, SCALE)
    except StatusError as error:
        raise patched_object_error(call.resource, kind, call.request.body, result, error) from None


def _applied_spec(call: Call) -> dict[str, Any]:
    body = call.request.body
    tree = decode_json_body(body) if body[:1] == b"{" else decode_applied(call, WriteOptions())
    return {"spec": tree.get("spec") or {}}


def _check(call: Call, wanted: Tree, scale: Tree) -> None:
    name = (wanted.get("metadata") or {}).get("name")
    if name and name != call.info.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.info.name})")
    version = (wanted.get("metadata") or {}).get("resourceVersion")
    if version and version != scale["metadata"]["resourceVersion"]:
        raise conflict(call.resource.group_resource, call.info.name, OPTIMISTIC_LOCK_ERROR)
    uid = (wanted.get("metadata") or {}).get("uid")
    if uid and uid != scale["metadata"]["uid"]:
        raise _uid_conflict(call, uid, scale["metadata"]["uid"])
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas < 0 and not call.resource.custom:
        error = FieldError("spec.replicas", "Invalid", "must be greater than or equal to 0", replicas)
        raise invalid(SCALE, call.info.name, [error])


def _uid_conflict(call: Call, wanted: str, present: str) -> StatusError:
    """The error for a Scale with another uid; for an update in the words of the storage layer."""
    resource, name = call.resource.group_resource, call.info.name
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}"
    if call.info.verb == "patch":
        return conflict(GroupResource(resource.group, f"{resource.resource}/scale"), name, why)
    key = f"/{resource.resource}/{call.key}"
    why = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    return conflict(resource, name, why)


def scale_of_object(resource: Resource, tree: Tree) -> Tree:
    """The Scale of an object."""
    scale = resource.scale
    if scale is None:
        return scale_of(resource.kind, tree)
    meta = tree["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: dict[str, Any] = {"replicas": _at(tree, scale.status_replicas_path) or 0}
    selector = _at(tree, scale.label_selector_path) if scale.label_selector_path else None
    if selector:
        status["selector"] = selector
    spec = {}
    replicas = _at(tree, scale.spec_replicas_path)
    if replicas:
        spec["replicas"] = replicas
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": spec,
        "status": status,
    }


def _at(tree: Any, path: str) -> Any:
    for step in path.strip(".").split("."):
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def with_replicas(resource: Resource, tree: Tree, replicas: int) -> Tree:
    """Set the replicas of an object, in place; returns it."""
    if resource.scale is None:
        return with_scale(tree, {"spec": {"replicas": replicas}})
    *outer, last = resource.scale.spec_replicas_path.strip(".").split(".")
    node = tree
    for step in outer:
        node = node.setdefault(step, {})
    node[last] = replicas
    return tree
