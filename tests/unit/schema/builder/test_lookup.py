"""JSONPaths into a schema."""

import pytest

from kubewright.errors import SchemaError
from kubewright.schema.builder.lookup import json_path, schema_at
from kubewright.schema.builder.node import Schema

SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "ports": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.size", "integer"),
        ("spec.size", "integer"),
        (".spec['size']", "integer"),
        (".spec.ports[0].name", "string"),
        (".spec.ports[*].name", "string"),
        ('.spec.ports[?(@.name=="web")].name', "string"),
        (r".spec.labels.app\.kubernetes\.io/name", "string"),
        (".metadata.name", "string"),
        (".metadata.generation", "integer"),
        (".metadata.labels['app']", "string"),
        (".spec.open.some.thing", None),
        (".metadata.ownerReferences[0].name", None),
    ],
)
def test_a_path_leads_to_a_schema(path: str, expected: str | None) -> None:
    assert schema_at(SCHEMA, path, subject="Cache").get("type") == expected


def test_times_in_the_metadata_are_times() -> None:
    assert schema_at(SCHEMA, ".metadata.creationTimestamp", subject="Cache")["format"] == "date-time"


def test_a_path_to_nowhere_says_what_there_is() -> None:
    with pytest.raises(SchemaError) as error:
        schema_at(SCHEMA, ".spec.sizes", subject="Cache: column Size")

    assert str(error.value) == (
        "Cache: column Size: .spec.sizes does not exist: .spec has size, ports, labels, open; correct the path"
    )


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"Cache: \.\.name is no JSONPath at '\.\.name'"):
        schema_at(SCHEMA, "..name", subject="Cache")


def test_the_leading_dot_is_added() -> None:
    assert json_path("spec.size") == json_path(".spec.size") == ".spec.size"
