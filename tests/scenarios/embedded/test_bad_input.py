"""Whatever a client sends, the answer is the one kube-apiserver gives, and the server goes on.

Each case runs on the embedded server and on the real one, so the codes here are the real server's.

Covers: kubewright.apiserver.wire
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import pytest
from tests.scenarios.embedded.wire import Wire, request

from kubewright.cluster.planes.embedded import EmbeddedCluster

MAPS = "/api/v1/namespaces/default/configmaps"
DRY = f"{MAPS}?dryRun=All"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
PROTOBUF = "application/vnd.kubernetes.protobuf"
YAML = "application/yaml"
LIMIT = 3 * 1024 * 1024


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def wire(request: pytest.FixtureRequest) -> Wire:
    """A way to the server under test."""
    name = "bare_cluster" if request.param == "embedded" else "real_cluster"
    return Wire(request.getfixturevalue(name).kubeconfig)


def config_map(rest: bytes = b"", name: bytes = b"aa") -> bytes:
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%b"}%b}' % (name, rest)


def post(body: bytes, content_type: str = "application/json", path: str = DRY) -> bytes:
    return request("POST", path, body, content_type=content_type)


def chunked(*lines: bytes) -> bytes:
    head = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" % DRY.encode()
    return head + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + b"\r\n".join(lines) + b"\r\n"


class Case(NamedTuple):
    """What is sent, and the code of the answer; `status` is whether its body is a Status."""

    code: int
    sent: bytes
    status: bool = True


BODIES = {
    "nothing": Case(400, post(b"")),
    "no JSON": Case(400, post(b"{nope")),
    "half an object": Case(400, post(b'{"apiVersion":"v1"')),
    "a list": Case(400, post(b"[]")),
    "a string": Case(400, post(b'"x"')),
    "null": Case(422, post(b"null")),
    "two objects": Case(400, post(config_map() * 2)),
    "a byte order mark": Case(400, post(b"\xef\xbb\xbf" + config_map())),
    "bad UTF-8 in a value": Case(201, post(config_map(b',"data":{"x":"a\xff\xfe\xe2\x82b"}')), status=False),
    "bad UTF-8 in a name": Case(422, post(config_map(name=b"a\xff"))),
    "half a surrogate pair": Case(201, post(config_map(b',"data":{"x":"a\\ud800b"}')), status=False),
    "bad UTF-8 and a name twice": Case(201, post(config_map(b',"data":{"x":"\xff","x":"1"}')), status=False),
    "NUL in a value": Case(201, post(config_map(b',"data":{"x":"a\\u0000b"}')), status=False),
    "a bare NUL": Case(400, post(config_map(b',"data":{"x":"a\x00b"}'))),
    "an endless integer": Case(400, post(config_map(b',"data":{"x":%b}' % (b"9" * 5000)))),
    "a number beyond floats": Case(400, post(config_map(b',"data":{"x":1e400}'))),
    "not a number": Case(400, post(config_map(b',"data":{"x":NaN}'))),
    "another kind": Case(400, post(b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"aa"}}')),
    "a kind that is a list": Case(400, post(b'{"apiVersion":"v1","kind":["Pod"],"metadata":{"name":"aa"}}')),
    "a version that is a number": Case(400, post(b'{"apiVersion":1,"kind":"ConfigMap","metadata":{"name":"aa"}}')),
    "metadata that is a string": Case(400, post(b'{"apiVersion":"v1","kind":"ConfigMap","metadata":"aa"}')),
    "metadata that is a list": Case(400, post(b'{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}')),
    "a label that is a number": Case(400, post(b'{"metadata":{"name":"aa","labels":{"a":1}}}')),
    "deep lists": Case(400, post(config_map(b',"data":' + b"[" * 2000 + b"]" * 2000))),
    "deep objects": Case(400, post(config_map(b',"data":' + b'{"a":' * 900 + b"1" + b"}" * 900))),
    "very deep lists": Case(400, post(config_map(b',"data":' + b"[" * 90_000 + b"]" * 90_000))),
    "deep YAML": Case(400, post(b"[" * 100_000, YAML)),
    "YAML of a thousand million words": Case(
        400,
        post(
            b"a: &a [x,x,x,x,x,x,x,x,x]\n"
            + b"".join(b"%c: &%c [%b]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)),
            YAML,
        ),
    ),
    "YAML that is none": Case(400, post(b"a: b: c", YAML)),
    "YAML with a NUL": Case(400, post(b"\x00", YAML)),
    "YAML that refers to itself": Case(400, post(b"&a [*a]", YAML)),
    "YAML that wants to run something": Case(400, post(b"!!python/object/apply:os.system ['x']", YAML)),
    "YAML with a mapping for a key": Case(400, post(b"? {a: b}\n: c", YAML)),
    "two YAML documents": Case(201, post(config_map() + b"\n---\nfoo: bar\n", YAML), status=False),
    "no protobuf": Case(400, post(b"nope", PROTOBUF)),
    "an empty protobuf": Case(400, post(b"k8s\x00", PROTOBUF)),
    "a protobuf that ends early": Case(400, post(b"k8s\x00\xff\xff\xff\xff", PROTOBUF)),
    "a protobuf of every byte": Case(400, post(b"k8s\x00" + bytes(range(256)), PROTOBUF)),
    "text": Case(415, post(config_map(), "text/plain")),
    "a patch that is posted": Case(415, post(config_map(), "application/merge-patch+json")),
    "no media type but a semicolon": Case(415, post(config_map(), ";")),
    "a quarter of a million quotes": Case(201, post(config_map(b',"data":{"x":"' + b'\\"' * 250_000 + b'"}')), False),
    "as much as may be": Case(201, post(config_map() + b" " * (LIMIT - len(config_map()))), status=False),
    "a byte too much": Case(413, post(b" " * (LIMIT + 1))),
    "far too much": Case(413, post(b" " * (6 * LIMIT))),
    "a patch too large": Case(
        413, request("PATCH", f"{MAPS}/x", b" " * (LIMIT + 1), content_type="application/merge-patch+json")
    ),
    "a patch that is none": Case(
        400, request("PATCH", "/api/v1/namespaces/default", b"[", content_type="application/merge-patch+json")
    ),
    "a patch without a type": Case(415, request("PATCH", f"{MAPS}/x", b"{}")),
    "options of a deletion that are a list": Case(400, request("DELETE", f"{MAPS}/x", b"[]")),
    "options of a deletion that are none": Case(400, request("DELETE", f"{MAPS}/x", b"hello")),
}

QUERIES = {
    "labelSelector=a=b=c": 400,
    "labelSelector=!!": 400,
    "labelSelector=a%20in%20(": 400,
    "labelSelector=A_/x": 400,
    "fieldSelector=foo=bar": 400,
    "fieldSelector=metadata.name": 400,
    "fieldSelector=%ff": 400,
    "limit=abc": 400,
    "limit=1_0": 400,
    "limit=99999999999999999999": 400,
    "continue=abc": 400,
    "continue=%00": 400,
    "continue=e30": 400,
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi94In0": 400,
    "resourceVersion=abc": 400,
    "resourceVersion=-1": 400,
    "resourceVersion=99999999999999999999999": 400,
    "resourceVersion=1&resourceVersionMatch=foo": 422,
    "resourceVersionMatch=Exact": 422,
    "resourceVersion=0&resourceVersionMatch=Exact": 422,
    "timeoutSeconds=abc": 400,
    "timeoutSeconds=999999999999999999999": 400,
    "sendInitialEvents=true": 422,
    "timeout=1": 400,
    "watch=1&sendInitialEvents=true": 422,
}

PATHS = {
    "/../../etc/passwd": 404,
    "//": 404,
    "/api//v1/namespaces": 404,
    "/api/v1/../v1/namespaces/default": 404,
    f"{MAPS}/a%2fb": 404,
    f"{MAPS}/%00": 404,
    f"{MAPS}/%ff": 404,
    f"{MAPS}/x/y/z/w": 404,
    f"{MAPS}/x/status": 404,
    "/api/v1/configmaps/x": 404,
    "/api/v1/namespaces/default/nodes": 404,
    "/api/v2/pods": 404,
    "/apis/nope.example.io/v1/x": 404,
    "/apis/apps/v9/deployments": 404,
    "/apis/apps/v1/nope": 404,
    "/API/V1/namespaces": 404,
    "/healthz/nope": 404,
    "/healthz/": 404,
    "/version/x": 404,
    "/nope": 404,
    "/api/v1/namespaces/" + "a" * 20_000: 404,
}

METHODS = {
    ("HEAD", MAPS): 405,
    ("OPTIONS", MAPS): 405,
    ("TRACE", MAPS): 405,
    ("PUT", MAPS): 405,
    ("PATCH", MAPS): 405,
    ("POST", f"{MAPS}/x"): 405,
    ("PROPFIND", f"{MAPS}/x"): 405,
    ("HEAD", "/version"): 405,
    ("POST", "/version"): 405,
    ("POST", "/healthz"): 200,
    ("DELETE", "/nope"): 404,
}

BYTES = {
    "HTTP/1.0": Case(200, b"GET /healthz HTTP/1.0\r\n\r\n"),
    "HTTP/0.9": Case(400, b"GET /healthz\r\n\r\n"),
    "HTTP/2.0 in the clear": Case(505, b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n"),
    "no HTTP": Case(400, b"\x00\x01\x02\x03\r\n\r\n"),
    "no host": Case(400, b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"),
    "two hosts": Case(400, HEALTH + b"Host: y\r\n\r\n"),
    "a header without a value": Case(400, HEALTH + b"Foo\r\n\r\n"),
    "a header with a NUL": Case(400, HEALTH + b"Foo: a\x00b\r\n\r\n"),
    "a header that is no ASCII": Case(200, HEALTH + b"Foo: \xff\r\nConnection: close\r\n\r\n"),
    "a space in the path": Case(400, b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a bad escape in the path": Case(400, b"GET /api/%zz HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a whole address": Case(200, b"GET http://x/healthz/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    "a length below zero": Case(400, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"),
    "a length that is no number": Case(400, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: a\r\n\r\n"),
    "two lengths": Case(400, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
    "chunks": Case(201, chunked(b"5", config_map()[:5], b"%x" % (len(config_map()) - 5), config_map()[5:], b"0", b"")),
    "an expectation": Case(417, HEALTH + b"Expect: banana\r\nConnection: close\r\n\r\n"),
    "a header of a megabyte": Case(431, HEALTH + b"X-Big: " + b"a" * 1_100_000 + b"\r\n\r\n"),
    "an address of a megabyte": Case(431, b"GET /healthz?" + b"a" * 1_200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
    "nine thousand headers": Case(
        200, HEALTH + b"".join(b"X-%d: a\r\n" % n for n in range(9_000)) + b"Connection: close\r\n\r\n"
    ),
    "a change of protocol": Case(200, HEALTH + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
async def test_a_bad_body_is_answered_as_the_real_server_answers_it(wire: Wire, name: str) -> None:
    case = BODIES[name]
    answer = await wire.send(case.sent)
    assert answer.code == case.code
    if case.status:
        assert (answer.tree["kind"], answer.tree["code"]) == ("Status", case.code)
        assert answer.tree["status"] == "Failure"


@pytest.mark.parametrize("query", QUERIES)
async def test_a_bad_query_is_answered_as_the_real_server_answers_it(wire: Wire, query: str) -> None:
    answer = await wire.send(request("GET", f"{MAPS}?{query}"))
    assert (answer.code, answer.tree["kind"], answer.tree["code"]) == (QUERIES[query], "Status", QUERIES[query])


@pytest.mark.parametrize("path", PATHS)
async def test_an_absurd_path_is_answered_as_the_real_server_answers_it(wire: Wire, path: str) -> None:
    answer = await wire.send(request("GET", path))
    assert answer.code == PATHS[path]


@pytest.mark.parametrize(("method", "path"), METHODS)
async def test_an_unsupported_method_is_answered_as_the_real_server_answers_it(
    wire: Wire, method: str, path: str
) -> None:
    answer = await wire.send(request(method, path))
    assert answer.code == METHODS[method, path]


@pytest.mark.parametrize("name", BYTES)
async def test_malformed_http_is_answered_as_the_real_server_answers_it(wire: Wire, name: str) -> None:
    case = BYTES[name]
    assert (await wire.send(case.sent)).code == case.code


async def test_no_bad_input_is_an_internal_error(
    bare_cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire(bare_cluster.kubeconfig)
    with caplog.at_level(logging.WARNING):
        for case in (*BODIES.values(), *BYTES.values()):
            assert (await wire.send(case.sent)).code < 500 or case.code == 505
        for query in QUERIES:
            assert (await wire.send(request("GET", f"{MAPS}?{query}"))).code < 500
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert (await wire.send(HEALTH + b"Connection: close\r\n\r\n")).body == b"ok"
