"""Laws of protobuf bodies: what is written can be read, and nothing that comes in breaks the reader.

Covers: kubewright.apiserver.wire.protobuf
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubewright.apiserver.wire.protobuf.envelope import PREFIX, decode, encode
from kubewright.apiserver.wire.protobuf.messages import Action, Field, Message, message_of_kind
from kubewright.errors import DecodeError

SAMPLES = json.loads((Path(__file__).parents[1] / "data/protobuf/samples.json").read_text())
BODIES = [base64.b64decode(sample["body"]) for sample in SAMPLES]
KINDS = [
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Event"),
    ("apps/v1", "Deployment"),
    ("networking.k8s.io/v1", "Ingress"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("authorization.k8s.io/v1", "SubjectAccessReview"),
]

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "Timestamp": st.just("2024-05-01T10:00:00Z"),
    "Duration": st.sampled_from(["0s", "1h30m0s", "-1ns"]),
    "Quantity": st.sampled_from(["0", "500m", "2Gi", "1k", "12e6"]),
    "IntOrString": st.integers(-(2**31), 2**31 - 1) | TEXT,
    "RawExtension": st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
    "JSONSchemaPropsOrArray": st.just({"type": "string"}),
    "JSONSchemaPropsOrBool": st.booleans(),
    "JSONSchemaPropsOrStringArray": st.just(["a", "b"]),
}
SCALARS: dict[Action, st.SearchStrategy[Any]] = {
    Action.STRING: TEXT,
    Action.STRINGS: st.lists(TEXT, min_size=1, max_size=2),
    Action.INT32: st.integers(-(2**31), 2**31 - 1),
    Action.INT64: st.integers(-(2**63), 2**63 - 1),
    Action.INT32S: st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=2),
    Action.INT64S: st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=2),
    Action.BOOL: st.booleans(),
    Action.BYTES: st.binary(min_size=1, max_size=4).map(lambda raw: base64.b64encode(raw).decode()),
    Action.DOUBLE: st.integers(-9, 9) | st.just(2.5),
    Action.LIST: st.lists(TEXT, min_size=1, max_size=2),
}


@st.composite
def trees(draw: st.DrawFn, message: Message, depth: int = 0) -> dict[str, Any]:
    """A few members of a message, and fewer the deeper it goes."""
    found: dict[str, Any] = {}
    named = [field for field in message.fields if field.action is not Action.INLINE]
    chosen = draw(st.lists(st.sampled_from(named), max_size=4 if depth < 5 else 0, unique=True)) if named else []
    for field in chosen:
        found[field.name] = draw(_content(field, depth))
    for field in message.fields:
        if field.action is Action.INLINE and field.inside is not None:
            found.update(draw(trees(field.inside, depth + 1)))
    return found


def _content(field: Field, depth: int) -> st.SearchStrategy[Any]:
    if field.action in SCALARS:
        return SCALARS[field.action]
    assert field.inside is not None
    if field.action is Action.MAP:
        return st.dictionaries(TEXT, _content(field.inside.fields[1], depth + 1), min_size=1, max_size=2)
    if field.value is None:
        part = trees(field.inside, depth + 1)
        return st.lists(part, min_size=1, max_size=2) if field.action is Action.MESSAGES else part
    value = VALUES[field.value.message]
    return st.lists(value, min_size=1, max_size=2) if field.action is Action.VALUES else value


@st.composite
def objects(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    api_version, kind = draw(st.sampled_from(KINDS))
    message = message_of_kind(api_version, kind)
    assert message is not None
    return api_version, kind, draw(trees(message))


def contains(whole: Any, part: Any) -> bool:
    """Whether all of the part is in the whole, which may show zeros besides; a zero may be left out."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(contains(whole.get(name), value) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(contains, whole, part))
    if whole is None:
        return not part
    return bool(whole == part) or (isinstance(part, str) and str(whole)[:19] == part[:19])


def verdict(body: bytes) -> str:
    """The kind that was read, or why nothing was; any other exception fails the test."""
    try:
        return str(decode(body)["kind"])
    except DecodeError as refusal:
        return str(refusal)


@given(objects())
def test_what_is_written_is_read_again(case: tuple[str, str, dict[str, Any]]) -> None:
    api_version, kind, tree = case

    body = encode(tree, api_version, kind)
    read = decode(body)

    assert (read["apiVersion"], read["kind"]) == (api_version, kind)
    assert contains(read, tree)
    assert encode(read, api_version, kind) == body


@given(st.sampled_from(BODIES), st.data())
def test_a_damaged_body_is_read_or_refused(body: bytes, data: st.DataObject) -> None:
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(len(PREFIX), len(damaged)))
        removed = data.draw(st.integers(0, 8))
        damaged[position : position + removed] = data.draw(st.binary(max_size=8))

    assert verdict(bytes(damaged))


@given(st.binary(max_size=200))
def test_noise_is_read_or_refused(noise: bytes) -> None:
    body = PREFIX + b"\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + bytes([min(len(noise), 127)]) + noise[:127]

    assert verdict(body)
