"""Creates, replacements, patches, applies and deletions: both servers must make the same of them.

Covers: kubewright.apiserver.verbs, kubewright.apiserver.managedfields
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from tests.builders.pods import pod_tree
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

NS = "/api/v1/namespaces/{ns}"
CMS, CM = f"{NS}/configmaps", f"{NS}/configmaps/one"
PODS, POD = f"{NS}/pods", f"{NS}/pods/p"
SERVICES, SERVICE = f"{NS}/services", f"{NS}/services/s"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
DEPLOYMENT = f"{DEPLOYMENTS}/web"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
ACCOUNT = post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}}, quiet=True)


def cm(name: str = "one", data: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """A ConfigMap."""
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}
    return tree if data is None else {**tree, "data": data}


pod = partial(pod_tree, "p", app="web", container={"name": "a", "image": "b"})
"""A pod of one container."""


def deployment(**spec: Any) -> dict[str, Any]:
    """A deployment of one container."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "b:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


ONE = post(CMS, cm(data={"a": "1"}))
WEB = post(DEPLOYMENTS, deployment())

CREATES: dict[str, Sequence[Request]] = {
    "twice": [ONE, ONE],
    "with a generated name": [post(CMS, {"metadata": {"generateName": "x-"}})],
    "with a long generated name": [post(CMS, {"metadata": {"generateName": "x" * 63}})],
    "with a bad generated name": [post(CMS, {"metadata": {"generateName": "X_"}})],
    "with both names": [post(CMS, {"metadata": {"name": "one", "generateName": "x-"}})],
    "with a generated name, dry": [post(f"{CMS}?dryRun=All", {"metadata": {"generateName": "x-"}})],
    "with a bad name": [post(CMS, cm("A_b")), post(CMS, cm("a" * 254)), post(CMS, cm("a/b")), post(CMS, cm("."))],
    "with bad metadata": [
        post(CMS, cm(labels={"a b": "c"}, annotations={"x y": "z"})),
        post(CMS, cm(labels={"d": "-"})),  # not both wrong labels at once: Go's maps have no order
        post(CMS, cm(finalizers=["foo", "a b"])),
        post(CMS, cm(ownerReferences=[{"kind": "A", "name": "b", "uid": "", "apiVersion": ""}])),
        post(
            CMS,
            cm(
                ownerReferences=[
                    {"apiVersion": "v1", "kind": "A", "name": "b", "uid": "1", "controller": True},
                    {"apiVersion": "v1", "kind": "A", "name": "c", "uid": "2", "controller": True},
                ]
            ),
        ),
        post(CMS, cm(annotations={"a": "x" * 300_000})),
    ],
    "with finalizers": [
        post(CMS, cm(finalizers=["kubernetes"])),
        post(CMS, cm("two", finalizers=["a.io/b", "c.io/d"])),
    ],
    "with the server's own fields": [
        post(CMS, cm(uid="5", generation=7, selfLink="/x", deletionGracePeriodSeconds=5)),
        post(CMS, cm("two", deletionTimestamp="2020-01-01T00:00:00Z", creationTimestamp="2020-01-01T00:00:00Z")),
    ],
    "with a version": [post(CMS, cm(resourceVersion="5")), post(CMS, cm(resourceVersion=""))],
    "with a version that is none": [
        post(CMS, cm(resourceVersion="v1")),
        post(CMS, cm("two", resourceVersion="0")),
        post(CMS, cm("A_", resourceVersion="5")),
        post(CMS, cm(resourceVersion="5")),
        post(f"{CMS}?dryRun=All", cm("three", resourceVersion="5")),
        put(f"{LEASES}/one", {"metadata": {"name": "one", "resourceVersion": "v1"}}),
        put(f"{LEASES}/one?dryRun=All", {"metadata": {"name": "one", "resourceVersion": "5"}}),
        put(f"{LEASES}/one", {"metadata": {"name": "one", "resourceVersion": "5"}}),
        apply(f"{CMS}/four", cm("four", resourceVersion="v1")),
        apply(f"{CMS}/four?dryRun=All", cm("four", resourceVersion="5")),
    ],
    "with managed fields": [
        post(
            CMS,
            cm(managedFields=[{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}]),
        ),
        post(CMS, cm("two", managedFields=[{"manager": "x"}])),
        post(CMS, cm("three", managedFields=[])),
    ],
    "in another namespace": [post(CMS, cm(namespace="kube-system")), post(CMS, cm(namespace="{ns}"))],
    "with a manager": [post(f"{CMS}?fieldManager=me", cm(data={"a": "1"}))],
    "by a client with a strange name": [
        post(CMS, cm("a"), headers={"User-Agent": "x" * 200}),
        post(CMS, cm("b", {"a": "1"}), headers={"User-Agent": "a b/c d"}),
        post(CMS, cm("c", {"a": "1"}), headers={"User-Agent": "/x"}),
    ],
    "dry": [post(f"{CMS}?dryRun=All", cm()), get(CM), post(f"{CMS}?dryRun=All", cm(data={"a b": "c"}))],
    "with unknown fields": [
        post(CMS, {**cm(), "foo": 1, "spec": {"a": 1}}),
        post(f"{CMS}?fieldValidation=Strict", {**cm("two"), "foo": 1, "bar": 2}),
        post(f"{CMS}?fieldValidation=Ignore", {**cm("three"), "foo": 1}),
        post(f"{CMS}?fieldValidation=Warn", {**cm("four"), "metadata": {"name": "four", "foo": 1}}),
    ],
    "with names said twice": [
        post(CMS, '{"metadata":{"name":"a"},"data":{"a":"1"},"data":{"a":"2"}}'),
        post(CMS, '{"metadata":{"name":"b"},"data":{"a":"1","a":"2"}}'),
        post(f"{CMS}?fieldValidation=Strict", '{"metadata":{"name":"c"},"data":{"a":"1","a":"2"},"foo":1}'),
        post(f"{CMS}?fieldValidation=Ignore", '{"metadata":{"name":"d"},"data":{"a":"1","a":"2"}}'),
        post(DEPLOYMENTS, '{"metadata":{"name":"e"},"spec":{"replicas":1,"replicas":2,"foo":{"a":1,"a":2}}}'),
    ],
    "with unknown fields deep inside": [
        post(
            f"{PODS}?fieldValidation=Strict",
            {
                "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "a", "image": "b", "foo": 1, "ports": [{"x": 1}]}]},
            },
        ),
        post(f"{DEPLOYMENTS}?fieldValidation=Strict", deployment(foo=1, strategy={"bar": 1})),
        post(DEPLOYMENTS, deployment(foo=1, strategy={"bar": 1})),
    ],
    "too large": [post(CMS, cm(data={"a": "x" * (1 << 20)})), post(CMS, cm(data={"a": "x" * (4 << 20)}))],
}

