"""Heads and trailers of HTTP without end, without log-in."""

from __future__ import annotations

from tests.security.harness.attack import CONFIG_MAPS, Target, attack
from tests.security.harness.exchange import Answer

_START = b"GET /version HTTP/1.1\r\nHost: x\r\n"


@attack(by="anonymous")
async def one_endless_line(on: Target) -> Answer:
    """A header whose value does not end."""
    return await (await on.connect()).ask(_START + b"X: " + b"a" * 2_900_000)


@attack(by="anonymous")
async def an_endless_line_of_a_hundred_megabytes(on: Target) -> Answer:
    """The same, for as long as the server takes it."""
    return await (await on.connect()).ask(_START + b"X: " + b"a" * 100_000_000)


@attack(by="anonymous")
async def an_endless_target(on: Target) -> Answer:
    """A request line that does not end."""
    return await (await on.connect()).ask(b"GET /" + b"a" * 2_900_000)


@attack(by="anonymous")
async def an_endless_method(on: Target) -> Answer:
    """A method that does not end."""
    return await (await on.connect()).ask(b"G" * 2_900_000)


@attack(by="anonymous")
async def short_lines(on: Target) -> Answer:
    """Header lines of four bytes."""
    return await (await on.connect()).ask(_START + b"a:\r\n" * 720_000 + b"\r\n")


@attack(by="anonymous")
async def short_lines_of_eight_megabytes(on: Target) -> Answer:
    """The same, more of them."""
    return await (await on.connect()).ask(_START + b"a:\r\n" * 2_000_000 + b"\r\n")


@attack(by="anonymous")
async def empty_lines(on: Target) -> Answer:
    """Empty lines before a request."""
    return await (await on.connect()).ask(b"\r\n" * 1_400_000 + _START + b"\r\n")


@attack(by="anonymous")
async def folded_lines(on: Target) -> Answer:
    """A header that goes on in the next line, and the next."""
    return await (await on.connect()).ask(_START + b"X: a\r\n" + b" b\r\n" * 700_000 + b"\r\n")


@attack(by="anonymous")
async def trailers(on: Target) -> Answer:
    """Trailers without end after a chunked body."""
    head = (
        b"POST " + CONFIG_MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    )
    return await (await on.connect()).ask(head + b"a:\r\n" * 720_000 + b"\r\n")


@attack(by="anonymous")
async def an_endless_trailer(on: Target) -> Answer:
    """One trailer that does not end."""
    head = (
        b"POST " + CONFIG_MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    )
    return await (await on.connect()).ask(head + b"a: " + b"b" * 2_900_000)


@attack(by="anonymous")
async def chunk_extensions(on: Target) -> Answer:
    """A chunk whose extension does not end."""
    head = b"POST " + CONFIG_MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a="
    return await (await on.connect()).ask(head + b"b" * 2_900_000)


@attack(by="anonymous")
async def chunks_of_one_byte(on: Target) -> Answer:
    """A body of half a million chunks."""
    head = b"POST " + CONFIG_MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    return await (await on.connect()).ask(head + b"1\r\na\r\n" * 480_000 + b"0\r\n\r\n")


@attack(by="anonymous")
async def leading_zeros(on: Target) -> Answer:
    """A chunk's length with a million zeros."""
    head = b"POST " + CONFIG_MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    return await (await on.connect()).ask(head + b"0" * 2_900_000 + b"2\r\n{}\r\n0\r\n\r\n")


@attack(by="anonymous")
async def length_and_chunks(on: Target) -> Answer:
    """A request with both a length and chunks; it has one answer at most."""
    connection = await on.connect()
    head = b"POST /apis HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    return await connection.ask(head + b"0\r\n\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n")


@attack(by="anonymous")
async def a_bearer_token_of_a_megabyte(on: Target) -> Answer:
    """A token that is longer than any."""
    return await on.ask("GET", "/api", headers={"Authorization": "Bearer " + "a.b" * 300_000})


@attack(by="anonymous")
async def a_token_with_large_claims(on: Target) -> Answer:
    """A JSON web token within the limit of a head, whose header and claims are deep."""
    import base64

    deep = base64.urlsafe_b64encode(b'{"iss":' * 3000 + b"1" + b"}" * 3000).rstrip(b"=").decode()
    return await on.ask("GET", "/api", headers={"Authorization": f"Bearer {deep}.{deep}.AAAA"})


@attack(by="anonymous")
async def a_long_accept(on: Target) -> Answer:
    """Media types without end."""
    return await on.ask("GET", "/api/v1/pods", headers={"Accept": "a/b;q=0.1," * 5_000})


@attack(by="anonymous")
async def an_accept_of_a_megabyte(on: Target) -> Answer:
    """Half a million media types."""
    return await on.ask("GET", "/api/v1/pods", headers={"Accept": "a," * 500_000})


@attack(by="anonymous")
async def an_accept_within_the_limit(on: Target) -> Answer:
    """As many media types as a head may have."""
    return await on.ask("GET", "/api/v1/pods", headers={"Accept": "pretty," + "a," * 19_900})


@attack(by="anonymous")
async def an_accept_with_parameters(on: Target) -> Answer:
    """Media types with parameters, one of which asks for a form to read."""
    return await on.ask("GET", "/api/v1/pods", headers={"Accept": "a;pretty=1;q=0.5," * 6_600})


@attack(by="anonymous")
async def claims_in_many_lists(on: Target) -> Answer:
    """A JSON web token whose header is a list in a list, without an end."""
    import base64

    deep = base64.urlsafe_b64encode(b"[" * 180_000).rstrip(b"=").decode()
    return await on.ask("GET", "/api", headers={"Authorization": f"Bearer {deep}.e30.AAAA"})


@attack(by="anonymous")
async def a_long_number_in_a_token(on: Target) -> Answer:
    """A JSON web token with a number of a hundred thousand digits."""
    import base64

    long = base64.urlsafe_b64encode(b'{"iss":' + b"1" * 90_000 + b"}").rstrip(b"=").decode()
    return await on.ask("GET", "/api", headers={"Authorization": f"Bearer {long}.{long}.AAAA"})


@attack(by="anonymous")
async def protocols_of_a_websocket(on: Target) -> Answer:
    """Twenty thousand subprotocols, one of which brings a token."""
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Protocol": "base64url.bearer.authorization.k8s.io.YQ," + "a," * 19_900,
    }
    return await on.ask("GET", "/api/v1/pods?watch=1", headers=headers)


@attack(by="anonymous")
async def groups_of_somebody(on: Target) -> Answer:
    """Six thousand groups and extra values, by somebody who may impersonate nobody."""
    lines = b"".join(b"Impersonate-Extra-a%d: b\r\nImpersonate-Group: c%d\r\n" % (n, n) for n in range(3_000))
    head = b"GET /api HTTP/1.1\r\nHost: x\r\nConnection: close\r\nImpersonate-User: a\r\n"
    return await (await on.connect()).ask(head + lines + b"\r\n")


@attack(by="anonymous")
async def an_upgrade(on: Target) -> Answer:
    """An upgrade to nothing in particular with much behind it."""
    head = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    return await (await on.connect()).ask(head + b"a" * 2_900_000)


@attack(by="anonymous")
async def a_preface_of_http2(on: Target) -> Answer:
    """HTTP/2, which was not agreed upon."""
    frame = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    return await (await on.connect()).ask(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame * 300_000)


@attack(by="anonymous")
async def noise(on: Target) -> Answer:
    """Bytes that mean nothing."""
    return await (await on.connect()).ask(bytes(range(256)) * 11_000)
