"""Grants: single permissions, and RBAC rules made of them.

A grant is one verb on one resource, perhaps on one object of it, or on one URL. Sets of grants are inferred, read from
an audit log and compared; `policy_rules` writes a set as few rules, the same every time. Nothing here knows where
grants come from.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, final

import msgspec

__all__ = ("Grant", "covered_by", "grants_of", "policy_rules")


@final
class Grant(msgspec.Struct, frozen=True, order=True):
    """One verb on one resource or URL."""

    group: str
    resource: str
    verb: str
    name: str = ""
    """The only object it is for; any if empty."""
    url: str = ""
    """A non-resource URL instead of a resource."""

    def __str__(self) -> str:
        if self.url:
            return f"{self.verb} on {self.url}"
        resource = f"{self.resource} in {self.group}" if self.group else self.resource
        return f"{self.verb} on {resource}" + (f", only {self.name}" if self.name else "")


def covered_by(grant: Grant, granted: Iterable[Grant]) -> bool:
    """Whether the granted permissions include this one."""
    return any(_covers(other, grant) for other in granted)


def _covers(one: Grant, other: Grant) -> bool:
    if one.verb not in ("*", other.verb):
        return False
    if one.url or other.url:
        return bool(one.url and other.url) and (
            one.url == other.url or (one.url.endswith("*") and other.url.startswith(one.url[:-1]))
        )
    part = other.resource.partition("/")[2]
    return (
        one.group in ("*", other.group)
        and one.resource in ("*", other.resource, *((f"*/{part}",) if part else ()))
        and one.name in ("", other.name)
    )


def grants_of(rules: Iterable[Mapping[str, Any]]) -> set[Grant]:
    """The grants in the `rules` of a Role or ClusterRole."""
    found = set()
    for rule in rules:
        for verb in rule.get("verbs") or ():
            found |= {Grant("", "", verb, url=url) for url in rule.get("nonResourceURLs") or ()}
            found |= {
                Grant(group, resource, verb, name)
                for group in rule.get("apiGroups") or ()
                for resource in rule.get("resources") or ()
                for name in rule.get("resourceNames") or ("",)
            }
    return found


class _Rule(msgspec.Struct, frozen=True, order=True):
    groups: tuple[str, ...]
    resources: tuple[str, ...]
    names: tuple[str, ...]
    urls: tuple[str, ...]
    verbs: tuple[str, ...]


def policy_rules(grants: Iterable[Grant]) -> list[dict[str, Any]]:
    """The fewest rules that grant exactly this, in a fixed order."""
    rules = [
        _Rule((grant.group,) if not grant.url else (), _one(grant.resource), _one(grant.name), _one(grant.url), (verb,))
        for grant in _without_covered(grants)
        for verb in (grant.verb,)
    ]
    rules = _merge(rules, "names", lambda rule: (rule.groups, rule.resources, rule.urls, rule.verbs, bool(rule.names)))
    rules = _merge(rules, "verbs", lambda rule: (rule.groups, rule.resources, rule.urls, rule.names))
    rules = _merge(rules, "urls", lambda rule: (rule.groups, rule.resources, rule.verbs, rule.names, bool(rule.urls)))
    rules = _merge(rules, "resources", lambda rule: (rule.groups, rule.urls, rule.verbs, rule.names))
    rules = _merge(rules, "groups", lambda rule: (rule.resources, rule.urls, rule.verbs, rule.names))
    return [_rule_tree(rule) for rule in sorted(rules)]


def _one(word: str) -> tuple[str, ...]:
    return (word,) if word else ()


def _without_covered(grants: Iterable[Grant]) -> set[Grant]:
    """Without grants that are covered by one for any verb or for any object of the resource."""
    every = set(grants)
    return {
        grant
        for grant in every
        if not (grant.verb != "*" and msgspec.structs.replace(grant, verb="*") in every)
        and not (grant.name and msgspec.structs.replace(grant, name="") in every)
        and not (grant.name and msgspec.structs.replace(grant, name="", verb="*") in every)
    }


def _merge(rules: list[_Rule], part: str, alike: Callable[[_Rule], Hashable]) -> list[_Rule]:
    """Rules that differ in one part only, as one."""
    found: dict[Hashable, _Rule] = {}
    for rule in rules:
        known = found.setdefault(alike(rule), rule)
        words = sorted({*getattr(known, part), *getattr(rule, part)})
        found[alike(rule)] = msgspec.structs.replace(known, **{part: tuple(words)})
    return list(found.values())


def _rule_tree(rule: _Rule) -> dict[str, Any]:
    parts = {
        "apiGroups": rule.groups,
        "nonResourceURLs": rule.urls,
        "resourceNames": rule.names,
        "resources": rule.resources,
        "verbs": rule.verbs,
    }
    return {name: list(words) for name, words in parts.items() if words}