REPLACEMENTS: dict[str, Sequence[Request]] = {
    "nothing changed": [ONE, put(CM, cm(data={"a": "1"})), put(CM, cm(data={"a": "1"}))],
    "everything away": [ONE, put(CM, cm())],
    "no name": [ONE, put(CM, {})],
    "another name": [ONE, put(CM, cm("two"))],
    "another namespace": [ONE, put(CM, cm(namespace="zz"))],
    "no such": [put(CM, cm()), put(CM, cm(uid="x")), put(CM, cm(resourceVersion="5"))],
    "an old version": [
        post(CMS, cm(), keep={"then": "metadata.resourceVersion"}),
        merge(CM, {"data": {"a": "1"}}),
        put(CM, cm(resourceVersion="${then}")),
    ],
    "the present version": [
        post(CMS, cm(), keep={"then": "metadata.resourceVersion"}),
        put(CM, cm(resourceVersion="${then}", data={"b": "2"})),
    ],
    "a bad version": [ONE, put(CM, cm(resourceVersion="abc")), put(CM, cm(resourceVersion="0"))],
    "another uid": [ONE, put(CM, cm(uid="abc"))],
    "the same uid": [post(CMS, cm(), keep={"uid": "metadata.uid"}), put(CM, cm(uid="${uid}", labels={"a": "b"}))],
    "by another manager": [ONE, put(f"{CM}?fieldManager=you", cm(data={"a": "2", "b": "3"}))],
    "managed fields away": [
        ONE,
        put(CM, cm(data={"a": "1"}, managedFields=[{}])),
        put(CM, cm(data={"a": "1"}, managedFields=[])),
        merge(CM, {"data": {"b": "2"}}),
    ],
    "managed fields broken": [ONE, put(CM, cm(managedFields=[{"manager": "x", "operation": "Foo"}]))],
    "dry": [ONE, put(f"{CM}?dryRun=All", cm(data={"b": "2"})), get(CM)],
    "of what is immutable": [
        post(CMS, {**cm(data={"a": "1"}), "immutable": True}),
        merge(CM, {"data": {"a": "2"}}),
        merge(CM, {"immutable": False}),
        merge(CM, {"metadata": {"labels": {"a": "b"}}}),
    ],
    "with a status": [WEB, put(DEPLOYMENT, {**deployment(replicas=2), "status": {"replicas": 5}})],
    "of the selector": [WEB, merge(DEPLOYMENT, {"spec": {"selector": {"matchLabels": {"x": "y"}}}})],
    "of what makes no new generation": [
        WEB,
        merge(DEPLOYMENT, {"metadata": {"labels": {"a": "b"}}}),
        merge(DEPLOYMENT, {"metadata": {"annotations": {"a": "b"}}}),
        merge(DEPLOYMENT, {"spec": {"replicas": 3}}),
        merge(f"{DEPLOYMENT}/status", {"status": {"observedGeneration": 2}}),
    ],
    "that creates": [
        put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}),
        put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "you"}}),
        put(f"{NS}/endpoints/e", {"metadata": {"name": "e"}}),
        put(f"{NS}/limitranges/l", {"metadata": {"name": "l"}}),
        put(f"{NS}/events/e", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "{ns}"}}),
    ],
    "that needs a version": [
        post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        put(SERVICE, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 81}]}}),
        post("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", {"metadata": {"name": "r"}}),
        put(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles/r",
            {"metadata": {"name": "r", "labels": {"a": "b"}}},
        ),
    ],
}

