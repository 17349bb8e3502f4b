"""CRDs: defaults, reasons to refuse them, the names they get, and what their versions offer.

tests/differential asks kube-apiserver about many more of them.
"""

import copy
from typing import Any

import pytest

from kubewright.api.field_errors import FieldError
from kubewright.apiserver.apiextensions.definitions.conditions import compute_status, is_established
from kubewright.apiserver.apiextensions.definitions.defaults import default_crd, prepare_for_create, prepare_for_update
from kubewright.apiserver.apiextensions.definitions.validation import format_warnings, validate_crd, validate_crd_status
from kubewright.apiserver.apiextensions.objects import (
    decode_custom_resource,
    validate_custom_resource,
    validate_custom_resource_status,
)
from kubewright.apiserver.apiextensions.versions import versions_of

JSON = dict[str, Any]
NOW = "2024-01-01T00:00:00Z"


def made(schema: JSON | None = None, *, plural: str = "things", kind: str = "Thing", **version: Any) -> JSON:
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or {"type": "object"}}}
    crd: JSON = {
        "metadata": {"name": f"{plural}.example.io", "resourceVersion": "1"},
        "spec": {
            "group": "example.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{**first, **version}],
        },
    }
    default_crd(crd)
    prepare_for_create(crd)
    return crd


def messages(crd: JSON, old: JSON | None = None) -> list[str]:
    return [error.message for error in validate_crd(crd, old)]


def test_names_conversion_and_the_stored_version_have_defaults() -> None:
    crd = made()

    assert crd["spec"]["names"] == {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    accepted = {"plural": "", "kind": ""}
    assert crd["status"] == {"conditions": None, "acceptedNames": accepted, "storedVersions": ["v1"]}
    assert messages(crd) == []


def test_the_port_of_a_webhook_has_a_default() -> None:
    crd = made()
    crd["spec"]["conversion"] = {"webhook": {"clientConfig": {"service": {"name": "a", "namespace": "b"}}}}

    default_crd(crd)

    assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443


def test_errors_of_what_all_versions_share_are_at_the_top() -> None:
    crd = made({"type": "object", "properties": {"a": {}}})
    assert messages(crd) == [
        "spec.validation.openAPIV3Schema.properties[a].type: Required value: "
        "must not be empty for specified object fields"
    ]

    crd["spec"]["versions"].append({"name": "v2", "schema": {"openAPIV3Schema": {"type": "object"}}})
    assert messages(crd) == [
        "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: "
        "must not be empty for specified object fields"
    ]


def test_versions_are_printed_as_in_go() -> None:
    crd = made(storage=False)

    assert (
        'spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,'
        '"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,'
        '"SelectableFields":null}]: must have exactly one version marked as storage version'
    ) in messages(crd)


def test_rules_are_validated_in_schemas_without_other_errors() -> None:
    asked: list[str] = []

    def validate_rules(schema: Any, path: str) -> list[FieldError]:
        asked.append(path)
        return [FieldError(f"{path}.x", "Invalid")]

    assert [error.path for error in validate_crd(made(), validate_rules=validate_rules)] == [
        "spec.validation.openAPIV3Schema.x"
    ]
    validate_crd(made({"type": "object", "properties": {"a": {}}}), validate_rules=validate_rules)
    assert asked == ["spec.validation.openAPIV3Schema"]


def test_an_established_definition_keeps_its_scope_and_kind() -> None:
    old = made()
    old["status"] = compute_status(old, [], now=NOW)
    new = copy.deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Other"

    assert messages(new, old) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Other": field is immutable',
    ]
    old["status"]["conditions"] = []
    assert messages(new, old) == []


def test_a_stored_version_cannot_be_removed() -> None:
    old = made()
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["name"] = "v2"
    prepare_for_update(new, old)

    assert new["metadata"]["generation"] == 2
    assert messages(new, old) == [
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage '
        "version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 "
        "and removes v1 from status.storedVersions"
    ]


def test_an_update_need_not_meet_what_the_stored_one_does_not() -> None:
    items = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "nullable": True}}
    old = made({"type": "object", "properties": {"a": items}})
    new = copy.deepcopy(old)

    assert len(messages(new)) == 1
    assert messages(new, old) == []


def test_the_status_of_a_definition_is_validated_by_itself() -> None:
    old = made()
    new = {**old, "status": {"acceptedNames": {"plural": "A_"}}}

    assert [error.path for error in validate_crd_status(new, old)] == ["status.acceptedNames.plural"]


def test_unknown_formats_are_warned_of_once() -> None:
    crd = made({"type": "object", "properties": {"a": {"type": "string", "format": "zz"}}})

    assert format_warnings(crd) == ['unrecognized format "zz"']
    assert format_warnings(crd, crd) == []


