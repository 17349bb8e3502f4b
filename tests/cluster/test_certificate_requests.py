"""Certificate requests: who may approve them, what the signers answer, and that the answer logs in.

Covers: kubewright.cluster.controller_manager.certificates, kubewright.apiserver.auth
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tests.planes import Plane

from kubewright import Client, Config, connect
from kubewright._base.certificates import certificate_info
from kubewright.api.codec import from_tree
from kubewright.errors import Forbidden
from kubewright.k8s.authentication.v1 import SelfSubjectReview
from kubewright.k8s.certificates.v1 import CertificateSigningRequest
from kubewright.k8s.rbac.v1 import ClusterRole, ClusterRoleBinding
from kubewright.testing import time_limit, until

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
APPROVED = {"type": "Approved", "status": "True", "reason": "ByHand", "message": "fine"}


class Requests:
    """Asks for certificates and approves of it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._made: list[str] = []

    def pem(self, name: str, *groups: str, hosts: tuple[str, ...] = ()) -> bytes:
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateSigningRequestBuilder(subject_name=subject)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(x509.DNSName, hosts)), critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)

    async def ask(
        self, request: bytes, signer: str, *usages: str, client: Client | None = None, **spec: Any
    ) -> CertificateSigningRequest:
        name = f"request-{uuid4().hex[:8]}"
        content = {"request": base64.b64encode(request).decode(), "signerName": signer, "usages": usages, **spec}
        made = from_tree(CertificateSigningRequest, {"metadata": {"name": name}, "spec": content})
        created = await (client or self.client).create(made)
        self._made.append(name)
        return created

    async def approve(self, request: CertificateSigningRequest, *, client: Client | None = None) -> None:
        patch = {"status": {"conditions": [APPROVED]}}
        await (client or self.client).patch_by_name(
            CertificateSigningRequest, request.metadata.name, patch, subresource="approval"
        )

    async def reach(
        self, request: CertificateSigningRequest, holds: Callable[[CertificateSigningRequest], object]
    ) -> CertificateSigningRequest:
        return await until(self.client, CertificateSigningRequest, request.metadata.name, holds)

    async def certificate(self, request: CertificateSigningRequest) -> bytes:
        done = await self.reach(request, lambda each: each.status.certificate)
        return done.status.certificate or b""

    async def refused(self, request: CertificateSigningRequest) -> tuple[str | None, str | None]:
        done = await self.reach(request, lambda each: len(each.status.conditions or ()) == 2)
        (failed,) = [item for item in done.status.conditions or () if item.type == "Failed"]
        assert not done.status.certificate
        return failed.reason, failed.message

    async def clear(self) -> None:
        for name in self._made:
            await self.client.delete(CertificateSigningRequest, name)


@pytest.fixture
async def requests(client: Client) -> AsyncIterator[Requests]:
    requests = Requests(client)
    yield requests
    await requests.clear()


async def test_an_approved_request_gets_a_certificate_that_logs_in(
    plane: Plane, requests: Requests, tmp_path: Path
) -> None:
    asked = await requests.ask(requests.pem("jane", "developers"), CLIENT, "digital signature", "client auth")
    assert asked.spec.username == "admin"
    assert "system:masters" in (asked.spec.groups or ())
    await requests.approve(asked)

    certificate = await requests.certificate(asked)

    key = requests.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(_kubeconfig(plane, certificate, key))
    async with connect(Config.load(kubeconfig=kubeconfig)) as jane:
        review = await jane.create(SelfSubjectReview())
    assert review.status is not None
    assert review.status.user_info is not None
    assert review.status.user_info.username == "jane"
    assert review.status.user_info.groups == ["developers", "system:authenticated"]


def _kubeconfig(plane: Plane, certificate: bytes, key: bytes) -> str:
    text = [base64.b64encode(each).decode() for each in (plane.ca_data, certificate, key)]
    return f"""
apiVersion: v1
kind: Config
current-context: it
clusters: [{{name: it, cluster: {{server: "{plane.url}", certificate-authority-data: {text[0]}}}}}]
users: [{{name: it, user: {{client-certificate-data: {text[1]}, client-key-data: {text[2]}}}}}]
contexts: [{{name: it, context: {{cluster: it, user: it}}}}]
"""


