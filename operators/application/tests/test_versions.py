"""One Application in two versions, on a server: read, written, watched, applied and scaled in either."""

import pytest
from kubewright import Conflict
from kubewright.k8s.core.v1 import EnvVar
from kubewright.testing import until

from application.api.v1alpha1.application import Application, ApplicationSpec
from application.api.v1beta1 import application as v1beta1
from tests.home import Home, is_ready

Nested = v1beta1.Application


def nested(image: str, *, replicas: int = 1) -> v1beta1.ApplicationSpec:
    return v1beta1.ApplicationSpec(container=v1beta1.Container(image=image), replicas=replicas)


async def test_what_comes_in_as_v1beta1_is_run_and_shown_in_both(home: Home) -> None:
    container = v1beta1.Container(image="nginx:1.29", port=8080, env=[EnvVar(name="A")])
    spec = v1beta1.ApplicationSpec(container=container)
    await home.client.create(Nested.named("web", home.namespace, spec=spec))

    application = await home.until(is_ready)

    wanted = application.spec
    assert (wanted.image, wanted.port, wanted.env) == ("nginx:1.29", 8080, [EnvVar(name="A")])
    seen = await until(home.client, Nested, home.key(), lambda seen: seen.status.ready_replicas == 1)
    assert seen.spec.container == container
    assert seen.status == (await home.client.get(Application, home.key())).status
    assert seen.metadata.uid == application.metadata.uid


async def test_what_comes_in_as_v1alpha1_is_shown_as_v1beta1_in_lists_too(home: Home) -> None:
    await home.ready(replicas=2)

    (seen,) = await home.client.list(Nested, namespace=home.namespace)

    assert (seen.spec.container.image, seen.spec.replicas) == ("nginx:1.29", 2)


async def test_an_edit_in_one_version_changes_the_same_object(home: Home) -> None:
    before = await home.ready(port=8080)

    await home.client.patch_by_name(Nested, home.key(), {"spec": {"container": {"image": "nginx:1.30"}}})

    after = await home.until(lambda seen: seen.spec.image == "nginx:1.30" and is_ready(seen))
    assert after.spec.port == 8080
    assert after.metadata.generation == before.metadata.generation + 1
    await home.edit({"image": "nginx:1.31"})
    assert (await home.client.get(Nested, home.key())).spec.container.image == "nginx:1.31"


async def test_scaling_works_in_both_versions(home: Home) -> None:
    await home.ready()

    await home.client.scales.set(Nested, home.key(), 2)

    await home.until(lambda seen: is_ready(seen) and seen.status.replicas == 2)


async def test_one_manager_may_apply_now_in_one_version_and_now_in_the_other(home: Home) -> None:
    """Which fields are whose has to be converted along."""
    wanted = ApplicationSpec(image="nginx:1.29", replicas=2)
    await home.client.apply(Application.named("web", home.namespace, spec=wanted), field_manager="team")

    other = nested("nginx:1.30", replicas=2)
    await home.client.apply(Nested.named("web", home.namespace, spec=other), field_manager="team")

    application = await home.until(is_ready)
    assert (application.spec.image, application.spec.replicas) == ("nginx:1.30", 2)
    back = ApplicationSpec(image="nginx:1.31", replicas=1)
    await home.client.apply(Application.named("web", home.namespace, spec=back), field_manager="team")
    seen = await home.client.get(Nested, home.key())
    assert (seen.spec.container.image, seen.spec.replicas) == ("nginx:1.31", 1)
    applied = [entry for entry in seen.metadata.managed_fields if entry.manager == "team"]
    assert [(entry.operation, entry.api_version) for entry in applied] == [("Apply", "apps.example.io/v1alpha1")]


async def test_what_another_manager_owns_is_a_conflict_across_versions(home: Home) -> None:
    wanted = ApplicationSpec(image="nginx:1.29")
    await home.client.apply(Application.named("web", home.namespace, spec=wanted), field_manager="team")

    with pytest.raises(Conflict) as conflict:
        await home.client.apply(Nested.named("web", home.namespace, spec=nested("nginx:1.30")), field_manager="others")

    assert [cause.field for cause in conflict.value.causes] == [".spec.image"]


async def test_a_watch_in_the_other_version_sees_each_change(home: Home) -> None:
    await home.ready()

    async with home.client.watch(Nested, namespace=home.namespace, initial_events=True) as events:
        await home.edit({"image": "nginx:1.30"})
        async for event in events:
            if event.object.spec.container.image == "nginx:1.30":
                break

    assert event.type in ("ADDED", "MODIFIED")
