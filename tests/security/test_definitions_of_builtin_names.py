"""A CustomResourceDefinition that takes the name of a built-in resource gets nothing of it.

Groups below `k8s.io` are open to definitions with an annotation, so who may write definitions, and nothing else, can
take the group and plural of roles, of certificate requests or of leases. kube-apiserver serves nothing of such a
definition, in no version, and its end is not that of the built-in objects.

Covers: kubewright.apiserver.catalog, kubewright.apiserver.controllers
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.builders.definitions import definition_tree, version_tree
from tests.planes import Plane
from tests.security.callers import Caller, caller, grant

from kubewright import Client
from kubewright.k8s.apiextensions.v1 import CustomResourceDefinition
from kubewright.testing import gone, until

GROUP = "rbac.authorization.k8s.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def has(definition: CustomResourceDefinition, condition: str) -> bool:
    conditions = definition.status.conditions or ()
    return any((one.type, one.status) == (condition, "True") for one in conditions)


def shadow(plural: str, group: str, kind: str, *versions: str, scope: str = "Namespaced") -> dict[str, Any]:
    served = [{**version_tree(name, schema=ANY), "storage": name == versions[0]} for name in versions]
    tree = definition_tree(plural, group, kind=kind, scope=scope, versions=served)
    tree["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    return tree


@asynccontextmanager
async def established(client: Client, sender: Caller, tree: dict[str, Any]) -> AsyncIterator[None]:
    name = tree["metadata"]["name"]
    answer = await sender.send("POST", CRDS, tree)
    assert answer.code == 201, answer.message
    await until(client, CustomResourceDefinition, name, lambda one: has(one, "Established"))
    try:
        yield
    finally:
        await sender.send("DELETE", f"{CRDS}/{name}")
        await gone(client, CustomResourceDefinition, name)


async def definer(plane: Plane, client: Client, namespace: str) -> tuple[str, Caller]:
    """Somebody with every right to definitions, and to roles as far as they grant nothing."""
    user = f"definer-{namespace}"
    rules = [
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["*"]},
        {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "create", "update", "patch", "delete"]},
    ]
    await grant(client, user, rules)
    return user, await caller(plane, user)


async def test_no_custom_resource_is_served_in_a_built_in_group(plane: Plane, client: Client, namespace: str) -> None:
    user, attacker = await definer(plane, client, namespace)
    before = await attacker.send("GET", f"/apis/{GROUP}/v1")
    roles = shadow("clusterroles", GROUP, "ClusterRole", "v1", "v2", scope="Cluster")
    bindings = shadow("clusterrolebindings", GROUP, "ClusterRoleBinding", "v2", scope="Cluster")
    widgets = shadow("widgets", GROUP, "Widget", "v1", scope="Cluster")
    async with (
        established(client, attacker, roles),
        established(client, attacker, bindings),
        established(client, attacker, widgets),
    ):
        meta = {"name": f"everything-{namespace}"}
        role = {"metadata": meta, "rules": [EVERYTHING]}
        binding = {
            "metadata": meta,
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
        }

        codes = [
            (await attacker.send(method, f"/apis/{GROUP}/{path}", body)).code
            for method, path, body in (
                ("POST", "v2/clusterroles", {"apiVersion": f"{GROUP}/v2", "kind": "ClusterRole", **role}),
                (
                    "POST",
                    "v2/clusterrolebindings",
                    {"apiVersion": f"{GROUP}/v2", "kind": "ClusterRoleBinding", **binding},
                ),
                ("GET", "v2/clusterroles", None),
                ("GET", "v1/widgets", None),
                ("POST", "v1/clusterroles", role),
                ("POST", "v1/clusterrolebindings", binding),
            )
        ]

        assert codes == [404, 404, 404, 404, 403, 403]
        assert (await attacker.send("GET", "/api/v1/secrets")).code == 403
        assert await attacker.send("GET", f"/apis/{GROUP}/v1") == before


async def test_built_in_objects_survive_a_definition_of_their_name(
    plane: Plane, client: Client, namespace: str
) -> None:
    _, attacker = await definer(plane, client, namespace)
    roles = f"/apis/{GROUP}/v1/namespaces/{namespace}/roles"
    assert (await attacker.send("POST", roles, {"metadata": {"name": "before"}, "rules": []})).code == 201

    for version in ("v1", "v2"):
        async with established(client, attacker, shadow("roles", GROUP, "Role", version)):
            pass

    assert (await attacker.send("GET", f"{roles}/before")).code == 200
    assert (await attacker.send("POST", roles, {"metadata": {"name": "after"}, "rules": []})).code == 201


async def test_built_in_objects_are_created_while_a_definition_of_their_name_goes(
    plane: Plane, client: Client, namespace: str
) -> None:
    """A definition that is being deleted refuses new objects, but only its own."""
    _, attacker = await definer(plane, client, namespace)
    tree = shadow("roles", GROUP, "Role", "v2")
    tree["metadata"]["finalizers"] = ["example.io/held"]
    path = f"{CRDS}/{tree['metadata']['name']}"
    async with established(client, attacker, tree):
        await attacker.send("DELETE", path)
        await until(client, CustomResourceDefinition, tree["metadata"]["name"], lambda one: has(one, "Terminating"))
        answer = await attacker.send(
            "POST", f"/apis/{GROUP}/v1/namespaces/{namespace}/roles", {"metadata": {"name": "new"}, "rules": []}
        )
        released = [{"op": "remove", "path": "/metadata/finalizers"}]
        await attacker.send("PATCH", path, released, content_type="application/json-patch+json")

    assert answer.code == 201
