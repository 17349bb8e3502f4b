"""What the server tells of its own work: which FlowSchema a request fell under, whether levels exist, its checks.

Covers: kubewright.apiserver.front
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from tests.differential.servers.server_pair import ServerClient, open_server
from tests.planes import Plane
from tests.waiting import present

from kubewright import Client
from kubewright.api.codec import from_tree
from kubewright.k8s.flowcontrol.v1 import FlowSchema, PriorityLevelConfiguration

WHO = "Impersonate-User"
GROUP = "Impersonate-Group"


@pytest.fixture(scope="module")
async def raw(plane: Plane) -> AsyncIterator[ServerClient]:
    """Requests by hand."""
    found = open_server(plane.kubeconfig)
    yield found
    await found.session.close()


async def flow_of(
    raw: ServerClient, client: Client, path: str, *, user: str = "", groups: str = "", method: str = "GET"
) -> str:
    """The names of the FlowSchema and the level a request fell under."""
    said = {WHO: user, GROUP: groups} if groups else {WHO: user} if user else {}
    answer = await raw.send(method, path, b"{}" if method == "POST" else None, said, 30.0)
    schema, level = (answer.headers.get(f"X-Kubernetes-Pf-{kind}-Uid") for kind in ("Flowschema", "Prioritylevel"))
    schemas = {item.metadata.uid: item.metadata.name for item in await client.list(FlowSchema)}
    levels = {item.metadata.uid: item.metadata.name for item in await client.list(PriorityLevelConfiguration)}
    return f"{schemas.get(schema or '')} {levels.get(level or '')}"


@pytest.mark.parametrize(
    ("path", "user", "groups", "flow"),
    [
        ("/api/v1/nodes", "", "", "exempt exempt"),
        ("/healthz", "jo", "system:authenticated", "probes exempt"),
        ("/api/v1/pods", "jo", "system:authenticated", "global-default global-default"),
        ("/nono", "jo", "system:authenticated", "global-default global-default"),
        ("/api/v1/pods", "jo", "others", "global-default global-default"),
        ("/api/v1/pods", "system:kube-scheduler", "system:authenticated", "kube-scheduler workload-high"),
        ("/api/v1/nodes/a", "system:node:a", "system:nodes", "system-node-high node-high"),
        ("/api/v1/pods", "system:node:a", "system:nodes", "system-nodes system"),
        ("/api/v1/pods", "system:serviceaccount:kube-system:a", "", "kube-system-service-accounts workload-high"),
        ("/api/v1/pods", "system:serviceaccount:b:a", "", "service-accounts workload-low"),
    ],
)
async def test_the_first_flow_schema_that_fits_counts(
    raw: ServerClient, client: Client, path: str, user: str, groups: str, flow: str
) -> None:
    assert await flow_of(raw, client, path, user=user, groups=groups) == flow


async def test_a_flow_schema_without_its_level_is_dangling_and_counts_for_nothing(
    raw: ServerClient, client: Client
) -> None:
    name, who = f"f-{uuid4().hex[:8]}", f"u-{uuid4().hex[:8]}"
    rule = {
        "subjects": [{"kind": "User", "user": {"name": who}}],
        "resourceRules": [
            {"verbs": ["list"], "apiGroups": [""], "resources": ["pods", "services"], "namespaces": ["default"]}
        ],
    }
    spec = {"matchingPrecedence": 50, "priorityLevelConfiguration": {"name": name}, "rules": [rule]}
    await client.create(from_tree(FlowSchema, {"metadata": {"name": name}, "spec": spec}))
    await says(client, name, f'"{name}" but there is no such object')
    assert await flow_of(raw, client, "/api/v1/namespaces/default/pods", user=who) == "global-default global-default"

    limited = {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}
    level = await client.create(from_tree(PriorityLevelConfiguration, {"metadata": {"name": name}, "spec": limited}))
    await says(client, name, f'"{name}" and it exists')
    assert await flow_of(raw, client, "/api/v1/namespaces/default/pods", user=who) == f"{name} {name}"
    for other in ("/api/v1/pods", "/api/v1/namespaces/default/pods/x", "/api/v1/namespaces/default/secrets"):
        assert await flow_of(raw, client, other, user=who) == "global-default global-default"

    await client.delete(FlowSchema, name)
    await client.delete(level)


async def says(client: Client, name: str, text: str) -> None:
    """Wait until a FlowSchema says this of its level."""

    def holds(have: dict[str, FlowSchema]) -> bool:
        return any((one.message or "").endswith(text) for one in have[name].status.conditions or ())

    await present(client, FlowSchema, "", holds, seconds=20)


async def test_the_checks_that_were_asked_for_can_be_scraped_alone(raw: ServerClient) -> None:
    async def told() -> str:
        answer = await raw.send("GET", "/metrics/slis", None, {}, 30.0)
        assert answer.code == 200
        return answer.body.decode()

    def asked(told: str, check: str) -> int:
        found = re.search(rf'checks_total{{name="{check}",status="success",type="livez"}} (\d+)', told)
        return int(found[1]) if found else 0

    before = await told()
    for path in ("/livez", "/livez?exclude=etcd", "/livez/ping"):
        assert (await raw.send("GET", path, None, {}, 30.0)).code == 200
    after = await told()

    # One that is asked for by its name is not counted.
    assert {check: asked(after, check) - asked(before, check) for check in ("ping", "etcd")} == {"ping": 2, "etcd": 1}
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1' in after
    assert "apiserver_request_total" not in after
    assert (await raw.send("GET", "/metrics/nono", None, {}, 30.0)).code == 404
