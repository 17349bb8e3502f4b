"""Namespaces begin with what every namespace has, and end when they are empty.

Covers: kubewright.cluster.controller_manager
"""

from __future__ import annotations

import pytest
from tests.builders.pods import pod
from tests.builders.widgets import Widget, widget
from tests.cluster.simulated_nodes.conftest import is_ready
from tests.planes import fresh_namespace
from tests.waiting import present, reach

from kubewright import Client
from kubewright.api.codec import from_tree
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.apiregistration.v1 import APIService
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Pod, ServiceAccount

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


async def test_a_namespace_is_deleted_with_its_contents(client: Client) -> None:
    name = await fresh_namespace(client)
    await present(client, ServiceAccount, name, lambda have: "default" in have)
    await client.create(ConfigMap.named("settings", name))
    await client.create(widget("thing", name))
    await reach(client, await client.create(pod("web", name)), is_ready)

    await client.delete(Namespace, name)

    await present(client, Namespace, "", lambda have: name not in have, seconds=60)
    assert (await client.list(Widget, namespace=name)).items == []


async def test_the_conditions_say_what_remains_in_a_namespace(client: Client) -> None:
    name = await fresh_namespace(client)
    held = widget("held", name)
    held.metadata.finalizers = ["example.io/hold"]
    await client.create(held)

    await client.delete(Namespace, name)

    wanted = {
        "NamespaceDeletionDiscoveryFailure": ("False", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "All legacy kube types successfully parsed"),
        "NamespaceDeletionContentFailure": (
            "False", "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True", "Some resources are remaining: widgets.contract.example.io has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "Some content in the namespace has finalizers remaining: example.io/hold in 1 resource instances",
        ),
    }  # fmt: skip

    def said(have: dict[str, Namespace]) -> bool:
        # What was put into it while it was told to go may be counted at first.
        conditions = have[name].status.conditions or ()
        return {item.type: (item.status, item.message) for item in conditions} == wanted

    found = (await present(client, Namespace, "", said, seconds=60))[name]
    assert found.status.phase == "Terminating"

    await client.patch_by_name(Widget, held.key, {"metadata": {"finalizers": None}})

    await present(client, Namespace, "", lambda have: name not in have, seconds=60)


async def test_pods_are_deleted_before_the_other_contents_of_a_namespace(client: Client) -> None:
    name = await fresh_namespace(client)
    await present(client, ServiceAccount, name, lambda have: "default" in have)
    held = pod("web", name)
    held.metadata.finalizers = ["example.io/hold"]
    await client.create(ConfigMap.named("settings", name))
    await reach(client, await client.create(held), is_ready)

    await client.delete(Namespace, name)
    await present(client, Namespace, "", lambda have: bool(have[name].status.conditions), seconds=60)

    assert (await client.get(Pod, held.key)).metadata.deletion_timestamp is not None
    assert (await client.get(ConfigMap, "settings", namespace=name)).metadata.deletion_timestamp is None

    await client.patch_by_name(Pod, held.key, {"metadata": {"finalizers": None}})

    await present(client, Namespace, "", lambda have: name not in have, seconds=60)


async def test_the_default_service_account_is_created_again(client: Client, namespace: str) -> None:
    first = await client.get(ServiceAccount, "default", namespace=namespace)

    await client.delete(first)

    await present(
        client,
        ServiceAccount,
        namespace,
        lambda have: "default" in have and have["default"].metadata.uid != first.metadata.uid,
    )


async def test_the_certificate_of_the_server_is_in_every_namespace_and_is_restored(
    client: Client, bare_cluster: RealCluster, namespace: str
) -> None:
    wanted = {"ca.crt": bare_cluster.ca_data.decode()}

    def is_there(have: dict[str, ConfigMap]) -> bool:
        return "kube-root-ca.crt" in have and have["kube-root-ca.crt"].data == wanted

    await present(client, ConfigMap, namespace, is_there)
    await client.patch_by_name(ConfigMap, "kube-root-ca.crt", {"data": {"ca.crt": "other"}}, namespace=namespace)
    await present(client, ConfigMap, namespace, is_there)
    await client.delete(ConfigMap, "kube-root-ca.crt", namespace=namespace)

    await present(client, ConfigMap, namespace, is_there)


async def test_a_namespace_stays_while_an_aggregated_api_server_does_not_respond(client: Client) -> None:
    name = await fresh_namespace(client)
    group = f"{name}.example.io"
    service = {"name": "away", "namespace": name}
    spec = {"group": group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10, "service": service,
            "insecureSkipTLSVerify": True}  # fmt: skip
    await client.create(from_tree(APIService, {"metadata": {"name": f"v1.{group}"}, "spec": spec}))
    while not (await client.discovery.resources(refresh=True)).stale:
        pass

    await client.delete(Namespace, name)

    def is_said(have: dict[str, Namespace]) -> bool:
        return any(item.status == "True" for item in have[name].status.conditions or ())

    said = (await present(client, Namespace, "", is_said, seconds=60))[name].status.conditions or ()
    assert [(item.type, item.reason, item.message) for item in said if item.status == "True"] == [
        (
            "NamespaceDeletionDiscoveryFailure",
            "DiscoveryFailed",
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
            f"{group}/v1: stale GroupVersion discovery: {group}/v1",
        )
    ]

    await client.delete(APIService, f"v1.{group}")
    await present(client, Namespace, "", lambda have: name not in have, seconds=60)
