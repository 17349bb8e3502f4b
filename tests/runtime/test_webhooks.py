"""Webhooks asked by a server: defaults, refusals, warnings, patches, conversion, dry-runs, failures.

Covers: kubewright.webhooks
"""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol
from uuid import uuid4

import pytest
from tests.builders.pods import pod
from tests.planes import Plane

from kubewright import (
    AdmissionRequest,
    Client,
    Config,
    Dynamic,
    FieldErrors,
    Manager,
    ManagerOptions,
    ObjectKey,
    Resource,
    Spec,
    Status,
    Warnings,
    convert,
    default,
    deny,
    mutate,
    validate,
)
from kubewright._base.certificates import Authority
from kubewright.api import KubeObject
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.install import install_crds
from kubewright.errors import ApiError, Forbidden, Invalid, KubewrightError, ServerError
from kubewright.generate.crds.manifests import crd_for
from kubewright.k8s.core.v1 import ConfigMap, Namespace, Pod
from kubewright.testing import time_limit
from kubewright.webhooks.registration.manifests import conversion_stanza, webhook_configurations
from kubewright.webhooks.serving import router
from kubewright.webhooks.serving.router import WebhookDeclaration, WebhookRouter
from kubewright.webhooks.serving.server import WebhookServer

pytestmark = pytest.mark.timeout(90)

