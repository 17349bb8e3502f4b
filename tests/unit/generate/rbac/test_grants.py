"""Grants, and rules made from them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.generate.rbac.grants import Grant, covered_by, grants_of, policy_rules

GRANTS = st.sets(
    st.builds(
        Grant,
        group=st.sampled_from(["", "apps"]),
        resource=st.sampled_from(["pods", "jobs", "pods/log"]),
        verb=st.sampled_from(["get", "list", "create", "*"]),
        name=st.sampled_from(["", "", "web", "db"]),
    )
    | st.builds(
        Grant,
        group=st.just(""),
        resource=st.just(""),
        verb=st.sampled_from(["get", "*"]),
        url=st.sampled_from(["/a", "/b"]),
    )
)


@given(GRANTS)
def test_rules_grant_exactly_what_they_were_made_of(grants: set[Grant]) -> None:
    written = grants_of(policy_rules(grants))

    assert all(covered_by(grant, written) for grant in grants)
    assert all(covered_by(grant, grants) for grant in written)


@given(GRANTS)
def test_the_order_of_grants_does_not_matter(grants: set[Grant]) -> None:
    ordered = sorted(grants)

    assert policy_rules(ordered) == policy_rules(reversed(ordered))


def test_rules_are_as_few_as_they_can_be() -> None:
    grants = {Grant(group, "pods", verb) for group in ("", "apps") for verb in ("get", "list")}
    grants |= {Grant("", "nodes", verb) for verb in ("get", "list")}

    assert policy_rules(grants) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["pods"], "verbs": ["get", "list"]},
    ]


def test_names_and_addresses_have_rules_of_their_own() -> None:
    grants = [
        Grant("", "secrets", "get", "a"),
        Grant("", "secrets", "get", "b"),
        Grant("", "secrets", "create"),
        Grant("", "", "get", url="/metrics"),
    ]

    assert policy_rules(grants) == [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {"apiGroups": [""], "resourceNames": ["a", "b"], "resources": ["secrets"], "verbs": ["get"]},
    ]


@pytest.mark.parametrize(
    ("given_rule", "covered"),
    [
        ({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]}, True),
        ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, True),
        ({"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["get"]}, True),
        ({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}, False),
        ({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["list"]}, False),
        ({"apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["x"], "verbs": ["get"]}, False),
        ({"nonResourceURLs": ["*"], "verbs": ["get"]}, False),
    ],
)
def test_wildcards_cover_what_the_server_says_they_do(given_rule: dict[str, Any], covered: bool) -> None:
    assert covered_by(Grant("apps", "deployments/scale", "get"), grants_of([given_rule])) is covered


def test_an_address_with_a_star_covers_what_begins_like_it() -> None:
    given_grants = grants_of([{"nonResourceURLs": ["/debug/*"], "verbs": ["get"]}])

    assert covered_by(Grant("", "", "get", url="/debug/heap"), given_grants)
    assert not covered_by(Grant("", "", "get", url="/metrics"), given_grants)
