"""A certificate is one user: signers and server read a subject alike, as Go does. The last common name counts.

Covers: kubewright.apiserver.wire.http, kubewright.apiserver.auth, kubewright.cluster.controller_manager.certificates
"""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.planes import Plane
from tests.security.callers import caller, grant
from tests.security.certificates import SERVER, certificate, certificate_request, name

from kubewright import Client
from kubewright._base.certificates import KeyPair
from kubewright.api.codec import from_tree
from kubewright.k8s.certificates.v1 import CertificateSigningRequest
from kubewright.testing import until

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
CLIENT_USAGES = ("digital signature", "client auth")
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
DAY = timedelta(days=1)


def authority(plane: Plane, title: str = "ca") -> KeyPair:
    pki = plane._pki
    return KeyPair(Path(pki.certificate(title)).read_bytes(), Path(pki.key(title)).read_bytes())


async def whoami(plane: Plane, pair: KeyPair, **headers: str) -> tuple[str, tuple[str, ...], str]:
    """Name, groups and uid of the user of a certificate; `refused` if it lets nobody in."""
    user = await caller(plane, "", certificate=pair.certificate, key=pair.key)
    try:
        answer = await user.send("POST", REVIEWS, REVIEW, headers=headers.items())
    except (OSError, IndexError):  # the embedded server ends the handshake
        return "refused", (), ""
    if answer.code == 401:
        return "refused", (), ""
    info = answer.body["status"]["userInfo"]
    return info["username"], tuple(info["groups"]), info.get("uid", "")


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        (name("alice", "bob"), "bob"),
        (name("bob", "alice", groups=("one",)), "alice"),
        (x509.Name([*name("alice"), *name("bob", groups=("one",))]), "bob"),
    ],
    ids=["two", "two-with-group", "group-between"],
)
async def test_the_last_common_name_is_the_user(plane: Plane, subject: x509.Name, user: str) -> None:
    assert (await whoami(plane, certificate(authority(plane), subject)))[0] == user


async def test_every_organization_is_a_group(plane: Plane) -> None:
    pair = certificate(authority(plane), name("alice", groups=("one", "two")))

    assert await whoami(plane, pair) == ("alice", ("one", "two", "system:authenticated"), "")


async def test_a_certificate_without_a_common_name_is_nobodys(plane: Plane) -> None:
    pair = certificate(authority(plane), name(groups=("system:masters",)))

    assert (await whoami(plane, pair))[0] == "refused"


async def test_the_uid_of_a_certificate(plane: Plane) -> None:
    subject = x509.Name([*name("alice"), x509.NameAttribute(UID, "1234")])
    twice = x509.Name([*subject, x509.NameAttribute(UID, "5678")])

    assert (await whoami(plane, certificate(authority(plane), subject)))[2] == "1234"
    assert (await whoami(plane, certificate(authority(plane), twice)))[0] == "refused"


@pytest.mark.parametrize(
    "facts",
    [{"purpose": SERVER}, {"start": -2 * DAY, "end": -DAY}, {"start": DAY, "end": 2 * DAY}],
    ids=["of-a-server", "expired", "not-yet-valid"],
)
async def test_a_certificate_that_is_not_valid_lets_nobody_in(plane: Plane, facts: dict[str, Any]) -> None:
    assert (await whoami(plane, certificate(authority(plane), name("alice"), **facts)))[0] == "refused"


async def test_a_certificate_of_another_authority_lets_nobody_in(plane: Plane) -> None:
    intermediate = certificate(authority(plane), name("an intermediate"), is_authority=True, purpose=None)
    stranger = certificate(intermediate, name("alice"))

    # The intermediate is a certificate of the authority; without it, nothing leads to the authority.
    chain = KeyPair(stranger.certificate + intermediate.certificate, stranger.key)
    assert (await whoami(plane, chain))[0] == "alice"
    assert (await whoami(plane, stranger))[0] == "refused"


@pytest.mark.parametrize("is_intermediate", [False, True], ids=["direct", "intermediate"])
async def test_certificates_of_the_front_proxys_authority_are_no_users(plane: Plane, is_intermediate: bool) -> None:
    signer, chain = authority(plane, "front-proxy-ca"), b""
    if is_intermediate:
        signer = certificate(signer, name("proxies of ours"), is_authority=True, purpose=None)
        chain = signer.certificate
    user, proxy = (certificate(signer, name(each)) for each in ("alice", "front-proxy-client"))

    remote = {"X-Remote-User": "carol"}
    pair = KeyPair(user.certificate + chain, user.key)
    assert (await whoami(plane, pair))[0] == "refused"
    assert (await whoami(plane, pair, **remote))[0] == "refused"
    assert (await whoami(plane, KeyPair(proxy.certificate + chain, proxy.key), **remote))[0] == "carol"


async def test_a_users_certificate_is_no_front_proxys(plane: Plane) -> None:
    pair = certificate(authority(plane), name("alice", "front-proxy-client"))

    assert (await whoami(plane, pair, **{"X-Remote-User": "carol"}))[0] == "front-proxy-client"


async def ask(client: Client, request: KeyPair, signer: str, usages: tuple[str, ...] = CLIENT_USAGES) -> str:
    title = f"asked-{uuid4().hex[:10]}"
    spec = {
        "request": base64.b64encode(request.certificate).decode(),
        "signerName": signer,
        "usages": list(usages),
    }
    await client.create(from_tree(CertificateSigningRequest, {"metadata": {"name": title}, "spec": spec}))
    return title


