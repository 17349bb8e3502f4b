"""What a proxied server gets to see of a request, and what it can do to the client by its response.

The proxied server is a kubelet on loopback that the test registers, as the cluster registers those of simulated nodes.
The answers are those that a kube-apiserver gave before the same server on another address.

Covers: kubewright.apiserver.proxy, kubewright.apiserver.outbound.http_client
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from tests.security.raw_requests import UPGRADE, Caller
from tests.stub_server import ReceivedRequest, StubResponse, StubServer

from kubewright.cluster.planes.embedded import EmbeddedCluster

UPGRADED = (("Upgrade", "websocket"), ("Connection", "Upgrade"))
MASTERS = ("Impersonate-User: me", "Impersonate-Group: system:masters")
PATHS = {
    "/": "/",
    "/a/": "/a/",
    "/../../x": "/x",
    "/%2e%2e/%2e%2e/x": "/x",
    "/a/./b/../c": "/a/c",
    "/a%2f..%2fb": "/b",
    "//a//b": "/a/b",
    "/http://127.0.0.1/x": "/http:/127.0.0.1/x",
    "/a%3fb%23c?d=e": "/a%3Fb%23c?d=e",
    "/a%0d%0ab": "/a%0D%0Ab",
    "/a%20HTTP/1.1": "/a%20HTTP/1.1",
    "/%5c..%5cx": "/%5C..%5Cx",
    "/?a=%0d%0a;b&c=//x": "/?a=%0d%0a;b&c=//x",
}


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[StubServer]:
    async with StubServer() as stub:
        yield stub


@pytest.fixture(scope="module")
async def proxied(
    embedded_cluster: EmbeddedCluster, server: StubServer, tmp_path_factory: pytest.TempPathFactory
) -> Caller:
    """The administrator, at an API server with a node whose kubelet is the stub."""
    client = embedded_cluster.client
    await client.request("POST", "/api/v1/nodes", body=b'{"metadata": {"name": "stub"}}')
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": server.port}},
    }
    await client.request(
        "PATCH",
        "/api/v1/nodes/stub/status",
        body=json.dumps({"status": status}).encode(),
        content_type="application/merge-patch+json",
    )
    embedded_cluster.server.kubelets.register("127.0.0.1", server.port, authorities=server.authority.certificate)
    return Caller.of_kubeconfig(embedded_cluster.kubeconfig, tmp_path_factory.mktemp("admin"))


@pytest.fixture(autouse=True)
def answer(server: StubServer) -> None:
    server.received.clear()
    server.handlers["/"] = lambda received: StubResponse(b"fine", 200, "text/plain")


PROXY = "/api/v1/nodes/stub/proxy"


@pytest.mark.parametrize("headers", [(), UPGRADE], ids=["plain", "upgrade"])
async def test_credentials_stay_with_the_api_server(
    proxied: Caller, server: StubServer, headers: tuple[str, ...]
) -> None:
    token = "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.c2VjcmV0, v5.channel.k8s.io"
    await proxied.send(
        f"{PROXY}/x",
        *(line for line in headers if "Protocol" not in line),
        *MASTERS,
        token,
        "Authorization: Bearer secret",
        "Proxy-Authorization: Basic c2VjcmV0",
        "X-Remote-User: root",
        "X-Remote-Group: system:masters",
        "X-Remote-Uid: 0",
        "X-Remote-Extra-Scopes: all",
        "Impersonate-Uid: 1",
        "Impersonate-Extra-Reason: none",
        "Cookie: session=1",
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-Uri: /forged",
    )

    (received,) = server.received
    names = {name for name, _ in received.headers}
    assert not {name for name in names if name.startswith(("x-remote-", "impersonate-"))}
    assert not names & {"authorization", "proxy-authorization"}
    assert ("sec-websocket-protocol", "v5.channel.k8s.io") in received.headers
    assert ("cookie", "session=1") in received.headers
    assert [value for name, value in received.headers if name == "x-forwarded-for"] == ["192.0.2.1, 127.0.0.1"]
    assert [value for name, value in received.headers if name == "x-forwarded-uri"] == [f"{PROXY}/x"]


async def test_headers_of_one_hop_are_not_passed_on(proxied: Caller, server: StubServer) -> None:
    await proxied.send(f"{PROXY}/x", "Connection: close, X-Internal", "X-Internal: 1", "Keep-Alive: 5", "Upgrade: foo")

    (received,) = server.received
    assert not {name for name, _ in received.headers} & {"x-internal", "keep-alive", "upgrade", "connection"}


@pytest.mark.parametrize("path", PATHS)
async def test_a_path_stays_below_the_proxy(proxied: Caller, server: StubServer, path: str) -> None:
    await proxied.send(f"{PROXY}{path}")

    assert [received.path for received in server.received] == [PATHS[path]]


async def test_the_root_is_redirected_to_a_folder(proxied: Caller, server: StubServer) -> None:
    answer = await proxied.send(f"{PROXY}?a=b")

    assert answer.code == 301
    assert f"\r\nLocation: {PROXY}/?a=b\r\n" in answer.head
    assert server.received == []


async def test_a_target_in_absolute_form_is_not_dialled(proxied: Caller, server: StubServer) -> None:
    other = f"https://127.0.0.1:{server.port}/exec"

    for target in (other, f"//127.0.0.1:{server.port}/exec", f"{other}{PROXY}/x"):
        assert (await proxied.send(target)).code in (400, 403, 404)
    assert server.received == []


async def test_a_protocol_is_switched_only_for_who_asks(proxied: Caller, server: StubServer) -> None:
    server.handlers["/"] = lambda received: StubResponse(
        b"", 101, headers=(("Upgrade", "foo"), ("Connection", "Upgrade"))
    )

    answer = await proxied.send(f"{PROXY}/x")

    assert (answer.code, json.loads(answer.body)["message"]) == (
        500,
        'backend tried to switch protocol "foo" when "" was requested',
    )
    assert (await proxied.send(f"{PROXY}/x", *UPGRADE)).code == 101


async def test_an_upgrade_that_is_answered_otherwise_is_an_error(proxied: Caller, server: StubServer) -> None:
    refused = await proxied.send(f"{PROXY}/x", *UPGRADE)
    server.handlers["/"] = lambda received: StubResponse(b"no", 403, "text/plain")
    forbidden = await proxied.send(f"{PROXY}/x", *UPGRADE)

    assert (refused.code, json.loads(refused.body)["message"]) == (500, "invalid upgrade response: status code 200")
    assert (forbidden.code, forbidden.body) == (403, "no")


async def test_a_redirect_is_the_clients_to_follow(proxied: Caller, server: StubServer) -> None:
    elsewhere = f"https://127.0.0.1:{server.port}/other"
    server.handlers["/"] = lambda received: StubResponse(b"", 302, location=elsewhere)

    answer = await proxied.send(f"{PROXY}/x")

    assert answer.code == 302
    assert len(server.received) == 1


@pytest.mark.parametrize("headers", [(), UPGRADE], ids=["plain", "upgrade"])
@pytest.mark.parametrize(
    "value", ["a\r\n Set-Cookie: b", "a\r\n\tb", "a\rSet-Cookie: b", "a\nSet-Cookie: b", "a\0b", "a\x0bb"]
)
async def test_a_response_is_not_split(
    proxied: Caller, server: StubServer, value: str, headers: tuple[str, ...]
) -> None:
    def answer(received: ReceivedRequest) -> StubResponse:
        return StubResponse(b"", 101 if headers else 200, headers=(("X-Evil", value), *UPGRADED))

    server.handlers["/"] = answer

    head = (await proxied.send(f"{PROXY}/x", *headers)).head

    lines = head.split("\r\n")
    assert not any(line.startswith("Set-Cookie") for line in lines)
    assert not any(character in line for line in lines for character in "\r\n\0\x0b")


async def test_a_second_response_is_for_nobody(proxied: Caller, server: StubServer) -> None:
    """Neither the client nor the next request over the same connection gets what the server sent unasked."""
    forged = b"HTTP/1.1 418 Teapot\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nforged"
    sent = iter([StubResponse(b"", 204, headers=(("X-First", "1"),)), StubResponse(b"second", 200, "text/plain")])

    def answer(received: ReceivedRequest) -> StubResponse:
        return next(sent)

    server.handlers["/"] = answer
    server.trailer = forged

    try:
        first = await proxied.send(f"{PROXY}/x")
        server.trailer = b""
        second = await proxied.send(f"{PROXY}/x")
    finally:
        server.trailer = b""

    assert (first.code, first.body) == (204, "")
    assert (second.code, second.body) == (200, "second")
