"""Rules of roles: whether a rule allows a request, and which rules are not covered by others.

Pure. `rbac` resolves the rules of a user and `escalation` compares them. Upstream: `RuleAllows` of
k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go, and
k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from kubewright.api.go_text import quoted
from kubewright.apiserver.wire.requests import RequestInfo

__all__ = ("FULL_AUTHORITY", "PolicyRule", "allows", "format_rules", "uncovered_rules")

Names = tuple[str, ...]


class PolicyRule(Struct, frozen=True, rename="camel"):
    """A PolicyRule of a role."""

    verbs: Names | None = None
    api_groups: Names | None = None
    resources: Names | None = None
    resource_names: Names | None = None
    non_resource_urls: Names | None = field(default=None, name="nonResourceURLs")

    def resource_tree(self) -> dict[str, Any]:
        """As a ResourceRule of a rules review."""
        tree: dict[str, Any] = {"verbs": list(self.verbs or ())}
        for name, values in (
            ("apiGroups", self.api_groups),
            ("resources", self.resources),
            ("resourceNames", self.resource_names),
        ):
            if values:
                tree[name] = list(values)
        return tree

    def url_tree(self) -> dict[str, Any]:
        """As a NonResourceRule of a rules review."""
        return {"verbs": list(self.verbs or ()), "nonResourceURLs": list(self.non_resource_urls or ())}


FULL_AUTHORITY: Final = (
    PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",)),
    PolicyRule(verbs=("*",), non_resource_urls=("*",)),
)


def allows(rule: PolicyRule, info: RequestInfo) -> bool:  # hot
    """Whether a rule allows a request."""
    verbs = rule.verbs or ()
    if info.verb not in verbs and "*" not in verbs:
        return False
    if info.is_path:
        return any(_url_covers(url, info.path) for url in rule.non_resource_urls or ())
    groups = rule.api_groups or ()
    if info.group not in groups and "*" not in groups:
        return False
    names = rule.resource_names
    return _resource_matches(rule.resources or (), info) and (not names or info.name in names)


def _resource_matches(resources: Names, info: RequestInfo) -> bool:
    if info.subresource:
        requested = f"{info.resource}/{info.subresource}"
        return requested in resources or "*" in resources or f"*/{info.subresource}" in resources
    return info.resource in resources or "*" in resources


def _url_covers(owned: str, path: str) -> bool:
    return owned == path or (owned.endswith("*") and path.startswith(owned.rstrip("*")))


def uncovered_rules(owned: Sequence[PolicyRule], requested: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The parts of the requested rules that no owned rule covers."""
    return [part for rule in requested for part in _break_down(rule) if not any(_covers(have, part) for have in owned)]


def _break_down(rule: PolicyRule) -> Iterable[PolicyRule]:
    """Break a rule down to rules of one verb, one resource and at most one name each.

    Several owned rules may cover a rule together, but each of its parts must be covered by one of them.
    """
    for group in rule.api_groups or ():
        for resource in rule.resources or ():
            for verb in rule.verbs or ():
                for names in ((name,) for name in rule.resource_names) if rule.resource_names else (None,):
                    yield PolicyRule((verb,), (group,), (resource,), names)
    for url in rule.non_resource_urls or ():
        for verb in rule.verbs or ():
            yield PolicyRule((verb,), non_resource_urls=(url,))


def _covers(owned: PolicyRule, part: PolicyRule) -> bool:
    return (
        _has_all(owned.verbs, part.verbs)
        and _has_all(owned.api_groups, part.api_groups)
        and all(_covers_resource(owned.resources or (), path) for path in part.resources or ())
        and _covers_names(owned.resource_names, part.resource_names)
        and all(
            any(_url_covers(have, url) for have in owned.non_resource_urls or ())
            for url in part.non_resource_urls or ()
        )
    )


def _has_all(owned: Names | None, requested: Names | None) -> bool:
    have = owned or ()
    return "*" in have or all(one in have for one in requested or ())


def _covers_resource(owned: Names, path: str) -> bool:
    subresource = path.partition("/")[2]
    return path in owned or "*" in owned or (bool(subresource) and f"*/{subresource}" in owned)


def _covers_names(owned: Names | None, requested: Names | None) -> bool:
    return not owned or (bool(requested) and all(name in owned for name in requested or ()))


def format_rules(rules: Iterable[PolicyRule]) -> list[str]:
    """The texts of rules in an escalation error: sorted, with the verbs of one resource merged."""
    merged: dict[tuple[Any, ...], list[str]] = {}
    for rule in rules:
        apart = rule.verbs if rule.non_resource_urls else None  # only the verbs of resources are merged
        key = (rule.api_groups, rule.resources, rule.resource_names, rule.non_resource_urls, apart)
        merged.setdefault(key, []).extend(rule.verbs or ())
    return sorted({_rule_text(PolicyRule(tuple(verbs), *key[:4])) for key, verbs in merged.items()})


def _rule_text(rule: PolicyRule) -> str:
    parts = [
        f"{title}:[{' '.join(quoted(value) for value in values)}]"
        for title, values in (
            ("APIGroups", rule.api_groups),
            ("Resources", rule.resources),
            ("NonResourceURLs", rule.non_resource_urls),
            ("ResourceNames", rule.resource_names),
            ("Verbs", rule.verbs),
        )
        if values
    ]
    return "{" + ", ".join(parts) + "}"
