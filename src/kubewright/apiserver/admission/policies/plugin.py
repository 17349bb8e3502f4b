"""The ValidatingAdmissionPolicy plugin: evaluates the policies that have bindings.

kube-apiserver: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating. Policies are compiled when they or
their bindings change. For a failed validation the plugin does what the binding says: deny, warn or audit.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from kubewright.apiserver.admission.policies.constraints import Constraints, constraints_of
from kubewright.apiserver.admission.policies.parameters import ConfigurationError, Parameters
from kubewright.apiserver.admission.policies.programs import Outcome, PolicyProgram, compile_policy
from kubewright.apiserver.admission.request_values import authorizer_of, request_namespace, request_value
from kubewright.apiserver.admission.selectors import NamespaceLookup
from kubewright.apiserver.admission.webhooks.configurations import EXEMPT_RESOURCES, equivalent_resources
from kubewright.apiserver.admission.webhooks.matcher import VersionedAttributes
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.access import Access
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.large_requests import off_loop
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.storage.store import Change, Store
from kubewright.apiserver.wire.decoding import decode_json
from kubewright.apiserver.wire.status_errors import StatusError, forbidden

__all__ = ("ValidatingAdmissionPolicy",)

_GROUP: Final = "admissionregistration.k8s.io"
_FAILURE: Final = "validation.policy.admission.k8s.io/validation_failure"
_LONGEST_ANNOTATION: Final = 10 * 1024
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}


@final
@dataclass(frozen=True, slots=True)
class _Binding:
    name: str
    actions: tuple[str, ...]
    parameters: Mapping[str, Any] | None
    constraints: Constraints | None


@final
@dataclass(frozen=True, slots=True)
class _Policy:
    name: str
    constraints: Constraints
    program: PolicyProgram
    param_kind: Mapping[str, Any] | None
    bindings: tuple[_Binding, ...]


@final
@dataclass(frozen=True, slots=True)
class _Denial:
    policy: str
    binding: str
    message: str
    reason: str = ""


@final
class ValidatingAdmissionPolicy:
    """Validates writes."""

    def __init__(self, store: Store, catalog: Catalog, access: Access) -> None:
        self._catalog = catalog
        self._access = access
        self._namespaces = NamespaceLookup(store)
        self._parameters = Parameters(store, catalog)
        self._table = store.table(f"{_GROUP}/validatingadmissionpolicies")
        self._bindings = store.table(f"{_GROUP}/validatingadmissionpolicybindings")
        self._policies: tuple[_Policy, ...] = ()
        self._stale = True
        self._compiling = asyncio.Lock()
        self._table.watch(self)
        self._bindings.watch(self)

    def deliver(self, change: Change) -> None:
        """A policy or a binding was created, changed or deleted."""
        self._stale = True

    def table_gone(self) -> None:
        """Never called: the tables stay."""

    def handles(self, attributes: Attributes) -> bool:
        if not self._policies and not self._is_outdated:
            return False
        resource = attributes.resource
        if attributes.subresource == "binding" and attributes.operation != "CREATE":
            return False  # a step of a binding or an eviction, which has been validated
        return not (resource.kind.group == _GROUP and resource.plural in EXEMPT_RESOURCES)

    async def validate(self, attributes: Attributes) -> None:
        if self._is_outdated:
            await self._compile()
        others = equivalent_resources(self._catalog, attributes.resource)
        versioned = VersionedAttributes(attributes)
        denials: list[_Denial] = []
        for policy in self._policies:
            matched = policy.constraints.match(attributes, others, self._namespaces)
            if matched is not None:
                denials += await _PolicyEvaluation(self, policy, versioned, matched, others).denials()
        if denials:
            raise _denied_error(attributes, denials[0])

    @property
    def _is_outdated(self) -> bool:
        return self._stale or self._compiling.locked()

    async def _compile(self) -> None:
        """Compile what there is now; writes that come meanwhile wait for it, too."""
        async with self._compiling:
            while self._stale:
                self._stale = False
                await self._compile_all()

    async def _compile_all(self) -> None:
        bindings: dict[str, list[_Binding]] = {}
        for entry in self._bindings.entries():
            tree = decode_json(entry.value)
            spec = tree.get("spec") or {}
            bindings.setdefault(str(spec.get("policyName")), []).append(_binding(tree["metadata"]["name"], spec))
        found = []
        for entry in list(self._table.entries()):
            bound = bindings.get(entry.key)
            if bound:
                spec = decode_json(entry.value).get("spec") or {}
                constraints = constraints_of(spec.get("matchConstraints") or {})
                program = await off_loop(len(entry.value), lambda spec=spec: compile_policy(spec))  # type: ignore[misc]
                found.append(_Policy(entry.key, constraints, program, spec.get("paramKind"), tuple(bound)))
        self._policies = tuple(found)

    # called by an evaluation

    def values(self, attributes: Attributes, matched: Resource) -> dict[str, Any]:
        """The variables that are the same for all parameters."""
        is_namespace = attributes.resource.table == "/namespaces"
        namespace = None if is_namespace or not attributes.namespace else self._namespaces.find(attributes.namespace)
        return {
            "request": request_value(attributes, matched),
            "namespaceObject": namespace,
            "authorizer": authorizer_of(attributes, self._access),
        }

    def is_bound(self, binding: _Binding, attributes: Attributes, others: tuple[Resource, ...]) -> bool:
        """Whether a binding matches a write."""
        constraints = binding.constraints
        return constraints is None or constraints.match(attributes, others, self._namespaces) is not None

    @property
    def parameters(self) -> Parameters:
        """The parameter objects in the store."""
        return self._parameters


@final
class _PolicyEvaluation:
    """One policy evaluated on one write."""

    def __init__(
        self,
        owner: ValidatingAdmissionPolicy,
        policy: _Policy,
        versioned: VersionedAttributes,
        matched: Resource,
        others: tuple[Resource, ...],
    ) -> None:
        self._owner = owner
        self._policy = policy
        self._versioned = versioned
        self._matched = matched
        self._others = others
        self._denials: list[_Denial] = []
        self._audit_annotations: dict[str, list[str]] = {}

    async def denials(self) -> list[_Denial]:
        """Evaluate it for every binding and every parameter."""
        policy, attributes = self._policy, self._versioned.attributes
        if policy.param_kind is not None:
            try:
                self._owner.parameters.resource(policy.param_kind)
            except ConfigurationError as error:
                return (
                    [_Denial(policy.name, "", f"failed to configure policy: {error}")]
                    if policy.program.fails_closed
                    else []
                )
        for binding in policy.bindings:
            if self._owner.is_bound(binding, attributes, self._others):
                await self._evaluate(binding)
        for key, values in self._audit_annotations.items():
            attributes.annotations.setdefault(f"{policy.name}/{key}", ", ".join(values))
        return self._denials

    async def _evaluate(self, binding: _Binding) -> None:
        policy, attributes = self._policy, self._versioned.attributes
        try:
            found = await self._owner.parameters.collect(
                policy.param_kind, binding.parameters, request_namespace(attributes)
            )
        except ConfigurationError as error:
            if policy.program.fails_closed:
                self._denials.append(_Denial(policy.name, binding.name, f"failed to configure binding: {error}"))
            return
        new, old = await self._versioned.objects(self._matched)
        values = {**self._owner.values(attributes, self._matched), "object": new, "oldObject": old}
        for parameter in found:
            self._apply_actions(binding, policy.program.run({**values, "params": parameter}))

    def _apply_actions(self, binding: _Binding, outcome: Outcome) -> None:
        policy, attributes = self._policy, self._versioned.attributes
        for decision in outcome.denied:
            if "Deny" in binding.actions:
                self._denials.append(_Denial(policy.name, binding.name, decision.message, decision.reason))
            if "Audit" in binding.actions:
                note = {
                    "message": decision.message,
                    "policy": policy.name,
                    "binding": binding.name,
                    "expressionIndex": decision.index,
                    "validationActions": list(binding.actions),
                }
                attributes.annotations[_FAILURE] = json.dumps([note], separators=(",", ":"))
            if "Warn" in binding.actions:
                text = (
                    f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}': "
                    f"{decision.message}"
                )
                attributes.warnings.add(text)
        for key, value in outcome.annotations:
            values = self._audit_annotations.setdefault(key, [])
            if value[:_LONGEST_ANNOTATION] not in values:
                values.append(value[:_LONGEST_ANNOTATION])
        self._denials.extend(_Denial(policy.name, binding.name, error) for error in outcome.errors)


def _binding(name: str, spec: Mapping[str, Any]) -> _Binding:
    match = spec.get("matchResources")
    return _Binding(
        name=name,
        actions=tuple(spec.get("validationActions") or ()),
        parameters=spec.get("paramRef"),
        constraints=None if match is None else constraints_of(match),
    )


def _denied_error(attributes: Attributes, denial: _Denial) -> StatusError:
    bound = f" with binding '{denial.binding}'" if denial.binding else ""
    message = f"ValidatingAdmissionPolicy '{denial.policy}'{bound} denied request: {denial.message}"
    reason = denial.reason or "Invalid"
    status = dict(forbidden(attributes.resource.group_resource, attributes.name, message).status)
    status["reason"], status["code"] = reason, _CODES.get(reason, 422)
    status["details"] = {**status["details"], "causes": [{"message": message}]}
    return StatusError(status)
