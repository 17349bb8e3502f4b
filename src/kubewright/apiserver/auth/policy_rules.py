"""One rule of a role: what it allows, what it covers, and how it is printed.

Pure values and functions. `rbac` finds the rules that apply to somebody; `escalation` compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from kubewright.api.go_text import quoted
from kubewright.apiserver.wire.requests import RequestInfo

__all__ = ("FULL_AUTHORITY", "PolicyRule", "allows", "missing_rights", "summaries")

Names = tuple[str, ...]


class PolicyRule(Struct, frozen=True, rename="camel"):
    """A rule as it stands in a role; what is empty may also be missing."""

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


def allows(rule: PolicyRule, target: RequestInfo) -> bool:  # hot
    """Whether a rule allows what is asked for."""
    verbs = rule.verbs or ()
    if target.verb not in verbs and "*" not in verbs:
        return False
    if not target.resource:
        return any(_url_covers(url, target.path) for url in rule.non_resource_urls or ())
    groups = rule.api_groups or ()
    if target.group not in groups and "*" not in groups:
        return False
    names = rule.resource_names
    return _resource_matches(rule.resources or (), target) and (not names or target.name in names)


def _resource_matches(resources: Names, target: RequestInfo) -> bool:
    if target.subresource:
        wanted = f"{target.resource}/{target.subresource}"
        return wanted in resources or "*" in resources or f"*/{target.subresource}" in resources
    return target.resource in resources or "*" in resources


def _url_covers(owned: str, path: str) -> bool:
    return owned == path or (owned.endswith("*") and path.startswith(owned.rstrip("*")))


def missing_rights(owned: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The smallest parts of what is wanted that no single owned rule covers."""
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(have, part) for have in owned)]


def _parts(rule: PolicyRule) -> Iterable[PolicyRule]:
    """A rule taken apart: one verb, one resource and at most one name each."""
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


def _has_all(owned: Names | None, wanted: Names | None) -> bool:
    have = owned or ()
    return "*" in have or all(one in have for one in wanted or ())


def _covers_resource(owned: Names, path: str) -> bool:
    subresource = path.partition("/")[2]
    return path in owned or "*" in owned or (bool(subresource) and f"*/{subresource}" in owned)


def _covers_names(owned: Names | None, wanted: Names | None) -> bool:
    return not owned or (bool(wanted) and all(name in owned for name in wanted or ()))


def summaries(rules: Iterable[PolicyRule]) -> list[str]:
    """Rules as the refusal of an escalation lists them: verbs of one resource together, in order."""
    gathered: dict[tuple[Any, ...], list[str]] = {}
    for rule in rules:
        apart = rule.verbs if rule.non_resource_urls else None  # only the verbs of resources are gathered
        key = (rule.api_groups, rule.resources, rule.resource_names, rule.non_resource_urls, apart)
        gathered.setdefault(key, []).extend(rule.verbs or ())
    return sorted({_printed(PolicyRule(tuple(verbs), *key[:4])) for key, verbs in gathered.items()})


def _printed(rule: PolicyRule) -> str:
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
