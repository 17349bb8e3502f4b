"""What the operator keeps right while an Application lives."""

import json

from kubewright import ObjectMeta, controller_of
from kubewright.client import HttpRequest, HttpResponse
from kubewright.k8s.apps.v1 import Deployment
from kubewright.k8s.core.v1 import EnvVar, Service, ServicePort, ServiceSpec
from kubewright.testing import status

from application.api.v1alpha1.application import Application, ConfigReference
from application.children.deployment import desired_deployment
from application.config import hash_of
from application.names import CONFIG_HASH, FIELD_MANAGER, FINALIZER, INSTANCE
from tests.home import Home, condition, is_ready, says

SETTINGS = ConfigReference(name="settings")


def image_of(deployment: Deployment) -> str | None:
    return deployment.spec.template.spec.containers[0].image if deployment.spec.template.spec else None


def config_hash_of(deployment: Deployment) -> str:
    template = deployment.spec.template.metadata
    return template.annotations.get(CONFIG_HASH, "") if template else ""


# children


async def test_an_application_becomes_a_deployment_and_a_service_that_it_owns(home: Home) -> None:
    application = await home.ready(replicas=2, port=8080, env=[EnvVar(name="A", value="1")])

    deployment, service = await home.deployment(), await home.child(Service)

    for child in (deployment, service):
        owner = controller_of(child)
        assert owner is not None
        assert (owner.uid, owner.block_owner_deletion) == (application.metadata.uid, True)
        assert child.metadata.labels[INSTANCE] == "web"
        assert FIELD_MANAGER in {entry.manager for entry in child.metadata.managed_fields}
    assert deployment.spec.replicas == 2
    assert service.spec.ports is not None
    assert [(port.port, port.target_port, port.protocol) for port in service.spec.ports] == [(8080, 8080, "TCP")]
    (pod, _) = await home.pods()
    assert pod.spec.containers[0].env == [EnvVar(name="A", value="1")]
    assert (application.status.replicas, application.status.ready_replicas) == (2, 2)
    assert application.status.selector == "apps.example.io/application=web"
    assert {c.type: (c.status, c.reason) for c in application.status.conditions} == {
        "ConfigResolved": ("True", "NotReferenced"),
        "Degraded": ("False", "AsExpected"),
        "Progressing": ("False", "RolloutComplete"),
        "Ready": ("True", "Available"),
    }


async def test_the_finalizer_is_the_first_write_and_a_patch_of_its_own(home: Home) -> None:
    await home.ready(port=8080)

    first, *others = home.writes()

    assert (first.method, first.path.rpartition("/")[2]) == ("PATCH", "web")
    assert json.loads(first.body or b"")["metadata"]["finalizers"] == [FINALIZER]
    assert json.loads(first.body or b"").keys() == {"metadata"}
    assert any("/deployments/" in request.path for request in others)


async def test_without_the_finalizer_no_child_is_made(home: Home) -> None:
    def refuse(request: HttpRequest) -> HttpResponse | None:
        mine = request.method == "PATCH" and request.path.endswith(f"{home.namespace}/applications/web")
        return status(500) if mine else None

    home.faults.answer = refuse
    await home.make()
    await home.make(name="witness")  # is worked on after the other has failed
    await home.until(is_ready, name="witness")

    assert home.writes(path="/deployments/web") == []
    home.faults.answer = None
    application = await home.until(is_ready)
    assert application.metadata.finalizers == [FINALIZER]


async def test_a_service_comes_and_goes_with_the_port(home: Home) -> None:
    await home.ready(port=8080)
    await home.child(Service)

    await home.edit({"port": None})

    await home.gone(Service)
    assert (await home.event("Deleted")).note == "Service web, since no port is asked for"
    await home.edit({"port": 9090})
    await home.child(Service, lambda service: service.spec.ports and service.spec.ports[0].port == 9090)


async def test_without_a_port_the_service_of_a_stranger_stays(home: Home) -> None:
    theirs = Service.named("web", home.namespace, spec=ServiceSpec(ports=[ServicePort(port=80)]))
    await home.client.create(theirs)

    await home.ready()

    assert (await home.client.get(Service, home.key())).spec.ports
    assert home.writes(path="/services/") == []


async def test_what_somebody_changes_or_deletes_is_put_right(home: Home) -> None:
    await home.ready()
    drifted = {"spec": {"template": {"spec": {"containers": [{"name": "application", "image": "evil:1"}]}}}}
    await home.client.patch_by_name(Deployment, home.key(), drifted, patch_type="strategic")
    await home.child(Deployment, lambda deployment: image_of(deployment) == "nginx:1.29")

    before = await home.deployment()
    await home.client.delete(before)

    await home.child(Deployment, lambda deployment: deployment.metadata.uid != before.metadata.uid)
    await home.until(is_ready)


async def test_events_tell_of_real_changes(home: Home) -> None:
    await home.ready()
    assert (await home.event("Created")).note == "Deployment web"

    await home.edit({"replicas": 2})

    assert (await home.event("Updated")).note == "Deployment web"


# configuration


async def test_pods_are_replaced_when_the_configuration_changes(home: Home) -> None:
    config = await home.config(GREETING="hello")
    application = await home.ready(config_ref=SETTINGS)
    (old,) = await home.pods()
    assert application.status.config_hash == hash_of(config) == config_hash_of(await home.deployment())
    assert old.spec.containers[0].env_from is not None

    changed = await home.config(GREETING="goodbye")

    seen = await home.until(lambda seen: is_ready(seen) and seen.status.config_hash == hash_of(changed))
    assert condition(seen, "ConfigResolved").reason == "Resolved"
    assert old.metadata.uid not in {
        pod.metadata.uid for pod in await home.pods() if pod.metadata.deletion_timestamp is None
    }


