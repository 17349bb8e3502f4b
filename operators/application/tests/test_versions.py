"""One Application in two versions, on a server: read, written, watched, applied and scaled in either."""

from kubewright.k8s.core.v1 import EnvVar
from kubewright.testing import until

from application.api.v1alpha1 import application as v1alpha1
from application.api.v1beta1.application import Application, ApplicationSpec, Container
from tests.home import Home, is_ready

Flat, FlatSpec = v1alpha1.Application, v1alpha1.ApplicationSpec


async def test_what_comes_in_as_v1alpha1_is_run_and_shown_in_both(home: Home) -> None:
    flat = Flat.named("web", home.namespace, spec=FlatSpec(image="nginx:1.29", port=8080, env=[EnvVar(name="A")]))
    await home.client.create(flat)

    application = await home.until(is_ready)

    assert application.spec.container == Container(image="nginx:1.29", port=8080, env=[EnvVar(name="A")])
    seen = await until(home.client, Flat, home.key(), lambda seen: seen.status.ready_replicas == 1)
    assert (seen.spec.image, seen.spec.port, seen.spec.env) == ("nginx:1.29", 8080, [EnvVar(name="A")])
    assert seen.status == (await home.client.get(Application, home.key())).status
    assert seen.metadata.uid == application.metadata.uid


async def test_what_comes_in_as_v1beta1_is_shown_as_v1alpha1_in_lists_too(home: Home) -> None:
    await home.ready(replicas=2)

    (seen,) = await home.client.list(Flat, namespace=home.namespace)

    assert (seen.spec.image, seen.spec.replicas) == ("nginx:1.29", 2)


async def test_an_edit_in_one_version_changes_the_same_object(home: Home) -> None:
    before = await home.ready(container={"port": 8080})

    await home.client.patch_by_name(Flat, home.key(), {"spec": {"image": "nginx:1.30"}})

    after = await home.until(lambda seen: seen.spec.container.image == "nginx:1.30" and is_ready(seen))
    assert after.spec.container.port == 8080
    assert after.metadata.generation == before.metadata.generation + 1
    await home.edit({"container": {"image": "nginx:1.31"}})
    assert (await home.client.get(Flat, home.key())).spec.image == "nginx:1.31"


async def test_scaling_works_in_both_versions(home: Home) -> None:
    await home.ready()

    await home.client.scales.set(Flat, home.key(), 2)

    await home.until(lambda seen: is_ready(seen) and seen.status.replicas == 2)


async def test_one_manager_may_apply_now_in_one_version_and_now_in_the_other(home: Home) -> None:
    """Which fields are whose has to be converted along."""
    wanted = ApplicationSpec(container=Container(image="nginx:1.29"), replicas=2)
    await home.client.apply(Application.named("web", home.namespace, spec=wanted), field_manager="team")

    flat = FlatSpec(image="nginx:1.30", replicas=2)
    await home.client.apply(Flat.named("web", home.namespace, spec=flat), field_manager="team")

    application = await home.until(is_ready)
    assert (application.spec.container.image, application.spec.replicas) == ("nginx:1.30", 2)
    back = ApplicationSpec(container=Container(image="nginx:1.31"), replicas=1)
    await home.client.apply(Application.named("web", home.namespace, spec=back), field_manager="team")
    seen = await home.client.get(Flat, home.key())
    assert (seen.spec.image, seen.spec.replicas) == ("nginx:1.31", 1)
    applied = [entry for entry in seen.metadata.managed_fields if entry.manager == "team"]
    assert [(entry.operation, entry.api_version) for entry in applied] == [("Apply", "apps.example.io/v1beta1")]


async def test_what_another_manager_owns_is_a_conflict_across_versions(home: Home) -> None:
    from kubewright import Conflict

    wanted = ApplicationSpec(container=Container(image="nginx:1.29"))
    await home.client.apply(Application.named("web", home.namespace, spec=wanted), field_manager="team")

    try:
        flat = FlatSpec(image="nginx:1.30")
        await home.client.apply(Flat.named("web", home.namespace, spec=flat), field_manager="others")
    except Conflict as conflict:
        assert [cause.field for cause in conflict.causes] == [".spec.container.image"]
    else:
        raise AssertionError("the image is the team's")


async def test_a_watch_in_the_other_version_sees_each_change(home: Home) -> None:
    await home.ready()

    async with home.client.watch(Flat, namespace=home.namespace, initial_events=True) as events:
        await home.edit({"container": {"image": "nginx:1.30"}})
        async for event in events:
            if event.object.spec.image == "nginx:1.30":
                break

    assert event.type in ("ADDED", "MODIFIED")
