"""The match constraints of a policy or a binding: rules, names, exclusions and selectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from kubewright.api.selectors import Selector
from kubewright.apiserver.admission.selectors import NamespaceLookup, labels_match
from kubewright.apiserver.admission.webhooks.configurations import ResourceRule, rule_of, selector_of
from kubewright.apiserver.kinds.admission import Attributes
from kubewright.apiserver.kinds.resources import Resource

__all__ = ("Constraints", "constraints_of")

NamedRule = tuple[ResourceRule, frozenset[str]]


@final
@dataclass(frozen=True, slots=True)
class Constraints:
    """Match constraints, compiled."""

    rules: tuple[NamedRule, ...]
    excluded: tuple[NamedRule, ...]
    equivalent: bool
    namespaces: Selector | None
    objects: Selector | None

    def match(
        self, attributes: Attributes, others: tuple[Resource, ...], namespaces: NamespaceLookup
    ) -> Resource | None:
        """The version of the resource in which a write matches; None if it does not.

        `others` are the versions besides that of the request.
        """
        if not namespaces.selected(attributes, self.namespaces) or not labels_match(attributes, self.objects):
            return None
        if self._first_match(self.excluded, attributes, others) is not None:
            return None
        return self._first_match(self.rules, attributes, others) if self.rules else attributes.resource

    def _first_match(
        self, rules: tuple[NamedRule, ...], attributes: Attributes, others: tuple[Resource, ...]
    ) -> Resource | None:
        # All rules are tried with the version of the request before the other versions.
        for matched in (attributes.resource, *(others if self.equivalent else ())):
            for rule, names in rules:
                if rule.matches(attributes.operation, matched, attributes.subresource) and (
                    not names or attributes.name in names
                ):
                    return matched
        return None


def constraints_of(tree: Mapping[str, Any]) -> Constraints:
    """Compile the constraints of a policy or a binding."""
    return Constraints(
        rules=_rules(tree.get("resourceRules")),
        excluded=_rules(tree.get("excludeResourceRules")),
        equivalent=tree.get("matchPolicy", "Equivalent") == "Equivalent",
        namespaces=selector_of(tree.get("namespaceSelector")),
        objects=selector_of(tree.get("objectSelector")),
    )


def _rules(trees: Any) -> tuple[NamedRule, ...]:
    return tuple((rule_of(tree), frozenset(tree.get("resourceNames") or ())) for tree in trees or ())
