"""What the status of a policy says of the types its expressions do not fit is the same on both servers.

Policies only mean something together with bindings; none here has one.

Covers: kubewright.apiserver.admission.policies
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from tests.differential.servers.server_pair import Response, ServerClient, ServerPair

from kubewright.testing import time_limit

pytestmark = pytest.mark.real

JSON = dict[str, Any]
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NUMBER = re.compile(r"(?<=[a-z])[0-9]{1,9}(?=[.,)])")
"""A type is named after its kind, and a number by chance."""


def policy(*expressions: str, of: str = "apps/v1/deployments", **spec: Any) -> JSON:
    """A policy about resources, written `group,group/version/plural,plural`."""
    groups, versions, resources = (part.split(",") for part in of.split("/", 2))
    rule = {"apiGroups": groups, "apiVersions": versions, "resources": resources, "operations": ["*"]}
    validations = [{"expression": text} for text in expressions]
    return {"matchConstraints": {"resourceRules": [rule]}, "validations": validations, **spec}


def variable(name: str, expression: str) -> JSON:
    return {"name": name, "expression": expression}


FIELDS = (
    "object.spec.replicas < 5",
    "object.spec.nope < 5",
    "object.spec.replicas == '5'",
    "object.spec.nope < 5 && object.metadata.nah == 'x'",
    "oldObject.spec.nope == 1",
    "has(object.spec.nope)",
    "object.spec.?nope.orValue(1) == 1",
    "object.spec == 5",
    "object.spec.template.spec.containers == 1",
    "object.spec.template.spec.containers[0] == 1",
    "object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort == 'x' && p.nope == 1))",
    "object.metadata.labels == 1",
    "object.metadata.labels.all(k, object.metadata.labels[k] == 1)",
    "object.metadata.namespace == 1 || object.metadata.__namespace__ == 1",
    "object.metadata.creationTimestamp > 5",
    "object.spec.strategy.rollingUpdate.maxSurge == '25%' || object.spec.strategy.rollingUpdate.maxSurge.any",
    "object.spec.template.spec.containers.all(c, c.resources.limits['cpu'] == '1')",
    "object.spec.replicas\n  .startsWith(\n 'x') &&\n\tobject.x",
    "'ü€' == object.spec.nope",
    "dyn(object).spec.nope == 1",
)
VARIABLES = [
    variable("count", "object.spec.replicas"),
    variable("wrong", "object.spec.nope"),
    variable("spec", "object.spec"),
    variable("template", "variables.spec.template"),
    variable("names", "object.spec.template.spec.containers.map(c, c.name)"),
    variable("containers", "object.spec.template.spec.containers"),
]
MANY = "configmaps,cronjobs,daemonsets,deployments,endpoints,jobs,namespaces,nodes,pods,replicasets,secrets,services"
CASES: dict[str, JSON] = {
    "fields": policy(*FIELDS),
    "message": policy("true") | {"validations": [{"expression": "true", "messageExpression": "object.spec.bar + 'x'"}]},
    "kinds": policy(
        "object.spec.replicas < 5", of=",apps/v1/pods,deployments,replicasets,deployments/scale,pods/status"
    ),
    "wild-groups": policy("object.nope == 1", of="*/v1/deployments"),
    "wild-versions": policy("object.nope == 1", of="apps/*/deployments"),
    "wild-resources": policy("object.nope == 1", of="apps/v1/*"),
    "unknown": policy("object.nope == 1", of="apps/v1/widgets"),
    "any-group": policy("object.nope == 1", of="/v1/events"),
    "singular": policy("object.nope == 1", of="/v1/pod"),
    "ten": policy("object.nope == 1", of=f",apps,batch/v1/{MANY}"),
    "secret": policy("object.data['x'] == 'y'", "object.data['x'] == b'y'", "object.immutable == 1", of="/v1/secrets"),
    "circular": policy(
        "object.spec.versions.all(v, v.schema.openAPIV3Schema.properties['x'].properties['y'].nope == 1)",
        "object.spec.versions.all(v, v.schema.openAPIV3Schema.default == 1)",
        of="apiextensions.k8s.io/v1/customresourcedefinitions",
    ),
    "variables": policy(
        "variables.count == 'x'",
        "variables.wrong == 1",
        "variables.spec.nope == 1",
        "variables.template.nope == 1",
        "variables.names == [1]",
        "variables.containers[0].nope == 1",
        variables=VARIABLES,
    ),
    "params": policy(
        "object.spec.replicas < params.data",
        "params.nope == 1",
        "params.data['x'] == 1",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    ),
    "no-params": policy("params.nope == 1", paramKind={"apiVersion": "nope.example.io/v1", "kind": "Nope"}),
    "custom-params": policy("params.spec.sizes == 1", paramKind={"apiVersion": "types.example.io/v1", "kind": "Thing"}),
    "custom": policy(
        "object.spec.size == 'x'",
        "object.spec.nope == 1",
        "object.metadata.labels['a'] == 1",
        "object.spec.either == 1",
        "object.spec.free.x == 1",
        "object.spec.map.x == 1",
        "object.spec == 1",
        of="types.example.io/v1/things",
    ),
}
INSIDE: JSON = {
    "size": {"type": "integer"},
    "either": {"x-kubernetes-int-or-string": True},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
}
THING: JSON = {
    "metadata": {"name": "things.types.example.io"},
    "spec": {
        "group": "types.example.io",
        "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": INSIDE}},
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
async def checked(both_servers: tuple[ServerClient, ServerClient]) -> dict[str, tuple[Any, Any]]:
    """The statuses of all cases, the real server's first; all are checked at once."""
    pair = ServerPair(*both_servers, f"types-{uuid4().hex[:8]}")
    await pair.both("POST", DEFINITIONS, THING)
    paths = ("/apis/types.example.io/v1/things", "/apis/types.example.io/v1", "/openapi/v3/apis/types.example.io/v1")
    for path in paths:
        await asyncio.gather(
            *(_until(apiserver, path, lambda answer: answer.code == 200) for apiserver in both_servers)
        )
    for name, spec in CASES.items():
        answers = await pair.both("POST", POLICIES, {"metadata": {"name": f"{pair.namespace}-{name}"}, "spec": spec})
        assert [answer.code for answer in answers] == [201, 201], answers[0].tree
    found = {}
    for name in CASES:
        path = f"{POLICIES}/{pair.namespace}-{name}"
        real, embedded = [(await _until(apiserver, path, _is_checked)).tree["status"] for apiserver in both_servers]
        found[name] = real, embedded
        await pair.both("DELETE", path)
    await pair.both("DELETE", f"{DEFINITIONS}/things.types.example.io")
    return found


