"""Protobuf bodies: the tree Go makes of them, the bytes Go makes of a tree, and what is said about broken ones.

`tests/data/protobuf/samples.json` was printed by the Go program next to it: each body, and the JSON Go made of it.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.patches import json_equal
from kubewright.apiserver.wire.protobuf.envelope import (
    PREFIX,
    decode,
    decode_body,
    decode_watch_event,
    encode,
    encode_watch_event,
    has_protobuf,
)
from kubewright.apiserver.wire.status_errors import StatusError
from kubewright.errors import DecodeError

SAMPLES = json.loads((Path(__file__).parents[3] / "data/protobuf/samples.json").read_text())
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
NAMED = b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap"
"""An envelope's first field: this is a ConfigMap of v1."""
WIDGET = b"\x0a\x0c\x0a\x02v1\x12\x06Widget\x12\x00"
"""An envelope of a kind that the server does not know."""


BROKEN_ENVELOPES = [
    (b"", "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"),
    (
        b"hello",
        "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a "
        "protobuf message, expected prefix [107 56 115 0] (68656c6c6f)",
    ),
    (PREFIX, "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"),
    (
        PREFIX + b"\x00",
        "the object provided is unrecognized (must be of type ConfigMap): proto: Unknown: illegal tag 0 "
        "(wire type 0) (6b38730000)",
    ),
    (
        PREFIX + NAMED + b"\x12\x7f" + b"x" * 20,
        "the object provided is unrecognized (must be of type ConfigMap): unexpected EOF "
        "(6b3873000a0f0a0276311209436f6e6669674d6170127f78787878787878 ...)",
    ),
]
"""Bodies that are no protobuf message of Kubernetes, and what the server says of them."""
BROKEN_OBJECTS = [
    (b"\x00", "proto: ConfigMap: illegal tag 0 (wire type 0)"),
    (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
    (b"\x0c", "proto: ConfigMap: wiretype end group for non-group"),
    (b"\xff" * 11, "proto: integer overflow"),
    (b"\x0a\x05\x0a", "unexpected EOF"),
    (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: negative length found during unmarshaling"),
    (b"\xff\x01", "proto: illegal wireType 7"),
]
"""Messages that are no ConfigMap, and what the server says of them."""


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def broken_bodies() -> list[bytes]:
    """Every body above; tests/differential asks kube-apiserver about each of them."""
    objects = [PREFIX + NAMED + field(2, message) for message, _ in BROKEN_OBJECTS]
    return [*(body for body, _ in BROKEN_ENVELOPES), *objects, PREFIX + WIDGET]


def config_map(message: bytes) -> dict[str, Any]:
    return decode(PREFIX + NAMED + field(2, message))


def without_nulls(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: without_nulls(value) for name, value in tree.items() if value is not None}
    return [without_nulls(item) for item in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["kind"])
def test_a_body_gives_the_tree_that_go_makes_of_it(sample: dict[str, Any]) -> None:
    tree = decode(base64.b64decode(sample["body"]))

    assert json_equal(tree, sample["tree"])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["kind"])
def test_a_tree_encodes_to_an_equivalent_body(sample: dict[str, Any]) -> None:
    body = encode(sample["tree"], sample["apiVersion"], sample["kind"])

    # A pointer to a time that was never set is null in JSON, and null is no pointer: Go loses it there as well.
    assert without_nulls(decode(body)) == without_nulls(sample["tree"])


def test_most_samples_are_written_byte_for_byte_as_go_does() -> None:
    same = [encode(s["tree"], s["apiVersion"], s["kind"]) == base64.b64decode(s["body"]) for s in SAMPLES]

    assert sum(same) > len(same) * 0.6


def test_absent_structs_decode_as_in_go() -> None:
    empty = decode(PREFIX + field(1, field(1, b"apps/v1") + field(2, b"Deployment")))

    assert empty == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {},
        "spec": {
            "selector": None,
            "template": {"metadata": {}, "spec": {"containers": None}},
            "strategy": {},
        },
        "status": {},
    }


def test_decoded_trees_share_nothing() -> None:
    body = PREFIX + field(1, field(1, b"apps/v1") + field(2, b"Deployment"))

    decode(body)["spec"]["template"]["metadata"]["name"] = "changed"

    assert decode(body)["spec"]["template"]["metadata"] == {}


def test_the_kind_of_the_endpoint_is_the_default() -> None:
    body = PREFIX + field(2, field(1, field(1, b"web")))

    tree = decode(body, default=CONFIG_MAP)

    assert tree == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
    with pytest.raises(DecodeError, match="Object 'Kind' is missing"):
        decode(body)