async def test_without_its_configuration_nothing_starts_until_it_appears(home: Home) -> None:
    await home.make(config_ref=SETTINGS, port=8080)

    application = await home.until(says("ConfigResolved", "False", "ConfigMapNotFound"))

    assert condition(application, "Ready").reason == "ConfigMapNotFound"
    assert await home.client.find(Deployment, home.key()) is None
    await home.child(Service)
    await home.config(GREETING="hello")
    assert condition(await home.until(is_ready), "ConfigResolved").status == "True"


async def test_pods_go_on_when_their_configuration_is_deleted(home: Home) -> None:
    config = await home.config(GREETING="hello")
    await home.ready(config_ref=SETTINGS)
    before = await home.deployment()

    await home.client.delete(config)
    await home.until(says("ConfigResolved", "False", "ConfigMapNotFound"))
    await home.edit({"image": "nginx:1.30"})
    application = await home.until(lambda seen: seen.status.observed_generation == seen.metadata.generation)

    after = await home.deployment()
    assert (after.metadata.generation, image_of(after)) == (before.metadata.generation, "nginx:1.29")
    assert application.status.config_hash == hash_of(config)
    assert application.status.ready_replicas == 1
    await home.config(GREETING="hello")
    await home.until(is_ready)
    assert image_of(await home.deployment()) == "nginx:1.30"


# pausing and scaling


async def test_a_paused_application_leaves_its_children_and_goes_on_telling(home: Home) -> None:
    await home.ready(port=8080)
    await home.edit({"paused": True, "replicas": 5, "port": None, "image": "nginx:1.30"})
    await home.until(says("Ready", "True", "Paused"))

    await home.client.scales.set(Deployment, home.key(), 2)
    application = await home.until(lambda seen: seen.status.ready_replicas == 2)

    assert image_of(await home.deployment()) == "nginx:1.29"
    assert await home.client.find(Service, home.key()) is not None
    assert condition(application, "Progressing").status == "False" or not is_ready(application)
    await home.edit({"paused": False})
    await home.until(lambda seen: is_ready(seen) and seen.status.ready_replicas == 5)
    await home.gone(Service)


async def test_kubectl_scale_works(home: Home) -> None:
    await home.ready()

    await home.client.scales.set(Application, home.key(), 3)

    await home.until(lambda seen: is_ready(seen) and seen.status.replicas == 3)
    scale = await home.client.scales.get(Application, home.key())
    assert (scale.spec.replicas, scale.status.replicas) == (3, 3)
    assert scale.status.selector == "apps.example.io/application=web"


async def test_kubectl_get_shows_the_columns(home: Home) -> None:
    await home.ready(replicas=2)
    path = f"/apis/apps.example.io/v1alpha1/namespaces/{home.namespace}/applications"

    answer = await home.client.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    table = json.loads(answer.body)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name", "Image", "Desired", "Ready", "Status", "Age",
    ]  # fmt: skip
    assert table["rows"][0]["cells"][:5] == ["web", "nginx:1.29", 2, 2, "Available"]


# what goes wrong


async def test_the_deployment_of_a_stranger_is_left_alone_and_the_service_is_made(home: Home) -> None:
    theirs = desired_deployment(home.draft(image="theirs:1"), "")
    theirs.metadata = ObjectMeta(name="web", namespace=home.namespace)
    await home.client.create(theirs)

    await home.make(port=8080)

    application = await home.until(says("Degraded", "True", "NameConflict"))
    assert condition(application, "Ready").reason == "NameConflict"
    assert image_of(await home.deployment()) == "theirs:1"
    assert controller_of(await home.deployment()) is None
    assert (application.status.replicas, application.status.ready_replicas) == (0, 0)
    assert (await home.event("NameConflict")).type == "Warning"
    await home.child(Service)


async def test_what_the_server_refuses_is_told_in_its_words_and_the_rest_is_made(home: Home) -> None:
    await home.make(port=8080, env=[EnvVar(name="A=B")])

    application = await home.until(says("Degraded", "True", "Rejected"))

    assert "env[0].name" in (condition(application, "Degraded").message or "")
    assert (await home.event("Rejected")).type == "Warning"
    await home.child(Service)
    await home.edit({"env": []})
    await home.until(is_ready)


async def test_a_missing_permission_is_named_until_it_is_there(home: Home) -> None:
    def forbid(request: HttpRequest) -> HttpResponse | None:
        mine = request.method == "PATCH" and f"{home.namespace}/services/" in request.path
        return status(403, reason="Forbidden", message="services is forbidden") if mine else None

    home.faults.answer = forbid
    await home.make(port=8080)
    application = await home.until(says("Degraded", "True", "Forbidden"))
    assert "services is forbidden" in (condition(application, "Degraded").message or "")

    home.faults.answer = None

    await home.until(is_ready)


async def test_trouble_that_passes_is_not_bothered_about(home: Home) -> None:
    refusals = [status(500), status(409, reason="Conflict"), status(503)]

    def stumble(request: HttpRequest) -> HttpResponse | None:
        mine = request.method == "PATCH" and f"{home.namespace}/deployments/" in request.path
        return refusals.pop() if mine and refusals else None

    home.faults.answer = stumble
    application = await home.ready()

    assert refusals == []
    assert condition(application, "Degraded").reason == "AsExpected"
    assert application.metadata.finalizers == [FINALIZER]


async def test_a_label_on_the_config_map_wakes_nobody(home: Home) -> None:
    config = await home.config(GREETING="hello")
    await home.ready(config_ref=SETTINGS)
    since = len(home.faults.requests)

    config.metadata.labels["new"] = "label"
    await home.client.patch(config)
    await home.ready(name="witness")  # whatever the label had caused would have happened by now

    assert home.writes(since, "/web") == []
