"""An update or an apply that creates an object needs the right to create it.

kube-apiserver: `withAuthorization` in k8s.io/apiserver/pkg/endpoints/handlers/update.go.

Covers: kubewright.apiserver.verbs.registry, kubewright.apiserver.auth
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.planes import Plane
from tests.security.callers import APPLY, caller, grant

from kubewright import Client

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "planted"}, "data": {"a": "b"}}
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "planted"}, "spec": {}}
RULE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "planted"}, "rules": []}


def rule(verb: str, resource: str, group: str = "", *, names: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"verbs": [verb], "apiGroups": [group], "resources": [resource], "resourceNames": list(names)}


def forbidden(user: str, resource: str, group: str, namespace: str) -> str:
    qualified = f"{resource}.{group}" if group else resource
    return (
        f'{qualified} "planted" is forbidden: User "{user}" cannot create resource "{resource}" in API group "{group}"'
        f' in the namespace "{namespace}"'
    )


async def test_apply_needs_the_right_to_create(plane: Plane, client: Client, namespace: str) -> None:
    user = f"patcher-{namespace}"
    await grant(client, user, [rule("patch", "configmaps"), rule("get", "configmaps")], namespace=namespace)
    attacker = await caller(plane, user)
    path = f"/api/v1/namespaces/{namespace}/configmaps/planted"

    answer = await attacker.send("PATCH", f"{path}?fieldManager=me", CONFIG_MAP, content_type=APPLY)

    assert (answer.code, answer.message) == (403, forbidden(user, "configmaps", "", namespace))
    assert (await attacker.send("GET", path)).code == 404


@pytest.mark.parametrize("dry_run", ["", "&dryRun=All"])
async def test_apply_creates_with_both_rights(plane: Plane, client: Client, namespace: str, dry_run: str) -> None:
    user = f"both-{namespace}"
    rules = [rule("patch", "configmaps"), rule("create", "configmaps", names=("planted",))]
    await grant(client, user, rules, namespace=namespace)
    patcher = await caller(plane, user)
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    named = await patcher.send("PATCH", f"{path}/planted?fieldManager=me{dry_run}", CONFIG_MAP, content_type=APPLY)
    other_map = {**CONFIG_MAP, "metadata": {"name": "other"}}
    other = await patcher.send("PATCH", f"{path}/other?fieldManager=me{dry_run}", other_map, content_type=APPLY)

    assert named.code == 201  # the path has the name, so a role for this name alone allows it
    assert other.code == 403


@pytest.mark.parametrize(
    ("group", "resource", "body"),
    [("coordination.k8s.io", "leases", LEASE), ("rbac.authorization.k8s.io", "roles", RULE)],
)
async def test_put_needs_the_right_to_create(
    plane: Plane, client: Client, namespace: str, group: str, resource: str, body: dict[str, Any]
) -> None:
    user = f"updater-{namespace}"
    await grant(client, user, [rule("update", resource, group), rule("get", resource, group)], namespace=namespace)
    attacker = await caller(plane, user)
    path = f"/apis/{group}/v1/namespaces/{namespace}/{resource}/planted"

    answer = await attacker.send("PUT", path, body)

    assert (answer.code, answer.message) == (403, forbidden(user, resource, group, namespace))
    assert (await attacker.send("GET", path)).code == 404


async def test_apply_of_an_existing_object_needs_no_right_to_create(
    plane: Plane, client: Client, namespace: str
) -> None:
    user = f"changer-{namespace}"
    await grant(client, user, [rule("patch", "configmaps")], namespace=namespace)
    patcher, admin = await caller(plane, user), await caller(plane, "", kubeconfig=plane.kubeconfig)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert (await admin.send("POST", path, CONFIG_MAP)).code == 201

    answer = await patcher.send("PATCH", f"{path}/planted?fieldManager=me&force=true", CONFIG_MAP, content_type=APPLY)

    assert answer.code == 200


async def test_apply_of_a_status_creates_nothing(plane: Plane, client: Client, namespace: str) -> None:
    user = f"status-{namespace}"
    rules = [rule("patch", "persistentvolumeclaims/status"), rule("create", "persistentvolumeclaims/status")]
    await grant(client, user, rules, namespace=namespace)
    attacker = await caller(plane, user)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "planted"}, "status": {}}
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/planted/status?fieldManager=me"

    assert (await attacker.send("PATCH", path, claim, content_type=APPLY)).code == 404


async def test_invalid_objects_are_refused_before_the_right_is_asked_for(
    plane: Plane, client: Client, namespace: str
) -> None:
    user = f"invalid-{namespace}"
    await grant(client, user, [rule("patch", "configmaps")], namespace=namespace)
    patcher = await caller(plane, user)
    path = f"/api/v1/namespaces/{namespace}/configmaps/planted?fieldManager=me"

    answer = await patcher.send("PATCH", path, {**CONFIG_MAP, "data": {"/": "b"}}, content_type=APPLY)

    assert answer.code == 422


async def test_escalation_by_name_is_the_name_in_the_path(plane: Plane, client: Client, namespace: str) -> None:
    group = "rbac.authorization.k8s.io"
    user = f"escalator-{namespace}"
    rules = [
        {**rule("update", "roles", group), "verbs": ["update", "create"]},
        rule("escalate", "roles", group, names=("planted",)),
    ]
    await grant(client, user, rules, namespace=namespace)
    attacker = await caller(plane, user)
    path = f"/apis/{group}/v1/namespaces/{namespace}/roles"
    everything = {**RULE, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}

    assert (await attacker.send("PUT", f"{path}/planted", everything)).code == 201
    assert (await attacker.send("PUT", f"{path}/other", {**everything, "metadata": {"name": "other"}})).code == 403
    assert (await attacker.send("POST", path, everything)).code == 403
