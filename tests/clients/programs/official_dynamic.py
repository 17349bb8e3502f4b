"""The official client's typed, dynamic and utility parts: a life of several objects; says `done` at the end."""

# The packages these programs are about are untyped, or typed more narrowly than their documentation.
# mypy: ignore-errors

from __future__ import annotations

import sys

import pytest
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}


def main(namespace: str) -> None:
    """Everything in one namespace."""
    config.load_kube_config()
    api = client.ApiClient()
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    _typed(core, namespace)
    utils.create_from_dict(api, DEPLOYMENT, namespace=namespace)
    for event in watch.Watch().stream(apps.list_namespaced_deployment, namespace, timeout_seconds=60):
        if event["object"].status.ready_replicas == 2:
            break
    else:
        raise AssertionError("the deployment never became ready")
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 0}})
    _dynamic(api, namespace)
    review = client.AuthorizationV1Api(api).create_self_subject_access_review(
        client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(
                resource_attributes=client.V1ResourceAttributes(verb="get", resource="pods", namespace=namespace)
            )
        )
    )
    assert review.status.allowed
    assert client.VersionApi(api).get_code().major == "1"
    print("done")


def _typed(core: client.CoreV1Api, namespace: str) -> None:
    made = core.create_namespaced_secret(
        namespace, client.V1Secret(metadata=client.V1ObjectMeta(generate_name="s-"), string_data={"a": "b"})
    )
    assert made.data == {"a": "Yg=="}
    made.data["c"] = "ZA=="
    changed = core.replace_namespaced_secret(made.metadata.name, namespace, made)
    with pytest.raises(ApiException, match="409"):
        core.replace_namespaced_secret(made.metadata.name, namespace, made)
    assert core.read_namespaced_secret(changed.metadata.name, namespace).data == {"a": "Yg==", "c": "ZA=="}
    assert core.list_namespaced_secret(namespace, limit=1).items
    core.delete_namespaced_secret(made.metadata.name, namespace)
    assert not [item for item in core.list_namespaced_secret(namespace).items if item.metadata.name.startswith("s-")]


def _dynamic(api: client.ApiClient, namespace: str) -> None:
    found = dynamic.DynamicClient(api)
    widgets = found.resources.get(api_version="clients.example.io/v1", kind="Widget")
    body = {"apiVersion": "clients.example.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    assert widgets.create(body=body, namespace=namespace).spec.size == 1
    applied = widgets.server_side_apply(
        body={**body, "spec": {"size": 2}}, name="w", namespace=namespace, field_manager="them", force_conflicts=True
    )
    assert applied.spec.size == 2
    status = {**body, "status": {"ready": 3}}
    widgets.status.patch(body=status, name="w", namespace=namespace, content_type="application/merge-patch+json")
    assert widgets.get(name="w", namespace=namespace).status.ready == 3
    first = next(iter(widgets.watch(namespace=namespace, timeout=60)))
    assert (first["type"], first["object"].metadata.name) == ("ADDED", "w")
    widgets.delete(name="w", namespace=namespace)
    assert not widgets.get(namespace=namespace)["items"]


if __name__ == "__main__":
    main(sys.argv[1])
