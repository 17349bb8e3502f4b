"""A manager on a server: its lease, its events, who may read its metrics, and the client it is given.

Covers: kubewright.manager, kubewright.controllers
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from kubewright import Client, Config, Context, Resource, Spec, Status, connect, controller
from kubewright._base.http.messages import Request
from kubewright.cluster.planes.real import RealCluster
from kubewright.controllers.event_recorder import EventRecorder
from kubewright.errors import LeadershipLost
from kubewright.k8s.coordination.v1 import Lease
from kubewright.k8s.core.v1 import ConfigMap, Namespace
from kubewright.k8s.events.v1 import Event
from kubewright.manager.endpoints.metrics_authorizer import MetricsAuthorizer
from kubewright.manager.manager import Manager
from kubewright.manager.options import ManagerOptions
from kubewright.testing import time_limit

WAIT = 90.0
"""Long enough on a machine that has much else to do."""


async def test_a_manager_on_the_server_leads_records_events_and_gives_the_lease_back(
    client: Client, namespace: str, plane: RealCluster
) -> None:
    options = ManagerOptions(
        name="shop", namespace=namespace, leader_election=True, lease_duration=300.0, renew_deadline=200.0,
        retry_period=0.2, health_address="127.0.0.1:0", metrics_address="127.0.0.1:0", block_limit=0.0,
    )  # fmt: skip
    done = asyncio.Event()
    manager = Manager(config=Config.load(kubeconfig=plane.kubeconfig), options=options)
    recorder = manager.recorder("web")

    async def work() -> None:
        created = await manager.client.create(ConfigMap.named("made", namespace))
        for _ in range(3):
            recorder.record(created, "Made", "it is there", related=created)
        recorder.record(await manager.client.get(Namespace, namespace), "Seen", "no namespace of its own")
        done.set()

    manager.add(work)
    async with manager, time_limit(WAIT):
        await done.wait()

    lease = await client.get(Lease, "shop", namespace=namespace)
    events = (await client.list(Event, namespace=namespace)).items
    assert lease.spec.holder_identity == ""
    assert [(event.reason, event.reporting_controller) for event in events] == [("Made", "web")]
    assert events[0].series is not None
    assert events[0].series.count == 3
    elsewhere = (await client.list(Event, namespace="default")).items
    assert [event.reason for event in elsewhere if event.regarding and event.regarding.name == namespace] == ["Seen"]


async def test_repeated_events_become_a_series_on_the_server(client: Client, namespace: str) -> None:
    pod = ConfigMap.named("about", namespace)
    recorder = EventRecorder(client, controller="contract")
    running = asyncio.create_task(recorder.run())
    recorder.record(pod, "Failed", "again", type="Warning")
    async with client.watch(Event, namespace=namespace) as seen:
        async for event in seen:
            assert event.object.series is None
            break
    for _ in range(5):
        recorder.record(pod, "Failed", "again", type="Warning")
    recorder.stop()
    await running

    (event_now,) = (await client.list(Event, namespace=namespace)).items
    assert event_now.series is not None
    assert event_now.series.count == 6
    assert recorder.dropped == 0


async def test_access_to_metrics_is_decided_by_the_cluster(client: Client, namespace: str) -> None:
    async def token_of(name: str) -> str:
        await client.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts",
            body=b'{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"%s"}}' % name.encode(),
        )
        answer = await client.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            body=b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}',
        )
        token: str = json.loads(answer.body)["status"]["token"]
        return token

    async def status_for(token: str) -> int:
        request = Request(method="GET", target="/metrics", headers={"authorization": f"Bearer {token}"})
        refusal = await MetricsAuthorizer(client).refusal(request)
        return 200 if refusal is None else refusal.code

    async def grant(name: str) -> str:
        title = f"metrics-{uuid4().hex[:8]}"
        rules: dict[str, Any] = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": title},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        }
        binding: dict[str, Any] = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": title},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": title},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        root = "/apis/rbac.authorization.k8s.io/v1"
        await client.request("POST", f"{root}/clusterroles", body=json.dumps(rules).encode())
        await client.request("POST", f"{root}/clusterrolebindings", body=json.dumps(binding).encode())
        return title

    reader, foreign = await token_of("reader"), await token_of("foreign")
    title = await grant("reader")
    try:
        assert await status_for("nonsense") == 401
        assert await status_for(foreign) == 403
        async with time_limit(WAIT):  # the authorizer learns of the binding through a watch of its own
            status = await status_for(reader)
            while status == 403:
                status = await status_for(reader)
        assert status == 200
    finally:
        for resource in ("clusterroles", "clusterrolebindings"):
            await client.request("DELETE", f"/apis/rbac.authorization.k8s.io/v1/{resource}/{title}")


async def test_the_client_given_by_connect_works_too(plane: RealCluster, namespace: str) -> None:
    async with connect(Config.load(kubeconfig=plane.kubeconfig)) as own:
        options = ManagerOptions(
            name="given", namespace=namespace, leader_election=True, health_address="0", metrics_address="0"
        )
        manager = Manager(client=own, options=options)
        async with manager:
            assert manager.elector is not None
            async with time_limit(WAIT):
                await manager.elector.wait_elected()
            await manager.client.create(ConfigMap.named("made", namespace))

        with pytest.raises(LeadershipLost):
            await manager.client.create(ConfigMap.named("late", namespace))
        assert (await own.get(ConfigMap, "made", namespace=namespace)).metadata.name == "made"


class Nowhere(Resource[Spec, Status], group="nowhere.example.io", version="v1"):
    """A kind that nobody installs."""


async def test_a_controller_of_a_kind_that_is_not_installed_does_not_hold_up_the_start(
    plane: RealCluster, namespace: str
) -> None:
    seen = asyncio.Event()

    @controller(Nowhere)
    async def wait(nowhere: Nowhere, ctx: Context) -> None: ...

    @controller(ConfigMap)
    async def look(config: ConfigMap, ctx: Context) -> None:
        seen.set()

    options = ManagerOptions(name="shop", namespace=namespace, health_address="0", metrics_address="0", block_limit=0.0)
    async with Manager(wait, look, config=plane.config, options=options) as manager:
        assert manager.state == "running"
        async with time_limit(WAIT):
            await seen.wait()
        assert [each.name for each in manager.controllers if not each.ready.is_set()] == ["nowhere"]