CONFIGURATIONS = {
    kind: Dynamic("admissionregistration.k8s.io/v1", kind, plural=f"{kind.lower()}s", namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}
CRD = Dynamic(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
AUTHORITY = Authority.create("webhook tests")
PAIR = AUTHORITY.server("webhooks", hosts=("127.0.0.1",))


class StaticCertificate:
    """A certificate that never changes."""

    async def current(self) -> tuple[bytes, bytes]:
        return PAIR.certificate, PAIR.key

    async def changed(self) -> None:
        await asyncio.Event().wait()


class LampSpec(Spec):
    watts: int = 0
    colour: str | None = None
    owner: str = ""


class LampStatus(Status):
    lit: bool = False


class Lamp(Resource[LampSpec, LampStatus], group="webhooks.example.io", version="v1"):
    """A lamp."""


class OldLampSpec(Spec):
    power: str = "0W"
    colour: str | None = None


class OldLamp(
    Resource[OldLampSpec, LampStatus], group="webhooks.example.io", version="v1alpha1", kind="Lamp", storage=False
):
    """A lamp as it was."""


@default(Lamp)
def default_lamp(lamp: Lamp, request: AdmissionRequest) -> None:
    lamp.spec.colour = lamp.spec.colour or "white"
    lamp.spec.owner = lamp.spec.owner or request.user.username


@validate(Lamp, on=("create", "update", "delete"))
async def validate_lamp(
    lamp: Lamp, old: Lamp | None, request: AdmissionRequest, errors: FieldErrors, warnings: Warnings
) -> None:
    if request.operation == "DELETE":
        if lamp.spec.colour == "red":
            deny("red lamps stay")
        return
    if lamp.spec.watts > 100:
        errors.add("spec.watts", "must be at most 100")
    if lamp.spec.colour == "black":
        errors.unsupported("spec.colour", "black", ("white", "red"))
    if old is not None and old.spec.owner != lamp.spec.owner:
        errors.forbidden("spec.owner", "cannot change")
    if lamp.spec.watts > 60:
        warnings.add("spec.watts: that is a lot of light")


@convert(OldLamp, Lamp)
def up(old: OldLamp) -> Lamp:
    owner = old.metadata.annotations.pop("lamps/owner", "")
    spec = LampSpec(watts=int(old.spec.power.removesuffix("W")), colour=old.spec.colour, owner=owner)
    return Lamp(metadata=old.metadata, spec=spec, status=old.status)


@convert(Lamp, OldLamp)
def down(lamp: Lamp) -> OldLamp:
    old = OldLamp(spec=OldLampSpec(power=f"{lamp.spec.watts}W", colour=lamp.spec.colour), status=lamp.status)
    old.metadata.annotations["lamps/owner"] = lamp.spec.owner
    return old


class PartOfPod(KubeObject, version="v1", kind="Pod", plural="pods", partial=True):
    """Nothing but the metadata of a Pod: all the rest is unknown to this class."""


class Run(Protocol):
    """Runs kubectl; returns its exit code and what it printed."""

    async def __call__(self, *arguments: str, stdin: str = "") -> tuple[int, str]: ...


@asynccontextmanager
async def served(*declarations: WebhookDeclaration, client: Client) -> AsyncIterator[str]:
    """The webhooks on a port of this machine; gives their URL."""
    server = WebhookServer(WebhookRouter(declarations, client=client), StaticCertificate(), host="127.0.0.1", port=0)
    task = asyncio.create_task(server.run())
    try:
        async with time_limit(30):
            await server.wait_ready()
        yield f"https://127.0.0.1:{server.port}"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def registered(
    client: Client, *declarations: WebhookDeclaration, url: str, exclude: tuple[str, ...] = ()
) -> AsyncIterator[None]:
    """The server asks them from here on, and no longer afterwards."""
    trees = webhook_configurations(
        declarations,
        name=f"case-{uuid4().hex[:8]}",
        url=url,
        ca_bundle=AUTHORITY.certificate,
        exclude_namespaces=exclude,
    )
    made = []
    try:
        for tree in trees:
            kind = CONFIGURATIONS[tree["kind"]]
            made.append(
                await client.create(kind.named(tree["metadata"]["name"], content={"webhooks": tree["webhooks"]}))
            )
        yield
    finally:
        for configuration in made:
            await client.delete(configuration)


async def until(action: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """What an action gives, tried until it is as it should be: servers take a moment to notice a configuration."""
    async with time_limit(60):
        while True:
            try:
                outcome = await action()
            except KubewrightError as error:
                outcome = error
            if holds(outcome):
                return outcome
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def kubectl_on(plane: Plane, real_binaries: Binaries) -> Run:
    """kubectl, talking to the control plane under test."""

    async def run(*arguments: str, stdin: str = "") -> tuple[int, str]:
        child = await asyncio.create_subprocess_exec(
            real_binaries.kubectl,
            f"--kubeconfig={plane.kubeconfig}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await child.communicate(stdin.encode())
        return child.returncode or 0, out.decode()

    return run


@pytest.fixture(scope="module")
async def lamps(client: Client) -> AsyncIterator[str]:
    """Lamps in two versions, whose webhooks and conversion are served; gives their URL."""
    declarations = (default_lamp, validate_lamp, up, down)
    async with served(*declarations, client=client) as url:
        crd = crd_for(Lamp, OldLamp)
        crd["spec"]["conversion"] = conversion_stanza(url=url, ca_bundle=AUTHORITY.certificate)
        await install_crds(client, crd)
        async with registered(client, *declarations, url=url):
            await until(
                lambda: client.create(Lamp.named("probe", "default"), dry_run=True),
                lambda lamp: _colour(lamp) == "white",
            )
            await until(
                lambda: client.create(Lamp.named("probe", "default", spec=LampSpec(watts=1000)), dry_run=True),
                lambda answer: isinstance(answer, Invalid),
            )
            yield url
    await client.delete(CRD, crd["metadata"]["name"])


def _colour(lamp: object) -> str | None:
    return lamp.spec.colour if isinstance(lamp, Lamp) else None


async def test_defaults_are_filled_in_on_create_and_update(client: Client, namespace: str, lamps: str) -> None:
    created = await client.create(Lamp.named("a", namespace, spec=LampSpec(watts=7)))

    assert (created.spec.colour, created.spec.watts) == ("white", 7)
    assert created.spec.owner
    created.spec.colour = None
    assert (await client.patch(created)).spec.colour == "white"


async def test_every_wrong_field_is_a_cause_of_one_refusal(client: Client, namespace: str, lamps: str) -> None:
    with pytest.raises(Invalid) as caught:
        await client.create(Lamp.named("a", namespace, spec=LampSpec(watts=400, colour="black")))

    error = caught.value
    assert (error.code, error.reason) == (422, "Invalid")
    assert [(cause.field, cause.reason, cause.message) for cause in error.causes] == [
        ("spec.watts", "FieldValueInvalid", "Invalid value: 400: must be at most 100"),
        ("spec.colour", "FieldValueNotSupported", 'Unsupported value: "black": supported values: "white", "red"'),
    ]
    assert 'admission webhook "validate.v1.lamp.webhooks.example.io" denied the request: ' in error.message
    assert 'Lamp.webhooks.example.io "a" is invalid: [spec.watts: ' in error.message


async def test_an_update_is_validated_by_what_it_changes(client: Client, namespace: str, lamps: str) -> None:
    created = await client.create(Lamp.named("a", namespace))

    created.spec.owner = "somebody"
    with pytest.raises(Invalid) as caught:
        await client.patch(created)

    assert [(cause.field, cause.message) for cause in caught.value.causes] == [
        ("spec.owner", "Forbidden: cannot change")
    ]


async def test_a_deletion_can_be_refused(client: Client, namespace: str, lamps: str) -> None:
    red = await client.create(Lamp.named("red", namespace, spec=LampSpec(colour="red")))
    white = await client.create(Lamp.named("white", namespace))

    with pytest.raises(Forbidden, match="red lamps stay"):
        await client.delete(red)

    await client.delete(white)
    red.spec.colour = "white"
    await client.delete(await client.patch(red))


async def test_finalizers_are_removed_from_what_has_become_invalid(client: Client, namespace: str, lamps: str) -> None:
    created = await client.create(Lamp.named("a", namespace))
    limit: list[int] = []

    @validate(Lamp, on="update", name="strict")
    def stricter(lamp: Lamp, errors: FieldErrors) -> None:
        limit.append(lamp.spec.watts)
        errors.add("spec.watts", "is never right")

    created.metadata.finalizers = ["webhooks.example.io/hold"]
    created = await client.patch(created)
    async with served(stricter, client=client) as url, registered(client, stricter, url=url):
        created.spec.watts = 5
        await until(lambda: client.patch(created, dry_run=True), lambda answer: isinstance(answer, Invalid))
        created.spec.watts = 0
        asked = len(limit)

        await client.delete(created)
        held = await client.get(Lamp, created.key)
        held.metadata.finalizers = []
        await client.patch(held)

    assert len(limit) == asked


async def test_kubectl_shows_causes_and_warnings(namespace: str, lamps: str, kubectl_on: Run) -> None:
    def lamp(watts: int, colour: str) -> str:
        return (
            f"apiVersion: webhooks.example.io/v1\nkind: Lamp\nmetadata: {{name: a, namespace: {namespace}}}\n"
            f"spec: {{watts: {watts}, colour: {colour}}}\n"
        )

    code, refused = await kubectl_on("create", "-f", "-", stdin=lamp(400, "black"))
    assert code == 1
    assert 'The Lamp "a" is invalid' in refused
    assert "* spec.watts: Invalid value: 400: must be at most 100" in refused
    assert '* spec.colour: Unsupported value: "black": supported values: "white", "red"' in refused

    code, created = await kubectl_on("create", "-f", "-", stdin=lamp(80, "white"))
    assert code == 0
    assert "Warning: spec.watts: that is a lot of light" in created


async def test_objects_are_served_in_each_version(client: Client, namespace: str, lamps: str) -> None:
    await client.create(OldLamp.named("old", namespace, spec=OldLampSpec(power="40W")))
    await client.create(Lamp.named("new", namespace, spec=LampSpec(watts=60, owner="me")))

    new = {lamp.metadata.name: lamp for lamp in await client.list(Lamp, namespace=namespace)}
    old = {lamp.metadata.name: lamp for lamp in await client.list(OldLamp, namespace=namespace)}

    assert (new["old"].spec.watts, new["new"].spec.watts) == (40, 60)
    assert (old["old"].spec.power, old["new"].spec.power) == ("40W", "60W")
    assert old["new"].metadata.annotations == {"lamps/owner": "me"}
    assert old["new"].metadata.uid == new["new"].metadata.uid


async def test_an_object_that_cannot_be_converted_is_named(client: Client, namespace: str, lamps: str) -> None:
    with pytest.raises(ApiError, match="could not be converted") as caught:
        await client.create(OldLamp.named("odd", namespace, spec=OldLampSpec(power="much")))

    assert f"Lamp {namespace}/odd" in caught.value.message


async def test_stored_objects_are_moved_to_another_version(client: Client, namespace: str, lamps: str) -> None:
    created = await client.create(Lamp.named("moved", namespace, spec=LampSpec(watts=25)))
    crd = await client.get(CRD, "lamps.webhooks.example.io")
    assert await _stored_in(client) == ["v1"]

    await _store(client, crd, "v1alpha1")
    # An update that changes nothing is written all the same where the version to store is another one.
    await client.patch_by_name(Lamp, created.key, {"metadata": {"annotations": {"moved": "yes"}}})
    assert await _stored_in(client) == ["v1", "v1alpha1"]
    assert (await client.get(Lamp, created.key)).spec.watts == 25

    await _store(client, crd, "v1")
    for lamp in await client.list(Lamp):
        await client.update(lamp)
    await client.patch_by_name(
        CRD, ObjectKey("", crd.metadata.name), {"status": {"storedVersions": ["v1"]}}, subresource="status"
    )

    assert await _stored_in(client) == ["v1"]
    assert (await client.get(OldLamp, created.key)).spec.power == "25W"


async def _stored_in(client: Client) -> list[str]:
    crd = await client.get(CRD, "lamps.webhooks.example.io")
    return list(crd["status"]["storedVersions"])


async def _store(client: Client, crd: Any, version: str) -> None:
    versions = [{**item, "storage": item["name"] == version} for item in crd["spec"]["versions"]]
    await client.patch_by_name(CRD, ObjectKey("", crd.metadata.name), {"spec": {"versions": versions}})


async def test_what_the_class_does_not_know_survives_a_patch(client: Client, namespace: str) -> None:
    await label(client, namespace, case="patch")

    @mutate(PartOfPod, namespace_selector={"case": "patch", "name": namespace})
    def mark(part: PartOfPod) -> None:
        part.metadata.labels["marked"] = "yes"

    async with served(mark, client=client) as url, registered(client, mark, url=url):
        marked = await until(
            lambda: client.create(pod("a", namespace), dry_run=True), lambda got: "marked" in got.metadata.labels
        )

    assert marked.spec.containers[0].image == "nginx"
    assert marked.metadata.labels == {"app": "a", "marked": "yes"}


async def label(client: Client, namespace: str, **labels: str) -> None:
    patch = {"metadata": {"labels": {**labels, "name": namespace}}}
    await client.patch_by_name(Namespace, ObjectKey("", namespace), patch)


async def test_an_operator_that_is_down_does_not_keep_itself_from_coming_back(client: Client, namespace: str) -> None:
    other = Namespace.named(f"{namespace}-other")
    await client.create(other)
    for name in (namespace, other.metadata.name):
        await label(client, name, case="down")

    @mutate(Pod, namespace_selector={"case": "down"}, timeout_seconds=1)
    def touch(pod: Pod) -> None:
        pod.metadata.labels["touched"] = "yes"

    async with served(touch, client=client) as url:
        pass
    async with registered(client, touch, url=url, exclude=(namespace,)):
        refused = await until(
            lambda: client.create(pod("a", other.metadata.name), dry_run=True),
            lambda answer: isinstance(answer, ServerError),
        )
        made = await client.create(pod("a", namespace))

    assert 'failed calling webhook "mutate.v1.pod.core"' in str(refused)
    assert made.metadata.labels == {"app": "a"}
    await client.delete(other)


async def test_a_dry_run_has_no_side_effects(client: Client, namespace: str) -> None:
    await label(client, namespace, case="dry")

    @validate(ConfigMap, on="create", namespace_selector={"name": namespace}, side_effects="NoneOnDryRun")
    async def record(config: ConfigMap, request: AdmissionRequest, client: Client, warnings: Warnings) -> None:
        if config.metadata.name == "counted":
            await client.create(ConfigMap.named("effect", namespace))
            warnings.add("dry" if request.dry_run else "wet")

    said: list[str] = []
    listening = Client(client.transport, on_warning=said.append)
    async with served(record, client=client) as url, registered(client, record, url=url):
        await until(
            lambda: listening.create(ConfigMap.named("counted", namespace), dry_run=True), lambda _: "dry" in said
        )
        assert len(await client.list(ConfigMap, namespace=namespace, fields={"metadata.name": "effect"})) == 0

        await listening.create(ConfigMap.named("counted", namespace))

    assert said[-1] == "wet"
    assert (await client.get(ConfigMap, ObjectKey(namespace, "effect"))).metadata.uid


async def test_failure_policies_decide_what_a_broken_handler_means(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The handler gets half a second of the ten that the server waits, so that a busy machine has the rest.
    usual = router._handler_seconds
    monkeypatch.setattr(router, "_handler_seconds", lambda query, declared: usual(query, declared) - 9)
    selector = {"name": namespace}
    await label(client, namespace, case="broken")

    @validate(ConfigMap, on="create", name="raising", namespace_selector=selector, timeout_seconds=30)
    async def raising(config: ConfigMap) -> None:
        if config.metadata.name == "raising":
            raise RuntimeError("secret detail")

    @validate(
        ConfigMap,
        on="create",
        name="ignored",
        namespace_selector=selector,
        failure_policy="Ignore",
        timeout_seconds=30,
    )
    async def ignored(config: ConfigMap, warnings: Warnings) -> None:
        warnings.add("asked")
        if config.metadata.name == "ignored":
            raise RuntimeError("secret detail")

    release = threading.Event()

    @validate(ConfigMap, on="create", name="slow", namespace_selector=selector, timeout_seconds=10)
    def slow(config: ConfigMap) -> None:
        if config.metadata.name == "slow":
            release.wait()

    said: list[str] = []
    listening = Client(client.transport, on_warning=said.append)
    declarations = (raising, ignored, slow)
    async with served(*declarations, client=client) as url, registered(client, *declarations, url=url):
        await until(
            lambda: listening.create(ConfigMap.named("fine", namespace), dry_run=True), lambda _: "asked" in said
        )

        with pytest.raises(ServerError) as raised:
            await client.create(ConfigMap.named("raising", namespace))
        assert (await client.create(ConfigMap.named("ignored", namespace))).metadata.uid
        with pytest.raises(ApiError) as late:
            await client.create(ConfigMap.named("slow", namespace))
        assert (await client.create(ConfigMap.named("next", namespace))).metadata.uid
    release.set()

    assert "the webhook raising.v1.configmap.core failed" in raised.value.message
    assert "secret detail" not in raised.value.message
    assert (late.value.code, "did not respond within 0.5 s" in late.value.message) == (504, True)


def quiet(**options: Any) -> ManagerOptions:
    """Options of a manager without servers but for webhooks."""
    return ManagerOptions(
        health_address="0", metrics_address="0", webhook_host="127.0.0.1", webhook_port=0, block_limit=0, **options
    )


async def test_a_manager_serves_webhooks_with_the_certificates_it_is_given(client: Client, namespace: str) -> None:
    await label(client, namespace, case="manager")

    @mutate(ConfigMap, on="create", namespace_selector={"name": namespace})
    async def stamp(config: ConfigMap) -> None:
        config.data = {**(config.data or {}), "stamped": base64.b64encode(b"yes").decode()}

    manager = Manager(stamp, client=client, options=quiet(), certificates=StaticCertificate())
    async with manager:
        url = f"https://127.0.0.1:{manager.port('webhooks')}"
        async with registered(client, stamp, url=url):
            stamped = await until(
                lambda: client.create(ConfigMap.named("a", namespace), dry_run=True), lambda made: bool(made.data)
            )

    assert stamped.data == {"stamped": "eWVz"}


async def test_a_local_manager_needs_nothing_and_leaves_nothing(client: Client, namespace: str, plane: Plane) -> None:
    await label(client, namespace, case="local")

    @mutate(ConfigMap, on="create", namespace_selector={"name": namespace})
    def stamp(config: ConfigMap) -> None:
        config.data = {"stamped": "yes"}

    before = await _configurations(client)
    async with Manager(stamp, config=Config.load(kubeconfig=plane.kubeconfig), options=quiet(name=namespace)):
        stamped = await until(
            lambda: client.create(ConfigMap.named("a", namespace), dry_run=True), lambda made: bool(made.data)
        )
        assert stamped.data == {"stamped": "yes"}
        assert len(await _configurations(client) - before) == 1

    assert await _configurations(client) == before
    # A server notices a moment later, and asks till then who is gone.
    made = await until(
        lambda: client.create(ConfigMap.named("b", namespace)), lambda answer: isinstance(answer, ConfigMap)
    )
    assert made.data is None


async def test_in_a_cluster_a_manager_makes_its_certificates_and_registers_itself(
    client: Client, namespace: str
) -> None:
    @validate(ConfigMap, on="create", namespace_selector={"name": f"{namespace}-nowhere"})
    def check(config: ConfigMap) -> None: ...

    options = quiet(name=namespace, namespace=namespace, webhook_certificates="secret", webhook_registration=True)
    kind, name = CONFIGURATIONS["ValidatingWebhookConfiguration"], f"{namespace}-validating-webhook-configuration"
    async with Manager(check, client=client, options=options):
        found = await client.get(kind, name)
    await client.delete(found)

    (webhook,) = found["webhooks"]
    assert webhook["clientConfig"]["service"]["name"] == f"{namespace}-webhook-service"
    assert b"BEGIN CERTIFICATE" in base64.b64decode(webhook["clientConfig"]["caBundle"])
    assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == [namespace]


async def _configurations(client: Client) -> set[str]:
    lists = [await client.list(kind) for kind in CONFIGURATIONS.values()]
    return {item.metadata.name for items in lists for item in items}