CONTAINERS = "/spec/template/spec/containers"

PATCHES: dict[str, Sequence[Request]] = {
    "merge": [
        ONE,
        merge(CM, {"data": {"b": "2"}}),
        merge(CM, {"data": {"a": None}}),
        merge(CM, {"data": None}),
        merge(CM, {"metadata": {"labels": {"x": "y"}, "annotations": {"z": None}}}),
    ],
    "merge of a deployment": [
        WEB,
        merge(
            DEPLOYMENT, {"spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "b", "image": "c"}]}}}}
        ),
        merge(DEPLOYMENT, {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}),
        merge(DEPLOYMENT, {"spec": {"strategy": None}}),
        merge(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": []}}}}),
    ],
    "JSON": [
        WEB,
        json_patch(DEPLOYMENT, {"op": "replace", "path": "/spec/replicas", "value": 3}),
        json_patch(DEPLOYMENT, {"op": "add", "path": f"{CONTAINERS}/-", "value": {"name": "c", "image": "d"}}),
        json_patch(DEPLOYMENT, {"op": "add", "path": f"{CONTAINERS}/0", "value": {"name": "d", "image": "e"}}),
        json_patch(DEPLOYMENT, {"op": "remove", "path": f"{CONTAINERS}/1"}),
        json_patch(DEPLOYMENT, {"op": "move", "from": f"{CONTAINERS}/0", "path": f"{CONTAINERS}/1"}),
        json_patch(DEPLOYMENT, {"op": "copy", "from": "/metadata/name", "path": "/spec/template/metadata/annotations"}),
        json_patch(
            DEPLOYMENT,
            {"op": "test", "path": "/spec/replicas", "value": 3},
            {"op": "add", "path": "/metadata/labels", "value": {"a~b": "c"}},
        ),
        json_patch(DEPLOYMENT, {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}}),
        json_patch(DEPLOYMENT, {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "d"}),
        json_patch(DEPLOYMENT, {"op": "remove", "path": f"{CONTAINERS}/7"}),
        json_patch(DEPLOYMENT, {"op": "remove", "path": f"{CONTAINERS}/-1"}),
    ],
    "strategic": [
        WEB,
        strategic(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "c"}]}}}}),
        strategic(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b:2"}]}}}}),
        strategic(
            DEPLOYMENT,
            {"spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}}}},
        ),
        strategic(
            DEPLOYMENT,
            {"spec": {"template": {"spec": {"containers": [{"name": "b", "$patch": "delete"}]}}}},
        ),
        strategic(
            DEPLOYMENT,
            {
                "spec": {
                    "template": {
                        "spec": {
                            "$setElementOrder/containers": [{"name": "z"}, {"name": "a"}],
                            "containers": [{"name": "z", "image": "y"}],
                        }
                    }
                }
            },
        ),
        strategic(DEPLOYMENT, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
        strategic(DEPLOYMENT, {"spec": {"strategy": {"$patch": "replace", "type": "RollingUpdate"}}}),
        strategic(DEPLOYMENT, {"metadata": {"finalizers": ["a.io/b", "c.io/d"]}}),
        strategic(DEPLOYMENT, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.io/b"]}}),
        strategic(DEPLOYMENT, {"metadata": {"finalizers": None, "labels": {"x": "y"}}}),
        strategic(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [{"image": "nameless"}]}}}}),
        strategic(DEPLOYMENT, {"spec": {"$patch": "foo"}}),
    ],
    "strategic, restarted": [
        WEB,
        strategic(
            DEPLOYMENT,
            {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "x"}}}}},
        ),
        strategic(DEPLOYMENT, {"spec": {"paused": True}}),
        strategic(DEPLOYMENT, {"spec": {"paused": None}}),
    ],
    "strategic, ports of a Service": [
        post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "a"}]}}),
        strategic(SERVICE, {"spec": {"ports": [{"port": 81, "name": "b"}]}}),
        strategic(SERVICE, {"spec": {"ports": [{"port": 81, "$patch": "delete"}], "selector": {"x": "y"}}}),
        strategic(SERVICE, {"spec": {"type": "NodePort"}}),
        strategic(SERVICE, {"spec": {"type": "ClusterIP"}}),
    ],
    "strategic, of another kind": [
        ONE,
        strategic(CM, {"kind": "Deployment", "data": {"a": "2"}}),
        strategic(CM, {"apiVersion": "apps/v1", "kind": "Deployment", "data": {"a": "3"}}),
        strategic(CM, {"apiVersion": "x/y/z", "data": {"a": "4"}}),
        strategic(CM, {"apiVersion": None, "kind": None, "data": {"a": "5"}}),
        WEB,
        strategic(
            f"{DEPLOYMENT}/scale",
            {"kind": "Deployment", "spec": {"replicas": 0}},
            ignore=("status", "metadata.generation"),
        ),
    ],
    "strategic, owners": [
        ONE,
        strategic(CM, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"}]}}),
        strategic(CM, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "b", "uid": "2"}]}}),
        strategic(CM, {"metadata": {"ownerReferences": [{"uid": "1", "$patch": "delete"}]}}),
    ],
    "of many operations": [ONE, json_patch(CM, *[{"op": "test", "path": "/data/a", "value": "1"}] * 10_001)],
    "with a version that is there": [
        post(CMS, cm(), keep={"then": "metadata.resourceVersion"}),
        merge(CM, {"metadata": {"resourceVersion": "${then}"}, "data": {"a": "1"}}),
        merge(CM, {"metadata": {"resourceVersion": "${then}"}, "data": {"a": "2"}}),
        json_patch(CM, {"op": "test", "path": "/metadata/resourceVersion", "value": "${then}"}),
    ],
    "dry": [
        ONE,
        merge(f"{CM}?dryRun=All", {"data": {"b": "2"}}),
        strategic(f"{CM}?dryRun=All", {"data": {"b": "2"}}),
        get(CM),
    ],
    "types that are not meant": [
        WEB,
        merge(DEPLOYMENT, {"spec": {"replicas": "3"}}),
        merge(DEPLOYMENT, {"spec": {"replicas": 1.5}}),
        strategic(DEPLOYMENT, {"spec": {"replicas": "3"}}),
        strategic(DEPLOYMENT, {"spec": {"template": []}}),
        merge(DEPLOYMENT, {"spec": {"template": []}}),
        strategic(DEPLOYMENT, {"spec": {"template": {"spec": {"containers": {"name": "a"}}}}}),
        merge(f"{DEPLOYMENT}?fieldValidation=Strict", {"spec": {"foo": 1, "template": {"spec": {"bar": 2}}}}),
        merge(DEPLOYMENT, {"spec": {"foo": 1, "template": {"spec": {"bar": 2}}}}),
    ],
}

