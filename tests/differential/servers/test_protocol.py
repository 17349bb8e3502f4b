"""Requests that are odd, wrong or merely unusual: both servers must answer them alike, word by word.

Covers: kubewright.apiserver.wire, kubewright.apiserver.verbs
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.differential.servers.server_pair import (
    Request,
    ServerPair,
    apply,
    delete,
    get,
    json_patch,
    merge,
    post,
    put,
    run_case,
    strategic,
)

pytestmark = pytest.mark.real

CMS = "/api/v1/namespaces/{ns}/configmaps"
CM = CMS + "/one"
NS = "/api/v1/namespaces/{ns}"
ITEMS = ("items",)
PROTOBUF = "application/vnd.kubernetes.protobuf"


def cm(name: str = "one", **meta: Any) -> dict[str, Any]:
    """A ConfigMap with one datum."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}, "data": {"a": "1"}}


ONE = post(CMS, cm())

BODIES: dict[str, Sequence[Request]] = {
    "another kind": [post(CMS, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "x"}})],
    "another version": [post(CMS, {"kind": "ConfigMap", "apiVersion": "apps/v1", "metadata": {"name": "x"}})],
    "another group": [post(CMS, {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "x"}})],
    "an unknown kind": [post(CMS, {"kind": "Foo", "apiVersion": "v1", "metadata": {"name": "x"}})],
    "an unknown group": [post(CMS, {"kind": "Foo", "apiVersion": "no.example.io/v1", "metadata": {"name": "x"}})],
    "no version": [post(CMS, {"kind": "ConfigMap", "metadata": {"name": "x"}})],
    "no kind": [post(CMS, {"apiVersion": "v1", "metadata": {"name": "x"}})],
    "neither": [post(CMS, {"metadata": {"name": "x"}})],
    "an array": [post(CMS, "[1]")],
    "a string": [post(CMS, '"x"')],
    "a number": [post(CMS, "1")],
    "null": [post(CMS, "null")],
    "a cut text": [post(CMS, "{")],
    "a cut string": [post(CMS, '{"metadata":{"name":"x')],
    "nothing": [post(CMS, "")],
    "an empty object": [post(CMS, "{}")],
    "plain text": [post(CMS, "{}", content_type="text/plain")],
    "no content type": [post(CMS, cm("x"), headers={"Content-Type": ""})],
    "JSON with parameters": [post(CMS, cm("x"), content_type="application/json; charset=utf-8")],
    "metadata that is text": [post(CMS, {"metadata": "x"})],
    "a name that is a number": [post(CMS, {"metadata": {"name": 1}})],
    "data that is a list": [post(CMS, {"metadata": {"name": "x"}, "data": ["a"]})],
    "a datum that is a number": [post(CMS, {"metadata": {"name": "x"}, "data": {"a": 1}})],
    "a datum that is null": [post(CMS, {"metadata": {"name": "x"}, "data": {"a": None}})],
    "binary data that are none": [post(CMS, {"metadata": {"name": "x"}, "binaryData": {"a": "!"}})],
    "labels that are numbers": [post(CMS, {"metadata": {"name": "x", "labels": {"a": 1}}})],
    "a list as a label": [post(CMS, {"metadata": {"name": "x", "labels": {"a": []}}})],
    "a bad time": [post(CMS, {"metadata": {"name": "x", "creationTimestamp": "yesterday"}})],
    "a time of its own": [post(CMS, {"metadata": {"name": "x", "creationTimestamp": "2001-01-01T00:00:00Z"}})],
    "fields nobody knows, and fields twice": [
        post(f"{CMS}?fieldValidation={how}", text, content_type=f"application/{form}")
        for how in ("Strict", "Warn")
        for form, text in (
            ("json", '{"foo":1,"metadata":{"name":"y","name":"x"},"bar":2,"data":{"a":"1"},"data":{"a":"2"}}'),
            ("json", '{"metadata":{"name":"x","nono":{"a":1,"a":2},"nono":3},"data":{"a":"1","a":"2"},"foo":1}'),
            ("yaml", "foo: 1\nmetadata:\n  name: x\n  name: x\nbar: 2\nbar: 3\n"),
        )
    ],
    "replicas that are text": [
        post("/apis/apps/v1/namespaces/{ns}/deployments", {"metadata": {"name": "x"}, "spec": {"replicas": "1"}})
    ],
    "replicas that are a fraction": [
        post("/apis/apps/v1/namespaces/{ns}/deployments", {"metadata": {"name": "x"}, "spec": {"replicas": 1.5}})
    ],
    "replicas too large": [
        post("/apis/apps/v1/namespaces/{ns}/deployments", {"metadata": {"name": "x"}, "spec": {"replicas": 1 << 40}})
    ],
    "YAML": [post(CMS, "metadata: {name: x}\ndata:\n  a: '1'\n", content_type="application/yaml"), get(CMS + "/x")],
    "broken YAML": [post(CMS, "a: [", content_type="application/yaml")],
    "empty YAML": [post(CMS, "", content_type="application/yaml")],
    "YAML, twice the same key": [
        post(CMS, "metadata: {name: x}\ndata: {a: '1'}\ndata: {a: '2'}\n", content_type="application/yaml")
    ],
    "YAML with an unknown field": [post(CMS, "metadata: {name: x}\nfoo: 1\n", content_type="application/yaml")],
    "YAML with a number": [post(CMS, "metadata: {name: x}\ndata: {a: 1}\n", content_type="application/yaml")],
    "names in the wrong case": [post(CMS, {"Metadata": {"name": "x"}, "Data": {"a": "b"}})],
}

