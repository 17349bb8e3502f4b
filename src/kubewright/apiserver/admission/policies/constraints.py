"""What a policy or a binding is about: its match constraints, with names, exclusions and selectors."""

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

    def matched(
        self, attributes: Attributes, others: tuple[Resource, ...], namespaces: NamespaceLookup
    ) -> Resource | None:
        """The version of the resource in which a write is meant; None if it is not.

        `others` are the versions besides the one of the request.
        """
        if not namespaces.selected(attributes, self.namespaces) or not labels_match(attributes, self.objects):
            return None
        if self._found(self.excluded, attributes, others) is not None:
            return None
        return self._found(self.rules, attributes, others) if self.rules else attributes.resource

    def _found(
        self, rules: tuple[NamedRule, ...], attributes: Attributes, others: tuple[Resource, ...]
    ) -> Resource | None:
        # The request's own version first, for every rule; only then the other ones.
        for shown in (attributes.resource, *(others if self.equivalent else ())):
            for rule, names in rules:
                if rule.matches(attributes.operation, shown, attributes.subresource) and (
                    not names or attributes.name in names
                ):
                    return shown
        return None


def constraints_of(tree: Mapping[str, Any]) -> Constraints:
    """From the form inside a policy or a binding."""
    return Constraints(
        rules=_rules(tree.get("resourceRules")),
        excluded=_rules(tree.get("excludeResourceRules")),
        equivalent=tree.get("matchPolicy", "Equivalent") == "Equivalent",
        namespaces=selector_of(tree.get("namespaceSelector")),
        objects=selector_of(tree.get("objectSelector")),
    )


def _rules(trees: Any) -> tuple[NamedRule, ...]:
    return tuple((rule_of(tree), frozenset(tree.get("resourceNames") or ())) for tree in trees or ())
