"""ValidatingAdmissionPolicyStatusController: type-checks the expressions of policies.

Checks a policy when its spec has changed, against the kinds that its match constraints select at that moment, and
writes the warnings to its status. `apiserver.admission.policies.type_checking` does the checks. After
pkg/controller/validatingadmissionpolicystatus. Registered by `controllers`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, final

from kubewright.api.codec import decode_tree, encode_tree, to_tree
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.metadata import ObjectMeta
from kubewright.apiserver.admission.policies.type_checking import kinds_to_check, resource_type, type_warnings
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.cel import CelType
from kubewright.client.client import Client
from kubewright.client.discovery import ApiResourceList
from kubewright.controllers.context import Context
from kubewright.controllers.declaration import Declaration, controller
from kubewright.errors import NotFound
from kubewright.k8s.admissionregistration.v1 import (
    ExpressionWarning,
    TypeChecking,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyStatus,
)
from kubewright.k8s.documents import component, schema_of

__all__ = ("ValidatingAdmissionPolicyStatusController",)

_NAME: Final = "validatingadmissionpolicy-status"
_KIND: Final = "x-kubernetes-group-version-kind"


@final
class ValidatingAdmissionPolicyStatusController:
    """Writes the type-checking warnings of policies to their status."""

    def declaration(self) -> Declaration[ValidatingAdmissionPolicy]:
        """The controller to register with a manager."""
        declare = controller(ValidatingAdmissionPolicy, name=_NAME)
        return declare(self.reconcile)

    async def reconcile(self, policy: ValidatingAdmissionPolicy, ctx: Context) -> None:
        """Check a policy whose generation was not checked yet."""
        generation = policy.metadata.generation or 0
        if generation <= (policy.status.observed_generation or 0):
            return
        spec: Mapping[str, Any] = to_tree(policy).get("spec") or {}
        client = ctx.client.live
        api_resources = await client.discovery.resources(refresh=True)
        kinds = kinds_to_check(spec.get("matchConstraints") or {}, lambda *gvr: _kinds_for(api_resources, *gvr))
        types = [(kind, found) for kind in kinds if (found := await _type_of(client, kind)) is not None]
        param_kind = spec.get("paramKind")
        params: CelType | None = None
        if param_kind:
            gvk = GroupVersionKind.of(param_kind.get("apiVersion") or "", param_kind.get("kind") or "")
            params = await _type_of(client, gvk)
        # Every expression is compiled for every kind.
        size = len(types) * len(encode_tree(spec))
        found_warnings = await off_loop(size, lambda: type_warnings(spec, types, params))
        warnings = [ExpressionWarning(field_ref=each.path, warning=each.text) for each in found_warnings]
        status = ValidatingAdmissionPolicyStatus(
            observed_generation=generation, type_checking=TypeChecking(expression_warnings=warnings or None)
        )
        # Server-side apply as upstream: conditions belong to other field managers.
        applied = ValidatingAdmissionPolicy(metadata=ObjectMeta(name=policy.metadata.name), status=status)
        with suppress(NotFound):
            await client.apply(applied, subresource="status", field_manager=_NAME, force=True)


def _kinds_for(api_resources: ApiResourceList, group: str, version: str, resource: str) -> Sequence[GroupVersionKind]:
    """The kinds of a resource by its plural or singular name; an empty group matches any group."""
    name = resource.lower()
    found = [
        item.gvk
        for item in api_resources.items
        if item.gvr.version == version
        and group in ("", item.gvr.group)
        and name in (item.gvr.resource, item.singular or item.gvk.kind.lower())
    ]
    return list(dict.fromkeys(found))


async def _type_of(client: Client, kind: GroupVersionKind) -> CelType | None:
    """The CEL type of a kind; None if the server has no schema for it."""
    if schema_of(kind) is not None:
        await asyncio.sleep(0)  # large types take a while to build: yield between them
        return _builtin_type(kind)
    path = f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"
    try:
        response = await client.request("GET", f"/openapi/v3/{path}")
    except NotFound:
        return None
    schemas: Mapping[str, Mapping[str, Any]] = decode_tree(response.body).get("components", {}).get("schemas", {})
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    for schema in schemas.values():
        if gvk in schema.get(_KIND, ()):
            return resource_type(schema, schemas.get, _name(kind))
    return None


@lru_cache(maxsize=32)
def _builtin_type(kind: GroupVersionKind) -> CelType | None:
    return resource_type(schema_of(kind) or {}, component, _name(kind))


def _name(kind: GroupVersionKind) -> str:
    """A unique type name: two versions of a definition may differ."""
    return f"{kind.kind}{time.time_ns() % 1_000_000_000}"
