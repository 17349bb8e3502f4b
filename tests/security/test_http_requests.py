"""Requests that are malformed, smuggle another one, or are too large, from somebody without log-in.

Covers: kubewright.apiserver.wire.http
"""

from __future__ import annotations

import pytest
from tests.planes import Plane
from tests.security.raw_connections import codes, talk

from kubewright.cluster.planes.embedded import EmbeddedCluster

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /healthz HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

REFUSED: dict[str, tuple[bytes, int]] = {
    "two lengths": (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400),
    "a list of lengths": (POST + b"Content-Length: 1, 1\r\n\r\nx", 400),
    "a signed length": (POST + b"Content-Length: +1\r\n\r\nx", 400),
    "chunked, then identity": (POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
    "compressed chunks": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "two codings": (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    "a vertical tab before a coding": (POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    "a space behind a name": (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    "a zero byte in a value": (GET + b"X-A: a\x00b\r\n\r\n", 400),
    "a carriage return in a value": (GET + b"X-A: a\rb\r\n\r\n", 400),
    "two hosts": (GET + b"Host: y\r\n\r\n", 400),
    "a host that is none": (b"GET /healthz HTTP/1.1\r\nHost: x/y z\r\n\r\n", 400),
    "another expectation": (POST + b"Content-Length: 1\r\nExpect: fly\r\n\r\nx", 417),
    "another version": (b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n", 505),
    "an endless header": (GET + b"X-A: " + b"a" * 1_100_000 + b"\r\n\r\n", 431),
    "an escape that is none": (b"GET /healthz%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_malformed_request_is_refused_and_the_next_one_is_not_read(plane: Plane, case: str) -> None:
    data, code = REFUSED[case]

    assert codes(await talk(plane, data + NEXT)) == [code]


ENDING = {
    "a prefix": b"0x1\r\nx\r\n0\r\n\r\n",
    "a sign": b"-1\r\nx\r\n0\r\n\r\n",
    "too many digits": b"ffffffffffffffffff\r\nx\r\n0\r\n\r\n",
    "a line feed": b"1\nx\r\n0\r\n\r\n",
    "data that is longer": b"1\r\nxy\r\n0\r\n\r\n",
    "a carriage return in an extension": b"1;a\rb\r\nx\r\n0\r\n\r\n",
    "an endless extension": b"1;" + b"a" * 20_000 + b"\r\nx\r\n0\r\n\r\n",
    "a trailer that is none": b"0\r\nnonsense\r\n\r\n",
    "an endless trailer": b"0\r\nX-T: " + b"a" * 70_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("case", ENDING)
async def test_malformed_chunks_end_the_connection(plane: Plane, case: str) -> None:
    assert codes(await talk(plane, CHUNKED + ENDING[case] + NEXT)) in ([400], [403])


async def test_chunks_mean_nothing_in_http_1_0(plane: Plane) -> None:
    """Go reads such a body by its length, and so does a proxy in front that is written in it."""
    head = (
        b"POST /version HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    )

    assert codes(await talk(plane, head + b"hello" + NEXT))[0] == 403


async def test_a_line_feed_alone_ends_a_header_on_both_sides_of_a_proxy(plane: Plane) -> None:
    said = await talk(plane, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: a\nConnection: close\r\n\r\n" + NEXT)

    assert codes(said) == [200]  # `Connection` is a header of its own


async def test_trailers_are_no_headers(plane: Plane) -> None:
    said = await talk(plane, CHUNKED + b"0\r\nConnection: close\r\nAuthorization: Bearer x\r\n\r\n" + NEXT)

    assert codes(said) == [403, 200]


async def test_a_length_beside_chunks_does_not_count(plane: Plane) -> None:
    smuggling = POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n0\r\n\r\n"

    assert codes(await talk(plane, smuggling + NEXT)) in ([403], [403, 200])


async def test_nobody_is_asked_for_a_body_that_he_may_not_send(plane: Plane) -> None:
    target = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n"

    assert codes(await talk(plane, target + b"\r\n")) == [403]
    assert codes(await talk(plane, target + b"Expect: 100-continue\r\n\r\n")) == [403]
    assert codes(await talk(plane, target + b"Authorization: Bearer wrong\r\n\r\n")) == [401]


async def test_chunks_that_nobody_may_send_are_read_no_further_than_a_little(embedded_cluster: EmbeddedCluster) -> None:
    head = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert codes(await talk(embedded_cluster, head + b"2ffff\r\n" + b"x" * 0x2FFFF)) == [403]


async def test_a_head_of_a_hundred_thousand_lines_holds_nobody_up(plane: Plane) -> None:
    said = await talk(plane, GET + b"a:\r\n" * 200_000 + b"\r\n" + NEXT)

    assert codes(said) in ([431], [200, 200])  # kube-apiserver counts the bytes of a head, not its lines
