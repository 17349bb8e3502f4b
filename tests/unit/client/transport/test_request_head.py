"""The heads of requests: what is in them, what is refused, and that nothing stale is kept."""

from __future__ import annotations

import pytest

from kubewright.client.config.config import Config
from kubewright.client.transport.request_head import RequestHeadEncoder
from kubewright.client.transport.transport import HttpRequest


def head_of(request: HttpRequest, *, server: str = "https://api.example:6443", streams: bool = False) -> bytes:
    return RequestHeadEncoder(Config(server=server, user_agent="web/1.0"), streams=streams).encode(request, {})


def get(path: str = "/api", **options: object) -> HttpRequest:
    return HttpRequest(method="GET", path=path, **options)  # type: ignore[arg-type]  # passed through as given


def test_a_plain_request_has_what_every_request_needs() -> None:
    assert head_of(get()) == (
        b"GET /api HTTP/1.1\r\nHost: api.example:6443\r\nUser-Agent: web/1.0\r\nAccept-Encoding: gzip\r\n\r\n"
    )


def test_a_stream_is_not_compressed_and_ends_its_connection() -> None:
    encode = head_of(get(), streams=True)

    assert b"\r\nAccept-Encoding: identity\r\n" in encode
    assert b"\r\nConnection: close\r\n" in encode


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("https://api.example", b"api.example"),
        ("https://api.example:443", b"api.example"),
        ("http://api.example:443", b"api.example:443"),
        ("https://[fd00::1]:6443", b"[fd00::1]:6443"),
        ("https://bücher.example", b"xn--bcher-kva.example"),
    ],
)
def test_the_host_is_named_as_servers_expect_it(server: str, host: bytes) -> None:
    assert b"\r\nHost: " + host + b"\r\n" in head_of(get(), server=server)


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        ("GET", None, None),
        ("DELETE", None, None),
        ("POST", None, b"0"),
        ("PUT", b"", b"0"),
        ("PATCH", b"abc", b"3"),
        ("DELETE", b"abc", b"3"),
    ],
)
def test_the_length_of_the_body_is_said_where_one_is_expected(
    method: str, body: bytes | None, length: bytes | None
) -> None:
    encode = head_of(HttpRequest(method=method, path="/", body=body))

    assert (b"Content-Length" in encode) == (length is not None)
    assert length is None or encode.endswith(b"Content-Length: " + length + b"\r\n\r\n")


def test_a_header_of_the_request_replaces_the_usual_one() -> None:
    encode = head_of(get(headers=(("accept-encoding", "identity"), ("Accept", "text/plain"))))

    assert encode.lower().count(b"accept-encoding:") == 1
    assert b"\r\naccept-encoding: identity\r\nAccept: text/plain\r\n" in encode


def test_other_credentials_are_used_from_the_next_request() -> None:
    heads = RequestHeadEncoder(Config(server="https://api.example"), streams=False)

    written = [heads.encode(get(), {"Authorization": f"Bearer {token}"}) for token in ("a", "a", "b")]

    assert [b"Bearer a" in encode for encode in written] == [True, True, False]
    assert b"Authorization: Bearer b\r\n" in written[2]


def test_many_different_headers_do_not_fill_memory() -> None:
    heads = RequestHeadEncoder(Config(server="https://api.example"), streams=False)

    written = [heads.encode(get(headers=(("X-Number", str(number)),)), {}) for number in range(1000)]

    assert b"X-Number: 999\r\n" in written[-1]
    assert len(heads._blocks) <= 256


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        pytest.param(get("/a b"), "the method or the path", id="space"),
        pytest.param(get("/a\r\nHost: evil"), "the method or the path", id="line break"),
        pytest.param(get("/ü"), "the method or the path", id="not ascii"),
        pytest.param(HttpRequest(method="GET /x", path="/"), "the method or the path", id="method"),
        pytest.param(HttpRequest(method="GÉT", path="/"), "the method or the path", id="method not ascii"),
        pytest.param(get(headers=(("X-Odd", "a\r\nb"),)), "the header X-Odd", id="value"),
        pytest.param(get(headers=(("X-Odd", "a\x00b"),)), "the header X-Odd", id="zero"),
        pytest.param(get(headers=(("X Odd", "a"),)), "a header has an invalid name", id="name"),
        pytest.param(get(headers=(("", "a"),)), "a header has an invalid name", id="no name"),
    ],
)
def test_what_could_be_read_as_another_request_is_refused(request_: HttpRequest, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        head_of(request_)


def test_a_secret_in_a_broken_header_is_not_repeated() -> None:
    heads = RequestHeadEncoder(Config(server="https://api.example"), streams=False)

    with pytest.raises(ValueError, match="the header Authorization contains a line break") as caught:
        heads.encode(get(), {"Authorization": "Bearer secret\n"})

    assert "secret" not in str(caught.value)