async def approve(client: Client, title: str) -> None:
    patch = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Asked"}]}}
    await client.patch_by_name(CertificateSigningRequest, title, patch, subresource="approval")


async def answered(client: Client, title: str) -> CertificateSigningRequest:
    def is_answered(request: CertificateSigningRequest) -> bool:
        failed = any(each.type == "Failed" for each in request.status.conditions or ())
        return failed or bool(request.status.certificate)

    return await until(client, CertificateSigningRequest, title, is_answered)


@pytest.mark.parametrize("first", ["system:admin", "system:node:planted"])
async def test_nobody_becomes_another_user_by_a_second_common_name(plane: Plane, client: Client, first: str) -> None:
    request = certificate_request(name(first, "mallory"))
    title = await ask(client, request, CLIENT)
    await approve(client, title)

    result = await answered(client, title)

    # kube-controller-manager keeps the last name only; the embedded signer refuses the request.
    if result.status.certificate:
        assert (await whoami(plane, KeyPair(result.status.certificate, request.key)))[0] == "mallory"
    else:
        assert any(
            each.type == "Failed" and "common name" in (each.message or "") for each in result.status.conditions or ()
        )


async def test_a_kubelets_second_common_name_is_not_approved(plane: Plane, client: Client, namespace: str) -> None:
    user = f"bootstrapper-{namespace}"
    group = "certificates.k8s.io"
    create = {"verbs": ["create"], "apiGroups": [group]}
    rules = [create | {"resources": [f"certificatesigningrequests{each}"]} for each in ("", "/nodeclient")]
    await grant(client, user, rules)
    kubelet = await caller(plane, user)
    groups = ("system:nodes",)

    async def asked(subject: x509.Name) -> tuple[KeyPair, CertificateSigningRequest]:
        request = certificate_request(subject)
        title = f"asked-{uuid4().hex[:10]}"
        encoded = base64.b64encode(request.certificate).decode()
        spec = {"request": encoded, "signerName": KUBELET, "usages": list(CLIENT_USAGES)}
        body = {
            "apiVersion": f"{group}/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": title},
            "spec": spec,
        }
        assert (await kubelet.send("POST", f"/apis/{group}/v1/certificatesigningrequests", body)).code == 201
        if len(subject.get_attributes_for_oid(NameOID.COMMON_NAME)) == 1:
            await answered(client, title)
        return request, await client.get(CertificateSigningRequest, title)

    # The second request is answered after the first: the controller has seen both.
    request, odd = await asked(name("system:admin", "system:node:planted", groups=groups))
    _, plain = await asked(name("system:node:planted", groups=groups))
    odd = await client.get(CertificateSigningRequest, odd.metadata.name)

    assert plain.status.certificate
    if odd.status.certificate:
        assert (await whoami(plane, KeyPair(odd.status.certificate, request.key)))[0] == "system:node:planted"


async def test_alternative_names_of_other_types_are_not_signed(plane: Plane, client: Client) -> None:
    other = x509.DirectoryName(name("system:admin"))
    request = certificate_request(name("mallory"), other, x509.DNSName("a.example"))
    title = await ask(client, request, CLIENT)
    await approve(client, title)

    signed = x509.load_pem_x509_certificate((await answered(client, title)).status.certificate or b"")

    names = signed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName("a.example")]


@pytest.mark.parametrize("groups", [("system:masters",), ("one", "system:masters")])
async def test_nobody_asks_for_a_certificate_of_the_masters(
    plane: Plane, client: Client, groups: tuple[str, ...]
) -> None:
    admin = await caller(plane, "", kubeconfig=plane.kubeconfig)
    request = certificate_request(name("mallory", groups=groups))
    spec = {"request": base64.b64encode(request.certificate).decode(), "signerName": CLIENT, "usages": ["client auth"]}
    body = {"metadata": {"name": f"asked-{uuid4().hex[:10]}"}, "spec": spec}

    answer = await admin.send("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", body)

    assert answer.code == 403
    assert f"use of {CLIENT} signer with system:masters group is not allowed" in answer.message


@pytest.mark.parametrize(("right", "subresource"), [("sign", "status"), ("", "status"), ("", "approval")])
async def test_nobody_approves_without_the_right_to(
    plane: Plane, client: Client, namespace: str, right: str, subresource: str
) -> None:
    user, group = f"approver-{namespace}", "certificates.k8s.io"
    resource = f"certificatesigningrequests/{subresource}"
    rules = [{"verbs": ["update", "patch"], "apiGroups": [group], "resources": [resource]}]
    rules += [{"verbs": [right], "apiGroups": [group], "resources": ["signers"]}] if right else []
    await grant(client, user, rules)
    mallory = await caller(plane, user)
    title = await ask(client, certificate_request(name("mallory")), CLIENT)
    patch = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Me"}]}}
    path = f"/apis/{group}/v1/{resource.replace('/', f'/{title}/')}"

    answer = await mallory.send("PATCH", path, patch, content_type="application/merge-patch+json")

    assert answer.code == (422 if subresource == "status" else 403), answer
    assert not (await client.get(CertificateSigningRequest, title)).status.conditions