def _is_checked(answer: Response) -> bool:
    return "typeChecking" in answer.tree.get("status", {})


async def _until(apiserver: ServerClient, path: str, ready: Callable[[Response], bool]) -> Response:
    """Ask until the answer is like that."""
    async with time_limit(60):
        while True:
            answer = await apiserver.send("GET", path, None, {}, 30.0)
            if ready(answer):
                return answer
            await asyncio.sleep(0.02)


def _shown(status: JSON) -> JSON:
    warnings = status["typeChecking"].get("expressionWarnings", [])
    said = {warning["fieldRef"]: _NUMBER.sub("<number>", warning["warning"]) for warning in warnings}
    return {**status, "typeChecking": said}


@pytest.mark.parametrize("name", CASES)
async def test_expressions_that_do_not_fit_are_named(name: str, checked: dict[str, tuple[Any, Any]]) -> None:
    real, embedded = checked[name]

    assert _shown(embedded) == _shown(real)


async def test_a_policy_is_checked_again_when_it_is_another(pair: ServerPair) -> None:
    path, name = POLICIES, f"{pair.namespace}-changed"
    await pair.both("POST", path, {"metadata": {"name": name}, "spec": policy("object.spec.nope == 1")})
    both = (pair.real, pair.embedded)
    first = [(await _until(apiserver, f"{path}/{name}", _is_checked)).tree for apiserver in both]
    for apiserver, tree in zip(both, first, strict=True):
        tree["spec"]["validations"] = [{"expression": "object.spec.replicas == 1"}]
        await ServerPair(apiserver, apiserver, pair.namespace).both("PUT", f"{path}/{name}", tree)
    second = [
        (await _until(apiserver, f"{path}/{name}", lambda answer: _observed(answer) == 2)).tree for apiserver in both
    ]
    await pair.both("DELETE", f"{path}/{name}")

    assert second[1]["status"] == second[0]["status"]


def _observed(answer: Response) -> int:
    return int(answer.tree["status"]["observedGeneration"])
