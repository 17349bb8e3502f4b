"""The CA injector's patches, the bundle sources and the local certificates."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from kubewright._base.certificates import certificate_info
from kubewright.api.patches import apply_json_patch
from kubewright.errors import ConfigError
from kubewright.webhooks.certificates.local import LocalCertificates
from kubewright.webhooks.certificates.sources import CertificateSource, RunnableSource
from kubewright.webhooks.certificates.trust import LOCAL_LABEL, WatchedValue
from kubewright.webhooks.registration.ca_injector import injection
from kubewright.webhooks.registration.local import reachable_address
from kubewright.webhooks.registration.targets import CRD, VALIDATING

BUNDLE = b"-----BEGIN CERTIFICATE-----\n"
WANTED = base64.b64encode(BUNDLE).decode()


def hooks(*bundles: str | None) -> list[dict[str, Any]]:
    return [
        {"name": f"h{index}.a.b", "clientConfig": {} if bundle is None else {"caBundle": bundle}}
        for index, bundle in enumerate(bundles)
    ]


def test_only_what_is_wrong_is_patched() -> None:
    obj = VALIDATING.named("x", content={"webhooks": hooks(WANTED, None, "b2xk")})

    patch = injection(obj, BUNDLE)

    assert apply_json_patch({"webhooks": obj["webhooks"]}, patch) == {"webhooks": hooks(WANTED, WANTED, WANTED)}
    assert [operation["path"] for operation in patch if operation["op"] == "test"] == [
        "/webhooks/1/name",
        "/webhooks/2/name",
    ]
    assert injection(VALIDATING.named("x", content={"webhooks": hooks(WANTED)}), BUNDLE) == []


def test_a_crd_is_patched_only_where_a_webhook_converts() -> None:
    stanza: dict[str, Any] = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}}}
    converted = CRD.named("x", content={"spec": {"conversion": stanza}})
    plain = CRD.named("x", content={"spec": {"conversion": {"strategy": "None"}}})

    assert injection(converted, BUNDLE)[-1] == {
        "op": "add",
        "path": "/spec/conversion/webhook/clientConfig/caBundle",
        "value": WANTED,
    }
    assert injection(plain, BUNDLE) == []


def test_objects_of_other_injectors_are_not_changed() -> None:
    by_cert_manager = VALIDATING.named("x", content={"webhooks": hooks(None)})
    by_cert_manager.metadata.annotations["cert-manager.io/inject-ca-from-secret"] = "a/b"
    by_a_laptop = VALIDATING.named("x", content={"webhooks": hooks(None)})
    by_a_laptop.metadata.labels[LOCAL_LABEL] = "shop"

    assert injection(by_cert_manager, BUNDLE) == []
    assert injection(by_a_laptop, BUNDLE) == []


async def test_each_listener_hears_of_each_change() -> None:
    latest: WatchedValue[int] = WatchedValue()
    heard: list[list[int]] = [[], []]

    async def listen(to: list[int]) -> None:
        async for value in latest.each():
            to.append(value)
            if value == 3:
                return

    async with asyncio.TaskGroup() as group:
        for to in heard:
            group.create_task(listen(to))
        for value in (1, 1, 2, 3):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            latest.set(value)

    assert heard == [[1, 2, 3], [1, 2, 3]]
    assert latest.value == 3


async def test_local_certificates_are_a_source_that_never_changes() -> None:
    source = LocalCertificates(["10.0.0.7", "localhost"])

    certificate, _ = await source.current()

    assert certificate_info(certificate).hosts == {"10.0.0.7", "localhost"}
    assert certificate_info(certificate).issuer == certificate_info(source.bundle).subject
    assert not isinstance(source, RunnableSource)
    accepted: CertificateSource = source
    assert accepted is source


def test_a_certificate_for_nobody_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a host"):
        LocalCertificates([])


def test_a_cluster_on_this_machine_calls_loopback() -> None:
    assert reachable_address("https://127.0.0.1:6443") == "127.0.0.1"
    assert reachable_address("https://localhost:6443") in ("127.0.0.1", "::1")
