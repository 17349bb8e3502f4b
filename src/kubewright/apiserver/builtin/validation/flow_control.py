"""Validates FlowSchemas and PriorityLevelConfigurations.

Only validation: what the two mean to a request is in `front.flow_control`. Upstream:
k8s.io/kubernetes/pkg/apis/flowcontrol/validation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from kubewright.apiserver.builtin.golang.internals import internal
from kubewright.apiserver.builtin.trees import items, semantic_equal
from kubewright.apiserver.builtin.validation.fields import (
    JSON,
    Errors,
    duplicate,
    each,
    forbidden,
    invalid,
    one_of,
    required,
)
from kubewright.apiserver.builtin.validation.formats import dns_label, dns_subdomain

__all__ = (
    "flow_schema_errors",
    "flow_schema_status_errors",
    "priority_level_errors",
    "priority_level_status_errors",
)

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_MOST_PRECEDENCE: Final = 10000
_MOST_QUEUES: Final = 10**7
_MOST_ENTROPY: Final = 60
"""shufflesharding.MaxHashBits."""
_PRESERVES_ZERO: Final = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_CATCH_ALL: Final = "catch-all"
_EXEMPT: Final = "exempt"


def _groups(*names: str) -> list[JSON]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _rule(subjects: list[JSON]) -> JSON:
    resources = {name: ["*"] for name in ("verbs", "apiGroups", "resources", "namespaces")}
    return {
        "subjects": subjects,
        "resourceRules": [{**resources, "clusterScope": True}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }


_MANDATORY_SCHEMAS: Final[dict[str, Any]] = {
    _EXEMPT: {
        "priorityLevelConfiguration": {"name": _EXEMPT},
        "matchingPrecedence": 1,
        "rules": [_rule(_groups("system:masters"))],
    },
    _CATCH_ALL: {
        "priorityLevelConfiguration": {"name": _CATCH_ALL},
        "matchingPrecedence": _MOST_PRECEDENCE,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [_rule(_groups("system:unauthenticated", "system:authenticated"))],
    },
}
"""The specs that cannot be changed (internalbootstrap.MandatoryFlowSchemas)."""
_CATCH_ALL_LEVEL: Final[JSON] = {
    "type": "Limited",
    "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
}


def flow_schema_errors(schema: JSON) -> Errors:
    """ValidateFlowSchema."""
    name, spec = schema["metadata"].get("name", ""), schema.get("spec") or {}
    errors = _precedence_errors(name, spec.get("matchingPrecedence", 0))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        shown = internal(method, "flowcontrol.FlowDistinguisherMethod")
        errors.append(one_of("spec.distinguisherMethod.type", shown, ("ByNamespace", "ByUser")))
    level, place = (
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        "spec.priorityLevelConfiguration.name",
    )
    errors += (
        each(place, level, dns_subdomain(level)) if level else [required(place, "must reference a priority level")]
    )
    for position, rule in enumerate(items(spec, "rules")):
        errors += _rule_errors(f"spec.rules[{position}]", rule)
    if name in _MANDATORY_SCHEMAS and not semantic_equal(spec, _MANDATORY_SCHEMAS[name]):
        shown = internal(spec, "flowcontrol.FlowSchemaSpec")
        errors.append(invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))
    return errors + flow_schema_status_errors(schema, None)


def flow_schema_status_errors(schema: JSON, old: JSON) -> Errors:
    """ValidateFlowSchemaStatus, and that of a priority level: a condition of each type."""
    errors: Errors = []
    seen: set[str] = set()
    for position, condition in enumerate(items(schema.get("status"), "conditions")):
        place, kind = f"status.conditions[{position}].type", condition.get("type", "")
        if kind in seen:
            errors.append(duplicate(place, kind))
        seen.add(kind)
        errors += [] if kind else [required(place)]
    return errors


priority_level_status_errors = flow_schema_status_errors


def _precedence_errors(name: str, precedence: int) -> Errors:
    place = "spec.matchingPrecedence"
    errors: Errors = []
    if precedence <= 0:
        errors.append(invalid(place, precedence, "must be a positive value"))
    if precedence > _MOST_PRECEDENCE:
        errors.append(invalid(place, precedence, f"must not be greater than {_MOST_PRECEDENCE}"))
    if precedence == 1 and name != _EXEMPT:
        errors.append(invalid(place, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    return errors


def _rule_errors(place: str, rule: JSON) -> Errors:
    errors: Errors = []
    for position, subject in enumerate(items(rule, "subjects")):
        errors += _subject_errors(f"{place}.subjects[{position}]", subject)
    if not rule.get("subjects"):
        errors.append(required(f"{place}.subjects", "subjects must contain at least one value"))
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required(place, detail))
    for position, one in enumerate(items(rule, "resourceRules")):
        errors += _resource_rule_errors(f"{place}.resourceRules[{position}]", one)
    for position, one in enumerate(items(rule, "nonResourceRules")):
        at = f"{place}.nonResourceRules[{position}]"
        errors += _verb_errors(f"{at}.verbs", one.get("verbs") or [])
        errors += _url_errors(f"{at}.nonResourceURLs", one.get("nonResourceURLs") or [])
    return errors


def _subject_errors(place: str, subject: JSON) -> Errors:
    kinds: dict[str, tuple[str, Callable[[str, JSON], Errors]]] = {
        "ServiceAccount": ("serviceAccount", _account_errors),
        "User": ("user", _name_errors),
        "Group": ("group", _name_errors),
    }
    kind = subject.get("kind", "")
    if kind not in kinds:
        return [one_of(f"{place}.kind", kind, sorted(kinds))]
    member, check = kinds[kind]
    given = subject.get(member)
    missing = required(f"{place}.{member}", f"{member} is required when subject kind is '{kind}'")
    errors = [missing] if given is None else check(f"{place}.{member}", given)
    for other, (name, _) in kinds.items():
        if other != kind and subject.get(name) is not None:
            errors.append(forbidden(f"{place}.{name}", f"{name} is forbidden when subject kind is not '{other}'"))
    return errors


def _name_errors(place: str, subject: JSON) -> Errors:
    return [] if subject.get("name") else [required(f"{place}.name")]


def _account_errors(place: str, account: JSON) -> Errors:
    name, namespace = account.get("name", ""), account.get("namespace", "")
    errors = _name_errors(place, account)
    if name and name != "*":
        errors += each(f"{place}.name", name, dns_subdomain(name))
    if namespace:
        return errors + each(f"{place}.namespace", namespace, dns_label(namespace))
    return [*errors, required(f"{place}.namespace", "must specify namespace for service account")]


def _verb_errors(place: str, verbs: list[str]) -> Errors:
    if not verbs:
        return [required(place, "verbs must contain at least one value")]
    if "*" in verbs:
        return _wildcard_errors(place, verbs, "verbs")
    return [] if set(verbs) <= set(_VERBS) else [one_of(place, verbs, _VERBS)]


def _wildcard_errors(place: str, values: list[str], what: str) -> Errors:
    alone = len(values) == 1 or "*" not in values
    return [] if alone else [invalid(place, values, f"if '*' is present, must not specify other {what}")]


def _url_errors(place: str, urls: list[str]) -> Errors:
    if not urls:
        return [required(place, "nonResourceURLs must contain at least one value")]
    if "*" in urls:
        return _wildcard_errors(place, urls, "non-resource URLs")
    return [
        invalid(f"{place}[{position}]", url, detail)
        for position, url in enumerate(urls)
        if (detail := _url_problem(url))
    ]


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars and not url.endswith("/*")) else ""


def _resource_rule_errors(place: str, rule: JSON) -> Errors:
    errors = _verb_errors(f"{place}.verbs", rule.get("verbs") or [])
    for name, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = rule.get(name) or []
        if not values:
            errors.append(required(f"{place}.{name}", f"resource rules must supply at least one {one}"))
        errors += _wildcard_errors(f"{place}.{name}", values, many)
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        return [*errors, required(f"{place}.namespaces", detail)]
    if "*" in namespaces:
        return errors + _wildcard_errors(f"{place}.namespaces", namespaces, "namespaces")
    intro = "each member of this list must be '*' or a DNS-1123 label; "
    for position, namespace in enumerate(namespaces):
        details = [intro + detail for detail in dns_label(namespace)]
        errors += each(f"{place}.namespaces[{position}]", namespace, details)
    return errors


def priority_level_errors(level: JSON) -> Errors:
    """ValidatePriorityLevelConfiguration."""
    metadata, spec = level["metadata"], level.get("spec") or {}
    errors: Errors = []
    if _PRESERVES_ZERO in (metadata.get("annotations") or {}):
        errors.append(forbidden("metadata.annotations", f"annotation '{_PRESERVES_ZERO}' is forbidden"))
    name, kind = metadata.get("name", ""), spec.get("type", "")
    if (name == _EXEMPT) != (kind == "Exempt"):
        errors.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    limited, exempt = spec.get("limited"), spec.get("exempt")
    if kind == "Exempt":
        if limited is not None:
            errors.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        errors += _share_errors("spec.exempt", exempt or {})
    elif kind == "Limited":
        if exempt is not None:
            errors.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        missing = required("spec.limited", "must not be empty when type is Limited")
        errors += [missing] if limited is None else _limited_errors(limited)
    else:
        errors.append(one_of("spec.type", kind, ("Exempt", "Limited")))
    return errors + _mandatory_level_errors(name, spec) + priority_level_status_errors(level, None)


def _mandatory_level_errors(name: str, spec: JSON) -> Errors:
    if name == _EXEMPT:
        changed = not semantic_equal({**spec, "exempt": None}, {"type": "Exempt", "exempt": None})
        detail = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
    else:
        changed = name == _CATCH_ALL and not semantic_equal(spec, _CATCH_ALL_LEVEL)
        detail = f"spec of '{name}' must equal the fixed value"
    shown = internal(spec, "flowcontrol.PriorityLevelConfigurationSpec") if changed else None
    return [invalid("spec", shown, detail)] if changed else []


def _share_errors(place: str, part: JSON) -> Errors:
    shares, percent = part.get("nominalConcurrencyShares"), part.get("lendablePercent")
    errors: Errors = []
    if shares is not None and shares < 0:
        errors.append(invalid(f"{place}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    if percent is not None and not 0 <= percent <= 100:
        errors.append(invalid(f"{place}.lendablePercent", percent, "must be between 0 and 100, inclusive"))
    return errors


def _limited_errors(limited: JSON) -> Errors:
    place, response = "spec.limited.limitResponse", limited.get("limitResponse") or {}
    shares, percent = limited.get("nominalConcurrencyShares"), limited.get("borrowingLimitPercent")
    errors = _share_errors("spec.limited", {"nominalConcurrencyShares": shares})
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            detail = "must be nil if limited.limitResponse.type is not Limited"
            errors.append(forbidden(f"{place}.queuing", detail))
    elif kind == "Queue":
        missing = required(f"{place}.queuing", "must not be empty if limited.limitResponse.type is Limited")
        errors += [missing] if queuing is None else _queuing_errors(f"{place}.queuing", queuing)
    else:
        errors.append(one_of(f"{place}.type", kind, ("Queue", "Reject")))
    errors += _share_errors("spec.limited", {"lendablePercent": limited.get("lendablePercent")})
    if percent is not None and percent < 0:
        detail = "if specified, must be a non-negative integer"
        errors.append(invalid("spec.limited.borrowingLimitPercent", percent, detail))
    return errors


def _queuing_errors(place: str, queuing: JSON) -> Errors:
    length, queues, hand = (queuing.get(name, 0) for name in ("queueLengthLimit", "queues", "handSize"))
    errors = [] if length > 0 else [invalid(f"{place}.queueLengthLimit", length, "must be positive")]
    if queues <= 0:
        errors.append(invalid(f"{place}.queues", queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        errors.append(invalid(f"{place}.queues", queues, f"must not be greater than {_MOST_QUEUES}"))
    if hand <= 0:
        errors.append(invalid(f"{place}.handSize", hand, "must be positive"))
    elif hand > queues:
        errors.append(invalid(f"{place}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif _entropy_bits(queues, hand) > _MOST_ENTROPY:
        what = f"required entropy bits of deckSize {queues} and handSize {hand}"
        errors.append(invalid(f"{place}.handSize", hand, f"{what} should not be greater than {_MOST_ENTROPY}"))
    return errors


def _entropy_bits(deck: int, hand: int) -> int:
    """The bits of a hash that deals a hand of queues (shufflesharding.RequiredEntropyBits)."""
    return math.ceil(math.log2(deck) * hand)
