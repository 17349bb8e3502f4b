"""The API approval policy: a CRD in a group below k8s.io or kubernetes.io needs an approval annotation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from kubewright.api.field_errors import FieldError, bad_value
from kubewright.api.go_text import quoted
from kubewright.schema.check.internet_addresses import is_request_uri

__all__ = ("Approval", "approval_errors", "approval_of", "is_protected")

ANNOTATION: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"

Approval = Literal["invalid", "approved", "bypassed", "missing"]


def is_protected(group: str) -> bool:
    """Whether a group is protected by the policy."""
    return any(group == name or group.endswith(f".{name}") for name in ("k8s.io", "kubernetes.io"))


def approval_of(crd: Mapping[str, Any]) -> tuple[Approval, str]:
    """The state of a CRD's approval annotation, and the message of its condition."""
    text = ((crd.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or ""
    demand = f"protected groups must have approval annotation {quoted(ANNOTATION)}"
    if not text:
        return "missing", f"{demand}, {_SEE}"
    if text.startswith("unapproved"):
        return "bypassed", f"not approved: {quoted(text)}"
    if is_request_uri(text) and re.match("[A-Za-z][A-Za-z0-9+.-]*://[^/?]", text):
        return "approved", f"approved in {text}"
    return "invalid", f'{demand} with either a URL or a reason starting with "unapproved", {_SEE}'


def approval_errors(crd: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[FieldError]:
    """The error of a CRD that lacks a needed approval; ratcheted: not if the stored CRD lacked it in the same way."""
    if not is_protected((crd.get("spec") or {}).get("group") or ""):
        return []
    state, text = approval_of(crd)
    if state in ("approved", "bypassed") or (old is not None and approval_of(old)[0] == state):
        return []
    path = f"metadata.annotations[{ANNOTATION}]"
    if state == "missing":
        return [FieldError(path, "Required", text)]
    return [bad_value(path, "Invalid", crd["metadata"]["annotations"][ANNOTATION], text)]