APPLIES: dict[str, Sequence[Request]] = {
    "a new object": [apply(CM, cm(data={"a": "1"})), get(CM)],
    "nothing new": [apply(CM, cm(data={"a": "1"})), apply(CM, cm(data={"a": "1"}))],
    "less than before": [apply(CM, cm(data={"a": "1", "b": "2"})), apply(CM, cm(data={"a": "1"})), apply(CM, cm())],
    "a conflict": [
        apply(CM, cm(data={"a": "1"}), manager="me"),
        apply(CM, cm(data={"a": "2"}), manager="you"),
        apply(CM, cm(data={"a": "2"}), manager="you", force=True),
        apply(CM, cm(data={"a": "1", "b": "1"}), manager="me"),
    ],
    "several conflicts": [
        post(f"{CMS}?fieldManager=me", cm(data={"a": "1", "b": "2"}, labels={"x": "y"})),
        merge(f"{CM}?fieldManager=him", {"data": {"c": "3"}}),
        apply(CM, cm(data={"a": "7", "b": "8", "c": "9"}, labels={"x": "z"}), manager="you"),
        apply(CM, cm(data={"a": "7", "b": "8", "c": "9"}, labels={"x": "z"}), manager="you", force=True),
    ],
    "together": [
        apply(CM, cm(data={"a": "1"}), manager="me"),
        apply(CM, cm(data={"a": "1"}), manager="you"),
        apply(CM, cm(data={"b": "1"}), manager="me"),
        apply(CM, cm(data={"b": "1"}), manager="you"),
    ],
    "after an update": [
        ONE,
        apply(CM, cm(data={"a": "1"})),
        merge(CM, {"data": {"a": "2"}}),
        apply(CM, cm(data={"a": "1"})),
    ],
    "with the wrong version": [
        apply(CM, cm(data={"a": "1"}), keep={"then": "metadata.resourceVersion"}),
        apply(CM, cm(data={"a": "2"}, resourceVersion="${then}")),
        apply(CM, cm(data={"a": "3"}, resourceVersion="${then}")),
    ],
    "without a name": [ONE, apply(CM, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "2"}})],
    "lists with keys": [
        apply(DEPLOYMENT, deployment(), manager="me"),
        apply(
            DEPLOYMENT,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web"},
                "spec": {"template": {"spec": {"containers": [{"name": "b", "image": "c"}]}}},
            },
            manager="you",
        ),
        apply(DEPLOYMENT, deployment(replicas=3), manager="me"),
        apply(
            DEPLOYMENT,
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}},
            manager="you",
        ),
        apply(
            DEPLOYMENT,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web"},
                "spec": {"template": {"spec": {"containers": [{"image": "c"}]}}},
            },
            manager="you",
        ),
    ],
    "lists with a key said twice": [
        apply(
            DEPLOYMENT,
            deployment(
                template={
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "a", "image": "b"}, {"name": "a", "image": "c"}]},
                }
            ),
        )
    ],
    "a set": [
        apply(CM, cm(finalizers=["a.io/b"]), manager="me"),
        apply(CM, cm(finalizers=["c.io/d"]), manager="you"),
        apply(CM, cm(), manager="me"),
        apply(CM, cm(), manager="you"),
    ],
    "the status": [
        apply(DEPLOYMENT, deployment(), manager="me"),
        apply(
            f"{DEPLOYMENT}/status",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 1}},
            manager="me",
        ),
        apply(
            f"{DEPLOYMENTS}/nono/status",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nono"}, "status": {"replicas": 1}},
        ),
        apply(DEPLOYMENT, {**deployment(), "status": {"replicas": 7}}, manager="me"),
    ],
    "invalid": [
        apply(DEPLOYMENT, deployment(replicas=-1)),
        apply(CM, cm(data={"a b": "c"})),
        apply(CM, cm(labels={"a b": "c"})),
    ],
    "an existing object, to nothing": [ONE, apply(CM, cm())],
    "from client-side apply": [
        post(
            f"{CMS}?fieldManager=kubectl-client-side-apply",
            cm(
                data={"a": "1", "b": "2"},
                annotations={
                    "kubectl.kubernetes.io/last-applied-configuration": '{"apiVersion":"v1","data":{"a":"1","b":"2"},'
                    '"kind":"ConfigMap","metadata":{"annotations":{},"name":"one","namespace":"{ns}"}}\n'
                },
            ),
        ),
        apply(CM, cm(data={"a": "2"}), manager="kubectl"),
        apply(CM, cm(data={"a": "2"}), manager="kubectl", force=True),
    ],
    "as YAML": [apply(CM, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: 'yes'\n"), get(CM)],
    "of null": [
        apply(CM, cm(data={"a": None})),
        apply(CM, {**cm(), "data": None}),
        apply(CM, {**cm(), "metadata": None}),
    ],
    "a Service": [
        apply(
            SERVICE,
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}},
        ),
        apply(
            SERVICE,
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "s"},
                "spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "protocol": "TCP"}]},
            },
        ),
        apply(
            SERVICE,
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"name": "x"}]}},
        ),
    ],
}