PATHS: dict[str, Sequence[Request]] = {
    "no such resource": [get("/api/v1/foos")],
    "no such resource in a namespace": [get("/api/v1/namespaces/{ns}/foos")],
    "no such group": [get("/apis/foo/v1/foos")],
    "no such version": [get("/apis/apps/v7/deployments"), get("/api/v7/pods"), get("/api/v7"), get("/apis/apps/v7")],
    "no such page": [get("/foo")],
    "no such page, posted": [post("/foo", {})],
    "no such subresource": [ONE, get(CM + "/status"), get(CM + "/scale"), put(CM + "/foo", {})],
    "no such object": [get(CM), put(CM, cm()), merge(CM, {}), delete(CM), json_patch(CM), strategic(CM, {})],
    "no such object of a group": [get("/apis/apps/v1/namespaces/{ns}/deployments/x")],
    "no such namespace": [get("/api/v1/namespaces/nono"), get("/api/v1/namespaces/nono/configmaps")],
    "a create in no such namespace": [post("/api/v1/namespaces/nono/configmaps", cm())],
    "a dry create in no such namespace": [post("/api/v1/namespaces/nono/configmaps?dryRun=All", cm())],
    "an apply in no such namespace": [apply("/api/v1/namespaces/nono/configmaps/one", cm())],
    "a create in all namespaces": [post("/api/v1/configmaps", cm()), post("/api/v1/configmaps", cm(namespace="{ns}"))],
    "a create with a name in the path": [ONE, post(CM, cm())],
    "a replacement of a collection": [put(CMS, cm()), merge(CMS, {})],
    "a deletion of all there are anywhere": [delete("/api/v1/configmaps?dryRun=All&labelSelector=a%3Dnever")],
    "a namespaced object without its namespace": [get("/api/v1/configmaps/one")],
    "a cluster's object in a namespace": [get("/api/v1/namespaces/{ns}/nodes")],
    "a slash at the end": [ONE, get(CM + "/"), get(CMS + "/")],
    "two slashes": [ONE, get("/api/v1/namespaces/{ns}//configmaps/one"), get("//api/v1")],
    "a watch of one": [ONE, get(CM + "?watch=1&timeoutSeconds=1")],
    "component statuses": [post("/api/v1/componentstatuses", {})],
    "a read-only page": [post("/version", {}), delete("/healthz")],
    "health": [get("/healthz"), get("/livez"), get("/readyz"), get("/readyz/ping"), get("/healthz/nono")],
    "an unknown method": [Request("OPTIONS", CMS), Request("OPTIONS", "/version")],
    "the head alone": [ONE, Request("HEAD", CM), Request("HEAD", CMS)],
    "the head alone, through a proxy": [
        Request("HEAD", "/api/v1/namespaces/{ns}/pods/nobody/proxy/x"),
        Request("HEAD", "/api/v1/namespaces/{ns}/services/nobody/proxy"),
        Request("HEAD", "/api/v1/nodes/nobody/proxy/healthz"),
    ],
    "an escaped name": [ONE, get(CMS + "/%6Fne")],
    "a name that no object can have": [get(CMS + "/A_B"), delete(CMS + "/A_B")],
}