def test_free_names_are_accepted_and_the_definition_is_established() -> None:
    crd = made()
    crd["status"] = compute_status(crd, [], now=NOW)

    assert crd["status"]["acceptedNames"] == crd["spec"]["names"]
    assert is_established(crd)
    assert [one["reason"] for one in crd["status"]["conditions"]] == ["NoConflicts", "InitialNamesAccepted"]


def test_names_in_use_are_not_accepted_until_they_are_free() -> None:
    first = made()
    first["status"] = compute_status(first, [], now=NOW)
    second = made(plural="others")
    second["status"] = compute_status(second, [first], now=NOW)

    assert second["status"]["acceptedNames"] == {"plural": "others", "kind": ""}
    assert [(one["status"], one["reason"]) for one in second["status"]["conditions"]] == [
        ("False", "ListKindConflict"),
        ("False", "NotAccepted"),
    ]

    second["status"] = compute_status(second, [], now="2024-01-02T00:00:00Z")
    assert is_established(second)
    assert {one["lastTransitionTime"] for one in second["status"]["conditions"]} == {"2024-01-02T00:00:00Z"}


def test_a_protected_group_has_an_approval_condition() -> None:
    crd = made()
    crd["spec"]["group"] = "x.k8s.io"
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}

    condition = compute_status(crd, [], now=NOW)["conditions"][-1]

    assert (condition["type"], condition["reason"]) == ("KubernetesAPIApprovalPolicyConformant", "UnapprovedAnnotation")


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"replicas": {"type": "integer", "default": 1}, "size": {"type": "string", "enum": ["s"]}},
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 0}}},
    },
}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def test_a_version_has_columns_scale_and_selectable_fields() -> None:
    crd = made(
        SCHEMA,
        subresources={"status": {}, "scale": SCALE},
        selectableFields=[{"jsonPath": ".spec.size"}],
        deprecated=True,
    )
    crd["spec"]["versions"].append({"name": "v2beta1", "served": True})
    crd["spec"]["versions"].append({"name": "v2", "served": True})
    version = versions_of(crd)[0]

    assert version.has_status
    assert version.scale is not None
    assert version.selectable_fields == ("spec.size",)
    assert [column.name for column in version.columns] == ["Age"]
    assert version.warning == "example.io/v1 Thing is deprecated; use example.io/v2 Thing"
    assert version.validator is version.validator


def test_an_object_is_pruned_and_then_defaulted() -> None:
    version = versions_of(made(SCHEMA))[0]
    tree: JSON = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a", "x": 1}, "spec": {"y": 1}}

    assert decode_custom_resource(tree, version) == ["metadata.x", "spec.y"]
    assert tree["spec"] == {"replicas": 1}
    assert tree["metadata"] == {"name": "a"}


def test_errors_of_an_object_are_in_kube_apiservers_order() -> None:
    version = versions_of(made(SCHEMA, subresources={"scale": SCALE}))[0]
    tree: JSON = {
        "apiVersion": "example.io/v1",
        "kind": "Thing",
        "metadata": {"name": "A", "namespace": "b"},
        "spec": {"replicas": -1, "size": "l"},
        "status": {"replicas": 2**31},
    }
    found = validate_custom_resource(tree, version, rules=lambda new, old: [])

    assert [(error.path, error.type) for error in found] == [
        ("metadata.name", "Invalid"),
        ("spec.size", "NotSupported"),
        (".spec.replicas", "Invalid"),
        (".status.replicas", "Invalid"),
        ("<nil>", "Invalid"),
    ]
    assert found[-1].message.startswith("<nil>: Invalid value: null: some validation rules were not checked")


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        (
            "x",
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64",
        ),
        (-1, ".spec.replicas: Invalid value: -1: should be a non-negative integer"),
        (2**31, ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"),
    ],
)
def test_replicas_must_be_a_count(replicas: Any, message: str) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = versions_of(made(schema, subresources={"scale": SCALE}))[0]
    tree: JSON = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b"}}

    assert [error.message for error in validate_custom_resource({**tree, "spec": {"replicas": replicas}}, version)] == [
        message
    ]


def test_a_status_update_validates_the_status_alone() -> None:
    version = versions_of(made(SCHEMA, subresources={"status": {}}))[0]
    metadata = {"name": "a", "namespace": "b", "resourceVersion": "1"}
    old: JSON = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": metadata, "spec": {"size": "wrong"}}
    new = {**old, "status": {"replicas": -1}}

    assert [error.message for error in validate_custom_resource_status(new, version, old=old)] == [
        "status.replicas: Invalid value: -1: replicas in body should be greater than or equal to 0"
    ]
    assert validate_custom_resource_status(new, version, old=new) == []


def test_an_object_of_another_kind_has_that_error_alone() -> None:
    version = versions_of(made())[0]

    assert [error.message for error in validate_custom_resource({"apiVersion": "v1", "kind": "X"}, version)] == [
        'kind: Invalid value: "X": must be Thing',
        'apiVersion: Invalid value: "v1": must be example.io/v1',
    ]
