"""Certificates that look after themselves, and webhooks that keep themselves registered, on every control plane.

Covers: kubewright.webhooks.certificates, kubewright.webhooks.registration
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import pytest
from cryptography import x509
from tests.planes import Plane

from kubewright import Client, Config, FieldErrors, Resource, Spec, Status, convert, default, validate
from kubewright._base.http.connection import Connection
from kubewright.api import KubeObject
from kubewright.api.dynamic import DynamicObject
from kubewright.client.transport.default import default_transport
from kubewright.cluster.install import install_crds
from kubewright.errors import ConfigError, KubewrightError, NotFound
from kubewright.generate.crds.manifests import crd_for
from kubewright.k8s.core.v1 import ConfigMap, Secret
from kubewright.testing import time_limit
from kubewright.testing.clock import VirtualClock
from kubewright.webhooks.certificates.local import LocalCertificates
from kubewright.webhooks.certificates.rotation import Lifetimes
from kubewright.webhooks.certificates.secret import SecretCertificates
from kubewright.webhooks.certificates.trust import LOCAL_LABEL
from kubewright.webhooks.registration.ca_injector import INJECT_LABEL, CaInjector
from kubewright.webhooks.registration.local import LocalWebhooks, reachable_address
from kubewright.webhooks.registration.manifests import ServiceReference, conversion_stanza, webhook_configurations
from kubewright.webhooks.registration.registrar import DECLARED_BY, Registrar
from kubewright.webhooks.registration.targets import CRD, MUTATING, VALIDATING, Targets
from kubewright.webhooks.serving.router import WebhookRouter
from kubewright.webhooks.serving.server import WebhookServer

pytestmark = pytest.mark.timeout(120)

K = TypeVar("K", bound=KubeObject)

HOSTS = ("127.0.0.1", "hooks.shop.svc")
SERVICE = ServiceReference(name="hooks", namespace="shop")


@validate(ConfigMap, on="create", name="limits.kubewright.test", object_selector={"asked": "yes"})
def validate_map(config: ConfigMap, errors: FieldErrors) -> None:
    if (config.data or {}).get("size", "1") == "0":
        errors.add("data.size", "must not be 0")


@default(ConfigMap, on="create", name="sizes.kubewright.test", object_selector={"asked": "yes"})
def default_map(config: ConfigMap) -> None:
    config.data = {"size": "1", **(config.data or {})}


class LampSpec(Spec):
    watts: int = 0


class OldLamp(
    Resource[LampSpec, Status], group="conversion.example.io", version="v1alpha1", kind="Lamp", storage=False
):
    """A lamp as it was."""


class Lamp(Resource[LampSpec, Status], group="conversion.example.io", version="v1"):
    """A lamp."""


@convert(OldLamp, Lamp)
def up(old: OldLamp) -> Lamp:
    return Lamp(metadata=old.metadata, spec=old.spec)


@convert(Lamp, OldLamp)
def down(lamp: Lamp) -> OldLamp:
    return OldLamp(metadata=lamp.metadata, spec=lamp.spec)


class Runs(Protocol):
    async def run(self) -> None: ...


@asynccontextmanager
async def running(*parts: Runs, seconds: float = 60) -> AsyncIterator[None]:
    """Each part as a task, for the length of the block."""
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        async with time_limit(seconds):
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def seen(
    client: Client, kind: type[K], name: str, wanted: Callable[[K], bool], *, namespace: str | None = None
) -> K:
    """The object, as soon as it is as wanted."""
    while True:
        listed = await client.list(kind, namespace=namespace, fields={"metadata.name": name})
        for obj in listed:
            if wanted(obj):
                return obj
        async with client.watch(
            kind,
            namespace=namespace,
            fields={"metadata.name": name},
            resource_version=listed.metadata.resource_version,
        ) as events:
            async for event in events:
                if event.type != "DELETED" and wanted(event.object):
                    return event.object


def bundles_in(obj: DynamicObject) -> set[bytes]:
    return {base64.b64decode(webhook["clientConfig"].get("caBundle", "")) for webhook in obj["webhooks"]}


async def first_bundle(certificates: SecretCertificates) -> bytes:
    async for bundle in certificates.bundles():
        return bundle
    raise AssertionError("a source never ends")


@pytest.fixture
def operator() -> str:
    return f"op-{uuid4().hex[:8]}"


@pytest.fixture
async def lamp_crd(client: Client, operator: str) -> AsyncIterator[str]:
    """A CRD of two versions without conversion, for one test."""
    tree: dict[str, Any] = crd_for(OldLamp, Lamp)
    await install_crds(client, tree)
    yield tree["metadata"]["name"]
    crd = await client.delete(CRD, tree["metadata"]["name"])
    while crd is not None:
        try:
            crd = await client.get(CRD, tree["metadata"]["name"])
        except NotFound:
            crd = None


# The Secret ---------------------------------------------------------------------------------------------------------


async def test_replicas_started_at_the_same_instant_agree_on_one_authority(
    client: Client, namespace: str, operator: str
) -> None:
    replicas = [SecretCertificates(client, operator=operator, namespace=namespace, hosts=HOSTS) for _ in range(5)]

    async with running(*replicas):
        pairs = await asyncio.gather(*(replica.current() for replica in replicas))
        bundles = await asyncio.gather(*map(first_bundle, replicas))

    secret = await client.get(Secret, f"{operator}-webhook-certs", namespace=namespace)
    assert secret.data is not None
    assert set(pairs) == {(secret.data["tls.crt"], secret.data["tls.key"])}
    assert set(bundles) == {secret.data["ca.crt"]}
    assert len(x509.load_pem_x509_certificates(secret.data["ca.crt"])) == 1


async def test_deleting_the_secret_replaces_the_authority_while_the_old_one_stays_trusted(
    client: Client, namespace: str, operator: str
) -> None:
    name = f"{operator}-webhook-certs"
    replicas = [SecretCertificates(client, operator=operator, namespace=namespace, hosts=HOSTS) for _ in range(2)]
    async with running(*replicas):
        pairs = await asyncio.gather(*(replica.current() for replica in replicas))
        before = await client.get(Secret, name, namespace=namespace)
        await client.delete(before)
        after = await seen(
            client, Secret, name, lambda secret: secret.metadata.uid != before.metadata.uid, namespace=namespace
        )

    assert after.data is not None
    assert before.data is not None
    assert (after.data["tls.crt"], after.data["tls.key"]) == pairs[0]
    assert before.data["ca.crt"] in after.data["ca.crt"]
    assert "successor.crt" in after.data


async def test_a_secret_that_lost_its_content_is_made_anew(client: Client, namespace: str, operator: str) -> None:
    certificates = SecretCertificates(client, operator=operator, namespace=namespace, hosts=HOSTS)
    async with running(certificates):
        pair = await certificates.current()
        await client.patch_by_name(
            Secret, f"{operator}-webhook-certs", {"data": {"signer.key": None}}, namespace=namespace
        )
        secret = await seen(
            client,
            Secret,
            f"{operator}-webhook-certs",
            lambda secret: "signer.key" in (secret.data or {}),
            namespace=namespace,
        )

    assert secret.data is not None
    assert (secret.data["tls.crt"], secret.data["tls.key"]) == pair


async def test_a_secret_of_somebody_else_is_left_alone(client: Client, namespace: str, operator: str) -> None:
    name = f"{operator}-webhook-certs"
    foreign = Secret.named(name, namespace=namespace)
    foreign.data = {"mine": b"1"}
    foreign = await client.create(foreign)
    certificates = SecretCertificates(client, operator=operator, namespace=namespace, hosts=HOSTS)

    async with running(certificates):
        secret = foreign
        while not certificates.problem:
            secret = await client.get(Secret, name, namespace=namespace)

    assert "does not belong to" in certificates.problem
    assert secret.metadata.resource_version == foreign.metadata.resource_version


# Trust --------------------------------------------------------------------------------------------------------------


async def test_bundles_are_put_in_and_repaired_where_the_operator_looks_after_them(
    client: Client, operator: str, lamp_crd: str
) -> None:
    certificates = LocalCertificates(HOSTS)
    labels = {INJECT_LABEL: operator}
    ours, theirs = (
        webhook_configurations([validate_map], name=name, service=SERVICE, labels=labels)[0]
        for name in (operator, f"{operator}-cm")
    )
    theirs["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "shop/hooks"}
    for tree in (ours, theirs):
        await client.create(VALIDATING.named(tree["metadata"]["name"], content={"webhooks": tree["webhooks"]}))
        await client.patch_by_name(VALIDATING, tree["metadata"]["name"], {"metadata": tree["metadata"]})
    stanza = {"metadata": {"labels": labels}, "spec": {"conversion": conversion_stanza(service=SERVICE)}}
    await client.patch_by_name(CRD, lamp_crd, stanza)
    name = ours["metadata"]["name"]
    wanted = {certificates.bundle}
    bundles = CaInjector(client, certificates, Targets(client, labels=f"{INJECT_LABEL}={operator}"))
    try:
        async with running(bundles):
            await bundles.wait_ready()
            assert bundles_in(await client.get(VALIDATING, name)) == wanted
            crd = await client.get(CRD, lamp_crd)
            assert base64.b64decode(crd.get("spec.conversion.webhook.clientConfig.caBundle")) == certificates.bundle
            await client.patch_by_name(
                VALIDATING, name, [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}], patch_type="json"
            )
            await seen(client, VALIDATING, name, lambda obj: bundles_in(obj) == wanted)
            while not bundles.trusted(certificates.bundle):  # who writes may hear of it later than who watches
                await client.get(VALIDATING, name)

        assert bundles_in(await client.get(VALIDATING, theirs["metadata"]["name"])) == {b""}
    finally:
        for tree in (ours, theirs):
            await client.delete(VALIDATING, tree["metadata"]["name"])


# Registration -------------------------------------------------------------------------------------------------------


async def test_a_registration_is_made_repaired_and_left_when_the_operator_stops(
    client: Client, operator: str, lamp_crd: str
) -> None:
    name = f"{operator}-validating-webhook-configuration"
    registration = Registrar(
        client, [validate_map, default_map, up, down], LocalCertificates(HOSTS), operator=operator, service=SERVICE
    )
    try:
        async with running(registration):
            await registration.wait_ready()
            made = await client.get(VALIDATING, name)
            (webhook,) = made["webhooks"]
            assert webhook["namespaceSelector"]["matchExpressions"] == [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop"]}
            ]
            assert webhook["timeoutSeconds"] == 5
            crd = await client.get(CRD, lamp_crd)
            assert crd.get("spec.conversion.webhook.clientConfig.service.name") == "hooks"
            patch = [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 29}]
            await client.patch_by_name(VALIDATING, name, patch, patch_type="json")
            await seen(client, VALIDATING, name, lambda obj: obj["webhooks"][0]["timeoutSeconds"] == 5)
            await client.delete(VALIDATING, name)
            await seen(client, VALIDATING, name, lambda obj: obj.metadata.uid != made.metadata.uid)

        assert (await client.get(VALIDATING, name))["webhooks"]
    finally:
        await registration.remove()
    with pytest.raises(NotFound):
        await client.get(VALIDATING, name)


async def test_a_webhook_that_is_no_longer_declared_is_asked_no_more(client: Client, operator: str) -> None:
    certificates = LocalCertificates(HOSTS)
    old = Registrar(client, [validate_map, default_map], certificates, operator=operator, service=SERVICE)
    new = Registrar(client, [validate_map], certificates, operator=operator, service=SERVICE)
    try:
        async with running(old):
            await old.wait_ready()
        async with running(new):
            await new.wait_ready()

            mutating = await client.get(MUTATING, f"{operator}-mutating-webhook-configuration")
            assert not mutating.get("webhooks")
    finally:
        await new.remove()


async def test_an_older_version_steps_back_when_a_newer_one_has_come(client: Client, operator: str) -> None:
    name = f"{operator}-validating-webhook-configuration"
    certificates = LocalCertificates(HOSTS)
    old = Registrar(client, [validate_map], certificates, operator=operator, service=SERVICE)
    new = Registrar(client, [validate_map, default_map], certificates, operator=operator, service=SERVICE)
    try:
        async with running(old):
            await old.wait_ready()
            before = await client.get(VALIDATING, name)
            async with running(new):
                await new.wait_ready()
                after = await client.get(VALIDATING, name)
                assert after.metadata.annotations[DECLARED_BY] != before.metadata.annotations[DECLARED_BY]
            # The newer one is gone. Whom to trust is still seen to, and nothing else is undone.
            patch: list[dict[str, Any]] = [
                {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"},
                {"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 7},
            ]
            await client.patch_by_name(VALIDATING, name, patch, patch_type="json")
            repaired = await seen(client, VALIDATING, name, lambda obj: bundles_in(obj) == {certificates.bundle})

            assert repaired["webhooks"][0]["timeoutSeconds"] == 7
            assert repaired.metadata.annotations == after.metadata.annotations
    finally:
        await new.remove()


# Local webhooks -----------------------------------------------------------------------------------------------------


async def test_local_webhooks_are_called_and_removed_when_the_operator_stops(
    plane: Plane, client: Client, namespace: str, operator: str, lamp_crd: str
) -> None:
    declarations = (validate_map, default_map, up, down)
    server_url = Config.load(kubeconfig=plane.kubeconfig).server
    before = (await client.get(CRD, lamp_crd)).get("spec.conversion")
    server = WebhookServer(WebhookRouter(declarations), host="127.0.0.1", port=0)
    server.open()
    port = server.port
    local = LocalWebhooks(client, declarations, operator=operator, port=port, server=server_url)
    server.certificates = local.certificates

    async with running(server, local):
        await local.wait_ready()
        assert local.address == "127.0.0.1"
        config = ConfigMap.named("asked", namespace=namespace)
        config.metadata.labels["asked"] = "yes"
        made = await _created(client, config)
        crd = await client.get(CRD, lamp_crd)
        assert crd.get("spec.conversion.webhook.clientConfig.url") == f"https://127.0.0.1:{port}/convert"
        assert await client.list(VALIDATING, labels={LOCAL_LABEL: operator})

    assert made.data == {"size": "1"}
    for kind in (MUTATING, VALIDATING, CRD):
        assert not (await client.list(kind, labels={LOCAL_LABEL: operator})).items
    assert (await client.get(CRD, lamp_crd)).get("spec.conversion") == before


async def _created(client: Client, config: ConfigMap) -> ConfigMap:
    """Created once the server has noticed the webhooks, which it does a moment after they are registered."""
    while True:
        made = await client.create(config, dry_run=True)
        if made.data:
            return await client.create(config)


async def test_what_a_killed_process_left_behind_is_swept_by_the_next(
    client: Client, operator: str, lamp_crd: str
) -> None:
    async def left_behind(name: str, process: str) -> None:
        stale = VALIDATING.named(name, content={"webhooks": []})
        stale.metadata.labels[LOCAL_LABEL] = operator
        stale.metadata.annotations["kubewright.io/local-process"] = process
        await client.create(stale)

    machine = socket.gethostname()
    await left_behind(f"{operator}-dead", f"{machine}/999999999")
    await left_behind(f"{operator}-alive", f"{machine}/{os.getpid()}")
    await left_behind(f"{operator}-elsewhere", "another-machine/1")
    crd = await client.get(CRD, lamp_crd)
    crd.metadata.labels[LOCAL_LABEL] = operator
    crd.metadata.annotations["kubewright.io/local-process"] = f"{machine}/999999999"
    crd.metadata.annotations["kubewright.io/conversion-before"] = json.dumps(conversion_stanza(service=SERVICE))
    await client.patch(crd)

    await LocalWebhooks(client, [validate_map], operator=operator, port=1, address="127.0.0.1").remove_stale()

    left = {obj.metadata.name for obj in await client.list(VALIDATING, labels={LOCAL_LABEL: operator})}
    assert left == {f"{operator}-alive", f"{operator}-elsewhere"}
    for name in left:
        await client.delete(VALIDATING, name)
    crd = await client.get(CRD, lamp_crd)
    assert LOCAL_LABEL not in crd.metadata.labels
    assert crd.get("spec.conversion.webhook.clientConfig.service.name") == "hooks"


def test_an_api_server_that_cannot_be_found_is_named() -> None:
    with pytest.raises(ConfigError, match="give the address"):
        reachable_address("https://no-such-host.invalid:6443")


# Rotation under load ------------------------------------------------------------------------------------------------


LIFETIMES = Lifetimes(authority=timedelta(minutes=20), serving=timedelta(minutes=6), propagation=timedelta(minutes=3))


class Replica:
    """An operator's process. Each asks for its own half of the objects, as if a Service had picked it."""

    def __init__(self, client: Client, operator: str, namespace: str, clock: VirtualClock, number: int) -> None:
        self.label = f"{operator}-{number}"
        self.asked = 0
        self.answered = asyncio.Event()
        self.served: list[bytes] = []
        self.certificates = SecretCertificates(
            client, operator=operator, namespace=namespace, hosts=HOSTS, lifetimes=LIFETIMES, clock=clock
        )

        @validate(
            ConfigMap,
            on="create",
            name=f"r{number}.kubewright.test",
            object_selector={"asked": self.label},
            timeout_seconds=30,  # a busy machine is not what is tested
        )
        async def count(config: ConfigMap) -> None:
            self.asked += 1
            self.answered.set()
            self.answered = asyncio.Event()

        self.server = WebhookServer(WebhookRouter([count]), self, host="127.0.0.1", port=0)
        self.server.open()
        _close_after_each_answer(self.server)
        url = f"https://127.0.0.1:{self.server.port}"
        self.registration = Registrar(client, [count], self, operator=operator, prefix=self.label, url=url, clock=clock)

    # The source of the server and of the registration: as given, with a note of what is served, and slow to spread.

    async def current(self) -> tuple[bytes, bytes]:
        pair = await self.certificates.current()
        self.served.append(pair[0])
        return pair

    async def changed(self) -> None:
        await self.certificates.changed()

    async def run(self) -> None:
        await self.certificates.run()

    async def bundles(self) -> AsyncIterator[bytes]:
        async for bundle in self.certificates.bundles():
            due = self.asked + 30
            while 0 < self.asked < due:
                await self.answered.wait()
            yield bundle

    def require(self, trusted: Callable[[bytes], bool]) -> None:
        self.certificates.require(trusted)


