"""Validates CertificateSigningRequests, access reviews, TokenRequests and APIServices."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Final

from kubewright.apiserver.builtin.golang.internals import difference
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    one_of,
    required,
    requirement_errors,
    too_long,
)
from kubewright.apiserver.builtin.validation.formats import (
    NameRule,
    dns_label,
    dns_label_1035,
    dns_subdomain,
    path_segment,
    port_number_errors,
)

__all__ = (
    "access_review_errors",
    "api_service_errors",
    "api_service_status_errors",
    "certificate_request_errors",
    "certificate_request_update_errors",
    "local_access_review_errors",
    "self_access_review_errors",
    "signer_name_errors",
    "token_request_errors",
)

_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s[A-Za-z0-9+/=\s]*?-----END \1-----")
_LEGACY: Final = "kubernetes.io/legacy-unknown"
_FINAL: Final = ("Approved", "Denied", "Failed")


def signer_name_errors(path: str, name: str) -> Errors:
    """ValidateSignerName: `example.com/signer-name`."""
    if not name:
        return [required(path)]
    segments = name.split("/")
    if len(segments) != 2:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, detail)]
    domain, tail = segments
    errors = [too_long(path, 253)] if len(domain) > 253 else []
    errors += _first_wrong(path, domain, dns_label)
    if "." not in domain:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    errors += _first_wrong(path, tail, dns_subdomain)
    return [*errors, too_long(path, 571)] if len(name) > 571 else errors


def _first_wrong(path: str, text: str, rule: NameRule) -> Errors:
    for label in text.split("."):
        if wrong := rule(label, False):
            return each(path, text, [f'validating label "{label}": {message}' for message in wrong])
    return []


def _pem_error(data: str) -> str:
    """Why this is no PEM of a certificate request; the signer checks its signature."""
    try:
        text = b64decode(data or "").decode()
        body = text.partition("-----BEGIN CERTIFICATE REQUEST-----")[2].partition("-----END CERTIFICATE REQUEST-----")
        if not body[1]:
            return "PEM block type must be CERTIFICATE REQUEST"
        b64decode("".join(body[0].split()), validate=True)
    except (ValueError, binascii.Error):
        return "PEM block type must be CERTIFICATE REQUEST"
    return ""


def _certificate_error(data: str) -> str:
    """Why these are no PEM certificates."""
    if not data:
        return ""
    kinds = _BLOCK.findall(b64decode(data).decode(errors="replace"))
    other = [kind for kind in kinds if kind != "CERTIFICATE"]
    if other:
        return f'only CERTIFICATE PEM blocks are allowed, found "{other[0]}"'
    return "" if kinds else "must contain at least one CERTIFICATE PEM block"


def certificate_request_errors(request: JSON) -> Errors:
    """ValidateCertificateSigningRequestCreate."""
    spec = request.get("spec") or {}
    usages, name, seconds = spec.get("usages") or [], spec.get("signerName", ""), spec.get("expirationSeconds")
    why = _pem_error(spec.get("request", ""))
    errors = [invalid("spec.request", spec.get("request"), why)] if why else []
    if not usages:
        errors.append(required("spec.usages"))
    for position, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(one_of(f"spec.usages[{position}]", usage, _USAGES))
    for position, usage in enumerate(usages):
        if usage in usages[:position]:
            errors.append(duplicate(f"spec.usages[{position}]", usage))
    if name == _LEGACY:
        detail = "the legacy signerName is not allowed via this API version"
        errors.append(invalid("spec.signerName", name, detail))
    else:
        errors += signer_name_errors("spec.signerName", name)
    if seconds is not None and seconds < 600:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, detail))
    return errors + _condition_errors((request.get("status") or {}).get("conditions") or ())


def _condition_errors(conditions: JSON) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        place, kind, status = f"status.conditions[{position}]", condition.get("type", ""), condition.get("status", "")
        if not kind:
            errors.append(required(f"{place}.type"))
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        if status not in allowed:
            errors.append(one_of(f"{place}.status", status, allowed) if status else required(f"{place}.status"))
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other in seen:
            detail = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid("status.conditions", kind, detail))
        if kind in seen:
            errors.append(duplicate(f"{place}.type", kind))
        seen.add(kind)
    return errors


def certificate_request_update_errors(request: JSON, old: JSON, subresource: str) -> Errors:
    """The updates of a CertificateSigningRequest: main endpoint, status and approval."""
    errors = certificate_request_errors(request)
    new, before = request.get("status") or {}, old.get("status") or {}
    why = _certificate_error(new.get("certificate") or "")
    if why and (new.get("certificate") or "") != (before.get("certificate") or ""):
        errors.append(invalid("status.certificate", "<certificate data>", why))
    place = "status.conditions"
    for kind in _FINAL:
        if len(_of_type(new, kind)) < len(_of_type(before, kind)):
            errors.append(forbidden(place, f'updates may not remove a condition of type "{kind}"'))
    for kind in () if subresource == "approval" else _FINAL[:2]:
        mine, kept = _of_type(new, kind), _of_type(before, kind)
        if len(mine) > len(kept):
            errors.append(forbidden(place, f'updates may not add a condition of type "{kind}"'))
        elif len(mine) == len(kept) and mine != kept:
            changes = difference(kept, mine, "[]certificates/v1.CertificateSigningRequestCondition")
            errors.append(forbidden(place, f'updates may not modify a condition of type "{kind}"\n{changes}'))
    if (new.get("certificate") or "") != (before.get("certificate") or ""):
        if subresource != "status":
            errors.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif before.get("certificate"):
            errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return errors


def _of_type(status: JSON, kind: str) -> list[JSON]:
    return [condition for condition in status.get("conditions") or () if condition.get("type") == kind]


def access_review_errors(review: JSON) -> Errors:
    """ValidateSubjectAccessReview."""
    return _review(review, self_review=False, meta_rule="must be empty")


def self_access_review_errors(review: JSON) -> Errors:
    """ValidateSelfSubjectAccessReview."""
    return _review(review, self_review=True, meta_rule="must be empty")


def local_access_review_errors(review: JSON) -> Errors:
    """ValidateLocalSubjectAccessReview."""
    errors = _review(review, self_review=False, meta_rule="must be empty except for namespace")
    spec, namespace = review.get("spec") or {}, (review.get("metadata") or {}).get("namespace", "")
    resource = spec.get("resourceAttributes")
    if resource is not None and resource.get("namespace", "") != namespace:
        place = "spec.resourceAttributes.namespace"
        errors.append(invalid(place, resource.get("namespace", ""), "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        shown = _non_resource(spec["nonResourceAttributes"])
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    return errors


def _non_resource(attributes: JSON) -> JSON:
    return None if attributes is None else {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}


def _review(review: JSON, *, self_review: bool, meta_rule: str) -> Errors:
    spec = review.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: Errors = []
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid("spec.nonResourceAttributes", _non_resource(other), detail))
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid("spec.resourceAttributes", None, detail))
    if not self_review and not spec.get("user") and not spec.get("groups"):
        errors.append(invalid("spec.user", spec.get("user", ""), "at least one of user or group must be specified"))
    for name in ("fieldSelector", "labelSelector"):
        selector = (resource or {}).get(name)
        if selector is not None:
            errors += _selector(f"spec.resourceAttributes.{name}", selector, labels=name == "labelSelector")
    meta = review.get("metadata") or {}
    free = ("namespace", "managedFields") if "namespace" in meta_rule else ("managedFields",)
    if any(value for name, value in meta.items() if name not in free):
        errors.append(invalid("metadata", meta, meta_rule))
    return errors


def _selector(path: str, selector: JSON, *, labels: bool) -> Errors:
    raw, wanted = selector.get("rawSelector", ""), selector.get("requirements") or ()
    errors: Errors = []
    if raw and wanted:
        detail = "may not specified at the same time as requirements"
        errors.append(invalid(f"{path}.rawSelector", raw, detail))
    if not raw and not wanted:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(required(f"{path}.requirements", detail))
    for position, requirement in enumerate(wanted):
        place = f"{path}.requirements[{position}]"
        if labels:
            errors += requirement_errors(place, requirement, any_operator=True)
            continue
        if not requirement.get("key"):
            errors.append(required(f"{place}.key", "must be specified"))
        values, operator = requirement.get("values"), requirement.get("operator")
        if operator in ("In", "NotIn") and not values:
            errors.append(required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist") and values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(f"{place}.values", detail))
    return errors


def token_request_errors(request: JSON) -> Errors:
    """ValidateTokenRequest."""
    seconds, place = (request.get("spec") or {}).get("expirationSeconds", 0), "spec.expirationSeconds"
    if seconds < 600:
        return [invalid(place, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > 2**32:
        return [invalid(place, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def api_service_errors(service: JSON, old: JSON = None) -> Errors:
    """ValidateAPIService."""
    spec = service.get("spec") or {}
    group, version, backend = spec.get("group", ""), spec.get("version", ""), spec.get("service")
    name, wanted = str((service.get("metadata") or {}).get("name") or ""), f"{version}.{group}"
    errors: Errors = []
    if name != wanted and not path_segment(name):
        detail = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        errors.append(invalid("metadata.name", name, detail))
    if not group and version != "v1":
        detail = "only v1 may have an empty group and it better be legacy kube"
        errors.append(required("spec.group", detail))
    errors += each("spec.group", group, dns_subdomain(group)) if group else []
    errors += each("spec.version", version, dns_label_1035(version))
    for name, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(name, 0)
        if not 0 < value <= limit:
            errors.append(invalid(f"spec.{name}", value, f"must be positive and less than {limit}"))
    bundle, insecure = spec.get("caBundle"), spec.get("insecureSkipTLSVerify")
    if backend is None:
        if bundle:
            size = f"{len(b64decode(bundle))} bytes"
            errors.append(invalid("spec.caBundle", size, "local APIServices may not have a caBundle"))
        if insecure:
            detail = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(invalid("spec.insecureSkipTLSVerify", True, detail))
        return errors
    errors += [required(f"spec.service.{name}") for name in ("namespace", "name") if not backend.get(name)]
    if wrong := port_number_errors(backend.get("port", 0)):
        detail = f"port is not valid: {', '.join(wrong)}"
        errors.append(invalid("spec.service.port", backend.get("port", 0), detail))
    if insecure and bundle:
        errors.append(invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
    return errors


def api_service_status_errors(service: JSON, old: JSON) -> Errors:
    """ValidateAPIServiceStatus."""
    return [
        one_of(f"status.conditions[{position}].status", condition.get("status", ""), ("True", "False", "Unknown"))
        for position, condition in enumerate((service.get("status") or {}).get("conditions") or ())
        if condition.get("status") not in ("True", "False", "Unknown")
    ]
