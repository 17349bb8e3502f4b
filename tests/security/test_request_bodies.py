"""What the bytes of one body become: names that repeat, aliases, bad Unicode, values without end. All of it is bounded.

The first tests run on both planes: kube-apiserver has the same answer. Those on the decoders alone state the bounds it
does not have, on inputs with which decoders without them take minutes or gigabytes.

Covers: kubewright.apiserver.wire
"""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import parse_qsl

import pytest
from tests.security.spending import spending

from kubewright import Client
from kubewright._base.yaml import load
from kubewright.apiserver.wire.decoding import decode_json, read_body
from kubewright.apiserver.wire.go_json import replace_invalid_unicode
from kubewright.apiserver.wire.protobuf import decode
from kubewright.apiserver.wire.requests import Peer, Request
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.apiserver.wire.value_limits import MAX_VALUES
from kubewright.errors import ApiError

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MEGABYTE = 1_000_000
YAML_MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def config_map(members: bytes) -> bytes:
    """A ConfigMap with these members of its data."""
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{' + members + b"}}"


def read(body: bytes, media: str = JSON) -> tuple[Any, list[str]]:
    """A body as the server reads it."""
    return read_body(Request("POST", "/", {}, {"content-type": media}, body, Peer()))


def refusal(body: bytes, media: str = JSON) -> StatusError:
    """Why the server does not read a body."""
    with pytest.raises(StatusError) as caught:
        read(body, media)
    return caught.value


async def send(
    client: Client, namespace: str, body: bytes, *, media: str = JSON, query: str = "dryRun=All"
) -> tuple[int, str, tuple[str, ...]]:
    """Create a ConfigMap on trial: the code, the message and the warnings."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    parameters = tuple(parse_qsl(query))
    try:
        response = await client.request("POST", path, query=parameters, body=body, content_type=media)
    except ApiError as error:
        return error.code, error.message, ()
    return response.status, "", response.warnings


# On both planes


async def test_a_hundred_repeated_names_are_reported_and_no_more(client: Client, namespace: str) -> None:
    body = config_map(b",".join(b'"k%d":"","k%d":""' % (i, i) for i in range(10_000)))

    code, _, warnings = await send(client, namespace, body)

    assert code == 201
    assert warnings == tuple(f'duplicate field "data.k{i}"' for i in range(100))


async def test_a_name_given_ninety_thousand_times_is_reported_once(client: Client, namespace: str) -> None:
    code, _, warnings = await send(client, namespace, config_map(b",".join([b'"k":""'] * 90_000)))

    assert (code, warnings) == (201, ('duplicate field "data.k"',))


async def test_a_hundred_unknown_fields_are_reported_and_no_more(client: Client, namespace: str) -> None:
    fields = ",".join(f'"k{i}":""' for i in range(20_000))
    body = f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a"}},{fields}}}'.encode()

    code, _, warnings = await send(client, namespace, body)
    strict, message, _ = await send(client, namespace, body, query="dryRun=All&fieldValidation=Strict")

    assert (code, len(warnings)) == (201, 100)
    assert strict == 400
    assert message.endswith('unknown field "k99"')


async def test_unknown_and_repeated_fields_are_reported_together_in_their_order(client: Client, namespace: str) -> None:
    fields = ",".join(f'"u{i}":1,"data":{{"k{i}":"","k{i}":""}}' for i in range(100))
    body = f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a"}},{fields}}}'.encode()

    code, _, warnings = await send(client, namespace, body)

    assert (code, len(warnings)) == (201, 100)
    assert warnings[:4] == (
        'unknown field "u0"',
        'duplicate field "data.k0"',
        'unknown field "u1"',
        'duplicate field "data"',
    )


async def test_warnings_are_cut_when_they_are_long(client: Client, namespace: str) -> None:
    fields = ",".join(f'"{i}{"x" * 500}":1' for i in range(50))
    body = f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a"}},{fields}}}'.encode()

    code, _, warnings = await send(client, namespace, body)

    assert code == 201
    assert [len(text) for text in warnings] == [256] * 16


async def test_aliases_of_aliases_are_refused(client: Client, namespace: str) -> None:
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)]

    code, message, _ = await send(client, namespace, YAML_MAP + b"\n".join(lines), media=YAML)

    assert code == 400
    assert "yaml: document contains excessive aliasing" in message


@pytest.mark.parametrize(
    "data",
    [b'"a":' + b"1" * MEGABYTE, b'"a":1e999999', b'"a":' + b"[" * 90_000, b'"a":' + b"[" * 90_000 + b"]" * 90_000],
    ids=["long", "large", "unclosed", "deep"],
)
async def test_numbers_and_nesting_without_end_are_bad_requests(client: Client, namespace: str, data: bytes) -> None:
    code, _, _ = await send(client, namespace, config_map(data))

    assert code == 400


async def test_bad_unicode_is_replaced_byte_by_byte(client: Client, namespace: str) -> None:
    body = config_map(b'"a":"' + b"\xff\xe2\x82" * 30_000 + b'","b":"\\ud800\\udc00\\ud800x\\u0000"')

    path = f"/api/v1/namespaces/{namespace}/configmaps"
    data = json.loads((await client.request("POST", path, query=(("dryRun", "All"),), body=body)).body)["data"]

    assert data == {"a": "\ufffd" * 90_000, "b": "\U00010000\ufffdx\0"}


# What kube-apiserver does not bound


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":[' + b",".join([b"{}"] * MEGABYTE) + b"]}", id="objects"),
        pytest.param(b'{"a":[' + b",".join([b"[]"] * MEGABYTE) + b"]}", id="lists"),
        pytest.param(b'{"a":[' + b",".join([b"1"] * 1_400_000) + b"]}", id="numbers"),
        pytest.param(b'{"a":[' + b",".join([b'""'] * MEGABYTE) + b"]}", id="strings"),
        pytest.param(b'{"a":[' + b'"\\\\","\\"",' * 250_000 + b"1]}", id="escapes"),
        pytest.param(b"{" + b",".join(b'"%d":1' % i for i in range(250_000)) + b"}", id="members"),
        pytest.param(b'{"a":[' + b"{}," * 900_000 + b"!", id="malformed"),
    ],
)
def test_a_body_of_very_many_values_is_refused_before_it_is_decoded(body: bytes) -> None:
    with spending() as spent:
        error = refusal(body)

    assert error.code == 413
    assert f"the body has more than {MAX_VALUES} values" in str(error)
    assert spent.bytes < 8 * MEGABYTE


def test_a_long_text_is_not_taken_for_many_values() -> None:
    text = 'a,b,{c},[d]\n\\"e\\",' * 100_000

    tree, _ = read(json.dumps({"data": {"file": text}, "x": ["\\", '"'] * 1000}).encode())

    assert tree["data"]["file"] == text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"x: [" + b"[]," * 900_000 + b"]", id="lists"),
        pytest.param(b"- 1\n" * 700_000, id="lines"),
        pytest.param(b"<<: [" + b",".join(b"{k%d: 1}" % i for i in range(100_000)) + b"]", id="merges"),
    ],
)
def test_yaml_of_very_many_values_is_refused(body: bytes) -> None:
    assert refusal(body, YAML).code == 413


def test_merge_keys_are_merged_in_linear_time() -> None:
    tree = load(b"<<: [" + b",".join(b"{k%d: 1}" % i for i in range(33_000)) + b"]", max_values=MAX_VALUES)

    assert len(tree) == 33_000


def test_aliases_repeat_no_more_text_than_an_object_may_have() -> None:
    text = b'a: &a "' + b"x" * 100_000 + b'"\n' + b"".join(b"k%d: *a\n" % i for i in range(10_000))

    error = refusal(text, YAML)

    assert error.code == 400
    assert "document contains excessive aliasing" in str(error)


def test_a_repeated_name_below_a_long_one_does_not_repeat_the_long_one() -> None:
    inner = b",".join(b'"k%d":1,"k%d":1' % (i, i) for i in range(20_000))

    _, repeated = read(b'{"' + b"x" * MEGABYTE + b'":{' + inner + b"}}")

    assert len(repeated) == 1


def test_a_repeated_name_hides_no_nesting() -> None:
    assert refusal(b'{"a":' + b"[" * 600 + b"]" * 600 + b',"a":1}').code == 400


@pytest.mark.parametrize("text", [b"\xff" * 30_000, b"\xffa" * 15_000, b"\\ud800" * 5_000, b"\\n" * 40_000 + b"\xff"])
def test_bad_unicode_is_replaced_in_linear_time(text: bytes) -> None:
    with spending() as spent:
        replace_invalid_unicode(text)

    assert spent.bytes < 16 * len(text)
    assert spent.calls < 6 * len(text)


# Protobuf


def varint(number: int) -> bytes:
    """A number on the wire."""
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def part(field: int, content: bytes) -> bytes:
    """A field of text or of a message."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """A body."""
    named = part(1, part(1, api_version.encode()) + part(2, kind.encode()))
    return b"k8s\0" + named + part(2, message)


EMPTY = {
    "containers": envelope("v1", "Pod", part(2, part(2, b"") * MEGABYTE)),
    "deployments": envelope("apps/v1", "DeploymentList", part(2, b"") * MEGABYTE),
    "finalizers": envelope("v1", "Pod", part(1, part(14, b"") * MEGABYTE)),
    "groups": envelope("v1", "Pod", part(2, part(14, part(4, b"\x01" * 2 * MEGABYTE)))),
    "requirements": envelope(
        "authorization.k8s.io/v1", "SelfSubjectAccessReview", part(2, part(1, part(9, part(2, b"") * MEGABYTE)))
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_messages_are_counted_before_they_are_made(name: str) -> None:
    error = refusal(EMPTY[name], PROTOBUF)

    assert error.code == 413
    assert f"the body has more than {MAX_VALUES} values" in str(error)


@pytest.mark.parametrize("text", [b"\xff" * MEGABYTE, b"\xffa" * MEGABYTE], ids=["bad", "mixed"])
def test_bad_utf8_in_protobuf_is_replaced_in_linear_time(text: bytes) -> None:
    body = envelope("v1", "ConfigMap", part(2, part(1, b"k") + part(2, text)))

    data = decode(body)["data"]["k"]

    assert data == text.decode("latin-1").replace("\xff", "\ufffd")


def test_numbers_at_the_end_of_the_range_cost_little_more_than_others() -> None:
    def seconds(number: bytes) -> float:
        body = b"[" + b",".join([number] * 50_000) + b"]"
        spent = []
        for _ in range(3):
            began = time.process_time()
            decode_json(body)
            spent.append(time.process_time() - began)
        return min(spent)

    ordinary = seconds(b"0.5")
    # A decoder that calculates them exactly takes three hundred times as long, and no other thread runs meanwhile.
    assert all(seconds(number) < 40 * ordinary for number in (b"1e308", b"1.7976931348623157e+308", b"2.225e-308"))