async def test_the_certificate_has_the_requested_subject_and_usages_only(plane: Plane, requests: Requests) -> None:
    usages = ("digital signature", "key encipherment", "client auth")
    asked = await requests.ask(requests.pem("jane", hosts=("a.example",)), CLIENT, *usages, expirationSeconds=3600)
    await requests.approve(asked)

    certificate = x509.load_pem_x509_certificate(await requests.certificate(asked))

    now = datetime.now(UTC)
    assert abs(certificate.not_valid_before_utc - (now - timedelta(minutes=5))) < timedelta(minutes=2)
    assert abs(certificate.not_valid_after_utc - (now + timedelta(hours=1))) < timedelta(minutes=2)
    extensions = {extension.oid.dotted_string: extension for extension in certificate.extensions}
    assert sorted(extensions) == ["2.5.29.15", "2.5.29.17", "2.5.29.19", "2.5.29.35", "2.5.29.37"]
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.digital_signature, usage.value.key_encipherment, usage.value.key_agreement) == (
        True,
        True,
        False,
    )
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    assert (purposes.critical, list(purposes.value)) == (False, [ExtendedKeyUsageOID.CLIENT_AUTH])
    basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value.ca) == (True, False)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example"]
    assert certificate.issuer.rfc4514_string() == certificate_info(plane.ca_data).subject
    assert certificate.public_key() == requests.key.public_key()


@pytest.mark.parametrize(
    ("signer", "subject", "hosts", "usages", "message"),
    [
        (CLIENT, ("jane",), (), ("server auth",), "invalid usage for client certificate: server auth"),
        (
            CLIENT,
            ("jane",),
            (),
            ("digital signature",),
            "missing required usage for client certificate: client auth",
        ),
        (KUBELET, ("jane",), (), ("client auth",), "subject organization is not system:nodes"),
        (
            KUBELET,
            ("system:node:a", "system:nodes"),
            ("a",),
            ("digital signature", "client auth"),
            "DNS subjectAltNames are not allowed",
        ),
        (
            KUBELET,
            ("system:node:a", "system:nodes"),
            (),
            ("client auth",),
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (
            SERVING,
            ("system:node:a", "system:nodes"),
            (),
            ("digital signature", "server auth"),
            "DNS or IP subjectAltName is required",
        ),
        (
            SERVING,
            ("a", "system:nodes"),
            ("a",),
            ("digital signature", "server auth"),
            "subject common name does not begin with system:node:",
        ),
    ],
)
async def test_a_signer_rejects_invalid_requests(
    requests: Requests,
    signer: str,
    subject: tuple[str, ...],
    hosts: tuple[str, ...],
    usages: tuple[str, ...],
    message: str,
) -> None:
    asked = await requests.ask(requests.pem(*subject, hosts=hosts), signer, *usages)
    await requests.approve(asked)

    assert await requests.refused(asked) == ("SignerValidationFailure", message)


async def test_a_kubelets_request_is_approved_for_those_who_may_ask(requests: Requests) -> None:
    node = f"system:node:{uuid4().hex[:8]}"
    asked = await requests.ask(requests.pem(node, "system:nodes"), KUBELET, "digital signature", "client auth")

    done = await requests.reach(asked, lambda each: each.status.certificate)

    (condition,) = done.status.conditions or []
    assert (condition.type, condition.status, condition.reason) == ("Approved", "True", "AutoApproved")
    assert condition.message == "Auto approving kubelet client certificate after SubjectAccessReview."


async def until_heeded(approver: Client, request: CertificateSigningRequest) -> None:
    """The server's authorizer learns of roles and bindings through watches of its own, so ask until it has."""
    async with time_limit(30):
        while True:
            try:
                await approver.get(CertificateSigningRequest, request.metadata.name)
                return
            except Forbidden:
                await asyncio.sleep(0.02)


async def test_a_request_for_system_masters_is_rejected(requests: Requests) -> None:
    with pytest.raises(Forbidden) as caught:
        await requests.ask(requests.pem("jane", "system:masters"), CLIENT, "client auth")

    assert caught.value.message.endswith(
        "is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    )


async def test_to_approve_one_needs_the_right_on_the_signer(plane: Plane, client: Client, requests: Requests) -> None:
    name = f"approver-{uuid4().hex[:8]}"
    rules = [
        {
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["certificatesigningrequests", "certificatesigningrequests/approval"],
            "verbs": ["get", "create", "patch", "update"],
        },
        {
            "apiGroups": ["certificates.k8s.io"],
            "resources": ["signers"],
            "resourceNames": ["example.com/*"],
            "verbs": ["approve"],
        },
    ]
    await client.create(from_tree(ClusterRole, {"metadata": {"name": name}, "rules": rules}))
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subjects = [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
    await client.create(from_tree(ClusterRoleBinding, binding))
    ours = await requests.ask(requests.pem("jane"), CLIENT, "client auth")
    theirs = await requests.ask(requests.pem("jane"), "example.com/badges", "client auth")

    async with connect(Config.load(kubeconfig=await plane.user(name))) as approver:
        await until_heeded(approver, ours)
        with pytest.raises(Forbidden) as caught:
            await requests.approve(ours, client=approver)
        await requests.approve(theirs, client=approver)

    assert caught.value.message == (
        f'certificatesigningrequests.certificates.k8s.io "{ours.metadata.name}" is forbidden: user not permitted to '
        f'approve requests with signerName "{CLIENT}"'
    )
    await client.delete(ClusterRoleBinding, name)
    await client.delete(ClusterRole, name)
