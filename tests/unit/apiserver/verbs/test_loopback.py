"""The server's requests of itself: one user, and the same steps as for everybody."""

from __future__ import annotations

import pytest

from kubewright.apiserver.server import ApiServer
from kubewright.apiserver.verbs.loopback import LOOPBACK_USER
from kubewright.apiserver.wire.status_errors import StatusError


@pytest.fixture
async def server() -> ApiServer:
    server = ApiServer()
    await server.loopback.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    return server


async def test_the_user_is_that_of_kube_apiserver(server: ApiServer) -> None:
    requests = server.catalog.builtin("certificates.k8s.io", "certificatesigningrequests")
    spec = {"request": "", "signerName": "example.com/s", "usages": ["client auth"]}
    tree = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": spec}

    with pytest.raises(StatusError) as refused:
        await server.loopback.create(requests, {**tree, "metadata": {"name": "c"}})

    assert refused.value.reason == "Invalid"  # it is validated like any other
    assert LOOPBACK_USER.tree() == {
        "username": "system:apiserver",
        "groups": ["system:authenticated", "system:masters"],
    }


async def test_an_object_is_created_edited_applied_and_deleted(server: ApiServer) -> None:
    maps = server.catalog.builtin("", "configmaps")
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}}
    loopback = server.loopback

    created = await loopback.create(maps, {**tree, "data": {"a": "1"}})
    again = await loopback.ensure({**tree, "data": {"a": "other"}})
    await loopback.edit(maps, "default/m", lambda live: {**live, "data": {"a": "2"}}, manager="editor")
    await loopback.apply(maps, {**tree, "data": {"b": "3"}}, manager="applier")
    live = await loopback.ensure(tree)
    await loopback.delete(maps, "default/m")

    assert created["metadata"]["uid"] == again["metadata"]["uid"]
    assert again["data"] == {"a": "1"}
    assert live["data"] == {"a": "2", "b": "3"}
    assert {entry["manager"] for entry in live["metadata"]["managedFields"]} == {
        "kube-apiserver",
        "editor",
        "applier",
    }
    assert len(server.store.table("/configmaps")) == 0


async def test_admission_has_its_say(server: ApiServer) -> None:
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "nowhere"}}

    with pytest.raises(StatusError, match='namespaces "nowhere" not found'):
        await server.loopback.ensure(tree)
