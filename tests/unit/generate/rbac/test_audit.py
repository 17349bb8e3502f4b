"""The least role that an audit log proves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubewright.errors import ConfigError
from kubewright.generate.rbac.audit import AuditedRequest, deviations, least_access, read_audit
from kubewright.generate.rbac.grants import Grant
from kubewright.generate.rbac.permissions import HOME, Access

BOT = "system:serviceaccount:home:bot"


def line(verb: str, resource: str = "", *, user: str = BOT, code: int = 200, uri: str = "/x", **target: str) -> str:
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "requestURI": uri,
        "verb": verb,
        "user": {"username": user},
        "responseStatus": {"code": code},
    }
    if resource:
        event["objectRef"] = {"resource": resource, "apiVersion": "v1", **target}
    return json.dumps(event)


def test_each_request_is_a_verb_on_a_resource_in_a_namespace() -> None:
    asked = read_audit(
        [
            line("list", "pods"),
            line("get", "secrets", namespace="home", name="a"),
            line("patch", "caches", apiGroup="example.io", subresource="status", namespace="shop"),
            "",
            line("get", uri="/metrics?x=1"),
            line("get", uri="/apis/apps/v1?timeout=32s"),
            line("create", "selfsubjectaccessreviews", apiGroup="authorization.k8s.io"),
            line("get", "namespaces", namespace="shop", name="shop"),
        ]
    )

    assert asked == {
        AuditedRequest(Grant("", "pods", "list")),
        AuditedRequest(Grant("", "secrets", "get"), "home"),
        AuditedRequest(Grant("example.io", "caches/status", "patch"), "shop"),
        AuditedRequest(Grant("", "", "get", url="/metrics")),
        AuditedRequest(Grant("", "namespaces", "get")),
    }


def test_applying_something_new_needs_create_as_well() -> None:
    asked = read_audit([line("patch", "configmaps", code=201, namespace="shop"), line("patch", "pods", code=200)])

    assert {item.grant for item in asked} == {
        Grant("", "configmaps", "patch"),
        Grant("", "configmaps", "create"),
        Grant("", "pods", "patch"),
    }


def test_a_refused_request_counts_and_the_begin_of_one_does_not() -> None:
    received = json.loads(line("watch", "pods"))
    received["stage"] = "RequestReceived"

    asked = read_audit([line("get", "secrets", code=403), json.dumps(received)])

    assert {item.grant for item in asked} == {Grant("", "secrets", "get")}


def test_whoever_is_impersonated_asked() -> None:
    event = json.loads(line("get", "pods", user="admin"))
    event["impersonatedUser"] = {"username": BOT}

    assert read_audit([json.dumps(event)], user=BOT) == {AuditedRequest(Grant("", "pods", "get"))}


def test_what_was_asked_only_at_home_gets_a_role_there() -> None:
    asked = [
        AuditedRequest(Grant("", "secrets", "get"), "home"),
        AuditedRequest(Grant("", "pods", "get"), "home"),
        AuditedRequest(Grant("", "pods", "get"), "shop"),
        AuditedRequest(Grant("", "nodes", "get")),
    ]

    assert least_access(asked, home="home") == Access(
        cluster=frozenset([Grant("", "pods", "get"), Grant("", "nodes", "get")]),
        namespaces={HOME: frozenset([Grant("", "secrets", "get")])},
    )
    assert len(least_access(asked).cluster) == 3


def test_a_role_that_fits_has_no_deviation() -> None:
    declared = {Grant("", "pods", verb) for verb in ("get", "list", "watch")}
    declared |= {Grant("example.io", "caches/finalizers", "update")}

    assert deviations(declared, [AuditedRequest(Grant("", "pods", "list"))]) == []


def test_a_role_too_narrow_or_too_wide_is_reported_by_verb_and_resource() -> None:
    declared = {Grant("", "pods", "list"), Grant("apps", "deployments", "delete")}
    asked = [
        AuditedRequest(Grant("", "pods", "list")),
        AuditedRequest(Grant("", "pods", "delete")),
        AuditedRequest(Grant("", "leases", "get")),
    ]

    found = deviations(declared, asked, services=[Grant("", "leases", "get"), Grant("", "leases", "update")])

    assert [str(item) for item in found] == [
        "too narrow: delete on pods was requested and is not granted",
        "too wide: delete on deployments in apps is granted and was never requested",
    ]


def test_a_wildcard_is_used_if_anything_it_covers_is() -> None:
    everything = Grant("*", "*", "*")

    assert deviations([everything], [AuditedRequest(Grant("", "pods", "get"))]) == []
    assert [item.what for item in deviations([everything], [])] == ["unused"]


@pytest.mark.parametrize(
    ("lines", "user", "sentence"),
    [
        (["{"], "", "log, line 1: this is no JSON"),
        (["", '{"a": 1}'], "", "log, line 2: this is no audit event"),
        ([line("get", "pods"), line("get", "pods", user="eve")], "", "requests of eve, system:service.*--user"),
        ([line("get", "pods", user="eve")], BOT, "has no request of .*; it has eve"),
        ([], "", "no request of anybody"),
    ],
)
def test_a_log_that_cannot_be_used_is_refused_in_one_sentence(lines: list[str], user: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_audit(lines, user=user, source="log")
