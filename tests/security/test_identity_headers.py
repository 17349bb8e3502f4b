"""Headers that say who asks: none is taken for another one's, none comes in through a back door.

Covers: kubewright.apiserver.auth, kubewright.apiserver.wire.http, kubewright._base.http
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.planes import Plane
from tests.security.callers import anonymous, caller, grant

from kubewright import Client
from kubewright.apiserver.auth.identity_headers import unescape_key
from kubewright.apiserver.outbound.http_client import Destination, HttpClient, HttpClientError
from kubewright.apiserver.proxy.api_services import identity_headers
from kubewright.apiserver.wire.users import User
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.cluster.planes.real import RealCluster
from kubewright.k8s.core.v1 import ServiceAccount

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
WEBSOCKET = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
Headers = list[tuple[str, str]]

HEADERS: list[Headers] = [
    [("Impersonate-User", "")],
    [("Impersonate-User", ""), ("Impersonate-User", "bob")],
    [("Impersonate-User", "bob"), ("Impersonate-User", "carol")],
    [("impersonate-user", "bob"), ("IMPERSONATE-GROUP", "one"), ("Impersonate-group", "two")],
    [("Impersonate-User", "bob,carol")],
    [("Impersonate-User", "jürgen"), ("Impersonate-Group", "größe")],
    [("Impersonate-User", "bob"), ("Impersonate-Group", "")],
    [("Impersonate-User", "bob"), ("Impersonate-Group", "system:masters")],
    [("Impersonate-User", "bob"), ("Impersonate-Uid", "")],
    [("Impersonate-User", "bob"), ("Impersonate-Uid", "1"), ("Impersonate-Uid", "2")],
    [("Impersonate-User", "bob"), ("Impersonate-Extra-Example.Com%2fTeam", "x")],
    [("Impersonate-User", "bob"), ("Impersonate-Extra-a%2fb%zz", "x")],
    [("Impersonate-User", "bob"), ("Impersonate-Extra-", "x")],
    [("Impersonate-User", "system:anonymous")],
    [("Impersonate-User", "system:serviceaccount:default:robot")],
    [("Impersonate-User", "system:serviceaccount:default:robot:x")],
    [("Impersonate-User", "system:serviceaccount:../..:robot")],
    [("Impersonate-Group", "system:masters")],
    [("Impersonate-Uid", "1")],
    [("Impersonate-Extra-team", "x")],
    [("Impersonate-User", ""), ("Impersonate-Group", "system:masters")],
    [("Impersonate-Other", "x")],
]


@pytest.fixture
async def pair(embedded_cluster: EmbeddedCluster, real_cluster: RealCluster) -> tuple[Plane, Plane]:
    return embedded_cluster, real_cluster


def shown(code: int, body: Any) -> tuple[int, Any]:
    """An answer without what differs from server to server."""
    if not isinstance(body, dict):
        return code, body
    info = body.get("status", {}).get("userInfo") if code == 201 else body["message"]
    if isinstance(info, dict):
        info.get("extra", {}).pop("authentication.kubernetes.io/credential-id", None)
        info = {name: value for name, value in info.items() if value}
    return code, info


@pytest.mark.real
@pytest.mark.parametrize("headers", HEADERS, ids=str)
@pytest.mark.parametrize("who", ["admin", "mallory"])
async def test_impersonation_is_the_same_on_both_servers(pair: tuple[Plane, Plane], who: str, headers: Headers) -> None:
    answers = []
    for plane in pair:
        admin = plane.kubeconfig if who == "admin" else None
        answer = await (await caller(plane, who, kubeconfig=admin)).send("POST", REVIEWS, REVIEW, headers=headers)
        answers.append(shown(answer.code, answer.body))

    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("right", "headers"),
    [
        ({"resources": ["users"]}, [("Impersonate-Group", "system:masters")]),
        ({"resources": ["users"], "resourceNames": ["bob"]}, [("Impersonate-User", "carol")]),
        ({"resources": ["users", "groups"], "resourceNames": ["bob"]}, [("Impersonate-Group", "system:masters")]),
        ({"resources": ["users"]}, [("Impersonate-Extra-scopes", "x")]),
        ({"resources": ["users"]}, [("Impersonate-Uid", "x")]),
        ({"resources": ["users"]}, [("Impersonate-User", "system:serviceaccount:default:default")]),
    ],
    ids=["group", "other-user", "other-group", "extra", "uid", "service-account"],
)
async def test_each_impersonated_part_needs_a_right(
    plane: Plane, client: Client, namespace: str, right: dict[str, Any], headers: Headers
) -> None:
    user = f"impersonator-{namespace}"
    await grant(client, user, [{"verbs": ["impersonate"], "apiGroups": ["*"], **right}])
    mallory = await caller(plane, user)
    named = headers if headers[0][0] == "Impersonate-User" else [("Impersonate-User", "bob"), *headers]

    answer = await mallory.send("POST", REVIEWS, REVIEW, headers=named)

    assert answer.code == 403
    assert "cannot impersonate resource" in answer.message


@pytest.mark.parametrize("name", ["Authorization", "Impersonate-User", "Impersonate-Group", "X-Remote-User"])
async def test_trailers_of_a_chunked_body_are_no_headers(
    plane: Plane, client: Client, namespace: str, name: str
) -> None:
    user = f"impersonator-{namespace}"
    await grant(client, user, [{"verbs": ["impersonate"], "apiGroups": ["*"], "resources": ["*"]}])
    value = f"Bearer {await token(client, namespace)}" if name == "Authorization" else "system:admin"
    body = json.dumps(REVIEW).encode()
    head = f"POST {REVIEWS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
    head += f"Content-Type: application/json\r\nTrailer: {name}\r\n\r\n"
    request = head.encode() + b"%x\r\n%b\r\n0\r\n%b\r\n\r\n" % (len(body), body, f"{name}: {value}".encode())
    sender = anonymous(plane) if name == "Authorization" else await caller(plane, user)

    answer = await sender.send_bytes(request)

    if name == "Authorization":
        assert (answer.code, "system:anonymous" in answer.message) == (403, True)
    else:
        assert shown(answer.code, answer.body) == (201, {"username": user, "groups": ["system:authenticated"]})


async def token(client: Client, namespace: str) -> str:
    """A token of the service account `default`."""
    path = await client.object_path(ServiceAccount, "default", namespace=namespace, subresource="token")
    body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":600}}'
    return str(json.loads((await client.request("POST", path, body=body)).body)["status"]["token"])


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


async def test_which_authorization_counts(plane: Plane, client: Client, namespace: str) -> None:
    good = await token(client, namespace)
    who = f"system:serviceaccount:{namespace}:default"
    protocol, bearer = "Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io."

    async def ask(*headers: tuple[str, str]) -> str:
        answer = await anonymous(plane).send("POST", REVIEWS, REVIEW, headers=headers)
        if answer.code == 201:
            return str(answer.body["status"]["userInfo"]["username"])
        return "anonymous" if answer.code == 403 else "refused" if answer.code == 401 else str(answer)

    assert await ask(("Authorization", f"Bearer {good}")) == who
    assert await ask(("authorization", f"bEARER {good} and more")) == who
    assert await ask(("Authorization", f"Bearer {good}"), ("Authorization", "Bearer bad")) == who
    assert await ask(("Authorization", "Bearer bad"), ("Authorization", f"Bearer {good}")) == "refused"
    assert await ask(("Authorization", f"Bearer  {good}")) == "anonymous"
    assert await ask(("Authorization", f"Basic {good}")) == "anonymous"
    assert await ask(("Authorization", good)) == "anonymous"
    assert await ask(("Authorization", f"Bearer {good},")) == "refused"
    # A browser cannot set the header of a WebSocket, so it may send the token as a protocol.
    assert await ask(*WEBSOCKET, (protocol, f"{bearer}{encoded(good)}, v4.channel.k8s.io")) == who
    assert await ask(*WEBSOCKET, (protocol, f"v4.channel.k8s.io,{bearer}{encoded(good)}")) == who
    assert await ask(*WEBSOCKET, (protocol, "v4.channel.k8s.io"), (protocol, bearer + encoded(good))) == who
    assert await ask(*WEBSOCKET, (protocol, f"{bearer}{encoded(good)}")) == "refused"
    assert await ask(*WEBSOCKET, (protocol, f"{bearer}{encoded('bad')},a")) == "refused"
    assert await ask(*WEBSOCKET, (protocol, f"{bearer}!,a")) == "refused"
    assert await ask(*WEBSOCKET, (protocol, f"{bearer}{encoded(good)},{bearer}{encoded(good)},a")) == "refused"
    assert await ask((protocol, f"{bearer}{encoded(good)}, v4.channel.k8s.io")) == "anonymous"


@pytest.mark.parametrize(
    "token",
    [
        f"{encoded('[' * 50_000)}.e30.AAAA",
        f"e30.{encoded('[' * 50_000)}.AAAA",
        f"{encoded('1' * 50_000)}.e30.AAAA",
        f"{encoded('1e999')}.e30.AAAA",
    ],
    ids=["a deep header", "deep claims", "a long number", "a large number"],
)
async def test_a_token_that_is_no_json_is_unknown(plane: Plane, token: str) -> None:
    answer = await anonymous(plane).send("GET", "/api", headers=[("Authorization", f"Bearer {token}")])

    assert answer.code == 401


@pytest.mark.parametrize(
    "key", ["example.com/team", "größe", "\N{SNOWMAN}", "\N{FULLWIDTH LATIN CAPITAL LETTER A}", "100%", "%26", "a\r\nb"]
)
def test_the_key_of_an_extra_value_is_the_same_behind_a_proxy(key: str) -> None:
    (_, (name, value)) = identity_headers(User("bob", extra={key: ("x",)}))

    assert value == "x"
    assert name.isascii()
    assert unescape_key(name.removeprefix("X-Remote-Extra-")) == key


@pytest.mark.parametrize("name", ["bob\rX-Remote-Group: system:masters", "bob\nX-A: b", "bob\x00", "bob\x7f"])
async def test_a_name_with_a_line_break_goes_nowhere(name: str) -> None:
    """A carriage return alone ends a line for some servers. Certificates may have it in a common name."""
    with pytest.raises(HttpClientError, match="invalid header field value"):
        await HttpClient().request(Destination("127.0.0.1:1"), "GET", "/", headers=identity_headers(User(name)))
