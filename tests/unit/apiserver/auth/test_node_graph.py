"""Which objects belong to which node, while pods and volumes come, change and go."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.security.spending import spending

from kubewright.apiserver.auth.node_graph import NodeGraph
from kubewright.apiserver.storage.store import Store


def put(store: Store, table: str, key: str, tree: dict[str, Any]) -> None:
    namespace, _, name = key.rpartition("/")
    meta = {"name": name, **({"namespace": namespace} if namespace else {}), **tree.pop("metadata", {})}
    store.table(table).put(key, msgspec.json.encode({"metadata": meta, **tree}), store.next_version())


def put_pod(store: Store, name: str, node: str, *, secret: str = "", claim: str = "", **meta: Any) -> None:
    volumes = [{"name": "a", "secret": {"secretName": secret}}] if secret else []
    volumes += [{"name": "b", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    put(store, "/pods", f"shop/{name}", {"metadata": meta, "spec": {"nodeName": node, "volumes": volumes}})


def delete(store: Store, table: str, key: str) -> None:
    store.table(table).delete(key, b"{}", store.next_version())


def test_a_secret_belongs_to_the_nodes_of_all_its_pods() -> None:
    store = Store()
    graph = NodeGraph(store)
    put_pod(store, "a", "n1", secret="key")
    put_pod(store, "b", "n1", secret="key")
    put_pod(store, "c", "n2", secret="key")

    def nodes() -> list[str]:
        return [node for node in ("n1", "n2", "n3") if graph.reaches(node, "secrets", "shop/key")]

    assert nodes() == ["n1", "n2"]
    delete(store, "/pods", "shop/a")
    assert nodes() == ["n1", "n2"]
    delete(store, "/pods", "shop/b")
    assert nodes() == ["n2"]
    put_pod(store, "c", "n2", secret="other")
    assert nodes() == []
    assert graph.reaches("n2", "secrets", "shop/other")


def test_pods_that_were_there_before_count() -> None:
    store = Store()
    put_pod(store, "a", "n1", secret="key")

    assert NodeGraph(store).reaches("n1", "secrets", "shop/key")


def test_a_pod_of_no_node_and_a_mirror_pod_give_nothing() -> None:
    store = Store()
    graph = NodeGraph(store)
    put_pod(store, "a", "", secret="key")
    put_pod(store, "b", "n1", secret="key", annotations={"kubernetes.io/config.mirror": "x"})

    assert not graph.reaches("n1", "secrets", "shop/key")
    assert graph.reaches("n1", "pods", "shop/b")


def test_a_volume_and_its_secret_belong_to_the_node_of_the_claims_pod() -> None:
    store = Store()
    graph = NodeGraph(store)
    put_pod(store, "a", "n1", claim="data")
    csi = {"nodeStageSecretRef": {"name": "key", "namespace": "vault"},
           "controllerPublishSecretRef": {"name": "root", "namespace": "vault"}}  # fmt: skip
    reference = {"namespace": "shop", "name": "data"}
    put(store, "/persistentvolumes", "disk", {"spec": {"claimRef": reference, "csi": csi}})

    assert graph.reaches("n1", "persistentvolumes", "disk")
    assert graph.reaches("n1", "secrets", "vault/key")
    assert not graph.reaches("n1", "secrets", "vault/root")  # the attach controller's
    assert not graph.reaches("n2", "secrets", "vault/key")
    put(store, "/persistentvolumes", "disk", {"spec": {"csi": csi}})
    assert not graph.reaches("n1", "secrets", "vault/key")
    assert not graph.reaches("n1", "persistentvolumes", "disk")


def test_a_question_decodes_only_what_has_changed() -> None:
    store = Store()
    graph = NodeGraph(store)
    for number in range(2000):
        put_pod(store, f"pod-{number}", f"n{number % 10}", secret="key")
    graph.reaches("n1", "secrets", "shop/key")
    put_pod(store, "pod-7", "n7", secret="another")

    with spending() as spent:
        assert graph.reaches("n7", "secrets", "shop/another")

    assert spent.calls < 1000
