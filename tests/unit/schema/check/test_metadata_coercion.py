"""Metadata becomes what Go's ObjectMeta holds, or is refused in the words of its decoder."""

from typing import Any

import pytest

from kubewright.schema.check.metadata_coercion import MetadataDecodeError, coerce_embedded, coerce_metadata


@pytest.mark.parametrize(
    ("metadata", "coerced", "unknown"),
    [
        (None, {}, []),
        ({"name": "x"}, {"name": "x"}, []),
        ({"name": "", "labels": {}, "finalizers": [], "generation": 0}, {}, []),
        ({"labels": {"a": None}}, {"labels": {"a": ""}}, []),
        ({"generation": 1.0}, {"generation": 1}, []),
        ({"foo": 1, "Name": "x"}, {}, ["metadata.Name", "metadata.foo"]),
        ({"creationTimestamp": "2020-01-01T00:00:00.5+01:00"}, {"creationTimestamp": "2019-12-31T23:00:00Z"}, []),
        (
            {"ownerReferences": [{"kind": "A", "x": 1}]},
            {"ownerReferences": [{"apiVersion": "", "kind": "A", "name": "", "uid": ""}]},
            ["metadata.ownerReferences[0].x"],
        ),
    ],
)
def test_metadata_is_stored_in_its_plain_form(metadata: Any, coerced: Any, unknown: list[str]) -> None:
    assert coerce_metadata(metadata) == (coerced, unknown)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("x", "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        (
            {"ownerReferences": [{"controller": 1}]},
            "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.controller of type bool",
        ),
        (
            {"generation": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64",
        ),
        (
            {"creationTimestamp": "2020-01"},
            'parsing time "2020-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-"',
        ),
        ({"creationTimestamp": "2020-13-01T00:00:00Z"}, 'parsing time "2020-13-01T00:00:00Z": month out of range'),
    ],
)
def test_metadata_of_a_wrong_type_is_refused(metadata: Any, message: str) -> None:
    with pytest.raises(MetadataDecodeError) as misfit:
        coerce_metadata(metadata)

    assert str(misfit.value) == message


def test_embedded_objects_are_coerced_where_they_are() -> None:
    schema = {"properties": {"l": {"items": {"x-kubernetes-embedded-resource": True}}}}
    tree: dict[str, Any] = {"l": [{"metadata": {"foo": 1, "labels": {}}}]}

    assert coerce_embedded(tree, schema) == ["l[0].metadata.foo"]
    assert tree == {"l": [{"metadata": {}}]}


def test_an_embedded_decode_error_names_its_path() -> None:
    schema = {"properties": {"t": {"x-kubernetes-embedded-resource": True}}}

    with pytest.raises(MetadataDecodeError, match=r't\.metadata: Invalid value: \{"name":5\}: json: cannot unmarshal'):
        coerce_embedded({"t": {"metadata": {"name": 5}}}, schema)
