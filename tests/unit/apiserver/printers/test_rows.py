"""The rows of objects, against what the real API server printed of them (rows.json, written by tests/differential)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubewright.api.times import parse_time
from kubewright.apiserver.builtin.service_allocator import ServiceAllocator
from kubewright.apiserver.catalog import Catalog
from kubewright.apiserver.kinds.resources import Resource
from kubewright.apiserver.printers import cells, column_definitions, row_conditions, row_order

Tree = dict[str, Any]

ROWS: list[Tree] = json.loads((Path(__file__).parent / "rows.json").read_text())
CATALOG = Catalog(ServiceAllocator())
NOW = datetime(2024, 5, 1, 10, 0, 0, tzinfo=UTC)


def at(moment: datetime) -> Callable[[], datetime]:
    return lambda: moment


def resource_of(api_version: str, kind: str) -> Resource:
    return next(one for one in CATALOG if (one.kind.api_version, one.kind.kind) == (api_version, kind))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['object']['kind']} {row['object']['metadata']['name']}")
def test_a_row_is_what_kube_apiserver_prints(row: Tree) -> None:
    tree = row["object"]
    resource = resource_of(tree["apiVersion"], tree["kind"])
    before = json.dumps(tree)
    assert cells(resource, tree, now=at(parse_time(row["now"]))) == row["cells"]
    assert json.dumps(tree) == before


@pytest.mark.parametrize("resource", [one for one in CATALOG if "list" in one.verbs], ids=lambda one: str(one.kind))
def test_an_empty_object_has_a_row_too(resource: Resource) -> None:
    # An address has a cell more than it has columns, in kube-apiserver as well.
    surplus = 1 if resource.kind.kind == "IPAddress" else 0
    assert len(cells(resource, {"metadata": {}})) == len(column_definitions(resource)) + surplus


@pytest.mark.parametrize(
    ("conditions", "service", "expected"),
    [
        ([], None, ["v1.x", "Local", "Unknown", "<unknown>"]),
        ([{"type": "Available", "status": "True", "reason": "Local"}], None, ["v1.x", "Local", "True", "<unknown>"]),
        (
            [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}],
            {"namespace": "a", "name": "b"},
            ["v1.x", "a/b", "False (MissingEndpoints)", "<unknown>"],
        ),
        ([{"type": "Available", "status": "False"}], None, ["v1.x", "Local", "False", "<unknown>"]),
    ],
    ids=["unknown", "available", "missing", "no reason"],
)
def test_an_api_service_has_its_availability(conditions: list[Tree], service: Tree | None, expected: list[str]) -> None:
    spec = {} if service is None else {"service": service}
    tree = {"metadata": {"name": "v1.x"}, "spec": spec, "status": {"conditions": conditions}}
    assert cells(resource_of("apiregistration.k8s.io/v1", "APIService"), tree) == expected


@pytest.mark.parametrize(
    ("conditions", "certificate", "expected"),
    [
        ([], "", "Pending"),
        (["Approved"], "", "Approved"),
        (["Approved", "Failed"], "", "Approved,Failed"),
        (["Approved"], "eA==", "Approved,Issued"),
        (["Denied", "Approved"], "", "Denied"),
    ],
)
def test_a_signing_request_has_its_state(conditions: list[str], certificate: str, expected: str) -> None:
    tree = {
        "metadata": {"name": "x", "creationTimestamp": "2024-05-01T09:59:00Z"},
        "spec": {"username": "me", "expirationSeconds": 86400},
        "status": {"conditions": [{"type": kind} for kind in conditions], "certificate": certificate},
    }
    resource = resource_of("certificates.k8s.io/v1", "CertificateSigningRequest")
    assert cells(resource, tree, now=at(NOW)) == ["x", "60s", "<none>", "me", "24h", expected]


def test_a_completed_pod_has_a_row_condition() -> None:
    pods = resource_of("v1", "Pod")
    assert row_conditions(pods, {"status": {"phase": "Running"}}) == []
    assert row_conditions(pods, {"status": {"phase": "Succeeded"}}) == [
        {
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }
    ]
    assert row_conditions(pods, {"status": {"phase": "Failed"}})[0]["message"] == "The pod failed."
    assert row_conditions(resource_of("batch/v1", "Job"), {"status": {"phase": "Failed"}}) == []


def test_flow_schemas_are_listed_by_precedence() -> None:
    trees: list[dict[str, Any]] = [
        {"metadata": {"name": name}, "spec": {"matchingPrecedence": number}}
        for name, number in (("c", 5), ("b", 9), ("a", 9), ("d", 1))
    ]
    found = row_order(resource_of("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"), trees, tree_of=dict)
    assert [tree["metadata"]["name"] for tree in found] == ["d", "c", "a", "b"]
    assert row_order(resource_of("v1", "ConfigMap"), trees, tree_of=dict) is trees


def test_a_kind_without_a_printer_has_its_creation_time() -> None:
    resource = resource_of("rbac.authorization.k8s.io/v1", "Role")
    tree = {"metadata": {"name": "x", "creationTimestamp": "2024-05-01T10:00:00Z"}}
    assert cells(resource, tree) == ["x", "2024-05-01T10:00:00Z"]
    assert [(one["name"], one["type"]) for one in column_definitions(resource)] == [
        ("Name", "string"),
        ("Created At", "date"),
    ]
