"""Certificate requests are cleared away: an hour after they were answered, a day after they were not.

Covers: kubewright.cluster.controller_manager.certificates
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from tests.cluster.controller_manager.conftest import QUIET

from kubewright import Client, Manager
from kubewright._base.certificates import Authority
from kubewright.api.codec import from_tree
from kubewright.cluster.controller_manager.certificates.csr_controller import CertificateSigningRequestController
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.certificates.v1 import CertificateSigningRequest
from kubewright.testing import VirtualClock, gone, until

HOUR = 3600.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(start=datetime.now(UTC))


@pytest.fixture
async def signing(clock: VirtualClock) -> AsyncIterator[Client]:
    async with EmbeddedCluster(controllers=False) as cluster:
        requests = CertificateSigningRequestController(Authority.create("signer"), clock=clock).declaration()
        async with Manager(requests, client=cluster.client, options=QUIET, clock=clock):
            yield cluster.client


async def ask(client: Client, name: str, answer: str = "") -> None:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder(subject_name=subject).sign(key, hashes.SHA256())
    spec = {
        "request": base64.b64encode(request.public_bytes(Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    await client.create(from_tree(CertificateSigningRequest, {"metadata": {"name": name}, "spec": spec}))
    if answer:
        patch = {"status": {"conditions": [{"type": answer, "status": "True", "reason": "Asked"}]}}
        await client.patch_by_name(CertificateSigningRequest, name, patch, subresource="approval")


async def there(client: Client) -> set[str]:
    return {each.metadata.name for each in await client.list(CertificateSigningRequest)}


async def test_requests_are_deleted_when_they_expire(signing: Client, clock: VirtualClock) -> None:
    await ask(signing, "pending")
    await ask(signing, "denied", "Denied")
    await ask(signing, "issued", "Approved")
    await until(signing, CertificateSigningRequest, "issued", lambda each: each.status.certificate)

    await clock.advance(0.9 * HOUR)
    assert await there(signing) == {"pending", "denied", "issued"}

    await clock.advance(0.2 * HOUR)
    await gone(signing, CertificateSigningRequest, "denied")
    await gone(signing, CertificateSigningRequest, "issued")
    assert await there(signing) == {"pending"}

    await clock.advance(23 * HOUR)
    await gone(signing, CertificateSigningRequest, "pending")
