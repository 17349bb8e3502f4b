"""Custom resources from definition to deletion: both servers must treat them alike.

Covers: kubewright.apiserver.apiextensions
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.differential.servers.server_pair import (
    Request,
    ServerClient,
    ServerPair,
    apply,
    delete,
    fresh_pair,
    get,
    json_patch,
    merge,
    post,
    put,
    run_case,
    strategic,
)

pytestmark = pytest.mark.real

GROUP = "{ns}.example.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/widgets.{GROUP}"
ALL = f"/apis/{GROUP}/v1/namespaces/{{ns}}/widgets"
ONE = f"{ALL}/one"

PROTOBUF = "application/vnd.kubernetes.protobuf"

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 100, "default": 1},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "parts": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "default": 7}},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "settings": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
        "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "multipleOf": 0.5},
        "when": {"type": "string", "format": "date-time"},
        "either": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    },
}


def version(name: str = "v1", *, storage: bool = True, **more: Any) -> dict[str, Any]:
    """One version of the definition."""
    properties = {"spec": SPEC, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **more}


def definition(*versions: dict[str, Any], names: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The definition of widgets."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names or {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": list(versions) or [version(subresources={"status": {}})],
            **spec,
        },
    }


def widget(spec: Any = None, api_version: str = "v1", name: str = "one", **meta: Any) -> dict[str, Any]:
    """One object."""
    tree = {"apiVersion": f"{GROUP}/{api_version}", "kind": "Widget", "metadata": {"name": name, **meta}}
    return tree if spec is None else {**tree, "spec": spec}


def is_settled(tree: Any) -> bool:
    """Whether the names of a definition have been looked at, and it is served if they could be accepted."""
    conditions = {one["type"]: one["status"] for one in tree.get("status", {}).get("conditions") or ()}
    return conditions.get("Established") == "True" or conditions.get("NamesAccepted") == "False"


def is_served(tree: Any) -> bool:
    """Whether an answer is of objects, not of a missing page."""
    return isinstance(tree, dict) and tree.get("kind") != "Status"


def is_gone(tree: Any) -> bool:
    """Whether an answer says that there is no such thing."""
    return isinstance(tree, str) or tree.get("reason") == "NotFound"


def installed(tree: dict[str, Any], **options: Any) -> list[Request]:
    """Create the definition and wait until it is served."""
    return [
        post(CRDS, tree, **options),
        get(CRD, until=is_settled),
        get(ALL, until=is_served, quiet=True),
    ]


def rules(*rules: dict[str, Any], old: bool = False) -> dict[str, Any]:
    """A version whose spec has rules."""
    described = version()
    spec = {**SPEC, "x-kubernetes-validations": list(rules)}
    described["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
    return described


BASIC = installed(definition())
CREATED = post(ALL, widget({"size": 3}))

LIVES: dict[str, Sequence[Request]] = {
    "created": BASIC,
    "created twice": [*BASIC, post(CRDS, definition())],
    "applied": [apply(CRD, definition()), get(CRD, until=is_settled), apply(CRD, definition())],
    "created by a client that writes what is empty": [
        post(CRDS, {**definition(), "status": {"conditions": None, "acceptedNames": None, "storedVersions": None}}),
        get(CRD, until=is_settled),
    ],
    "named wrongly": [post(CRDS, {**definition(), "metadata": {"name": "foo"}})],
    "without versions": [post(CRDS, definition(versions=[]))],
    "with two storage versions": [post(CRDS, definition(version(), version("v2")))],
    "without a storage version": [post(CRDS, definition(version(storage=False)))],
    "without a schema": [post(CRDS, definition(version(schema={})))],
    "with a schema that is not structural": [
        post(CRDS, definition(version(schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}))),
        post(CRDS, definition(version(schema={"openAPIV3Schema": {"type": "string"}}))),
    ],
    "with a bad default": [
        post(
            CRDS,
            definition(
                version(
                    schema={
                        "openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}
                    }
                )
            ),
        )
    ],
    "with unknown fields": [
        post(f"{CRDS}?fieldValidation=Strict", definition(version(foo=1))),
        post(f"{CRDS}?dryRun=All", definition(version(foo=1))),
    ],
    "with a bad rule": [
        post(CRDS, definition(rules({"rule": "self.nono > 1"}))),
        post(CRDS, definition(rules({"rule": "self.size"}))),
        post(CRDS, definition(rules({"rule": ""}))),
    ],
    "with a bad group": [post(CRDS, {**definition(group="nodots"), "metadata": {"name": "widgets.nodots"}})],
    "with a scope there is not": [post(CRDS, definition(scope="Foo"))],
    "with short names and categories": [
        *installed(
            definition(names={"plural": "widgets", "kind": "Widget", "shortNames": ["wd{ns}"], "categories": ["all"]})
        ),
        get(f"/apis/{GROUP}/v1", until=is_served),
        get(f"/apis/{GROUP}", until=is_served),
    ],
    "with names that are taken": [
        *BASIC,
        post(
            CRDS,
            {
                **definition(names={"plural": "gadgets", "kind": "Widget", "singular": "widget"}),
                "metadata": {"name": f"gadgets.{GROUP}"},
            },
        ),
        get(f"{CRDS}/gadgets.{GROUP}", until=is_settled),
        get(f"/apis/{GROUP}/v1/gadgets"),
    ],
    "of a group that is protected": [
        post(CRDS, {**definition(group="a.k8s.io"), "metadata": {"name": "widgets.a.k8s.io"}}),
    ],
    "updated": [
        *BASIC,
        CREATED,
        merge(CRD, {"spec": {"names": {"shortNames": ["w{ns}"]}}}),
        get(CRD, until=lambda tree: "shortNames" in tree["status"]["acceptedNames"]),
        merge(CRD, {"spec": {"scope": "Cluster"}}),
        merge(CRD, {"spec": {"group": "foo.io"}}),
        merge(CRD, {"spec": {"versions": [version("v2")]}}),
        merge(CRD, {"spec": {"names": {"kind": "Gadget"}}}),
    ],
    "its status": [
        *BASIC,
        get(f"{CRD}/status"),
        merge(f"{CRD}/status", {"status": {"storedVersions": ["v1"]}, "spec": {"scope": "Cluster"}}),
        merge(f"{CRD}/status", {"status": {"storedVersions": []}}),
    ],
    "conditions that say little": [
        *BASIC,
        merge(f"{CRD}/status", {"status": {"conditions": [{"message": "changed"}]}}),
        delete(CRD, ignore=("status.conditions", "metadata.managedFields")),
        get(CRD, until=is_gone),
    ],
    "deleted": [
        *BASIC,
        CREATED,
        delete(CRD, ignore=("status.conditions",)),
        get(CRD, until=is_gone),
        get(ONE, until=lambda tree: isinstance(tree, str)),
        *installed(definition()),
        get(ALL),
    ],
    "deleted, with instances that stay": [
        *BASIC,
        post(ALL, widget(finalizers=["a.io/b"])),
        delete(CRD, ignore=("status.conditions",)),
        get(ONE, until=lambda tree: "deletionTimestamp" in tree["metadata"]),
        # That it is on its way out is known a moment later.
        post(ALL, widget(name="two"), until=lambda tree: tree.get("reason") == "Forbidden"),
        merge(ONE, {"metadata": {"finalizers": None}}),
        get(CRD, until=is_gone),
    ],
    "deleted, dry": [*BASIC, delete(f"{CRD}?dryRun=All"), get(CRD)],
    "listed": [*BASIC, get(f"{CRDS}?fieldSelector=metadata.name%3Dwidgets.{GROUP}")],
}

OBJECTS: dict[str, Sequence[Request]] = {
    "defaults": [CREATED, post(ALL, widget({}, name="two")), post(ALL, widget(name="three")), get(ALL)],
    "in protobuf, which only metadata have": [
        CREATED,
        get(ONE, accept=PROTOBUF),
        get(ALL, accept=PROTOBUF),
        get(ONE, accept="foo/bar"),
        get(ONE, accept=f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        get(ONE, accept=f"{PROTOBUF},application/json"),
    ],
    "pruning": [
        post(ALL, widget({"foo": 1, "free": {"any": {"thing": 1}}, "parts": [{"name": "a", "x": 1}]})),
        post(ALL, {**widget(name="two"), "data": {"a": 1}, "status": {"a": 1}}),
        post(f"{ALL}?fieldValidation=Strict", widget({"foo": 1, "parts": [{"name": "a", "x": 1}]}, name="three")),
        post(
            f"{ALL}?fieldValidation=Strict",
            f'{{"apiVersion":"{GROUP}/v1","kind":"Widget","bar":1,"spec":{{"foo":{{"a":1,"a":2}},"size":1,"size":2}}}}',
        ),
        post(f"{ALL}?fieldValidation=Ignore", widget({"foo": 1}, name="four")),
        post(f"{ALL}?fieldValidation=Strict", {**widget(name="five"), "metadata": {"name": "five", "foo": 1}}),
        post(
            f"{ALL}?fieldValidation=Strict",
            f'{{"apiVersion":"{GROUP}/v1","kind":"Widget","metadata":{{"name":"x"}},"spec":{{"size":1,"size":2}}}}',
        ),
        post(
            ALL, f'{{"apiVersion":"{GROUP}/v1","kind":"Widget","metadata":{{"name":"x"}},"spec":{{"size":1,"size":2}}}}'
        ),
    ],
    "wrong values": [
        post(ALL, widget({"size": -1, "color": "green", "name": "TOO LONG"})),
        post(ALL, widget({"size": "x"})),
        post(ALL, widget({"size": 1.5})),
        post(ALL, widget({"size": None})),
        post(ALL, widget({"port": []})),
        post(ALL, widget({"tags": ["a", "a"]})),
        post(ALL, widget({"parts": [{"name": "a"}, {"name": "a"}]})),
        post(ALL, widget({"parts": [{"weight": 1}]})),
        post(ALL, widget({"parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]})),
        post(ALL, widget({"settings": {"a": "x"}})),
        post(ALL, widget({"settings": {"a": 1, "b": 2, "c": 3}})),
        post(ALL, widget({"ratio": 0})),
        post(ALL, widget({"ratio": 0.3})),
        post(ALL, widget({"when": "yesterday"})),
        post(ALL, widget({"either": {}})),
        post(ALL, widget({"either": {"a": "x", "b": "y"}})),
        post(ALL, widget("x")),
        post(ALL, widget([])),
        post(ALL, widget({"color": None})),
    ],
    "right values": [
        post(
            ALL,
            widget(
                {
                    "size": 100,
                    "color": "red",
                    "port": "http",
                    "maybe": None,
                    "tags": ["a", "b"],
                    "parts": [{"name": "a", "weight": 1}],
                    "settings": {"a": 1},
                    "ratio": 1.5,
                    "when": "2020-01-01T00:00:00Z",
                    "either": {"a": "x"},
                    "free": {"a": [1, None, {"b": 1.0}]},
                }
            ),
        ),
        get(ONE),
    ],
    "bodies of another type": [
        post(ALL, {"metadata": {"name": "x"}}),
        post(ALL, {**widget(), "kind": "Foo"}),
        post(ALL, {**widget(), "apiVersion": f"{GROUP}/v7"}),
        post(ALL, {**widget(), "apiVersion": "v1"}),
        post(ALL, "{"),
        post(ALL, "[]"),
        post(ALL, ""),
        post(
            ALL, "apiVersion: {ns}.example.io/v1\nkind: Widget\nmetadata: {name: y}\n", content_type="application/yaml"
        ),
    ],
    "bad metadata": [
        post(ALL, widget(name="A_b")),
        post(ALL, {**widget(), "metadata": {}}),
        post(ALL, widget(labels={"a b": "c"})),
        post(ALL, {**widget(), "metadata": {"name": "x", "labels": {"a": 1}}}),
        post(ALL, {**widget(), "metadata": "x"}),
        post(ALL, widget(finalizers=["foo"])),
        post(ALL, {**widget(), "metadata": {"generateName": "x-"}}),
        post(ALL, widget(name="two", creationTimestamp="2020-01-01T00:00:00Z", uid="x", generation=5)),
    ],
    "generations": [
        CREATED,
        merge(ONE, {"metadata": {"labels": {"a": "b"}}}),
        merge(ONE, {"spec": {"size": 4}}),
        merge(ONE, {"spec": {"size": 4}}),
        merge(f"{ONE}/status", {"status": {"a": 1}}),
        merge(ONE, {"status": {"a": 2}}),
        merge(f"{ONE}/status", {"spec": {"size": 9}, "status": {"b": 1}, "metadata": {"labels": {"x": "y"}}}),
        get(ONE),
        get(f"{ONE}/status"),
        put(f"{ONE}/status", {**widget({"size": 50}), "status": {"c": 1}}),
    ],
    "replacements": [
        CREATED,
        put(ONE, widget({"size": 4})),
        put(ONE, widget()),
        put(ONE, widget({"size": 4}, resourceVersion="1")),
        put(ONE, widget({"size": 4}, name="two")),
        put(f"{ALL}/nono", widget(name="nono")),
        put(ONE, widget({"size": -4})),
        put(ONE, widget({"size": 4}, uid="x")),
    ],
    "patches": [
        CREATED,
        merge(ONE, {"spec": {"parts": [{"name": "a"}]}}),
        json_patch(ONE, {"op": "add", "path": "/spec/parts/-", "value": {"name": "b", "weight": 2}}),
        json_patch(ONE, {"op": "replace", "path": "/spec/size", "value": -1}),
        json_patch(ONE, {"op": "test", "path": "/spec/size", "value": 9}),
        json_patch(ONE, {"op": "remove", "path": "/spec/nono"}),
        merge(ONE, {"spec": None}),
        merge(ONE, {"spec": {"foo": 1}}),
        merge(f"{ONE}?fieldValidation=Strict", {"spec": {"foo": 1}}),
        json_patch(f"{ONE}?fieldValidation=Strict", {"op": "add", "path": "/spec/foo", "value": 1}),
        merge(ONE, '{"spec":{"size":1,"size":2}}'),
        merge(f"{ONE}?fieldValidation=Strict", '{"spec":{"size":1,"size":2}}'),
        merge(ONE, {"kind": "Foo"}),
        merge(ONE, {"apiVersion": "v1"}),
        merge(ONE, {"metadata": {"name": "two"}}),
        merge(ONE, {"spec": {"size": "x"}}),
        strategic(ONE, {"spec": {"size": 1}}),
        merge(ONE, "{"),
    ],
    "applies": [
        apply(ONE, widget({"size": 3, "parts": [{"name": "a"}], "tags": ["x"]}), manager="me"),
        apply(ONE, widget({"parts": [{"name": "b"}], "tags": ["y"]}), manager="you"),
        apply(ONE, widget({"size": 4}), manager="you"),
        apply(ONE, widget({"size": 4}), manager="you", force=True),
        apply(ONE, widget({"parts": [{"name": "a", "weight": 2}]}), manager="me"),
        apply(ONE, widget(), manager="you"),
        apply(ONE, widget({"foo": 1}), manager="you"),
        apply(f"{ONE}?fieldValidation=Strict", widget({"foo": 1}), manager="you"),
        apply(ONE, widget({"size": -1}), manager="me"),
        apply(ONE, widget({"size": "x"}), manager="me"),
        apply(ONE, widget({"parts": [{"weight": 1}]}), manager="me"),
        apply(ONE, {**widget(), "kind": "Foo"}),
        apply(f"{ONE}/status", {**widget(), "status": {"a": 1}}, manager="me"),
        apply(f"{ONE}/status", {**widget({"size": 99}), "status": {"a": 1}}, manager="me"),
        get(ONE),
    ],
    "a dry run": [
        post(f"{ALL}?dryRun=All", widget({"size": 3})),
        get(ONE),
        CREATED,
        merge(f"{ONE}?dryRun=All", {"spec": {"size": 9}}),
        delete(f"{ONE}?dryRun=All"),
        get(ONE),
    ],
    "deletion": [
        CREATED,
        post(ALL, widget(name="two", finalizers=["a.io/b"])),
        delete(ONE),
        delete(ONE),
        delete(f"{ALL}/two"),
        merge(f"{ALL}/two", {"spec": {"size": 5}}),
        merge(f"{ALL}/two", {"metadata": {"finalizers": None}}),
        post(ALL, widget(name="three")),
        delete(f"{ALL}/three", {"propagationPolicy": "Foreground"}),
        delete(ALL),
        get(ALL),
    ],
    "lists and selectors": [
        CREATED,
        post(ALL, widget(name="two", labels={"a": "b"})),
        get(ALL),
        get(f"{ALL}?labelSelector=a%3Db"),
        get(f"{ALL}?fieldSelector=metadata.name%3Done"),
        get(f"{ALL}?fieldSelector=spec.size%3D3"),
        get(f"{ALL}?limit=1"),
        get(f"/apis/{GROUP}/v1/widgets?fieldSelector=metadata.namespace%3D{{ns}}"),
        get(ALL, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        get(ONE, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        get(ALL, accept="application/yaml"),
        get(f"{ALL}/nono"),
        get(f"/apis/{GROUP}/v7/widgets"),
        get(f"/apis/{GROUP}/v1/gadgets"),
        get(f"{ONE}/scale"),
        get(f"{ONE}/foo"),
        post(ONE, widget()),
    ],
}

SIZE_RULE = {"rule": "self.size < 10", "message": "too big"}

VARIANTS: dict[str, Sequence[Request]] = {
    "scale": [
        *installed(
            definition(
                version(
                    subresources={
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.size",
                            "statusReplicasPath": ".status.ready",
                            "labelSelectorPath": ".status.selector",
                        },
                    }
                )
            )
        ),
        CREATED,
        get(f"{ONE}/scale"),
        merge(f"{ONE}/status", {"status": {"ready": 2, "selector": "a=b"}}),
        get(f"{ONE}/scale"),
        merge(f"{ONE}/scale", {"spec": {"replicas": 5}}),
        put(
            f"{ONE}/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "one", "namespace": "{ns}"},
                "spec": {"replicas": 6},
            },
        ),
        merge(f"{ONE}/scale", {"spec": {"replicas": -1}}),
        merge(f"{ONE}/scale", {"spec": {"replicas": 500}}),
        get(f"{ALL}/nono/scale"),
        get(ONE),
    ],
    "no subresources": [
        *installed(definition(version())),
        post(ALL, {**widget({"size": 3}), "status": {"a": 1}}),
        merge(ONE, {"status": {"a": 2}}),
        get(f"{ONE}/status"),
        merge(f"{ONE}/status", {"status": {"a": 2}}),
    ],
    "cluster scope": [
        post(CRDS, definition(scope="Cluster")),
        get(CRD, until=is_settled),
        get(f"/apis/{GROUP}/v1/widgets", until=is_served),
        post(f"/apis/{GROUP}/v1/widgets", widget()),
        post(f"/apis/{GROUP}/v1/widgets", widget(name="two", namespace="{ns}")),
        get(ALL),
        post(ALL, widget()),
        delete(f"/apis/{GROUP}/v1/widgets/one"),
    ],
    "two versions": [
        *installed(definition(version("v1"), version("v2", storage=False))),
        CREATED,
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets/one"),
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets"),
        merge(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets/one", {"spec": {"size": 5}}),
        apply(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets/one", widget({"color": "red"}, "v2")),
        get(ONE),
        get(f"/apis/{GROUP}", until=is_served),
    ],
    "another storage version": [
        *installed(definition(version("v1"), version("v2", storage=False))),
        CREATED,
        put(CRD, definition(version("v1", storage=False), version("v2"))),
        json_patch(
            CRD,
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ),
        get(CRD, until=lambda tree: len(tree["status"]["storedVersions"]) == 2),
        get(ONE),
        merge(ONE, {"spec": {"size": 5}}),
        json_patch(CRD, {"op": "remove", "path": "/spec/versions/0"}),
    ],
    "a deprecated version": [
        *installed(
            definition(
                version("v1", deprecated=True),
                version("v2", storage=False, deprecated=True, deprecationWarning="no more"),
            )
        ),
        CREATED,
        get(ONE),
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets/one"),
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets/nono"),
    ],
    "a version that is not served": [
        *installed(definition(version("v1"), version("v2", storage=False, served=False))),
        get(f"/apis/{GROUP}/v2/widgets"),
        get(f"/apis/{GROUP}/v1", until=is_served),
    ],
    "selectable fields": [
        *installed(definition(version(selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]))),
        post(ALL, widget({"color": "red"})),
        post(ALL, widget({"color": "blue", "size": 5}, name="two")),
        post(ALL, widget(name="three")),
        get(f"{ALL}?fieldSelector=spec.color%3Dred"),
        get(f"{ALL}?fieldSelector=spec.color!%3Dred"),
        get(f"{ALL}?fieldSelector=spec.size%3D5,spec.color%3Dblue"),
        get(f"{ALL}?fieldSelector=spec.color%3D"),
        get(f"{ALL}?fieldSelector=spec.name%3Dx"),
    ],
    "rules": [
        *installed(
            definition(
                rules(
                    SIZE_RULE,
                    {"rule": "self.size >= oldSelf.size", "message": "only grows"},
                    {
                        "rule": "!has(self.color) || self.color != 'blue'",
                        "messageExpression": "'not ' + self.color",
                        "reason": "FieldValueForbidden",
                        "fieldPath": ".color",
                    },
                    {"rule": "self.name != 'x'"},
                )
            )
        ),
        post(ALL, widget({"size": 50})),
        post(ALL, widget({"size": 5, "name": "y"})),
        merge(ONE, {"spec": {"size": 3}}),
        merge(ONE, {"spec": {"size": 7, "color": "blue"}}),
        merge(ONE, {"spec": {"size": "x"}}),
        merge(ONE, {"spec": {"name": "x"}}),
        post(ALL, widget({"size": 5}, name="two")),
    ],
    "tightened rules": [
        *installed(definition(version())),
        post(ALL, widget({"size": 50, "color": "red", "tags": ["a"]})),
        json_patch(
            CRD,
            {
                "op": "replace",
                "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/maximum",
                "value": 10,
            },
        ),
        post(f"{ALL}?dryRun=All", widget({"size": 50}, name="probe"), until=lambda tree: tree.get("code") == 422),
        merge(ONE, {"metadata": {"labels": {"a": "b"}}}),
        merge(ONE, {"spec": {"color": "blue"}}),
        merge(ONE, {"spec": {"size": 51}}),
        merge(ONE, {"spec": {"size": 5}}),
    ],
    "new defaults": [
        *installed(definition(version())),
        post(ALL, widget({"size": 5})),
        json_patch(
            CRD,
            {
                "op": "add",
                "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/fresh",
                "value": {"type": "string", "default": "x"},
            },
        ),
        get(ONE, until=lambda tree: "fresh" in tree["spec"]),
        merge(ONE, {"spec": {"size": 6}}),
    ],
    "less known": [
        *installed(definition(version())),
        post(ALL, widget({"size": 5, "color": "red"})),
        json_patch(
            CRD, {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color"}
        ),
        get(ONE, until=lambda tree: "color" not in tree["spec"]),
        merge(ONE, {"spec": {"size": 6}}),
    ],
    "embedded objects": [
        *installed(
            definition(
                version(
                    schema={
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "object": {
                                    "type": "object",
                                    "x-kubernetes-embedded-resource": True,
                                    "x-kubernetes-preserve-unknown-fields": True,
                                }
                            },
                        }
                    }
                )
            )
        ),
        post(
            ALL,
            {
                **widget(),
                "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "foo": 1}, "spec": {}},
            },
        ),
        post(ALL, {**widget(name="two"), "object": {"kind": "Pod"}}),
        post(
            ALL, {**widget(name="three"), "object": {"apiVersion": "a/b/c", "kind": "Pod", "metadata": {"name": "A b"}}}
        ),
    ],
    "no schema at all": [
        *installed(
            definition(
                version(schema={"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
            )
        ),
        post(ALL, {**widget({"any": [1, {"b": None}]}), "more": 1}),
        apply(ONE, {**widget({"any": [2]}), "other": {"x": 1}}, manager="me"),
        merge(ONE, {"more": None}),
    ],
}

GROUPS = {"life": LIVES, "variant": VARIANTS}
AT_ONCE = 5


@pytest.fixture(scope="module")
async def lived(quiet_servers: tuple[ServerClient, ServerClient]) -> dict[str, BaseException | None]:
    """How each case of `GROUPS` went. Each waits for controllers of both servers, so several run at the same time."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def run(requests: Sequence[Request]) -> None:
        async with turn:
            await run_case(await fresh_pair(quiet_servers), requests)

    cases = {f"{group}: {name}": requests for group, members in GROUPS.items() for name, requests in members.items()}
    outcomes = await asyncio.gather(*map(run, cases.values()), return_exceptions=True)
    return dict(zip(cases, outcomes, strict=True))


@pytest.fixture(scope="module")
async def group(quiet_servers: tuple[ServerClient, ServerClient]) -> str:
    """A group whose widgets are served by both servers."""
    pair = await fresh_pair(quiet_servers)
    await run_case(pair, BASIC)
    return GROUP.format(ns=pair.namespace)


@pytest.mark.parametrize("name", [f"{group}: {name}" for group, cases in GROUPS.items() for name in cases])
async def test_a_definition_lives_alike(lived: dict[str, BaseException | None], name: str) -> None:
    if (outcome := lived[name]) is not None:
        raise outcome


@pytest.mark.parametrize("name", OBJECTS)
async def test_custom_objects_are_treated_alike(quiet_pair: ServerPair, group: str, name: str) -> None:
    await run_case(quiet_pair, [_in_group(request, group) for request in OBJECTS[name]])


def _in_group(request: Request, group: str) -> Request:
    body = request.body
    if body is not None:
        body = (body if isinstance(body, str) else json.dumps(body)).replace(GROUP, group)
    return replace(request, path=request.path.replace(GROUP, group), body=body)
