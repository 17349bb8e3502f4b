"""The status of a CRD: accepted names and conditions.

`compute_status` does in one step what the controllers of apiextensions-apiserver do one after another: naming
(k8s.io/apiextensions-apiserver/pkg/controller/status/naming_controller.go), establishing, API approval and
non-structural schema. Pure: `controllers.crds` gives the time and writes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubewright.api.field_errors import bad_value, summary
from kubewright.api.go_text import quoted
from kubewright.apiserver.apiextensions.definitions.approval import approval_of, is_protected
from kubewright.apiserver.apiextensions.definitions.structural_schema import (
    structural_conversion_error,
    structural_errors,
)

__all__ = (
    "CLEANUP_FINALIZER",
    "accept_names",
    "compute_status",
    "is_established",
    "is_true",
    "set_condition",
    "terminating_condition",
)

_Json = Mapping[str, Any]
CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
_NAMES: Final = (("plural", "PluralConflict"), ("singular", "SingularConflict"))
_KINDS: Final = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


def is_true(crd: _Json, kind: str) -> bool:
    """Whether the CRD has a condition of this type with the status True."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == kind and one.get("status") == "True" for one in conditions)


def is_established(crd: _Json) -> bool:
    """Whether the CRD is established: its resources are served."""
    return is_true(crd, "Established")


def set_condition(conditions: list[dict[str, Any]], condition: dict[str, Any], *, now: str) -> None:
    """Set a condition in a list, which is changed; lastTransitionTime changes only with the status."""
    for present in conditions:
        if present.get("type") == condition["type"]:
            moved = present.get("status") != condition["status"] or not present.get("lastTransitionTime")
            present.update(condition)
            if moved:
                present["lastTransitionTime"] = now
            return
    conditions.append({**condition, "lastTransitionTime": now})


def accept_names(crd: _Json, others: Iterable[_Json]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The accepted names of a CRD, given the other CRDs, and its condition NamesAccepted."""
    group = crd["spec"].get("group")
    taken, kinds = _names_in_use(one for one in others if (one.get("spec") or {}).get("group") == group)
    wanted = crd["spec"].get("names") or {}
    accepted_before = (crd.get("status") or {}).get("acceptedNames") or {}
    given, reason, message = dict(accepted_before), "NoConflicts", "no conflicts found"
    for fields, used in ((_NAMES, taken), ((("shortNames", "ShortNamesConflict"),), taken), (_KINDS, kinds)):
        for name, conflict in fields:
            problem = _name_conflict(wanted.get(name), accepted_before.get(name), used)
            if problem:
                reason, message = conflict, problem
            elif wanted.get(name):
                given[name] = wanted[name]
            else:
                given.pop(name, None)
    for name in ("plural", "kind"):
        given.setdefault(name, "")  # without omitempty in Go
    given.pop("categories", None)
    if wanted.get("categories"):
        given["categories"] = wanted["categories"]
    status = "True" if reason == "NoConflicts" else "False"
    return given, _condition("NamesAccepted", status, reason, message)


def compute_status(crd: _Json, others: Iterable[_Json], *, now: str) -> dict[str, Any]:
    """The status of a CRD, given the other CRDs; it is established as soon as its names are accepted."""
    status: dict[str, Any] = {**(crd.get("status") or {})}
    conditions = [dict(one) for one in status.get("conditions") or ()]
    status["acceptedNames"], accepted = accept_names(crd, others)
    set_condition(conditions, accepted, now=now)
    if accepted["status"] == "True":
        text = "the initial names have been accepted"
        set_condition(conditions, _condition("Established", "True", "InitialNamesAccepted", text), now=now)
    elif not any(one.get("type") == "Established" for one in conditions):
        text = "not all names are accepted"
        set_condition(conditions, _condition("Established", "False", "NotAccepted", text), now=now)
    if (approval := _approval_condition(crd)) is not None:
        set_condition(conditions, approval, now=now)
    conditions = [one for one in conditions if one.get("type") != "NonStructuralSchema"]
    if (violations := _non_structural_condition(crd)) is not None:
        set_condition(conditions, violations, now=now)
    status["conditions"] = conditions
    return status


def terminating_condition(reason: str, message: str, *, status: str) -> dict[str, Any]:
    """The condition Terminating of a CRD whose objects are being deleted."""
    return _condition("Terminating", status, reason, message)


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _names_in_use(others: Iterable[_Json]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update((names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())))
        kinds.update((names.get("kind") or "", names.get("listKind") or ""))
    return resources, kinds


def _name_conflict(wanted: Any, accepted_before: Any, used: set[str]) -> str:
    if isinstance(wanted, list) or isinstance(accepted_before, list):
        before = set(accepted_before or ())
        clashes = [name for name in wanted or () if name not in before and name in used]
        texts = list(dict.fromkeys(f"{quoted(name)} is already in use" for name in clashes))
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
    clash = (wanted or "") != (accepted_before or "") and (wanted or "") in used
    return f"{quoted(wanted or '')} is already in use" if clash else ""


def _approval_condition(crd: _Json) -> dict[str, Any] | None:
    if not is_protected(crd["spec"].get("group") or ""):
        return None
    state, text = approval_of(crd)
    reasons = {
        "invalid": "InvalidAnnotation",
        "missing": "MissingAnnotation",
        "approved": "ApprovedAnnotation",
        "bypassed": "UnapprovedAnnotation",
    }
    status = "True" if state == "approved" else "False"
    return _condition("KubernetesAPIApprovalPolicyConformant", status, reasons[state], text)


def _non_structural_condition(crd: _Json) -> dict[str, Any] | None:
    """The condition NonStructuralSchema, of a CRD stored before structural schemas were required."""
    found = []
    if crd["spec"].get("preserveUnknownFields"):
        found.append(bad_value("spec.preserveUnknownFields", "Invalid", True, "must be false"))
    for i, version in enumerate(crd["spec"].get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        if problem := structural_conversion_error(schema):
            text = f"failed to check validation schema for version {version.get('name')}: {problem}"
            return _condition("NonStructuralSchema", "Unknown", "StructuralError", text)
        found.extend(structural_errors(schema, f"spec.versions[{i}].schema.openAPIV3Schema"))
    return _condition("NonStructuralSchema", "True", "Violations", summary(found)) if found else None
