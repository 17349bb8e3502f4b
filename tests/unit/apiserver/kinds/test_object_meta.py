"""Metadata of new objects and of updates: the rules every kind shares."""

from typing import Any

import pytest

from kubewright.apiserver.kinds.object_meta import finalizer_warnings, label_1035_errors, validate_metadata

JSON = dict[str, Any]


def messages(metadata: JSON, **options: Any) -> list[str]:
    return [error.message for error in validate_metadata(metadata, **{"namespaced": True, **options})]


def test_valid_metadata_has_no_errors() -> None:
    labels = {"app.kubernetes.io/name": "x", "empty": ""}
    assert messages({"name": "a.b", "namespace": "shop", "labels": labels, "finalizers": ["x.io/y"]}) == []


def test_a_name_and_a_namespace_are_required() -> None:
    assert messages({}) == [
        "metadata.name: Required value: name or generateName is required",
        "metadata.namespace: Required value",
    ]


def test_a_cluster_scoped_kind_rejects_a_namespace() -> None:
    assert messages({"name": "a", "namespace": "b"}, namespaced=False) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_a_prefix_may_end_with_a_dash_and_a_name_may_not() -> None:
    found = validate_metadata({"name": "a-", "generateName": "a-", "namespace": "b"}, namespaced=True)

    assert [error.path for error in found] == ["metadata.name"]


def test_the_rule_for_names_depends_on_the_kind() -> None:
    found = messages({"name": "1a", "namespace": "b"}, name_errors=label_1035_errors)

    assert found[0].startswith('metadata.name: Invalid value: "1a": a DNS-1035 label must consist')


def test_annotations_have_a_limit_in_bytes() -> None:
    assert messages({"name": "a", "namespace": "b", "annotations": {"a": "é" * 2**17}}) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]


def test_only_one_owner_is_the_controller() -> None:
    owner = {"apiVersion": "v1", "kind": "A", "name": "n", "uid": "u", "controller": True}

    assert messages({"name": "a", "namespace": "b", "ownerReferences": [owner, owner]}) == [
        "metadata.ownerReferences: Invalid value: ["
        '{"apiVersion":"v1","kind":"A","name":"n","uid":"u","controller":true},'
        '{"apiVersion":"v1","kind":"A","name":"n","uid":"u","controller":true}]: Only one reference can have '
        'Controller set to true. Found "true" in references for A/n and A/n'
    ]


OLD = {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1", "generation": 2, "finalizers": ["x.io/y"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"uid": "v"}, 'metadata.uid: Invalid value: "v": field is immutable'),
        ({"resourceVersion": ""}, 'metadata.resourceVersion: Invalid value: "": must be specified for an update'),
        ({"generation": 1}, "metadata.generation: Invalid value: 1: must not be decremented"),
        (
            {"deletionTimestamp": "2020-01-01T00:00:00Z"},
            'metadata.deletionTimestamp: Invalid value: "2020-01-01T00:00:00Z": field is immutable',
        ),
        (
            {"deletionGracePeriodSeconds": 0},
            "metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable",
        ),
    ],
)
def test_an_update_cannot_change_the_identity(change: JSON, message: str) -> None:
    assert messages({**OLD, **change}, old=OLD) == [message]


def test_a_terminating_object_gets_no_new_finalizers() -> None:
    old = {**OLD, "deletionTimestamp": "2020-01-01T00:00:00Z"}

    assert messages({**old, "finalizers": ["x.io/y", "b", "a"]}, old=old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a", "b"}'
    ]


def test_new_finalizers_of_custom_resources_are_warned_of() -> None:
    assert finalizer_warnings({"finalizers": ["orphan", "mine", "x.io/y"]}, old={"finalizers": []}) == [
        'metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts '
        "with other finalizer writers"
    ]
