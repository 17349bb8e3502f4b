"""An update or an apply that changes nothing writes nothing, and which ones change something: alike on both servers.

An operator that writes its objects in every reconcile rests only if the server keeps the version of what is as it was.
What changes nothing is not obvious: defaults, Go's types and allocated values make an object of a manifest.

Covers: kubewright.apiserver.verbs, kubewright.apiserver.builtin
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.builders.definitions import definition_tree, version_tree
from tests.builders.services import service_tree
from tests.differential.servers.rewrites import PairOfObjects, field_paths, samples, with_value
from tests.differential.servers.server_pair import ServerPair, get, post, run_case

from kubewright._base.yaml import load_all

pytestmark = [pytest.mark.real, pytest.mark.slow]

Tree = dict[str, Any]

# Nothing counts for a quota on the real servers of these tests, which have no controllers.
SAMPLES = samples(
    service_tree("service-least"),
    service_tree(
        "service-most",
        type="LoadBalancer",
        selector={"app": "web"},
        ports=[{"name": "a", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "http"}],
        externalTrafficPolicy="Local",
        loadBalancerSourceRanges=["10.0.0.0/8"],
        externalIPs=["1.2.3.4"],
        sessionAffinity="ClientIP",
        publishNotReadyAddresses=True,
        trafficDistribution="PreferClose",
        allocateLoadBalancerNodePorts=True,
        loadBalancerClass="example.com/c",
    ),
    service_tree("service-headless", clusterIP="None"),
    service_tree("service-external", type="ExternalName", externalName="a.b"),
)


KNOWN = {
    "networking.k8s.io/v1 Ingress ingress-most": ("spec.rules empty",),  # an error of `spec` that shows the rules
    "v1 Secret secret-most": ("data.c null",),  # an empty value is not null in Go, though both are stored alike
}


async def next_second() -> None:
    """Return in another second than the call: times in managedFields are whole seconds."""
    begun = int(time.time())
    while int(time.time()) == begun:  # noqa: ASYNC110  # a clock has no event
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("name", [name for name in SAMPLES if "ResourceQuota" not in name])
async def test_an_update_without_a_field_ends_alike(quiet_pair: ServerPair, name: str) -> None:
    one = PairOfObjects(quiet_pair, SAMPLES[name])
    found = await one.create()
    for path in field_paths(one.live[0], set()):
        for word in ("left out", "null", "empty"):
            what = f"{'.'.join(map(str, path))} {word}"
            if what in KNOWN.get(name, ()):
                continue
            try:
                trees = [with_value(tree, path, word) for tree in one.live]
            except (KeyError, TypeError, IndexError):
                found.append(f"{what}: not there")
                continue
            lines, wrote = await one.replace(trees, what)
            found += lines
            if wrote:
                found += (await one.replace(one.live, f"{what}, and back"))[0]

    assert not found, f"{len(found)} differences\n" + "\n".join(found)


# What people write and no server keeps as it is written: defaults inside of lists, other spellings, nothing at all.
MANIFESTS = samples(
    *load_all("""
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: subject}
roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: User, name: u}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: spellings, annotations: {a: ""}, labels: }
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, creationTimestamp: null}
    spec:
      nodeName: ""
      hostNetwork: false
      nodeSelector: {}
      tolerations: []
      containers:
      - name: a
        image: b
        command: null
        args: []
        env:
        - {name: EMPTY, value: ""}
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 1000m, memory: 1024Mi}, limits: {cpu: 2.0, memory: 2048Mi}}
        livenessProbe: {httpGet: {port: 80}, initialDelaySeconds: 0}
      volumes:
      - name: all
        projected:
          sources:
          - downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.labels}}]}
          - serviceAccountToken: {path: token}
          - configMap: {name: c, items: []}
      - {name: empty, emptyDir: null}
      - {name: host, hostPath: {path: /a}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: claims}
spec:
  serviceName: s
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}
  volumeClaimTemplates:
  - metadata: {name: c}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: ports}
spec: {podSelector: {}, ingress: [{ports: [{port: 80}], from: [{podSelector: {}}]}]}
---
apiVersion: v1
kind: Secret
metadata: {name: text}
stringData: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: ports}
spec: {ports: [{port: 80, name: web}, {port: 53, protocol: UDP, name: dns, targetPort: 53}], selector: }
"""),
    *SAMPLES.values(),
)
WAYS = ("apply", "patch", "replace")


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_written_again_a_second_later_is_kept_or_written_alike(quiet_pair: ServerPair, way: str) -> None:
    # kube-apiserver tells the empty list of this NetworkPolicy from none, and gives it a new generation each time.
    names = [name for name in MANIFESTS if "ResourceQuota" not in name and "NetworkPolicy policy-most" not in name]
    objects = [PairOfObjects(quiet_pair, MANIFESTS[name]) for name in names]
    found = [line for one in objects for line in await one.create()]
    for one in objects:
        found += (await one.write(way))[0]
    await next_second()
    kept = 0
    for one in objects:
        lines, wrote = await one.write(way)
        found += lines
        kept += one.code == 200 and not wrote

    assert not found, f"{len(found)} differences\n" + "\n".join(found)
    assert kept > len(names) * {"apply": 0.9, "patch": 0.9, "replace": 0.5}[way]


SCHEMA: Tree = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "default": {},
            "properties": {
                "size": {"type": "integer", "default": 3},
                "name": {"type": "string", "nullable": True},
                "port": {"x-kubernetes-int-or-string": True},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "list": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["key"],
                    "items": {
                        "type": "object",
                        "required": ["key"],
                        "properties": {"key": {"type": "string"}, "value": {"type": "string", "default": "v"}},
                    },
                },
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object"}},
                },
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    },
}
THINGS: dict[str, Tree] = {
    "least": {},
    "null": {"spec": None},
    "empty": {"spec": {"any": {}, "list": [], "name": ""}, "status": {}},
    "nulls": {"spec": {"any": {"a": None, "b": {"c": None}}, "name": None, "size": None}},
    "most": {
        "spec": {
            "size": 3,
            "port": "80",
            "any": {"a": [], "b": {}, "c": [{"d": None}]},
            "list": [{"key": "a"}, {"key": "b", "value": "v"}],
            "template": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a", "labels": None, "x": 1},
                "spec": {},
            },
        },
        "status": {"ready": True},
    },
}


@pytest.mark.parametrize("way", ["apply", "patch", "replace"])
async def test_a_custom_resource_written_again_a_second_later_is_kept_alike(quiet_pair: ServerPair, way: str) -> None:
    group = f"{quiet_pair.namespace}.example.io"
    collection = f"/apis/{group}/v1/namespaces/{{ns}}/things"
    crd = definition_tree(
        "things", group, kind="Thing", versions=[version_tree(schema=SCHEMA, subresources={"status": {}})]
    )
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await run_case(quiet_pair, [post(definitions, crd, ignore=("status",)), get(collection, quiet=True, until=is_list)])
    found: list[str] = []
    objects = []
    for name, parts in THINGS.items():
        tree = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": name}, **parts}
        objects.append(PairOfObjects(quiet_pair, tree, collection=collection))
        found += await objects[-1].create()
    for one in objects:
        found += (await one.write(way))[0]
    await next_second()
    kept = 0
    for one in objects:
        lines, wrote = await one.write(way)
        found += lines
        kept += one.code == 200 and not wrote

    assert not found, f"{len(found)} differences\n" + "\n".join(found)
    assert kept >= len(objects) - 1  # an applied null is refused


def is_list(tree: Any) -> bool:
    """Whether the kind is served by now."""
    return isinstance(tree, dict) and tree.get("kind") == "ThingList"
