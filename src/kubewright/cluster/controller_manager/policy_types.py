"""The status of ValidatingAdmissionPolicies: what their expressions would do to the types they are about.

A controller of policies. Each is checked when its spec has changed, against the kinds there are at that moment; what is
checked, and how, is in `apiserver.policies.type_checking`. Registered by `housekeeping_controllers`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, final

from kubewright.api.codec import decode_tree, to_tree
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.metadata import ObjectMeta
from kubewright.apiserver.admission.policies.type_checking import kinds_to_check, resource_type, type_warnings
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

__all__ = ("PolicyTypes",)

_NAME: Final = "validatingadmissionpolicy-status"
_KIND: Final = "x-kubernetes-group-version-kind"


@final
class PolicyTypes:
    """Checks the types of policies."""

    def declaration(self) -> Declaration[ValidatingAdmissionPolicy]:
        """What a manager registers."""
        declare = controller(ValidatingAdmissionPolicy, name=_NAME)
        return declare(self.reconcile)

    async def reconcile(self, policy: ValidatingAdmissionPolicy, ctx: Context) -> None:
        """Check a policy whose spec is another than the one that was checked."""
        generation = policy.metadata.generation or 0
        if generation <= (policy.status.observed_generation or 0):
            return
        spec: Mapping[str, Any] = to_tree(policy).get("spec") or {}
        client = ctx.client.live
        resource_list = await client.discovery.resources(refresh=True)
        kinds = kinds_to_check(spec.get("matchConstraints") or {}, lambda *asked: _kinds_for(resource_list, *asked))
        types = [(kind, found) for kind in kinds if (found := await _type_of(client, kind)) is not None]
        said = spec.get("paramKind")
        asked = None if not said else GroupVersionKind.of(said.get("apiVersion") or "", said.get("kind") or "")
        params = None if asked is None else await _type_of(client, asked)
        warnings = [
            ExpressionWarning(field_ref=warning.path, warning=warning.text)
            for warning in type_warnings(spec, types, params)
        ]
        status = ValidatingAdmissionPolicyStatus(
            observed_generation=generation, type_checking=TypeChecking(expression_warnings=warnings or None)
        )
        # Applied, as on the real one: conditions are left to whoever sets them.
        said_of = ValidatingAdmissionPolicy(metadata=ObjectMeta(name=policy.metadata.name), status=status)
        with suppress(NotFound):
            await client.apply(said_of, subresource="status", field_manager=_NAME, force=True)


def _kinds_for(resource_list: ApiResourceList, group: str, version: str, resource: str) -> Sequence[GroupVersionKind]:
    """The kinds of a resource by its plural or singular; a rule without a group is taken for one of any group."""
    wanted = resource.lower()
    found = [
        item.gvk
        for item in resource_list.items
        if item.gvr.version == version
        and group in ("", item.gvr.group)
        and wanted in (item.gvr.resource, item.singular or item.gvk.kind.lower())
    ]
    return list(dict.fromkeys(found))


async def _type_of(client: Client, kind: GroupVersionKind) -> CelType | None:
    """The type of a kind, if its schema is known."""
    if schema_of(kind) is not None:
        await asyncio.sleep(0)  # the largest take a while, and a policy may be about ten
        return _builtin_type(kind)
    place = f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"
    try:
        answer = await client.request("GET", f"/openapi/v3/{place}")
    except NotFound:
        return None
    schemas: Mapping[str, Mapping[str, Any]] = decode_tree(answer.body).get("components", {}).get("schemas", {})
    wanted = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    for schema in schemas.values():
        if wanted in schema.get(_KIND, ()):
            return resource_type(schema, schemas.get, _name(kind))
    return None


@lru_cache(maxsize=32)
def _builtin_type(kind: GroupVersionKind) -> CelType | None:
    return resource_type(schema_of(kind) or {}, component, _name(kind))


def _name(kind: GroupVersionKind) -> str:
    """A name that no other type has, since those of the same kind may differ."""
    return f"{kind.kind}{time.time_ns() % 1_000_000_000}"