OPTIONS: dict[str, Sequence[Request]] = {
    "dry run of a kind there is not": [
        post(CMS + "?dryRun=Foo", cm()),
        put(CM + "?dryRun=Foo", cm()),
        merge(CM + "?dryRun=", {}),
        delete(CM + "?dryRun=Foo"),
        delete(CM, {"dryRun": ["Foo"]}),
        delete(CMS, {"dryRun": ["All", "Foo"]}),
    ],
    "field validation of a kind there is not": [
        post(CMS + "?fieldValidation=Foo", cm()),
        put(CM + "?fieldValidation=Foo", cm()),
        merge(CM + "?fieldValidation=Foo", {}),
        post(CMS + "?fieldValidation=", cm()),
    ],
    "a manager with a long name": [post(CMS + "?fieldManager=" + "a" * 129, cm())],
    "a manager with the longest name": [post(CMS + "?fieldManager=" + "a" * 128, cm())],
    "a manager that cannot be printed": [post(CMS + "?fieldManager=a%0Ab", cm())],
    "many faults at once": [post(CMS + "?fieldManager=" + "a" * 129 + "&dryRun=x&fieldValidation=y", cm())],
    "force where it is not for": [ONE, merge(CM + "?force=true", {}), merge(CM + "?force=false", {})],
    "a bad timeout": [get(CMS + "?timeout=abc"), get(CMS + "?timeout=1"), get(CMS + "?timeout=-1s", ignore=ITEMS)],
    "a timeout": [ONE, get(CM + "?timeout=32s")],
    "pretty": [ONE, get(CM + "?pretty=true"), get(CM + "?pretty=1"), get(CM + "?pretty=foo")],
    "unknown options": [ONE, get(CM + "?foo=bar"), get(CM + "?exact=true&export=true")],
    "an option said twice": [get(CMS + "?limit=1&limit=2", ignore=ITEMS)],
}

