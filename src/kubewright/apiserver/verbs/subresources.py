"""Subresources with handlers of their own: pods/binding, pods/eviction and namespaces/finalize.

kube-apiserver: pkg/registry/core/pod/storage/{storage,eviction}.go and pkg/registry/core/namespace/storage/storage.go.
`server` registers them as routes. The bodies of the first two are admitted like new objects, but never stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

import msgspec

from kubewright.api.field_errors import FieldError, summary
from kubewright.api.kinds import GroupResource
from kubewright.api.selectors import Selector
from kubewright.api.times import format_time
from kubewright.apiserver.builtin.validation.configuration import finalizer_errors
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.admission import write_attributes
from kubewright.apiserver.kinds.calls import Call
from kubewright.apiserver.kinds.resources import Tree
from kubewright.apiserver.kinds.system_metadata import meta_of
from kubewright.apiserver.verbs.decode import decode_object, ensure_namespace
from kubewright.apiserver.verbs.delete import DeleteHandler
from kubewright.apiserver.verbs.field_tracking import track_update
from kubewright.apiserver.verbs.registry import OPTIMISTIC_LOCK_ERROR, Registry
from kubewright.apiserver.verbs.transient_kinds import BINDING, EVICTION, OLD_EVICTION, decode_transient
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.options import DeleteOptions, WriteOptions, delete_options, write_options
from kubewright.apiserver.wire.responses import Reply, Response, object_response
from kubewright.apiserver.wire.status_errors import (
    bad_request,
    conflict,
    invalid,
    method_not_allowed,
    not_found,
    status_error,
)

__all__ = ("SubresourceHandlers",)

_CREATED: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_BINDING: Final = GroupResource("", "pods/binding")
_DISRUPTION_TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_SCHEDULED: Final = "PodScheduled"


@final
class SubresourceHandlers:
    """The handlers, one method for each subresource."""

    def __init__(self, registry: Registry, catalog: Catalog, deletes: DeleteHandler) -> None:
        self._registry = registry
        self._store = registry.store
        self._clock = registry.clock
        self._catalog = catalog
        self._deletes = deletes

    async def _admit(self, call: Call, tree: Tree, options: WriteOptions, check: Callable[[Tree], None]) -> Tree:
        """Have admission mutate and validate an object that is sent to a subresource and never stored.

        `check` validates it in between, as the strategy of a stored object does.
        """
        meta = tree.setdefault("metadata", {})
        ensure_namespace(call, meta)
        meta.setdefault("name", call.info.name)
        attributes = write_attributes(call, "CREATE", tree, None, options)
        await self._registry.admission.mutate(attributes)
        assert attributes.object is not None
        check(attributes.object)
        await self._registry.admission.validate(attributes)
        return attributes.object

    # pods/binding and bindings

    async def bind(self, call: Call) -> Reply:
        """Assign a pod to a node; a pod that has one conflicts."""
        if call.info.verb != "create":
            raise method_not_allowed()
        options = write_options("CreateOptions", call.request.query)
        binding = decode_transient(call.request, BINDING)
        stated = str(meta_of(binding).get("name", ""))
        name = call.info.name or stated

        def check(admitted: Tree) -> None:
            if stated != name:
                raise bad_request("name in URL does not match name in Binding object")
            errors = _binding_errors(admitted.get("target") or {})
            if errors:
                raise status_error(500, "", summary(errors))

        binding = await self._admit(call, binding, options, check)
        target = binding["target"]
        pod_call = self._pod_call(call, name)
        entry = self._store.table("/pods").get(pod_call.key)
        if entry is None:
            raise not_found(pod_call.resource.group_resource, name)
        uid = (binding.get("metadata") or {}).get("uid")
        pod = self._bound(pod_call, decode_json(entry.value), str(target["name"]), uid, binding)
        # kube-apiserver notes no field manager for what a binding sets.
        await self._registry.put_if_unchanged(pod_call.resource, entry, pod, dry_run=options.dry_run)
        return object_response(_CREATED, call.output, code=201)

    def _bound(self, call: Call, pod: Tree, node: str, uid: str | None, binding: Tree) -> Tree:
        name = call.info.name
        meta, spec, status = pod["metadata"], pod["spec"], pod.setdefault("status", {})
        if uid and uid != meta["uid"]:
            raise conflict(call.resource.group_resource, name, "Precondition failed: UID in precondition: "
                           f"{uid}, UID in object meta: {meta['uid']}")  # fmt: skip
        if meta.get("deletionTimestamp"):
            raise conflict(_BINDING, name, f"pod {name} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            raise conflict(_BINDING, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise conflict(_BINDING, name, f"pod {name} has non-empty .spec.schedulingGates")
        spec["nodeName"] = node
        status.pop("nominatedNodeName", None)
        for part in ("annotations", "labels"):
            given = (binding.get("metadata") or {}).get(part) or {}
            if given:
                meta.setdefault(part, {}).update(given)
        conditions = [item for item in status.get("conditions") or () if item.get("type") != _SCHEDULED]
        now = format_time(self._clock.now())
        conditions.append({"type": _SCHEDULED, "status": "True", "lastProbeTime": None, "lastTransitionTime": now})
        status["conditions"] = conditions
        return pod

    def _pod_call(self, call: Call, name: str) -> Call:
        """The same request as one for the pod."""
        pods = self._catalog.find("", "v1", "pods")
        assert pods is not None
        target = msgspec.structs.replace(call.info, resource="pods", name=name, subresource="binding")
        return Call(call.request, target, pods, call.user, call.output)

    # pods/eviction

    async def evict(self, call: Call) -> Reply:
        """Delete a pod, if its PodDisruptionBudget allows it."""
        if call.info.verb != "create":
            raise method_not_allowed()
        written = write_options("CreateOptions", call.request.query)
        eviction = decode_transient(call.request, EVICTION, old=OLD_EVICTION)
        name = meta_of(eviction).get("name")

        def check(admitted: Tree) -> None:
            if name != call.info.name:
                raise bad_request("name in URL does not match name in Eviction object")

        eviction = await self._admit(call, eviction, written, check)
        options = delete_options({}, eviction.get("deleteOptions"))
        if written.dry_run:
            options = msgspec.structs.replace(options, dry_run=True)
        pod_call = self._pod_call(call, call.info.name)
        entry = self._store.table("/pods").get(pod_call.key)
        if entry is None:
            raise not_found(pod_call.resource.group_resource, call.info.name)
        pod = decode_json(entry.value)
        if _is_disruption(pod):
            await self._use_budget(call, pod, dry_run=options.dry_run)
        if not options.dry_run:
            await self._set_disruption_target(pod_call, options)
        await self._deletes.delete_key(pod_call, pod_call.key, options)
        return object_response(_CREATED, call.output, code=201)

    async def _set_disruption_target(self, call: Call, options: DeleteOptions) -> None:
        """Set the condition DisruptionTarget of a pod, before it is deleted."""
        entry = self._store.table("/pods").get(call.key)
        if entry is None:
            return
        pod = decode_json(entry.value)
        if options.uid not in (None, pod["metadata"]["uid"]):
            return  # the delete conflicts with its precondition
        conditions = pod.setdefault("status", {}).setdefault("conditions", [])
        if not any(one.get("type") == _DISRUPTION_TARGET["type"] for one in conditions):
            now = format_time(self._clock.now())
            conditions.append({**_DISRUPTION_TARGET, "lastProbeTime": None, "lastTransitionTime": now})
            if options.version is None:
                await self._registry.put_if_unchanged(call.resource, entry, pod)

    async def _use_budget(self, call: Call, pod: Tree, *, dry_run: bool) -> None:
        labels = pod["metadata"].get("labels") or {}
        budgets = self._store.table("policy/poddisruptionbudgets")
        matching = []
        for entry in budgets.entries(call.namespace):
            budget = decode_json(entry.value)
            selector = (budget.get("spec") or {}).get("selector")
            if selector is not None and Selector.from_structured(selector).matches(labels):
                matching.append((entry, budget))
        if len(matching) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise status_error(500, "", message)
        for entry, budget in matching:
            status = budget.setdefault("status", {})
            if _is_unguarded(pod, budget["spec"], status):
                continue
            if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
                raise _not_observed(
                    "The disruption budget " + budget["metadata"]["name"] + " is still being processed by the server."
                )
            if int(status.get("disruptionsAllowed") or 0) <= 0:
                raise _budget_exhausted(budget)
            self._count_disruption(status, pod["metadata"]["name"])
            resource = self._catalog.find("policy", "v1", "poddisruptionbudgets")
            assert resource is not None
            await self._registry.put_own_status(resource, entry, budget, dry_run=dry_run)

    def _count_disruption(self, status: Tree, pod: str) -> None:
        """Use up one of the disruptions a budget allows."""
        now = format_time(self._clock.now())
        left = status["disruptionsAllowed"] = int(status["disruptionsAllowed"]) - 1
        status.setdefault("disruptedPods", {})[pod] = now
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if left else "False",
            "observedGeneration": status.get("observedGeneration", 0),
            "lastTransitionTime": now,
            "reason": "SufficientPods" if left else "InsufficientPods",
            "message": "",
        }
        conditions = status.setdefault("conditions", [])
        known = next((one for one in conditions if one["type"] == condition["type"]), None)
        if known is None:
            conditions.append(condition)
        elif known["status"] != condition["status"] or known["reason"] != condition["reason"]:
            known.update(condition)

    # namespaces/finalize

    async def finalize(self, call: Call) -> Reply:
        """Replace the finalizers in the spec of a namespace; a terminating one without any is removed."""
        if call.info.verb != "update":
            raise method_not_allowed()
        options: WriteOptions = write_options("UpdateOptions", call.request.query)
        tree = await decode_object(call, options)
        entry = self._store.table("/namespaces").get(call.info.name)
        if entry is None:
            raise not_found(call.resource.group_resource, call.info.name)
        old = decode_json(entry.value)
        version = tree["metadata"].get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(call.resource.group_resource, call.info.name, OPTIMISTIC_LOCK_ERROR)
        changed = decode_json(entry.value)
        finalizers = (tree.get("spec") or {}).get("finalizers") or []
        changed["spec"] = {"finalizers": finalizers} if finalizers else {}
        errors = [
            error
            for place, name in enumerate(finalizers)
            for error in finalizer_errors(f"spec.finalizers[{place}]", str(name))
        ]
        if errors:
            raise invalid(call.resource.kind, call.info.name, errors)
        await track_update(call, old, changed, options, self._clock.now())
        meta = changed["metadata"]
        if not finalizers and meta.get("deletionTimestamp") and not meta.get("finalizers"):
            value = self._registry.remove(call.resource, entry.key, changed, dry_run=options.dry_run, by_update=True)
        elif changed == old:
            value = entry.value
        else:
            value = await self._registry.put_if_unchanged(call.resource, entry, changed, dry_run=options.dry_run)
        return Response(200, value + b"\n")


def _binding_errors(target: dict[str, Any]) -> list[FieldError]:
    kind = target.get("kind")
    if kind not in (None, "", "Node"):
        return [FieldError("target.kind", "NotSupported", 'supported values: "Node", "<empty>"', kind)]
    return [] if target.get("name") else [FieldError("target.name", "Required", "")]


def _is_disruption(pod: Tree) -> bool:
    """Whether the eviction of a pod counts against its budget: not if it is finished, pending or terminating."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed", "Pending") and not pod["metadata"].get("deletionTimestamp")


def _is_unguarded(pod: Tree, spec: Tree, status: Tree) -> bool:
    """Whether a budget does not guard a pod: one that is not ready, if the policy is AlwaysAllow or enough others are
    healthy."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions):
        return False
    healthy, wanted = (int(status.get(name) or 0) for name in ("currentHealthy", "desiredHealthy"))
    return spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy >= wanted > 0


def _not_observed(message: str) -> Exception:
    return status_error(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={"causes": [{"reason": "DisruptionBudget", "message": message}], "retryAfterSeconds": 10},
        headers={"Retry-After": "10"},
    )


def _budget_exhausted(budget: Tree) -> Exception:
    status = budget.get("status") or {}
    name = budget["metadata"]["name"]
    cause = (
        f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has"
        f" {status.get('currentHealthy', 0)} currently"
    )
    return status_error(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={"causes": [{"reason": "DisruptionBudget", "message": cause}]},
    )
