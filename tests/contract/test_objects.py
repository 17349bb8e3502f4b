"""Create, read, update, patch, apply and delete, as a server answers them.

Covers: kubewright.apiserver.verbs, kubewright.client
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.builders import pods as builders
from tests.builders.workloads import deployment
from tests.planes import Plane

from kubewright import Client, Dynamic, ObjectKey, ObjectMeta
from kubewright.api import copy_of, metadata_of
from kubewright.api.changes import merge_patch_since_read
from kubewright.client import retry_on_conflict
from kubewright.cluster.planes.real import RealCluster
from kubewright.errors import (
    AlreadyExists,
    BadRequest,
    ConfigError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    UnsupportedMediaType,
)
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import (
    ConfigMap,
    Container,
    ContainerPort,
    Namespace,
    Pod,
    PodSpec,
    Secret,
    ServiceAccount,
)
from kubewright.testing import until


def config_map(name: str, namespace: str, **data: str) -> ConfigMap:
    return ConfigMap.named(name, namespace, data=data)


async def test_created_object_has_what_the_server_adds(client: Client, namespace: str) -> None:
    created = await client.create(config_map("a", namespace, color="red"))

    assert created.metadata.uid
    assert created.metadata.resource_version
    assert created.metadata.creation_timestamp is not None
    assert created.data == {"color": "red"}


async def test_object_is_read_back_equal(client: Client, namespace: str) -> None:
    created = await client.create(config_map("a", namespace, color="red"))

    assert await client.get(ConfigMap, "a", namespace=namespace) == created
    assert await client.get(ConfigMap, ObjectKey(namespace, "a")) == created


async def test_a_pod_may_come_right_after_its_namespace(client: Client, plane: Plane) -> None:
    fresh = await client.create(Namespace(metadata=ObjectMeta(generate_name="fresh-")))
    pod = builders.pod("p", fresh.metadata.name)

    try:
        created = await client.create(copy_of(pod))
    except Forbidden:
        # It waits a second or two for the account. Who makes accounts there is another process, which may be busy.
        assert isinstance(plane, RealCluster)
        await until(client, ServiceAccount, ObjectKey(fresh.metadata.name, "default"))
        created = await client.create(pod)

    assert created.spec is not None
    assert created.spec.service_account_name == "default"


async def test_server_makes_a_name_from_a_prefix(client: Client, namespace: str) -> None:
    wanted = ConfigMap(metadata=ObjectMeta(generate_name="part-", namespace=namespace))

    created = await client.create(wanted)

    assert created.metadata.name.startswith("part-")
    assert len(created.metadata.name) > len("part-")


async def test_missing_object_is_not_found(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound) as caught:
        await client.get(ConfigMap, "nobody", namespace=namespace)

    assert caught.value.code == 404
    assert caught.value.message == 'configmaps "nobody" not found'
    assert caught.value.details["name"] == "nobody"


async def test_taken_name_already_exists(client: Client, namespace: str) -> None:
    await client.create(config_map("a", namespace))

    with pytest.raises(AlreadyExists) as caught:
        await client.create(config_map("a", namespace))

    assert caught.value.reason == "AlreadyExists"


async def test_invalid_object_names_each_field(client: Client, namespace: str) -> None:
    wrong = deployment("web", namespace, replicas=-1)
    wrong.spec.template.metadata = ObjectMeta(labels={"app": "other"})

    with pytest.raises(Invalid) as caught:
        await client.create(wrong)

    assert {cause.field for cause in caught.value.causes} >= {"spec.replicas", "spec.template.metadata.labels"}


async def test_dry_run_leaves_nothing_behind(client: Client, namespace: str) -> None:
    answered = await client.create(config_map("a", namespace, k="v"), dry_run=True)

    assert answered.metadata.uid
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a", namespace=namespace)


async def test_unknown_field_is_refused_in_strict_mode(client: Client, namespace: str) -> None:
    kind = Dynamic("v1", "ConfigMap")
    wrong = kind.named("a", namespace, content={"colour": "red"})

    with pytest.raises(BadRequest, match='unknown field "colour"'):
        await client.create(wrong, field_validation="Strict")


async def test_update_replaces_and_stale_update_conflicts(client: Client, namespace: str) -> None:
    first = await client.create(config_map("a", namespace, k="1"))
    stale = await client.get(ConfigMap, "a", namespace=namespace)
    first.data = {"k": "2"}
    updated = await client.update(first)
    assert updated.data == {"k": "2"}

    stale.data = {"k": "3"}
    with pytest.raises(Conflict) as caught:
        await client.update(stale)

    assert caught.value.reason == "Conflict"


async def test_update_of_metadata_alone_is_refused_before_it_is_sent(client: Client, namespace: str) -> None:
    await client.create(config_map("a", namespace, k="1"))
    partial = await client.get(metadata_of(ConfigMap), "a", namespace=namespace)

    with pytest.raises(ConfigError, match="use patch or apply"):
        await client.update(partial)


async def test_patch_sends_only_what_changed(client: Client, namespace: str) -> None:
    created = await client.create(config_map("a", namespace, k="1", keep="yes"))
    assert created.data is not None
    created.data["k"] = "2"
    created.metadata.labels["tier"] = "front"

    assert merge_patch_since_read(created) == {"data": {"k": "2"}, "metadata": {"labels": {"tier": "front"}}}
    patched = await client.patch(created)

    assert patched.data == {"k": "2", "keep": "yes"}
    assert patched.metadata.labels == {"tier": "front"}


async def test_patch_without_a_change_writes_nothing(client: Client, namespace: str) -> None:
    created = await client.create(config_map("a", namespace, k="1"))

    patched = await client.patch(created)

    assert patched.metadata.resource_version == created.metadata.resource_version
    assert (await client.get(ConfigMap, "a", namespace=namespace)) == created


async def test_patch_with_optimistic_lock_conflicts_when_somebody_wrote(client: Client, namespace: str) -> None:
    mine = await client.create(config_map("a", namespace, k="1"))
    await client.patch_by_name(ConfigMap, "a", {"data": {"other": "x"}}, namespace=namespace)
    mine.data = {"k": "2"}

    with pytest.raises(Conflict):
        await client.patch(mine, optimistic_lock=True)


async def test_json_patch(client: Client, namespace: str) -> None:
    await client.create(config_map("a", namespace, k="1"))

    patched = await client.patch_by_name(
        ConfigMap, "a", [{"op": "replace", "path": "/data/k", "value": "2"}], patch_type="json", namespace=namespace
    )

    assert patched.data == {"k": "2"}


async def test_failed_json_patch_test_is_invalid(client: Client, namespace: str) -> None:
    await client.create(config_map("a", namespace, k="1"))

    with pytest.raises(Invalid):
        await client.patch_by_name(
            ConfigMap, "a", [{"op": "test", "path": "/data/k", "value": "9"}], patch_type="json", namespace=namespace
        )


async def test_strategic_merge_patch_merges_a_list_by_its_key(client: Client, namespace: str) -> None:
    await client.create(deployment("web", namespace, replicas=0))
    sidecar = {"name": "log", "image": "log:1"}

    patched = await client.patch_by_name(
        Deployment,
        "web",
        {"spec": {"template": {"spec": {"containers": [sidecar]}}}},
        patch_type="strategic",
        namespace=namespace,
    )

    assert patched.spec.template.spec is not None
    assert {container.name for container in patched.spec.template.spec.containers} == {"main", "log"}


async def test_custom_resources_take_no_strategic_patch(client: Client, namespace: str, widget: Any) -> None:
    await client.create(widget.named("w", namespace))

    with pytest.raises(UnsupportedMediaType):
        await client.patch_by_name(widget, "w", {"spec": {"size": 2}}, patch_type="strategic", namespace=namespace)


async def test_apply_creates_then_changes_then_removes_what_is_left_out(client: Client, namespace: str) -> None:
    created = await client.apply(config_map("a", namespace, k="1", gone="x"), field_manager="me")
    assert created.data == {"k": "1", "gone": "x"}

    changed = await client.apply(config_map("a", namespace, k="2"), field_manager="me")

    assert changed.data == {"k": "2"}
    assert changed.metadata.managed_fields[0].manager == "me"
    assert changed.metadata.managed_fields[0].operation == "Apply"


async def test_apply_conflict_names_the_other_manager_and_force_wins(client: Client, namespace: str) -> None:
    await client.apply(config_map("a", namespace, k="theirs"), field_manager="them")

    with pytest.raises(Conflict) as caught:
        await client.apply(config_map("a", namespace, k="mine"), field_manager="me")
    assert caught.value.causes[0].field == ".data.k"
    assert 'conflict with "them"' in caught.value.causes[0].message

    forced = await client.apply(config_map("a", namespace, k="mine"), field_manager="me", force=True)
    assert forced.data == {"k": "mine"}


async def test_changes_of_many_at_once_all_count_if_they_are_tried_again(client: Client, namespace: str) -> None:
    await client.create(config_map("counter", namespace, n="0"))

    async def add_one() -> ConfigMap:
        counter = await client.get(ConfigMap, "counter", namespace=namespace)
        counter.data = {"n": str(int((counter.data or {})["n"]) + 1)}
        return await client.update(counter)

    await asyncio.gather(*(retry_on_conflict(add_one, tries=20) for _ in range(5)))

    assert (await client.get(ConfigMap, "counter", namespace=namespace)).data == {"n": "5"}


async def test_an_apply_that_another_manager_forbids_is_tried_once(client: Client, namespace: str) -> None:
    await client.apply(config_map("a", namespace, k="theirs"), field_manager="them")
    tries: list[str] = []

    async def write() -> ConfigMap:
        tries.append("apply")
        return await client.apply(config_map("a", namespace, k="mine"), field_manager="me")

    with pytest.raises(Conflict):
        await retry_on_conflict(write)

    assert tries == ["apply"]


async def test_apply_of_an_object_that_was_read_is_accepted(client: Client, namespace: str) -> None:
    await client.apply(config_map("a", namespace, k="1"), field_manager="me")
    again = await client.get(ConfigMap, "a", namespace=namespace)
    again.data = {"k": "2"}

    applied = await client.apply(again, field_manager="me")

    assert applied.data == {"k": "2"}


async def test_apply_without_a_manager_is_refused_before_it_is_sent(client: Client, namespace: str) -> None:
    anonymous = Client(client.transport, namespace=namespace)

    with pytest.raises(ConfigError, match="field_manager"):
        await anonymous.apply(config_map("a", namespace))


async def test_deleted_object_is_gone(client: Client, namespace: str) -> None:
    created = await client.create(config_map("a", namespace))

    assert await client.delete(created) is None

    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a", namespace=namespace)


async def test_delete_spares_a_namesake_with_another_uid(client: Client, namespace: str) -> None:
    first = await client.create(config_map("a", namespace))
    await client.delete(ConfigMap, "a", namespace=namespace)
    second = await client.create(config_map("a", namespace))

    with pytest.raises(Conflict):
        await client.delete(first)

    assert await client.get(ConfigMap, "a", namespace=namespace) == second


async def test_finalizer_holds_a_deleted_object(client: Client, namespace: str) -> None:
    held = config_map("a", namespace)
    held.metadata.finalizers = ["example.io/hold"]
    created = await client.create(held)

    left = await client.delete(created, propagation="Foreground")

    assert left is not None
    assert left.metadata.deletion_timestamp is not None
    left.metadata.finalizers.clear()
    await client.patch(left)


async def test_delete_collection_takes_what_matches(client: Client, namespace: str) -> None:
    for name, tier in (("a", "front"), ("b", "back"), ("c", "front")):
        wanted = config_map(name, namespace)
        wanted.metadata.labels["tier"] = tier
        await client.create(wanted)

    await client.delete_collection(ConfigMap, namespace=namespace, labels={"tier": "front"})

    left = await client.list(ConfigMap, namespace=namespace, labels="tier")
    assert [item.metadata.name for item in left] == ["b"]


async def test_delete_collection_across_namespaces_is_refused_before_it_is_sent(client: Client) -> None:
    with pytest.raises(ConfigError, match="needs a namespace"):
        await client.delete_collection(ConfigMap)


async def test_secret_data_is_bytes(client: Client, namespace: str) -> None:
    created = await client.create(Secret.named("s", namespace, data={"password": b"hunter2\x00"}))

    assert created.data == {"password": b"hunter2\x00"}


async def test_dynamic_objects_have_every_verb(client: Client, namespace: str) -> None:
    kind = Dynamic("v1", "ConfigMap")
    created = await client.create(kind.named("a", namespace, content={"data": {"k": "1"}}))
    created["data"]["k"] = "2"

    patched = await client.patch(created)
    assert patched.get("data.k") == "2"
    patched["data"]["more"] = "3"
    updated = await client.update(patched)

    assert updated["data"] == {"k": "2", "more": "3"}
    assert [item.metadata.name for item in await client.list(kind, namespace=namespace, labels="!x")][-1] != ""
    assert await client.delete(updated) is None


async def test_dynamic_kind_that_the_server_does_not_have_is_named(client: Client) -> None:
    with pytest.raises(NotFound, match=r"no kind Unicorn in example\.io/v1"):
        await client.get(Dynamic("example.io/v1", "Unicorn"), "a")


async def test_metadata_alone_is_read_listed_and_patched(client: Client, namespace: str) -> None:
    await client.create(config_map("a", namespace, k="1"))
    kind = metadata_of(ConfigMap)

    one = await client.get(kind, "a", namespace=namespace)
    assert one.metadata.name == "a"
    listed = await client.list(kind, namespace=namespace)
    assert "a" in {item.metadata.name for item in listed}
    one.metadata.annotations["seen"] = "yes"
    patched = await client.patch(one)

    assert patched.metadata.annotations == {"seen": "yes"}
    assert (await client.get(ConfigMap, "a", namespace=namespace)).data == {"k": "1"}


async def test_pod_round_trip_keeps_what_the_server_defaulted(client: Client, namespace: str) -> None:
    pod = Pod.named(
        "p",
        namespace,
        spec=PodSpec(containers=[Container(name="c", image="i:1", ports=[ContainerPort(container_port=80)])]),
    )

    created = await client.create(pod)

    assert created.spec.restart_policy == "Always"
    assert created.spec.containers[0].ports is not None
    assert created.spec.containers[0].ports[0].protocol == "TCP"
    assert created.status.phase == "Pending"