DELETIONS: dict[str, Sequence[Request]] = {
    "one": [ONE, delete(CM), delete(CM), get(CM)],
    "with options in the query": [ONE, delete(f"{CM}?propagationPolicy=Background&gracePeriodSeconds=5")],
    "with options of another kind": [ONE, delete(CM, {"kind": "ConfigMap", "apiVersion": "v1"})],
    "with options of a group": [ONE, delete(CM, {"kind": "DeleteOptions", "apiVersion": "apps/v1"})],
    "with options that are none": [ONE, delete(CM, "[]"), delete(CM, "{"), delete(CM, '"x"'), delete(CM, "null")],
    "with unknown options": [ONE, delete(CM, {"foo": 1})],
    "dry": [ONE, delete(f"{CM}?dryRun=All"), get(CM), delete(CM, {"dryRun": ["All"]}), get(CM)],
    "preconditions": [
        post(CMS, cm(), keep={"uid": "metadata.uid", "then": "metadata.resourceVersion"}),
        delete(CM, {"preconditions": {"uid": "x"}}),
        delete(CM, {"preconditions": {"resourceVersion": "1"}}),
        delete(CM, {"preconditions": {"uid": "${uid}", "resourceVersion": "${then}"}}),
    ],
    "a policy there is not": [ONE, delete(CM, {"propagationPolicy": "Foo"}), delete(f"{CM}?propagationPolicy=Foo")],
    "two policies": [ONE, delete(CM, {"propagationPolicy": "Orphan", "orphanDependents": True})],
    "orphans of old": [ONE, delete(CM, {"orphanDependents": True}), get(CM)],
    "no orphans of old": [ONE, delete(CM, {"orphanDependents": False}), get(CM)],
    "foreground": [ONE, delete(CM, {"propagationPolicy": "Foreground"}), delete(CM), get(CM)],
    "orphans": [
        ONE,
        delete(CM, {"propagationPolicy": "Orphan"}),
        delete(CM, {"propagationPolicy": "Background"}),
        get(CM),
    ],
    "one policy, then another": [
        post(CMS, cm(finalizers=["a.io/b"])),
        delete(CM, {"propagationPolicy": "Foreground"}),
        delete(CM, {"propagationPolicy": "Orphan"}),
        delete(CM, {"propagationPolicy": "Background"}),
    ],
    "a negative grace": [ONE, delete(f"{CM}?gracePeriodSeconds=-1")],
    "a grace that is none": [ONE, delete(f"{CM}?gracePeriodSeconds=x"), delete(CM, {"gracePeriodSeconds": "x"})],
    "finalizers": [
        post(CMS, cm(finalizers=["a.io/b", "c.io/d"], data={"a": "1"})),
        delete(CM),
        delete(CM),
        merge(CM, {"data": {"a": "2"}}),
        merge(CM, {"metadata": {"finalizers": ["a.io/b", "c.io/d", "e.io/f"]}}),
        merge(CM, {"metadata": {"finalizers": ["c.io/d"]}}),
        post(CMS, cm()),
        merge(CM, {"metadata": {"deletionTimestamp": None}}),
        merge(CM, {"metadata": {"finalizers": None}}),
        get(CM),
    ],
    "finalizers, taken away by an update": [
        post(CMS, cm(finalizers=["a.io/b"])),
        delete(CM),
        put(CM, cm()),
        get(CM),
    ],
    "finalizers, taken away dry": [
        post(CMS, cm(finalizers=["a.io/b"])),
        delete(CM),
        merge(f"{CM}?dryRun=All", {"metadata": {"finalizers": None}}),
        get(CM),
    ],
    "finalizers of a deployment": [
        post(DEPLOYMENTS, {**deployment(), "metadata": {"name": "web", "finalizers": ["a.io/b"]}}),
        delete(DEPLOYMENT),
        merge(DEPLOYMENT, {"spec": {"replicas": 3}}),
        merge(f"{DEPLOYMENT}/status", {"status": {"replicas": 3}}),
        merge(DEPLOYMENT, {"metadata": {"finalizers": []}}),
    ],
    "a deployment": [WEB, delete(DEPLOYMENT)],
    "a deployment, foreground": [WEB, delete(DEPLOYMENT, {"propagationPolicy": "Foreground"}), get(DEPLOYMENT)],
    "a Service": [
        post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
        delete(SERVICE),
    ],
    "an account, a quota, a claim": [
        post(f"{NS}/serviceaccounts", {"metadata": {"name": "x"}}),
        delete(f"{NS}/serviceaccounts/x"),
        post(f"{NS}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}),
        delete(f"{NS}/resourcequotas/q", ignore=("status",)),
        post(f"{NS}/podtemplates", {"metadata": {"name": "t"}, "template": pod()}),
        delete(f"{NS}/podtemplates/t"),
    ],
    "a pod that runs nowhere": [ACCOUNT, post(PODS, pod()), delete(POD), get(POD)],
    "a pod that runs": [
        ACCOUNT,
        post(PODS, pod(nodeName="n")),
        delete(POD),
        delete(POD),
        delete(f"{POD}?gracePeriodSeconds=50"),
        delete(f"{POD}?gracePeriodSeconds=5"),
        get(POD),
        delete(f"{POD}?gracePeriodSeconds=0"),
        get(POD),
    ],
    "a pod that has ended": [
        ACCOUNT,
        post(PODS, pod(nodeName="n")),
        merge(f"{POD}/status", {"status": {"phase": "Succeeded"}}),
        delete(POD),
    ],
    "a pod with a grace of its own": [
        ACCOUNT,
        post(PODS, pod(nodeName="n", terminationGracePeriodSeconds=7)),
        delete(POD),
    ],
    "a pod at once": [ACCOUNT, post(PODS, pod(nodeName="n")), delete(POD, {"gracePeriodSeconds": 0}), get(POD)],
    "a pod with a negative grace": [ACCOUNT, post(PODS, pod(nodeName="n")), delete(POD, {"gracePeriodSeconds": -3})],
    "a pod with finalizers": [
        ACCOUNT,
        post(PODS, {**pod(nodeName="n"), "metadata": {"name": "p", "finalizers": ["a.io/b"]}}),
        delete(f"{POD}?gracePeriodSeconds=0"),
        delete(f"{POD}?gracePeriodSeconds=0"),
        merge(POD, {"metadata": {"finalizers": None}}),
        get(POD),
    ],
    "a pod with finalizers and grace": [
        ACCOUNT,
        post(PODS, {**pod(nodeName="n"), "metadata": {"name": "p", "finalizers": ["a.io/b"]}}),
        delete(POD),
        merge(POD, {"metadata": {"finalizers": None}}),
        get(POD),
        delete(f"{POD}?gracePeriodSeconds=0"),
    ],
    "a pod, dry": [
        ACCOUNT,
        post(PODS, pod(nodeName="n")),
        delete(f"{POD}?dryRun=All"),
        delete(f"{POD}?dryRun=All&gracePeriodSeconds=0"),
        get(POD),
    ],
    "a collection": [
        post(CMS, cm("a", labels={"x": "1"})),
        post(CMS, cm("b", labels={"x": "2"}, finalizers=["a.io/b"])),
        post(CMS, cm("c", labels={"y": "2"})),
        delete(f"{CMS}?labelSelector=x&dryRun=All"),
        delete(f"{CMS}?labelSelector=x"),
        get(f"{CMS}?labelSelector=x"),
        delete(f"{CMS}?fieldSelector=metadata.name%3Dc"),
        get(f"{CMS}?labelSelector=y"),
        delete(f"{CMS}?labelSelector=none"),
    ],
    "a collection, badly": [
        delete(f"{CMS}?labelSelector=a%20b"),
        delete(f"{CMS}?fieldSelector=foo%3Dbar"),
        delete(CMS, {"propagationPolicy": "Foo"}),
        delete(f"{CMS}?limit=x"),
    ],
    "a collection of pods": [
        ACCOUNT,
        post(PODS, pod("a")),
        post(PODS, pod("b", nodeName="n")),
        delete(f"{PODS}?labelSelector=app%3Dweb"),
        get(PODS),
    ],
    "a collection of Services": [delete(SERVICES)],
    "a collection of namespaces": [delete("/api/v1/namespaces?labelSelector=none")],
}

GROUPS = {"create": CREATES, "replace": REPLACEMENTS, "patch": PATCHES, "apply": APPLIES, "delete": DELETIONS}


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(requests, id=f"{group}: {name}")
        for group, cases in GROUPS.items()
        for name, requests in cases.items()
    ],
)
async def test_a_write_has_the_same_effect(quiet_pair: ServerPair, requests: Sequence[Request]) -> None:
    await run_case(quiet_pair, requests)
