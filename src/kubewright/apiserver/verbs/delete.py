"""The verbs delete and deletecollection.

kube-apiserver: `Store.Delete` in staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, and
registry/rest/delete.go. An object is removed at once, or it gets a deletion timestamp and is terminating: for its grace
period (pods), until its finalizers are removed, or until the garbage collector has handled its dependents. The update
that removes the last finalizer removes the object (`registry`), and so does a delete with a grace period of zero.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final, final

from kubewright.api.kinds import GroupResource, GroupVersionKind
from kubewright.api.times import format_time, seconds_after
from kubewright.apiserver.apiextensions.definitions.conditions import (
    CLEANUP_FINALIZER,
    set_condition,
    terminating_condition,
)
from kubewright.apiserver.builtin.golang.decoder import normalize_type
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Resource, Tree
from kubewright.apiserver.kinds.system_metadata import finalizers_of
from kubewright.apiserver.storage.store import Entry
from kubewright.apiserver.verbs.registry import Registry
from kubewright.apiserver.verbs.selectors import Selection
from kubewright.apiserver.verbs.transform import respond_list, respond_object
from kubewright.apiserver.wire.decoding import decode_json, not_an_object_error, read_body, type_meta_error
from kubewright.apiserver.wire.options import DeleteOptions, delete_options, list_options
from kubewright.apiserver.wire.responses import LongResponse, Response, object_response
from kubewright.apiserver.wire.status_errors import StatusError, bad_request, conflict, not_found

__all__ = ("DeleteHandler",)

_UNINTERRUPTED: Final = 16
"""How many objects of a collection are deleted before other requests go on."""
_ORPHAN: Final = "orphan"
_QUOTED_BODY: Final = re.compile(r" \(.*\)$", re.DOTALL)
_FOREGROUND: Final = "foregroundDeletion"
_POD: Final = GroupVersionKind("", "v1", "Pod")
_NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
_CRD: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_RETURN_OBJECT: Final = frozenset(
    (
        *(("", plural) for plural in ("namespaces", "persistentvolumeclaims", "persistentvolumes", "pods")),
        *(("", plural) for plural in ("podtemplates", "resourcequotas", "serviceaccounts", "services")),
        *(("storage.k8s.io", plural) for plural in ("csidrivers", "csinodes", "storageclasses")),
        *(("storage.k8s.io", plural) for plural in ("volumeattachments", "volumeattributesclasses")),
        *(("resource.k8s.io", plural) for plural in ("deviceclasses", "resourceclaims")),
        *(("resource.k8s.io", plural) for plural in ("resourceclaimtemplates", "resourceslices")),
    )
)
"""Resources whose deletion returns the object instead of a Status (ReturnDeletedObject in its registry)."""
_JOB: Final = GroupVersionKind("batch", "v1", "Job")
_ORPHAN_BY_DEFAULT: Final = frozenset((_JOB, GroupVersionKind("", "v1", "ReplicationController")))
"""Kinds whose dependents are orphaned by default, as they were before there were propagation policies."""
_JOB_WARNING: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set"
    " propagationPolicy=Orphan to suppress this warning"
)


@final
class DeleteHandler:
    """Deletes objects in a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store

    async def delete(self, call: Call) -> Response:
        """Delete one object."""
        options = self._options(call)
        value, is_removed = await self.delete_key(call, call.key, options)
        if not is_removed or (call.resource.kind.group, call.resource.plural) in _RETURN_OBJECT:
            return await respond_object(call, value)
        return object_response(_success_status(call, decode_json(value)), call.output, headers=call.headers())

    async def collection(self, call: Call) -> Response | LongResponse:
        """Delete every object that a list with the same parameters would return."""
        options = self._options(call)
        wanted = list_options({**call.request.query, "resourceVersion": ""}, watch=False)
        selection = Selection(call.resource, call.namespace, wanted.labels, wanted.fields)
        table = self._store.table(call.resource.table)
        found = [entry for entry in table.entries(call.namespace or None) if selection.matches(entry)]
        if wanted.limit > 0:
            found = found[: wanted.limit]
        version = str(self._store.version)
        items = await call.resource.all_bytes(found)
        for number, entry in enumerate(found, 1):
            if number % _UNINTERRUPTED == 0:
                await asyncio.sleep(0)  # let others go on: a collection may have very many objects
            try:
                await self.delete_key(call, entry.key, options)
            except StatusError as exc:
                if exc.reason != "NotFound":
                    raise
        return await respond_list(call, items, {"resourceVersion": version})

    def _options(self, call: Call) -> DeleteOptions:
        options = delete_options(call.request.query, _delete_options_body(call))
        if call.resource.kind == _JOB and not options.propagation:
            call.warn(_JOB_WARNING)
        return options

    async def delete_key(self, call: Call, key: str, options: DeleteOptions) -> tuple[bytes, bool]:
        """Delete one object, or begin its termination; returns its last state, and whether it is removed.

        Preconditions (uid, resourceVersion) and admission are checked on the object as it was read. If somebody else
        wrote it meanwhile they are checked again: a precondition then conflicts, anything else deletes what is there.
        """
        table = self._store.table(call.resource.table)
        name = key.rpartition("/")[2]
        while True:
            entry = table.get(key)
            if entry is None:
                raise not_found(call.resource.group_resource, name)
            old = await call.resource.tree_of(entry)
            _check_preconditions(call.resource, name, old, options)
            attributes = self._attributes(call, name, old, options)
            await self._registry.admission.mutate(attributes)
            await self._registry.admission.validate(attributes)
            if table.get(key) is entry:
                return await self._delete_now(call.resource, entry, old, options)

    async def _delete_now(
        self, resource: Resource, entry: Entry, tree: Tree, options: DeleteOptions
    ) -> tuple[bytes, bool]:
        meta = tree["metadata"]
        before = resource.encode(tree)
        _set_collector_finalizers(resource, meta, options)
        _begin_emptying(resource, tree)
        grace = resource.strategy.grace_period(tree, options.grace)
        is_terminating = bool(meta.get("deletionTimestamp"))
        present_grace = int(meta.get("deletionGracePeriodSeconds") or 0)
        if is_terminating:
            # A second delete can only shorten the grace period.
            grace = min(grace, present_grace)
        is_removable = grace == 0 and not finalizers_of(tree) and not _has_spec_finalizers(resource, tree)
        if is_removable and resource.kind != _POD:
            return self._registry.remove(resource, entry.key, tree, dry_run=options.dry_run), True
        if resource.kind == _CRD and not is_terminating:
            self._terminate_crd(tree)
        elif not is_terminating or grace < present_grace:
            self._set_deletion_timestamp(resource, meta, grace)
        if not is_removable and resource.encode(tree) == before:
            return before, False
        value = await self._registry.put_if_unchanged(resource, entry, tree, dry_run=options.dry_run)
        if not is_removable:
            return value, False
        # A pod gets its deletion timestamp even without a grace period: its watchers see it terminating, then deleted.
        return self._registry.remove(resource, entry.key, tree, dry_run=options.dry_run), True

    def _set_deletion_timestamp(self, resource: Resource, meta: dict[str, Any], grace: int) -> None:
        if not meta.get("deletionTimestamp") and meta.get("generation"):
            meta["generation"] += 1  # a deletion is a change of the desired state (`BeforeDelete`)
        meta["deletionTimestamp"] = format_time(seconds_after(self._registry.clock.now(), grace))
        if resource.kind != _NAMESPACE:  # the namespace registry sets no grace period
            meta["deletionGracePeriodSeconds"] = grace

    def _terminate_crd(self, crd: Tree) -> None:
        """A CRD has a registry of its own in kube-apiserver: no grace period, but the condition Terminating."""
        now = format_time(self._registry.clock.now())
        crd["metadata"]["deletionTimestamp"] = now
        text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        status = crd.setdefault("status", {})
        conditions = status["conditions"] = [dict(one) for one in status.get("conditions") or ()]
        set_condition(conditions, terminating_condition("InstanceDeletionPending", text, status="True"), now=now)

    def _attributes(self, call: Call, name: str, old: Tree, options: DeleteOptions) -> Attributes:
        described: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if options.grace is not None:
            described["gracePeriodSeconds"] = options.grace
        if options.propagation:
            described["propagationPolicy"] = options.propagation
        if options.dry_run:
            described["dryRun"] = ["All"]
        # The namespace registry adds the uid it has read to the preconditions.
        uid = old["metadata"]["uid"] if call.resource.kind == _NAMESPACE else options.uid
        conditions = {"uid": uid, "resourceVersion": options.version}
        if any(value is not None for value in conditions.values()):
            described["preconditions"] = {key: value for key, value in conditions.items() if value is not None}
        return Attributes(
            operation="DELETE",
            resource=call.resource,
            namespace=str(old["metadata"].get("namespace", "")),
            name="" if call.info.verb == "deletecollection" else name,
            object=None,
            old=old,
            user=call.user,
            subresource=call.info.subresource,
            dry_run=options.dry_run,
            options=described,
            warnings=call.warnings,
            annotations=call.request.annotations,
        )


