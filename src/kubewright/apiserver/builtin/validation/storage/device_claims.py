"""Validates ResourceClaims, ResourceClaimTemplates and DeviceClasses of dynamic resource allocation.

`device_slices` validates ResourceSlices and the status of claims, with some of the checks here. Upstream:
k8s.io/kubernetes/pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    annotations_errors,
    duplicate,
    each,
    forbidden,
    immutable_errors,
    invalid,
    labels_errors,
    long_name_errors,
    one_of,
    positive,
    required,
    short_name_errors,
    too_long,
    too_many,
)
from kubewright.apiserver.builtin.validation.pods.volume_sources import driver_name_errors
from kubewright.apiserver.expressions.devices import MAX_COST, device_program
from kubewright.cel.errors import CompileError

__all__ = (
    "configuration_errors",
    "device_class_errors",
    "items_errors",
    "qualified_errors",
    "reference_errors",
    "request_names",
    "resource_claim_errors",
    "resource_claim_template_errors",
    "resource_claim_template_update_errors",
    "resource_claim_update_errors",
    "unique_errors",
)

Check: TypeAlias = Callable[[str, JSON], Errors]

_MOST: Final = 32
_MOST_ALTERNATIVES: Final = 8
_LONGEST: Final = 10 * 1024
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def resource_claim_errors(claim: JSON) -> Errors:
    """ValidateResourceClaim."""
    return _spec_errors("spec", claim.get("spec") or {})


def resource_claim_update_errors(claim: JSON, old: JSON) -> Errors:
    """ValidateResourceClaimUpdate: the spec is immutable."""
    spec = claim.get("spec") or {}
    return immutable_errors("spec", spec, old.get("spec"), shown=internal(spec, "resource.ResourceClaimSpec"))


def resource_claim_template_errors(template: JSON) -> Errors:
    """ValidateResourceClaimTemplate."""
    spec = template.get("spec") or {}
    meta = spec.get("metadata") or {}
    errors = annotations_errors("spec.metadata.annotations", meta.get("annotations"))
    errors += labels_errors("spec.metadata.labels", meta.get("labels"))
    return errors + _spec_errors("spec.spec", spec.get("spec") or {})


def resource_claim_template_update_errors(template: JSON, old: JSON) -> Errors:
    """ValidateResourceClaimTemplateUpdate: the spec is immutable."""
    spec = template.get("spec") or {}
    # Go prints the embedded ObjectMeta as fields of the struct.
    shown = {**(spec.get("metadata") or {}), **internal(spec, "resource.ResourceClaimTemplateSpec")}
    return resource_claim_template_errors(template) + immutable_errors("spec", spec, old.get("spec"), shown=shown)


def device_class_errors(device_class: JSON) -> Errors:
    """ValidateDeviceClass and ValidateDeviceClassUpdate."""
    spec = device_class.get("spec") or {}
    errors = items_errors("spec.selectors", spec.get("selectors") or (), _selector)
    return errors + items_errors("spec.config", spec.get("config") or (), _opaque)


def request_names(spec: JSON) -> dict[str, set[str]]:
    """The names of the requests of a claim, each with its subrequests."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    return {
        request.get("name", ""): {part.get("name", "") for part in request.get("firstAvailable") or ()}
        for request in requests
    }


def _spec_errors(path: str, spec: JSON) -> Errors:
    devices, names = spec.get("devices") or {}, request_names(spec)
    path = f"{path}.devices"

    def constraint(place: str, item: JSON) -> Errors:
        errors = _references(f"{place}.requests", item.get("requests") or (), names)
        attribute = item.get("matchAttribute")
        if attribute is None:
            return [*errors, required(f"{place}.matchAttribute")]
        errors += qualified_errors(f"{place}.matchAttribute", attribute)
        if "/" not in attribute:
            detail = "a fully qualified name must be a domain and a name separated by a slash"
            errors.append(invalid(f"{place}.matchAttribute", attribute, detail))
        return errors

    def configuration(place: str, item: JSON) -> Errors:
        return configuration_errors(place, item, names)

    errors = unique_errors(f"{path}.requests", devices.get("requests") or (), _request)
    errors += items_errors(f"{path}.constraints", devices.get("constraints") or (), constraint)
    return errors + items_errors(f"{path}.config", devices.get("config") or (), configuration)