def _close_after_each_answer(server: WebhookServer) -> None:
    """Every request needs a connection of its own, and so looks at the certificate."""
    http = server._http
    usual = http.protocol

    def once() -> Connection:
        connection = usual()
        connection._finishing = True
        return connection

    http.protocol = once  # type: ignore[method-assign]  # for this test alone


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_no_request_fails_while_authority_and_certificates_rotate_under_200_admissions_per_second(
    plane: Plane, client: Client, namespace: str, operator: str
) -> None:
    """Time goes with the requests: two minutes for 200 of them, which are a second's where nothing else runs.

    It must not get an hour ahead of the servers' own: certificates are valid an hour before they are made, not more.
    """
    clock = VirtualClock(start=datetime.now(UTC))
    replicas = [Replica(client, operator, namespace, clock, number) for number in range(2)]
    for one, other in (replicas, replicas[::-1]):
        one.certificates.require(other.registration.trusted)  # in a cluster they share one registration
    trusted: list[bytes] = []
    failures: list[str] = []
    under_way = asyncio.Semaphore(20)
    # Without retries, which would hide what is looked for.
    async with Client(default_transport(Config.load(kubeconfig=plane.kubeconfig))) as plain, AsyncExitStack() as stack:

        async def ask(replica: Replica) -> None:
            config = ConfigMap.named("asked", namespace=namespace)
            config.metadata.labels["asked"] = replica.label
            try:
                await plain.create(config, dry_run=True)
            except KubewrightError as error:
                failures.append(str(error))
            finally:
                under_way.release()

        for replica in replicas:
            await stack.enter_async_context(running(replica.server, replica.registration, seconds=280))
            stack.push_async_callback(replica.registration.remove)
            await replica.registration.wait_ready()
            await replica.server.wait_ready()
            while not replica.asked:  # until the API server has noticed
                await under_way.acquire()
                await ask(replica)
        async with asyncio.TaskGroup() as group:
            notes = group.create_task(_note(replicas[0].certificates, trusted))
            loop = asyncio.get_running_loop()
            start, number = loop.time(), 0
            # Until the first authority is no longer trusted, and everything has happened that is to happen.
            while (not trusted or trusted[0] in trusted[-1]) and number < 5000:
                await asyncio.sleep(max(0.0, start + number / 200 - loop.time()))
                await under_way.acquire()
                group.create_task(ask(replicas[number % 2]))
                number += 1
                if number % 20 == 0:
                    await clock.advance(12)
            notes.cancel()

    assert failures == []
    assert 1000 < number < 5000
    assert sum(replica.asked for replica in replicas) >= number
    assert replicas[0].served[-1] == replicas[1].served[-1]
    assert all(len(replica.served) >= 3 for replica in replicas)  # of two in quick succession the first may be skipped
    assert [len(x509.load_pem_x509_certificates(bundle)) for bundle in trusted] == [1, 2, 1]


async def _note(certificates: SecretCertificates, trusted: list[bytes]) -> None:
    async for bundle in certificates.bundles():
        trusted.append(bundle)  # noqa: PERF401 - it is read meanwhile