def _delete_options_body(call: Call) -> dict[str, Any] | None:
    if not call.request.body:
        return None
    try:
        tree, _ = read_body(call.request)
    except StatusError as exc:
        raise bad_request(_QUOTED_BODY.sub("", str(exc))) if exc.code == 400 else exc from None
    if tree is None:
        return None
    if not isinstance(tree, dict):
        raise bad_request(not_an_object_error(tree))
    if wrong := type_meta_error(tree):
        raise bad_request(wrong)
    kind, version = tree.get("kind") or "DeleteOptions", tree.get("apiVersion") or "meta.k8s.io/v1"
    if kind != "DeleteOptions":
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(why)
    normalize_type("meta/v1.DeleteOptions", tree)
    return tree


def _check_preconditions(resource: Resource, name: str, tree: Tree, options: DeleteOptions) -> None:
    meta = tree["metadata"]
    about = GroupResource(resource.kind.group, resource.kind.kind)
    if options.uid is not None and options.uid != meta["uid"]:
        raise conflict(
            about,
            name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']})."
            " The object might have been deleted and then recreated",
        )
    if options.version is not None and options.version != meta["resourceVersion"]:
        raise conflict(
            about,
            name,
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in"
            f" record ({meta['resourceVersion']}). The object might have been modified",
        )