FORMS: dict[str, Sequence[Request]] = {
    "HTML": [ONE, get(CM, accept="text/html"), get("/api/v1/foos", accept="text/html")],
    "anything": [
        ONE,
        get(CM, accept="*/*"),
        get(CM, accept="application/*"),
        get(CM, accept="text/*, */*;q=0.1"),
    ],
    "a deadline": [
        get(f"{path}{'&' if '?' in path else '?'}timeout={timeout}", ignore=("resourceVersion", "items"))
        for path in (CMS + "?limit=1", CMS + "/nono", "/nono", NS + "/pods/nono/log")
        for timeout in ("invalid", "5", "-5s", "", "1h5m")
    ],
    "nothing said": [ONE, get(CM, accept="")],
    "nonsense": [
        ONE,
        get(CM, accept="foo"),
        get(CM, accept=",,"),
        get(CM, accept="application/json;q=x"),
    ],
    "YAML": [
        ONE,
        get(CM, accept="application/yaml"),
        get(CMS + "?fieldSelector=metadata.name%3Done", accept="application/yaml"),
    ],
    "protobuf": [
        get(CMS, keep={"before": "metadata.resourceVersion"}),
        ONE,
        get(CM, accept=PROTOBUF),
        get(CMS + "?fieldSelector=metadata.name%3Done", accept=PROTOBUF),
        get(CMS + "?fieldSelector=metadata.name%3Done&watch=1&timeoutSeconds=1", accept=PROTOBUF),
        get(CMS + "?watch=1&timeoutSeconds=1&resourceVersion=${before}", accept=PROTOBUF),
        post(CMS + "?dryRun=All", cm("two"), accept=PROTOBUF),
        delete(CM, accept=PROTOBUF),
        get("/apis/apps/v1", accept=PROTOBUF),
        get("/apis/apps", accept=PROTOBUF),
    ],
    "reviews, of which there are no tables": [
        post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}},
            accept=f"application/json;as={form};v=v1;g=meta.k8s.io{more}",
            ignore=("status",),
        )
        for form in ("Table", "PartialObjectMetadata")
        for more in ("", ",application/json")
    ],
    "an error in protobuf": [get(CM, accept=PROTOBUF), post(CMS, "{", accept=PROTOBUF)],
    "metadata in protobuf": [
        ONE,
        get(CM, accept=f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"),
        get(
            CMS + "?fieldSelector=metadata.name%3Done",
            accept=f"{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
        ),
        get(
            CMS + "?fieldSelector=metadata.name%3Done&watch=1&timeoutSeconds=1&sendInitialEvents=true"
            "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            accept=f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
        ),
    ],
    "tables in protobuf, which there are not": [
        ONE,
        get(CM, accept=f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io"),
        get(CM, accept=f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{PROTOBUF}"),
        get(CM, accept=f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io"),
    ],
    "an error in YAML": [get(CM, accept="application/yaml"), post(CMS, "{", accept="application/yaml")],
    "preferences": [ONE, get(CM, accept="application/json;q=0.1, application/yaml;q=0.9")],
    "a table of another version": [get(CM, accept="application/json;as=Table;v=v7;g=meta.k8s.io")],
    "a form of another group": [ONE, get(CM, accept="application/json;as=Table;v=v1;g=foo")],
    "an unknown form": [ONE, get(CM, accept="application/json;as=Foo;v=v1;g=meta.k8s.io")],
    "an unknown form, or any": [ONE, get(CM, accept="application/json;as=Foo;v=v1;g=meta.k8s.io,application/json")],
    "metadata of one": [ONE, get(CM, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")],
    "metadata of one, as of many": [
        ONE,
        get(CM, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        get(CMS, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    ],
    "metadata of many": [
        ONE,
        get(
            CMS + "?fieldSelector=metadata.name%3Done",
            accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        ),
    ],
    "metadata of the older version": [
        ONE,
        get(CM, accept="application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io"),
    ],
    "metadata in YAML": [ONE, get(CM, accept="application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")],
    "metadata of what is written": [
        post(CMS, cm(), accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        merge(CM, {"data": {"b": "2"}}, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        delete(CM, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    ],
    "metadata of a refusal": [get(CM, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")],
    "a table with what it has not": [
        ONE,
        get(CM + "?includeObject=Foo", accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
    ],
}

PATCHES: dict[str, Sequence[Request]] = {
    "of no kind": [
        ONE,
        Request("PATCH", CM, {}),
        Request("PATCH", CM, {}, "text/plain"),
        Request("PATCH", CM, {}, "application/yaml"),
    ],
    "a test that fails": [ONE, json_patch(CM, {"op": "test", "path": "/data/a", "value": "2"})],
    "a test of what is not there": [ONE, json_patch(CM, {"op": "test", "path": "/data/x", "value": "1"})],
    "a test that holds": [ONE, json_patch(CM, {"op": "test", "path": "/data/a", "value": "1"})],
    "a removal of nothing": [ONE, json_patch(CM, {"op": "remove", "path": "/data/x"})],
    "an addition nowhere": [ONE, json_patch(CM, {"op": "add", "path": "/x/y/z", "value": 1})],
    "a replacement of nothing": [ONE, json_patch(CM, {"op": "replace", "path": "/data/x", "value": "1"})],
    "an unknown operation": [ONE, json_patch(CM, {"op": "foo", "path": "/data/x"})],
    "an operation without a path": [ONE, json_patch(CM, {"op": "add", "value": 1})],
    "an object as a JSON patch": [ONE, Request("PATCH", CM, {"a": 1}, "application/json-patch+json")],
    "broken JSON": [ONE, Request("PATCH", CM, "[", "application/json-patch+json"), merge(CM, "{"), strategic(CM, "{")],
    "empty": [ONE, merge(CM, ""), strategic(CM, ""), Request("PATCH", CM, "", "application/json-patch+json")],
    "an array as a merge patch": [ONE, merge(CM, [1]), strategic(CM, [1])],
    "text as a merge patch": [ONE, merge(CM, '"a"'), merge(CM, "null"), merge(CM, "1")],
    "nothing to do": [ONE, merge(CM, {}), json_patch(CM), strategic(CM, {})],
    "the name": [
        ONE,
        merge(CM, {"metadata": {"name": "zz"}}),
        json_patch(CM, {"op": "remove", "path": "/metadata/name"}),
    ],
    "the namespace": [ONE, merge(CM, {"metadata": {"namespace": "zz"}}), merge(CM, {"metadata": {"namespace": None}})],
    "the uid": [ONE, merge(CM, {"metadata": {"uid": "zz"}}), merge(CM, {"metadata": {"uid": None}})],
    "the version, old": [ONE, merge(CM, {"metadata": {"resourceVersion": "1"}})],
    "the version, no number": [ONE, merge(CM, {"metadata": {"resourceVersion": "abc"}})],
    "the kind": [ONE, merge(CM, {"kind": "Foo"}), merge(CM, {"apiVersion": "v2"}), merge(CM, {"kind": None})],
    "times": [
        ONE,
        merge(CM, {"metadata": {"creationTimestamp": None}}),
        merge(CM, {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}),
        merge(CM, {"metadata": {"generation": 7, "selfLink": "/x", "deletionGracePeriodSeconds": 3}}),
    ],
    "something invalid": [ONE, merge(CM, {"metadata": {"labels": {"a b": "c"}}}), merge(CM, {"data": {"a/b": "c"}})],
    "something of a wrong type": [
        ONE,
        merge(CM, {"data": ["a"]}),
        strategic(CM, {"data": ["a"]}),
        json_patch(CM, {"op": "add", "path": "/data", "value": 7}),
        strategic(CM, {"data": {"a": 7}}),
    ],
    "everything away": [ONE, json_patch(CM, {"op": "replace", "path": "", "value": {}})],
    "unknown fields": [
        ONE,
        merge(CM, {"foo": 1}),
        strategic(CM, {"foo": 1}),
        json_patch(CM, {"op": "add", "path": "/foo", "value": 1}),
        merge(CM + "?fieldValidation=Strict", {"foo": 1}),
        strategic(CM + "?fieldValidation=Strict", {"foo": 1}),
        json_patch(CM + "?fieldValidation=Strict", {"op": "add", "path": "/foo", "value": 1}),
        merge(CM + "?fieldValidation=Ignore", {"foo": 1}),
        merge(CM, '{"data":{"a":"1"},"data":{"a":"2"}}'),
        merge(CM + "?fieldValidation=Strict", '{"data":{"a":"1"},"data":{"a":"2"}}'),
        strategic(CM + "?fieldValidation=Strict", '{"foo":{"a":1,"a":2},"bar":1}'),
    ],
    "apply without a manager": [Request("PATCH", CM, cm(), "application/apply-patch+yaml")],
    "apply with managed fields": [apply(CM, cm(managedFields=[{}])), apply(CM, cm(managedFields=[]))],
    "apply without a kind": [apply(CM, {"apiVersion": "v1"}), apply(CM, {"kind": "ConfigMap"}), apply(CM, {})],
    "apply of another kind": [apply(CM, {"apiVersion": "v1", "kind": "Secret"})],
    "apply of another version": [apply(CM, {"apiVersion": "v2", "kind": "ConfigMap"})],
    "apply of another name": [apply(CM, cm("two")), apply(CM, {"apiVersion": "v1", "kind": "ConfigMap"})],
    "apply to another namespace": [apply(CM, cm(namespace="zz"))],
    "apply with a version": [apply(CM, cm(resourceVersion="1")), ONE, apply(CM, cm(resourceVersion="1"))],
    "apply with a uid": [apply(CM, cm(uid="x")), ONE, apply(CM, cm(uid="x"))],
    "apply of broken YAML": [apply(CM, "a: ["), apply(CM, "[]"), apply(CM, ""), apply(CM, "a")],
    "apply with an unknown field": [
        apply(CM, {**cm(), "foo": 1}),
        apply(CM + "?fieldValidation=Strict", {**cm(), "foo": 1}),
        apply(CM + "?fieldValidation=Ignore", {**cm(), "foo": 1}),
    ],
    "apply with a wrong type": [apply(CM, {**cm(), "data": ["a"]}), apply(CM, {**cm(), "data": {"a": 1}})],
    "apply with a key said twice": [
        apply(CM, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: '1'}\ndata: {a: '2'}\n"),
        apply(
            CM + "?fieldValidation=Strict",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: '1', a: '2'}\n",
        ),
    ],
    "apply dry": [apply(CM + "?dryRun=All", cm()), get(CM)],
}

GROUPS = {"body": BODIES, "path": PATHS, "options": OPTIONS, "form": FORMS, "patch": PATCHES}


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(requests, id=f"{group}: {name}")
        for group, cases in GROUPS.items()
        for name, requests in cases.items()
    ],
)
async def test_an_odd_request_is_answered_alike(quiet_pair: ServerPair, requests: Sequence[Request]) -> None:
    await run_case(quiet_pair, requests)