def test_unknown_fields_are_skipped_groups_included() -> None:
    group = b"\xfb\x01" + b"\x08\x01" + b"\x12\x01x" + b"\xfc\x01"
    fixed = b"\xf9\x01" + bytes(8) + b"\xfd\x01" + bytes(4)

    tree = config_map(group + fixed + field(1, field(1, b"web")))

    assert tree["metadata"] == {"name": "web"}


def test_messages_in_pieces_are_merged_and_the_last_scalar_wins() -> None:
    tree = config_map(field(1, field(1, b"web") + field(3, b"shop")) + field(1, field(1, b"api")))

    assert tree["metadata"] == {"name": "api", "namespace": "shop"}


def test_an_empty_scalar_overrides_an_earlier_one() -> None:
    tree = config_map(field(1, field(1, b"web") + field(1, b"")))

    assert tree["metadata"] == {}


def test_lists_of_numbers_may_be_packed() -> None:
    loose = encode({"spec": {"securityContext": {"supplementalGroups": [1, 300]}}}, "v1", "Pod")
    packed = loose.replace(b"\x20\x01\x20\xac\x02", b"\x22\x03\x01\xac\x02")

    assert packed != loose
    assert decode(packed) == decode(loose)


def test_broken_utf8_becomes_replacement_characters_as_in_go() -> None:
    tree = config_map(field(1, field(1, b"a\xe2\x82b\xff")))

    assert tree["metadata"]["name"] == "a\ufffd\ufffdb\ufffd"


@pytest.mark.parametrize(("sent", "shown"), [("1000", "1k"), ("0.5", "500m"), ("1.500", "1.500"), ("1024Ki", "1Mi")])
def test_quantities_decode_as_in_go(sent: str, shown: str) -> None:
    entry = field(1, b"pods") + field(2, field(1, sent.encode()))
    body = PREFIX + field(1, field(1, b"v1") + field(2, b"ResourceQuota")) + field(2, field(2, field(1, entry)))

    assert decode(body)["spec"]["hard"]["pods"] == shown


@pytest.mark.parametrize(("body", "message"), BROKEN_ENVELOPES)
def test_a_broken_envelope_is_a_400(body: bytes, message: str) -> None:
    with pytest.raises(StatusError) as error:
        decode_body(body, kind=CONFIG_MAP)

    assert error.value.code == 400
    assert error.value.status["message"] == message


@pytest.mark.parametrize(("message", "problem"), BROKEN_OBJECTS)
def test_a_broken_object_is_a_400(message: bytes, problem: str) -> None:
    with pytest.raises(StatusError) as error:
        decode_body(PREFIX + NAMED + field(2, message), kind=CONFIG_MAP)

    expected = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {problem}'
    assert error.value.status["message"] == expected


def test_a_kind_without_a_protobuf_encoding_is_unknown() -> None:
    with pytest.raises(DecodeError, match='no kind "Widget" is registered for version "v1"'):
        decode(PREFIX + WIDGET)
    assert not has_protobuf("example.com/v1", "Widget")
    with pytest.raises(DecodeError, match="encode it as JSON"):
        encode({}, "example.com/v1", "Widget")


def test_recursive_schemas_are_bounded() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(150):
        schema = {"items": schema}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    body = encode({"spec": {"versions": versions}}, "apiextensions.k8s.io/v1", "CustomResourceDefinition")

    with pytest.raises(DecodeError, match="more than 200 messages inside each other"):
        decode(body)


@pytest.mark.parametrize("machinery", ["DeleteOptions", "Status"])
def test_meta_kinds_are_known_in_every_group(machinery: str) -> None:
    assert has_protobuf("apps/v1", machinery)
    assert has_protobuf("example.com/v1", machinery)


def test_an_encoding_error_has_its_path() -> None:
    tree = {"spec": {"template": {"spec": {"containers": [{"name": 5}]}}}}

    with pytest.raises(DecodeError, match=r"^spec\.template\.spec\.containers\.name of Container cannot be written"):
        encode(tree, "apps/v1", "Deployment")


def test_a_watch_event_is_a_frame_with_its_length() -> None:
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "b"}}

    frame = encode_watch_event("ADDED", tree)

    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert decode_watch_event(frame) == ("ADDED", tree)
    with pytest.raises(DecodeError, match="not as long as it says"):
        decode_watch_event(frame + b"x")
