"""What happens between the deletion request for an Application and its removal."""

import logging

import pytest
from kubewright import controller_of
from kubewright.client import HttpRequest, HttpResponse
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import Pod, Service
from kubewright.testing import gone, status, until

from application.api.v1alpha1.application import Application
from application.names import DRAIN_UNTIL, FINALIZER
from tests.home import HOLD, Home, condition, is_ready, says


async def draining(home: Home) -> Pod:
    """An Application that is being deleted, with a pod that does not end yet."""
    await home.ready(drain_seconds=600)
    (pod,) = await home.pods()
    await home.hold(pod)
    await home.delete()
    await home.until(says("Progressing", "True", "Draining"))
    return pod


async def test_an_application_goes_and_takes_its_children_with_it(home: Home) -> None:
    await home.ready(port=8080)

    await home.delete()

    await home.gone()
    await home.gone(Deployment)
    await home.gone(Service)


async def test_pods_are_awaited_before_anything_else_goes(home: Home) -> None:
    pod = await draining(home)

    deployment = await home.deployment()
    application = await home.client.get(Application, home.key())
    assert deployment.spec.replicas == 0
    assert DRAIN_UNTIL in deployment.metadata.annotations
    assert application.metadata.finalizers == [FINALIZER]
    assert condition(application, "Ready").reason == "Draining"
    await home.until(lambda seen: seen.status.ready_replicas == 0)

    await home.let_go(pod)

    await home.gone()
    await home.gone(Deployment)


async def test_pods_are_awaited_that_the_operator_is_yet_to_hear_of(home: Home) -> None:
    home.faults.hold_streams(lambda request: request.path.endswith("/pods"))
    pod = await draining(home)

    # Its Deployment counts no pods any more, and the cache shows none: nothing but the server knows of this one.
    await home.until(lambda seen: "for 1 of its pods" in (condition(seen, "Ready").message or ""))

    assert (await home.deployment()).status.replicas in (0, None)
    home.faults.release_streams()
    await home.let_go(pod)
    await home.gone()


async def test_edits_while_it_is_being_deleted_are_ignored(home: Home) -> None:
    pod = await draining(home)
    until_when = (await home.deployment()).metadata.annotations[DRAIN_UNTIL]

    await home.edit({"replicas": 5, "drainSeconds": 0, "image": "nginx:1.30", "port": 80})
    await home.ready(name="witness")  # is looked at after the edit

    deployment = await home.deployment()
    assert deployment.spec.replicas == 0
    assert deployment.spec.template.spec is not None
    assert deployment.spec.template.spec.containers[0].image == "nginx:1.29"
    assert deployment.metadata.annotations[DRAIN_UNTIL] == until_when
    assert await home.client.find(Service, home.key()) is None
    assert await home.client.find(Application, home.key()) is not None
    await home.let_go(pod)
    await home.gone()


async def test_a_finalizer_taken_off_by_hand_ends_the_drain_quietly(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    pod = await draining(home)

    await home.client.patch_by_name(Application, home.key(), {"metadata": {"finalizers": None}})

    await home.gone()
    await home.gone(Deployment)
    await home.let_go(pod)
    await gone(home.client, Pod, pod.key)
    await home.ready(name="witness")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_the_finalizer_of_somebody_else_stays(home: Home) -> None:
    application = home.draft()
    application.metadata.finalizers = [HOLD]
    await home.client.create(application)
    await home.until(is_ready)

    await home.delete()

    seen = await home.until(lambda seen: FINALIZER not in seen.metadata.finalizers)
    assert seen.metadata.finalizers == [HOLD]
    since = len(home.faults.requests)
    await home.edit({"replicas": 5})
    await home.ready(name="witness")
    assert home.writes(since, "/web") == []
    await home.client.patch_by_name(Application, home.key(), {"metadata": {"finalizers": None}})
    await home.gone()


async def test_what_is_retained_lives_on_and_is_adopted_by_the_next_of_the_name(home: Home) -> None:
    first = await home.ready(deletion_policy="Retain", port=8080)
    before = await home.deployment()
    await home.delete()
    await home.gone()
    for kind in (Deployment, Service):
        child = await until(home.client, kind, home.key())
        assert child.metadata.owner_references == []
        assert child.metadata.deletion_timestamp is None

    second = await home.ready(port=8080)

    adopted = await home.deployment()
    owner = controller_of(adopted)
    assert owner is not None
    assert first.metadata.uid != second.metadata.uid == owner.uid
    assert (adopted.metadata.uid, adopted.metadata.generation) == (before.metadata.uid, before.metadata.generation)


async def test_a_clean_up_that_fails_keeps_the_finalizer_and_says_why(home: Home) -> None:
    await home.ready(deletion_policy="Retain")

    def forbid(request: HttpRequest) -> HttpResponse | None:
        mine = request.method == "PATCH" and f"{home.namespace}/deployments/" in request.path
        return status(403, reason="Forbidden", message="deployments is forbidden") if mine else None

    home.faults.answer = forbid
    await home.delete()

    application = await home.until(says("Degraded", "True", "Forbidden"))
    assert application.metadata.finalizers == [FINALIZER]
    assert (await home.event("Forbidden")).type == "Warning"
    home.faults.answer = None
    await home.gone()
    assert controller_of(await home.deployment()) is None


async def test_what_is_drained_is_scaled_once_however_often_it_is_looked_at(home: Home) -> None:
    pod = await draining(home)
    await home.edit({"replicas": 3})
    await home.edit({"replicas": 4})
    await home.let_go(pod)
    await home.gone()

    made, emptied = home.writes(path="/deployments/web")
    assert b'"replicas":1' in (made.body or b"")
    assert b'"replicas":0' in (emptied.body or b"")


async def test_what_is_deleted_while_it_is_created_is_no_error_and_leaves_nothing(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"web-{number}" for number in range(10)]
    for name in names:
        await home.make(name=name, port=8080)
        await home.delete(name=name)

    for name in names:
        await home.gone(name=name)
        await home.gone(Deployment, name=name)
        await home.gone(Service, name=name)
    assert [record.message for record in caplog.records if "not found" in record.message] == []
