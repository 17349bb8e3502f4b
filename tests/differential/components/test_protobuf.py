"""Protobuf against the real server: it takes our bodies, we read its answers, both refuse broken ones alike.

Covers: kubewright.apiserver.wire.protobuf
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.apiserver.wire.test_protobuf import broken_bodies

from kubewright import Client, Config, connect
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.wire.protobuf import (
    MEDIA_TYPE,
    STREAM_MEDIA_TYPE,
    decode,
    decode_body,
    decode_watch_event,
    encode,
    encode_watch_event,
)
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.client.transport.transport import HttpRequest, HttpResponse
from kubewright.cluster.planes.real import RealCluster
from kubewright.testing import time_limit

pytestmark = [pytest.mark.real, pytest.mark.slow]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
POD_SPEC: dict[str, Any] = {
    "containers": [
        {
            "name": "web",
            "image": "web:1",
            "args": ["--port", "80"],
            "env": [
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ],
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
    ],
    "volumes": [{"name": "v", "configMap": {"name": "m", "optional": True}}],
    "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 0, "effect": "NoExecute"}],
}
OBJECTS: dict[str, dict[str, Any]] = {
    CONFIG_MAPS: {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "ü"}, "binaryData": {"b": "AAEC"}},
    "/api/v1/namespaces/default/secrets": {"apiVersion": "v1", "kind": "Secret", "data": {"a": "c2VjcmV0", "b": ""}},
    "/api/v1/namespaces/default/services": {
        "apiVersion": "v1",
        "kind": "Service",
        "spec": {"clusterIP": "None", "ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}},
    },
    "/api/v1/namespaces/default/resourcequotas": {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "spec": {"hard": {"pods": "1000", "requests.cpu": "1.5", "requests.memory": "2048Mi"}},
    },
    "/apis/apps/v1/namespaces/default/deployments": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"rollingUpdate": {"maxSurge": "30%", "maxUnavailable": 1}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC},
        },
    },
    "/apis/batch/v1/namespaces/default/cronjobs": {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "spec": {
            "schedule": "0 0 * * *",
            "suspend": True,
            "jobTemplate": {"spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}},
        },
    },
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "spec": {"holderIdentity": "me", "renewTime": "2024-05-01T10:00:00.123456Z", "leaseDurationSeconds": 15},
    },
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
    },
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "wires.protobuf.example.com"},
        "spec": {
            "group": "protobuf.example.com",
            "scope": "Namespaced",
            "names": {"plural": "wires", "kind": "Wire"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "a": {"type": "array", "items": {"type": "number", "maximum": 2.5}, "default": [1]},
                                "b": {"type": "object", "additionalProperties": {"type": "string", "enum": ["x", "y"]}},
                            },
                        }
                    },
                }
            ],
        },
    },
}
LISTS = [
    "/api/v1/namespaces",
    "/api/v1/services",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
]


@pytest.fixture(scope="module")
async def client(real_cluster: RealCluster) -> AsyncIterator[Client]:
    async with connect(Config.load(kubeconfig=real_cluster.kubeconfig)) as client:
        yield client


async def ask(client: Client, method: str, path: str, **options: Any) -> HttpResponse:
    """An answer of any status."""
    body, accept = options.get("body"), options.get("accept", "application/json")
    headers = (("Accept", accept), ("Content-Type", options.get("kind", "application/json")))
    query = (*options.get("query", ()), *((("dryRun", "All"),) if method == "POST" else ()))
    return await client.transport.send(
        HttpRequest(method=method, path=path, query=query, headers=headers, body=body, timeout=20)
    )


def settled(tree: dict[str, Any]) -> dict[str, Any]:
    """Without what is new in each answer."""
    once = ("uid", "creationTimestamp", "managedFields", "resourceVersion")
    metadata = {name: value for name, value in tree["metadata"].items() if name not in once}
    return {**tree, "metadata": metadata}


@pytest.mark.parametrize("path", OBJECTS)
async def test_an_object_sent_both_ways_becomes_the_same(client: Client, path: str) -> None:
    tree = {**OBJECTS[path], "metadata": {"name": "wire", **OBJECTS[path].get("metadata", {})}}
    body = encode(tree, tree["apiVersion"], tree["kind"])

    plain = await ask(client, "POST", path, body=json.dumps(tree).encode())
    binary = await ask(client, "POST", path, body=body, kind=MEDIA_TYPE)
    again = await ask(client, "POST", path, body=json.dumps(decode(body)).encode())

    assert [plain.status, binary.status, again.status] == [201, 201, 201], (plain.body, binary.body, again.body)
    assert settled(json.loads(binary.body)) == settled(json.loads(plain.body))
    assert settled(json.loads(again.body)) == settled(json.loads(plain.body))


@pytest.mark.parametrize("path", LISTS)
async def test_answers_are_read_and_written_byte_for_byte(client: Client, path: str) -> None:
    async with time_limit(60):
        while True:  # until nothing has changed in between: controllers may still clean up after other tests
            before = json.loads((await ask(client, "GET", path)).body)["items"]
            binary = await ask(client, "GET", path, accept=MEDIA_TYPE)
            if json.loads((await ask(client, "GET", path)).body)["items"] == before:
                break

    tree = decode(binary.body)

    assert tree["items"] == before
    assert encode(tree, tree["apiVersion"], tree["kind"]) == binary.body


async def test_a_refusal_is_read_and_written_byte_for_byte(client: Client) -> None:
    answer = await ask(client, "GET", "/api/v1/namespaces/nowhere", accept=MEDIA_TYPE)

    status = decode(answer.body)

    assert (status["kind"], status["reason"], status["code"]) == ("Status", "NotFound", 404)
    assert encode(status, "v1", "Status") == answer.body


async def test_the_frames_of_a_watch_are_read_and_written_byte_for_byte(client: Client) -> None:
    query = (("watch", "1"), ("timeoutSeconds", "1"))
    names: set[str] = set()

    async with time_limit(60):
        while not names >= {"default", "kube-system"}:  # a busy server may not get that far within a second
            answer = await ask(client, "GET", "/api/v1/namespaces", accept=STREAM_MEDIA_TYPE, query=query)
            assert answer.headers["content-type"] == STREAM_MEDIA_TYPE
            rest = answer.body
            while rest:
                size = 4 + int.from_bytes(rest[:4], "big")
                event, tree = decode_watch_event(rest[:size])
                names.add(tree["metadata"]["name"])
                assert encode_watch_event(event, tree) == rest[:size]
                rest = rest[size:]


@pytest.mark.parametrize("body", broken_bodies())
async def test_broken_bodies_are_refused_with_the_same_words(client: Client, body: bytes) -> None:
    answer = await ask(client, "POST", CONFIG_MAPS, body=body, kind=MEDIA_TYPE)

    with pytest.raises(StatusError) as refusal:
        decode_body(body, kind=GroupVersionKind("", "v1", "ConfigMap"))

    assert refusal.value.status == json.loads(answer.body)
