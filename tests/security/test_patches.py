"""What a patch of a few kilobytes does to an object: copies that double, deletions by the thousand.

Covers: kubewright.apiserver.verbs.patches
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from kubewright import Client
from kubewright.api.kinds import GroupVersionKind
from kubewright.apiserver.verbs.patches.json_patch import JsonPatchError, apply_json_patch
from kubewright.apiserver.verbs.patches.strategic_merge import apply_strategic_patch
from kubewright.apiserver.verbs.patches.strategic_merge.lists import order_elements
from kubewright.errors import ApiError

ACCOUNT = GroupVersionKind("", "v1", "ServiceAccount")
JSON_PATCH = "application/json-patch+json"
REJECTED = "the server rejected our request due to an error in our request"


async def send(client: Client, namespace: str, body: Any, kind: str = JSON_PATCH) -> tuple[int, str]:
    """Patch the ConfigMap on trial: the code and the message."""
    path = f"/api/v1/namespaces/{namespace}/configmaps/a"
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        response = await client.request("PATCH", path, query=(("dryRun", "All"),), body=data, content_type=kind)
    except ApiError as error:
        return error.code, error.message
    return response.status, ""


@pytest.fixture
async def patched(client: Client, namespace: str) -> str:
    """A namespace with a ConfigMap to patch."""
    body = json.dumps({"metadata": {"name": "a"}, "data": {"a": "b"}}).encode()
    await client.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body=body)
    return namespace


async def test_copies_that_double_are_rejected(client: Client, patched: str) -> None:
    start = [{"op": "add", "path": "/x", "value": ["y" * 1000]}]

    assert await send(client, patched, [*start, *[{"op": "copy", "from": "/x", "path": "/x/-"}] * 40]) == (
        422,
        REJECTED,
    )
    assert await send(client, patched, [*start, *[{"op": "copy", "from": "/x", "path": "/x/-"}] * 5]) == (200, "")


@pytest.mark.parametrize("operation", ["remove", "replace", "add", "test"])
async def test_a_document_that_is_no_object_any_more_has_no_members(
    client: Client, patched: str, operation: str
) -> None:
    operations = [{"op": "replace", "path": "", "value": 1}, {"op": operation, "path": "/a", "value": 2}]

    code, message = await send(client, patched, operations)

    assert (code, "Internal" in message) == (422, False)


async def test_a_scale_of_a_type_that_is_none_is_refused(client: Client, namespace: str) -> None:
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await client.request("POST", path, body=json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode())
    patch = json.dumps({"apiVersion": ["Recreate"], "kind": "Scale"}).encode()

    with pytest.raises(ApiError) as refused:
        await client.request(
            "PATCH", f"{path}/a/scale", body=patch, content_type="application/strategic-merge-patch+json"
        )

    assert refused.value.code == 422


# On the patches alone: inputs that take minutes or gigabytes in quadratic time


def test_copies_are_charged_before_they_are_made() -> None:
    double = [{"op": "copy", "from": "/x", "path": "/x/-"}] * 60

    with pytest.raises(JsonPatchError, match="accumulated size increase of copy"):
        apply_json_patch({"x": ["y" * 1000]}, double)
    with pytest.raises(JsonPatchError, match="accumulated size increase of copy"):
        apply_json_patch({"x": [{}]}, double)


def test_thousands_of_elements_are_deleted_and_merged_in_linear_time() -> None:
    live = {"secrets": [{"name": f"s{i}"} for i in range(30_000)]}
    deletions = [{"name": f"s{i}", "$patch": "delete"} for i in range(0, 60_000, 2)]
    additions = [{"name": f"s{i}"} for i in range(60_000, 0, -1)]

    left = apply_strategic_patch(live, {"secrets": deletions}, gvk=ACCOUNT)["secrets"]
    merged = apply_strategic_patch(live, {"secrets": additions}, gvk=ACCOUNT)["secrets"]
    ordered = apply_strategic_patch(live, {"$setElementOrder/secrets": live["secrets"][::-1]}, gvk=ACCOUNT)["secrets"]

    assert left == [{"name": f"s{i}"} for i in range(1, 30_000, 2)]
    assert len(merged) == 60_001
    assert ordered == live["secrets"][::-1]


def _insertion_sorted(items: list[str], order: dict[str, int]) -> list[str]:
    """Go's insertion sort, one step at a time."""
    found: list[str] = []
    for item in items:
        at = len(found)
        while at > 0 and not (item in order and found[at - 1] in order and order[item] >= order[found[at - 1]]):
            at -= 1
        found.insert(at, item)
    return found


def test_elements_are_ordered_as_an_insertion_sort_orders_them() -> None:
    drawn = random.Random(15)
    for _ in range(500):
        items = [str(i) for i in range(drawn.randrange(9))]
        drawn.shuffle(items)
        live = [item for item in items if drawn.random() < 0.6]
        drawn.shuffle(live)
        positions = {item: index for index, item in enumerate(live)}

        found = order_elements(items, order=[], live=live, key="", kind="string")

        assert found == _insertion_sorted(items, positions)