def _request(path: str, request: JSON) -> Errors:
    errors = short_name_errors(f"{path}.name", request.get("name", ""))
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or ()
    choice = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        errors.append(required(path, choice))
    elif exactly is not None and alternatives:
        errors.append(invalid(path, None, f"{choice}, but multiple fields are set"))
    elif alternatives:
        errors += unique_errors(f"{path}.firstAvailable", alternatives, _alternative, most=_MOST_ALTERNATIVES)
    else:
        errors += _device_request(f"{path}.exactly", exactly)
    return errors


def _alternative(path: str, request: JSON) -> Errors:
    return short_name_errors(f"{path}.name", request.get("name", "")) + _device_request(path, request)


def _device_request(path: str, request: JSON) -> Errors:
    name = request.get("deviceClassName", "")
    errors = long_name_errors(f"{path}.deviceClassName", name) if name else [required(f"{path}.deviceClassName")]
    errors += items_errors(f"{path}.selectors", request.get("selectors") or (), _selector)
    mode, count = request.get("allocationMode", ""), request.get("count") or 0
    if mode == "ExactCount":
        errors += positive(f"{path}.count", count)
    elif mode != "All":
        errors.append(one_of(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    elif count:
        errors.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    return errors


def _selector(path: str, selector: JSON) -> Errors:
    if selector.get("cel") is None:
        return [required(f"{path}.cel")]
    path, expression = f"{path}.cel.expression", selector["cel"].get("expression", "")
    if len(expression.encode()) > _LONGEST:
        return [too_long(path, _LONGEST)]
    try:
        program = device_program(expression)
    except CompileError as error:
        return [invalid(path, expression, error.failure or f"compilation failed: {error}")]
    return [forbidden(path, "too complex, exceeds cost limit")] if program.estimate() > MAX_COST else []


def qualified_errors(path: str, name: str) -> Errors:
    """validateQualifiedName: of an attribute or a capacity, with or without a domain."""
    domain, slash, own = name.partition("/")
    if not slash:
        return _identifier(path, name)
    errors = driver_name_errors(path, domain) if domain else [invalid(path, "", "the domain must not be empty")]
    return errors + (_identifier(path, own) if own else [invalid(path, "", "the name must not be empty")])


def _identifier(path: str, name: str) -> Errors:
    errors = [too_long(path, _MOST)] if len(name) > _MOST else []
    return errors + each(path, name, () if _IDENTIFIER.fullmatch(name) else (_NO_IDENTIFIER,))


def configuration_errors(path: str, config: JSON, names: Mapping[str, set[str]]) -> Errors:
    """validateDeviceConfiguration of the requests."""
    return _references(f"{path}.requests", config.get("requests") or (), names) + _opaque(path, config)


def _opaque(path: str, config: JSON) -> Errors:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    errors = driver_name_errors(f"{path}.opaque.driver", opaque.get("driver", ""))
    if opaque.get("parameters") is None:
        errors.append(required(f"{path}.opaque.parameters"))
    return errors


def _references(path: str, references: Sequence[str], names: Mapping[str, set[str]]) -> Errors:
    errors = items_errors(path, references, lambda place, name: reference_errors(place, name, names))
    return errors if len(references) > _MOST else errors + _repeated(path, references)


def reference_errors(path: str, name: str, names: Mapping[str, set[str]]) -> Errors:
    """validateRequestNameRef: the name of a request or a subrequest."""
    first, *rest = name.split("/")
    if len(rest) > 1:
        return [invalid(path, name, _NO_REQUEST)]
    errors = [error for part in (first, *rest) for error in short_name_errors(path, part)]
    if first not in names or any(part not in names[first] for part in rest):
        errors.append(invalid(path, name, _NO_REQUEST))
    return errors


def items_errors(path: str, items: Sequence[JSON], check: Check, *, most: int = _MOST) -> Errors:
    """validateSlice: the errors of each item, or of the size alone."""
    if len(items) > most:
        return [too_many(path, len(items), most)]
    return [error for place, item in enumerate(items) for error in check(f"{path}[{place}]", item)]


def unique_errors(path: str, items: Sequence[JSON], check: Check, *, key: str = "name", most: int = _MOST) -> Errors:
    """validateSet: the same for items that must be unique by a field."""
    errors = items_errors(path, items, check, most=most)
    return errors if len(items) > most else errors + _repeated(path, [item.get(key, "") for item in items])


def _repeated(path: str, keys: Sequence[str]) -> Errors:
    return [duplicate(f"{path}[{place}]", key) for place, key in enumerate(keys) if key in keys[:place]]
