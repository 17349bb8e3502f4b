"""The objects every server starts with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubewright.apiserver.auth.bootstrap import bootstrap_objects, write_bootstrap
from kubewright.apiserver.wire.decoding import decode_json

ROLES = "rbac.authorization.k8s.io/clusterroles"


def _write(server: Any) -> int:
    server = server.api
    return write_bootstrap(server.store, server.catalog, server.services, now=server.clock.now(), port=6443)


def test_all_of_them_are_written_once(make_server: Callable[..., Any]) -> None:
    server = make_server()

    assert _write(server) == len(bootstrap_objects())
    assert _write(server) == 0


def test_a_changed_bootstrap_object_stays_changed(make_server: Callable[..., Any]) -> None:
    server = make_server()
    store = server.api.store
    store.table(ROLES).put("view", b'{"metadata":{"name":"view"}}', store.next_version())

    _write(server)

    assert store.table(ROLES).get("view").value == b'{"metadata":{"name":"view"}}'


def test_the_data_has_nothing_of_one_server() -> None:
    for tree in bootstrap_objects():
        meta = tree["metadata"]
        assert not {"uid", "resourceVersion", "creationTimestamp"} & set(meta), meta["name"]
        assert all("time" not in entry for entry in meta["managedFields"])


def test_the_data_are_what_the_strategies_would_store(make_server: Callable[..., Any]) -> None:
    server = make_server()
    written = _write(server)

    entries = [entry for table in server.api.store.tables() for entry in table.entries()]
    assert len(entries) >= written > 0
    for entry in entries:
        tree = decode_json(entry.value)
        resource = next(
            item
            for item in server.api.catalog
            if (item.kind.api_version, item.kind.kind) == (tree["apiVersion"], tree["kind"])
        )
        again = decode_json(entry.value)
        assert resource.strategy.normalize(again) == []
        resource.strategy.default(again)
        assert again == tree
        assert resource.strategy.validate(again) == []


async def test_default_roles_serve_the_users_they_are_for(server: Any) -> None:
    body = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": "shop"}}}
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    controller = "system:serviceaccount:kube-system:replicaset-controller"

    _, allowed = await server.ask("POST", review, body, impersonate_user=controller)
    _, denied = await server.ask("POST", review, body, impersonate_user="system:serviceaccount:kube-system:default")

    assert allowed["status"]["allowed"]
    assert not denied["status"]["allowed"]


async def test_the_address_of_the_service_is_allocated(server: Any) -> None:
    spec = {"clusterIP": "10.0.0.1", "ports": [{"port": 1}]}

    code, error = await server.ask(
        "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": spec}
    )

    assert code == 422
    assert "provided IP is already allocated" in error["message"]