def _set_collector_finalizers(resource: Resource, meta: dict[str, Any], options: DeleteOptions) -> None:
    """Set the finalizer that tells the garbage collector what to do about dependents, by the propagation policy
    (`deletionFinalizersForGarbageCollection`)."""
    present = list(meta.get("finalizers") or ())
    policy = options.propagation
    if not policy and resource.kind in _ORPHAN_BY_DEFAULT and _FOREGROUND not in present:
        policy = "Orphan"
    orphan = policy == "Orphan" or (not policy and _ORPHAN in present)
    foreground = policy == "Foreground" or (not policy and _FOREGROUND in present)
    wanted = [name for name in present if name not in (_ORPHAN, _FOREGROUND)]
    if orphan:
        wanted.append(_ORPHAN)
    if foreground:
        wanted.append(_FOREGROUND)
    if sorted(wanted) != sorted(present):
        if wanted:
            meta["finalizers"] = wanted
        else:
            meta.pop("finalizers", None)


def _has_spec_finalizers(resource: Resource, tree: Tree) -> bool:
    """A namespace has finalizers in its spec, besides those of its metadata."""
    return resource.kind == _NAMESPACE and bool((tree.get("spec") or {}).get("finalizers"))


def _begin_emptying(resource: Resource, tree: Tree) -> None:
    """A namespace and a CRD are emptied before they are removed: set the phase, or the finalizer, that says so."""
    if resource.kind == _NAMESPACE and _has_spec_finalizers(resource, tree):
        tree.setdefault("status", {})["phase"] = "Terminating"
    if resource.kind == _CRD and not tree["metadata"].get("deletionTimestamp"):
        finalizers = tree["metadata"].setdefault("finalizers", [])
        if CLEANUP_FINALIZER not in finalizers:
            finalizers.append(CLEANUP_FINALIZER)


def _success_status(call: Call, tree: Tree) -> dict[str, Any]:
    details = {"name": call.info.name, "kind": call.resource.plural, "uid": tree["metadata"]["uid"]}
    if call.resource.kind.group:
        details["group"] = call.resource.kind.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
