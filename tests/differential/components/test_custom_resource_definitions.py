"""CustomResourceDefinitions the real API server refuses, and those it takes: ours must say the same, word by word.

Covers: kubewright.apiserver.apiextensions.definitions
"""

import copy
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubewright import Client, Config, connect
from kubewright.apiserver.apiextensions.definitions.defaults import default_crd, prepare_for_create
from kubewright.apiserver.apiextensions.definitions.validation import format_warnings, validate_crd
from kubewright.client.transport.transport import HttpRequest
from kubewright.cluster.planes.real import RealCluster

pytestmark = pytest.mark.real

JSON = dict[str, Any]
GROUP = "definitions.example.io"
TEXT = {"type": "string"}


def fields(**properties: Any) -> JSON:
    return {"type": "object", "properties": properties}


def version(name: str, **parts: Any) -> JSON:
    plain = {"served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}
    return {"name": name, **plain, **parts}


def definition(*, group: str = GROUP, name: str | None = None, approval: str | None = None, **spec: Any) -> JSON:
    metadata: JSON = {"name": name or f"things.{group}"}
    if approval is not None:
        metadata["annotations"] = {"api-approved.kubernetes.io": approval}
    names = {"plural": "things", "kind": "Thing"}
    plain = {"group": group, "scope": "Namespaced", "names": names, "versions": [version("v1")]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": metadata, "spec": {**plain, **spec}}


def with_schema(schema: JSON, **parts: Any) -> JSON:
    return definition(versions=[version("v1", schema={"openAPIV3Schema": schema}, **parts)])


def hook(client: JSON | None, *reviews: str) -> JSON:
    webhook: JSON = {"conversionReviewVersions": list(reviews)} if reviews else {}
    return {"strategy": "Webhook", "webhook": {**webhook, **({"clientConfig": client} if client is not None else {})}}


SELECTABLE = fields(
    spec=fields(a=TEXT, b={"type": "number"}, m={"type": "object", "additionalProperties": TEXT}),
    metadata=fields(name=TEXT),
)
PATHS = (".spec.a", ".spec.a", ".spec.b", ".spec.m.x", ".metadata.name", "spec.a", ".spec.zz", "", ".spec['a']", ".")

DEFINITIONS: list[JSON] = [
    definition(),
    definition(group=""),
    definition(group="Bad_"),
    definition(group="nodot"),
    definition(scope="Foo"),
    definition(scope=""),
    definition(name="other.x"),
    definition(names={"plural": "", "kind": ""}),
    definition(
        names={"plural": "Things", "kind": "thing_", "shortNames": ["A"], "categories": ["b c"], "singular": "X"}
    ),
    definition(names={"plural": "things", "kind": "Thing", "listKind": "Thing"}),
    definition(versions=[]),
    definition(versions=[version("v1"), version("v2", storage=True)]),
    definition(versions=[version("v2")]),
    definition(versions=[version("v1"), version("v1", storage=False)]),
    definition(versions=[version("V1", storage=True)]),
    definition(versions=[{"name": "v1", "served": True, "storage": True}]),
    definition(versions=[{"name": "v1", "served": True, "storage": True}, version("v2")]),
    definition(
        versions=[
            version("v1", additionalPrinterColumns=[{"name": "a", "type": "foo", "jsonPath": "x", "format": "z"}]),
            version("v2", subresources={"scale": {"specReplicasPath": "spec.x", "statusReplicasPath": ".spec.y"}}),
            version("v3", selectableFields=[{"jsonPath": ".a"}], schema={"openAPIV3Schema": fields(a=TEXT, b={})}),
        ]
    ),
    definition(versions=[version("v1", additionalPrinterColumns=[{"name": "", "type": "", "jsonPath": ""}])]),
    definition(versions=[version("v1", subresources={"scale": {"specReplicasPath": "", "statusReplicasPath": ""}})]),
    definition(
        versions=[
            version("v1", deprecationWarning="x"),
            version("v2", deprecated=True, deprecationWarning=""),
            version("v3", deprecated=True, deprecationWarning="a\nb" + "x" * 300),
        ]
    ),
    with_schema(SELECTABLE, selectableFields=[{"jsonPath": path} for path in PATHS]),
    with_schema(
        fields(spec=fields(**{f"f{i}": TEXT for i in range(9)})),
        selectableFields=[{"jsonPath": f".spec.f{i}"} for i in range(9)],
    ),
    definition(preserveUnknownFields=True),
    definition(conversion={"strategy": "Foo"}),
    definition(conversion={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
    definition(conversion=hook(None)),
    definition(conversion=hook({}, "v2", "v2", "V")),
    definition(conversion=hook({"url": "http://u:p@/x?y#z"}, "v1")),
    definition(conversion=hook({"url": "https://x", "service": {"name": "a", "namespace": "b"}}, "v1")),
    definition(conversion=hook({"service": {"name": "", "namespace": "b", "path": "a//b_/", "port": 0}}, "v1")),
    definition(group="x.k8s.io"),
    definition(group="x.k8s.io", approval="foo"),
    definition(group="x.kubernetes.io", approval="https://github.com/x"),
    definition(group="k8s.io", approval="unapproved, a test"),
    with_schema({"type": "object", "enum": [{}]}, subresources={"status": {}}),
    with_schema({"type": "string"}, subresources={"status": {}}),
]

EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}
EITHER = [{"type": "integer"}, TEXT]

SCHEMAS: list[JSON] = [
    {},
    TEXT,
    {"type": "null"},
    {"type": "object", "nullable": True},
    {"type": "object", "additionalProperties": TEXT},
    {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
    {"type": "object", "$ref": "x", "id": "y", "$schema": "z"},
    {"type": "object", "$schema": "z"},
    {"type": "object", "patternProperties": {"a": TEXT}, "definitions": {"x": TEXT}, "additionalItems": True},
    {**fields(spec={"type": "object"}), "anyOf": [{"properties": {"spec": {"properties": {"x": {"minimum": 1}}}}}]},
    {**fields(spec={"type": "object"}), "not": {"items": {"minLength": 1}}},
    fields(a={}),
    fields(a={"type": "foo"}),
    fields(a={"type": "array"}),
    fields(a={"type": "array", "items": {}}),
    fields(a={"type": "array", "items": [TEXT]}),
    fields(a={"type": "array", "items": TEXT, "uniqueItems": True}),
    fields(a={"type": "string", "pattern": "(?=a)"}, b={"type": "string", "pattern": "["}),
    fields(a={**fields(b=TEXT), "additionalProperties": TEXT}, c={"type": "object", "additionalProperties": False}),
    fields(a={"type": "string", "anyOf": [{"type": "string", "description": "x", "nullable": True, "default": "a"}]}),
    fields(a={"x-kubernetes-int-or-string": True, "anyOf": EITHER}),
    fields(a={"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": EITHER}, {"pattern": "a"}]}),
    fields(a={"x-kubernetes-int-or-string": True, "x-kubernetes-embedded-resource": True, **OPEN}),
    fields(a={**fields(x=TEXT), "allOf": [{"properties": {"x": {"x-kubernetes-list-type": "set"}, "metadata": {}}}]}),
    fields(metadata={"type": "object"}),
    fields(metadata=fields(name={"type": "string", "pattern": "a"})),
    fields(metadata=fields(labels={"type": "object"})),
    fields(metadata={"type": "object", "description": "x"}),
    fields(metadata=TEXT, kind={"type": "integer"}, apiVersion={"type": "object"}),
    fields(metadata=fields(name={"type": "string", "default": "x"}), kind={"type": "string", "default": "x"}),
    fields(t=EMBEDDED),
    fields(t={**TEXT, "x-kubernetes-embedded-resource": True}),
    fields(t={**EMBEDDED, **OPEN, "default": {"x": 1}}),
    fields(t={**EMBEDDED, **OPEN, "default": {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": 1}}}}),
    fields(t={**EMBEDDED, **OPEN, "default": {"apiVersion": 5, "kind": "X"}}),
    fields(t={**EMBEDDED, **fields(metadata=fields(labels={"type": "object", "default": {"a b": "x"}}))}),
    fields(a={"type": "string", "default": 5}, b={"type": "integer", "default": 1, "minimum": 3}),
    fields(a={"type": "object", "default": {"x": 1}}),
    fields(a={**fields(y=TEXT), "default": {"x": 1}, "required": ["y"]}),
    fields(a={"type": "array", "items": {"type": "string", "default": 1}, "default": [1]}),
    fields(
        a={"type": "string", "enum": ["a"], "default": "b"}, c={"x-kubernetes-int-or-string": True, "default": True}
    ),
    fields(a={"type": "string", "format": "date", "default": "x"}, b={"type": "integer", "default": 1.5}),
    {**fields(spec={"type": "object", "default": {}}), "default": {"spec": {}}},
    fields(a={"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
    fields(a={"type": "array", "items": TEXT, "x-kubernetes-list-type": "map"}),
    fields(
        a={
            "type": "array",
            "items": fields(a={"type": "object"}, b={"type": "string", "nullable": True}),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["a", "b", "b", "c"],
        }
    ),
    fields(a={"type": "array", "items": {**TEXT, "nullable": True}, "x-kubernetes-list-type": "set"}),
    fields(a={"x-kubernetes-list-type": "foo"}, b={"type": "string", "x-kubernetes-map-type": "bar"}),
    fields(a={"type": "array", "items": TEXT, "x-kubernetes-list-map-keys": ["a"]}),
    fields(
        a={
            "type": "string",
            "x-kubernetes-validations": [
                {"rule": " "},
                {"rule": "true", "message": " "},
                {"rule": "true", "message": "a\nb"},
                {"rule": "true\n||true"},
                {"rule": "true", "messageExpression": " "},
                {"rule": "true", "reason": "Foo"},
                {"rule": "true", "fieldPath": " "},
                {"rule": "true", "fieldPath": ".a\n"},
            ],
        }
    ),
    fields(a={**fields(b=TEXT), "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".c"}]}),
    fields(a={"type": "string", "format": "zzz"}),
]


@pytest.fixture(scope="module")
async def client(real_cluster: RealCluster) -> AsyncIterator[Client]:
    async with connect(Config.load(kubeconfig=str(real_cluster.kubeconfig))) as client:
        yield client


@pytest.mark.parametrize(
    "crd", [*DEFINITIONS, *map(with_schema, SCHEMAS)], ids=lambda crd: json.dumps(crd["spec"], sort_keys=True)[-60:]
)
async def test_a_definition_is_taken_or_refused_with_the_same_causes(client: Client, crd: JSON) -> None:
    request = HttpRequest(
        method="POST",
        path="/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        query=(("dryRun", "All"),),
        headers=(("Accept", "application/json"), ("Content-Type", "application/json")),
        body=json.dumps(crd).encode(),
        timeout=30,
    )
    response = await client.transport.send(request)
    real = json.loads(response.body)

    ours = copy.deepcopy(crd)
    default_crd(ours)
    prepare_for_create(ours)
    causes = [error.cause() for error in validate_crd(ours)]

    assert response.status == (422 if causes else 201), real.get("message")
    # The real server walks maps at random, so only the set of causes is the same every time.
    expected = real["details"]["causes"] if causes else []
    assert sorted(map(str, map(_sorted, causes))) == sorted(map(str, map(_sorted, expected)))
    if not causes:
        assert format_warnings(ours) == list(response.warnings)
        assert real["spec"] == ours["spec"]


def _sorted(cause: JSON) -> list[tuple[str, Any]]:
    return sorted(cause.items())
