"""What one rule covers of another, and how missing rights are listed."""

from __future__ import annotations

import pytest

from kubewright.apiserver.auth.policy_rules import FULL_AUTHORITY, PolicyRule, format_rules, uncovered_rules


def resources(
    verbs: str, names: str, *, only: tuple[str, ...] | None = None, groups: tuple[str, ...] = ("",)
) -> PolicyRule:
    return PolicyRule(tuple(verbs.split()), groups, tuple(names.split()), only)


def of_pods(verb: str) -> str:
    return f'{{APIGroups:[""], Resources:["pods"], Verbs:["{verb}"]}}'


def urls(*paths: str) -> PolicyRule:
    return PolicyRule(("get",), non_resource_urls=paths)


@pytest.mark.parametrize(
    ("owned", "wanted"),
    [
        (resources("*", "pods"), resources("get list", "pods")),
        (resources("get", "*"), resources("get", "pods pods/log")),
        (resources("get", "*/log"), resources("get", "pods/log")),
        (resources("get", "pods"), resources("get", "pods", only=("a",))),
        (resources("get", "pods", only=("a", "b")), resources("get", "pods", only=("a",))),
        (resources("get", "pods", groups=("*",)), resources("get", "pods", groups=("", "apps"))),
        (urls("/a/*"), urls("/a/b", "/a/b/*")),
        (urls("*"), urls("/a")),
    ],
)
def test_a_wider_rule_covers_a_narrower_one(owned: PolicyRule, wanted: PolicyRule) -> None:
    assert uncovered_rules([owned], [wanted]) == []


@pytest.mark.parametrize(
    ("owned", "wanted", "missing"),
    [
        (resources("get", "pods"), resources("get list", "pods"), [of_pods("list")]),
        (resources("get", "pods", only=("a",)), resources("get", "pods"), [of_pods("get")]),
        (resources("get", "*/log"), resources("get", "pods"), [of_pods("get")]),
        (resources("get", "pods"), resources("*", "pods"), [of_pods("*")]),
        (urls("/a"), urls("/a/*"), ['{NonResourceURLs:["/a/*"], Verbs:["get"]}']),
    ],
)
def test_what_no_rule_covers_is_uncovered(owned: PolicyRule, wanted: PolicyRule, missing: list[str]) -> None:
    assert format_rules(uncovered_rules([owned], [wanted])) == missing


def test_the_verbs_of_one_resource_are_listed_together_and_names_apart() -> None:
    wanted = (resources("get list", "pods"), resources("get", "secrets", only=("a", "b")))

    assert format_rules(uncovered_rules([], wanted)) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}',
    ]


def test_full_authority_covers_everything() -> None:
    assert uncovered_rules(FULL_AUTHORITY, [resources("x", "y/z", groups=("g",)), urls("/q")]) == []
