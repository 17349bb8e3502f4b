"""The rows of policy kinds: bindings, webhook configurations, admission policies, CSRs, priorities, quotas."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from kubewright.apiserver.builtin.trees import Tree, items, peek, text
from kubewright.apiserver.printers.ages import age_of, human_duration
from kubewright.apiserver.printers.texts import NONE, UNSET, flag, name_of, number, status_of

__all__ = (
    "binding_cells",
    "flow_schema_cells",
    "policy_binding_cells",
    "policy_cells",
    "priority_class_cells",
    "priority_level_cells",
    "quota_cells",
    "signing_request_cells",
    "webhooks_cells",
)

_NO_QUEUES: Final = (NONE, NONE, NONE)


def binding_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a RoleBinding or a ClusterRoleBinding."""
    subjects = items(tree, "subjects")
    role = tree.get("roleRef")
    accounts = [
        f"{text(one, 'namespace')}/{text(one, 'name')}" for one in subjects if one.get("kind") == "ServiceAccount"
    ]
    return [
        name_of(tree),
        f"{text(role, 'kind')}/{text(role, 'name')}",
        age_of(tree, now),
        *(", ".join(text(one, "name") for one in subjects if one.get("kind") == kind) for kind in ("User", "Group")),
        ", ".join(accounts),
    ]


def webhooks_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a webhook configuration."""
    return [name_of(tree), len(items(tree, "webhooks")), age_of(tree, now)]


def policy_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ValidatingAdmissionPolicy."""
    spec = tree.get("spec") or {}
    kind = spec.get("paramKind")
    shown = UNSET if kind is None else f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}"
    return [name_of(tree), len(items(spec, "validations")), shown, age_of(tree, now)]


def policy_binding_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ValidatingAdmissionPolicyBinding."""
    found = peek(tree, "spec", "paramRef") or {}
    parameters = UNSET
    if name := text(found, "name"):
        parameters = f"{text(found, 'namespace') or '*'}/{name}"
    elif found.get("selector") is not None:
        parameters = _go_selector(found["selector"])
    return [name_of(tree), text(tree, "spec", "policyName"), parameters, age_of(tree, now)]


def _go_selector(selector: Tree) -> str:
    """A selector as Go prints the struct."""
    labels = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{text(one, 'key')},Operator:{text(one, 'operator')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in items(selector, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def signing_request_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a CertificateSigningRequest."""
    spec = tree.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        name_of(tree),
        age_of(tree, now),
        text(spec, "signerName") or NONE,
        text(spec, "username"),
        NONE if seconds is None else human_duration(timedelta(seconds=seconds)),
        _request_state(tree.get("status") or {}),
    ]


def _request_state(status: Tree) -> str:
    kinds = {condition.get("type") for condition in items(status, "conditions")}
    words = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    if "Failed" in kinds:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)


def priority_class_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a PriorityClass."""
    return [
        name_of(tree),
        number(tree, "value"),
        flag(tree, "globalDefault"),
        age_of(tree, now),
        text(tree, "preemptionPolicy"),
    ]


def flow_schema_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a FlowSchema."""
    spec = tree.get("spec") or {}
    method = spec.get("distinguisherMethod")
    dangling = status_of(items(tree.get("status"), "conditions"), "Dangling")
    return [
        name_of(tree),
        text(spec, "priorityLevelConfiguration", "name"),
        number(spec, "matchingPrecedence"),
        NONE if method is None else text(method, "type"),
        age_of(tree, now),
        "?" if dangling is None else dangling,
    ]


def priority_level_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a PriorityLevelConfiguration."""
    limited = peek(tree, "spec", "limited")
    queuing = peek(limited, "limitResponse", "queuing")
    queues: tuple[Any, ...] = _NO_QUEUES
    if queuing is not None:
        queues = tuple(number(queuing, name) for name in ("queues", "handSize", "queueLengthLimit"))
    return [
        name_of(tree),
        text(tree, "spec", "type"),
        NONE if limited is None else number(limited, "nominalConcurrencyShares"),
        *queues,
        age_of(tree, now),
    ]


def quota_cells(tree: Tree, now: datetime) -> list[Any]:
    """The row of a ResourceQuota."""
    hard, used = (peek(tree, "status", name) or {} for name in ("hard", "used"))
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        column = limits if name.startswith("limits.") else requests
        column.append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [name_of(tree), ", ".join(requests), ", ".join(limits), age_of(tree, now)]
