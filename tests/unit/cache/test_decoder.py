"""From bytes to what is kept: nothing lost but what should be, however the server writes it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kubewright import Resource, Spec, Status
from kubewright.api.resource import definition_of
from kubewright.cache.decoder import ErrorEvent, EventDecoder, ObjectEvent
from kubewright.cache.scope import Scope, in_scope
from kubewright.client.watch import Bookmark
from kubewright.errors import ConfigError, DecodeError

MANAGED = [{"manager": "x", "fieldsV1": {"f:metadata": {"f:labels": {"f:a,b]}": {}}}}}]


class BoltSpec(Spec):
    size: int = 0


class BoltStatus(Status):
    pass


class Bolt(Resource[BoltSpec, BoltStatus], group="test.example.io", version="v1"):
    """Small."""


def decoder(**scope: Any) -> EventDecoder:
    return EventDecoder(definition_of(Bolt), Scope(**scope))


def kept(tree: Any, *, compact: bool = True, **scope: Any) -> Any:
    data = json.dumps(tree, separators=(",", ":") if compact else None).encode()
    return json.loads(decoder(**scope).decode_object(data).entry.data)


def bolt(**metadata: Any) -> dict[str, Any]:
    identity = {"name": "b", "namespace": "n", "uid": "u", "resourceVersion": "7"}
    return {
        "apiVersion": "test.example.io/v1",
        "kind": "Bolt",
        "metadata": {**identity, **metadata},
        "spec": {"size": 1},
    }


def without_managed(tree: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in tree["metadata"].items() if name != "managedFields"}
    return {**tree, "metadata": metadata}


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize(
    "tree",
    [
        bolt(managedFields=MANAGED),
        bolt(managedFields=MANAGED, selfLink="/after"),
        bolt(managedFields=[]),
        {**bolt(), "metadata": {"managedFields": MANAGED, **bolt()["metadata"]}},
        {**bolt(), "metadata": {"annotations": {"managedFields": "[]"}, **bolt(managedFields=MANAGED)["metadata"]}},
        {"a": {"managedFields": MANAGED}, **bolt(managedFields=MANAGED)},
        {"a": '"managedFields":', **bolt(managedFields=MANAGED), "z": {"managedFields": MANAGED}},
        {**bolt(managedFields=MANAGED, annotations={"last": json.dumps(bolt(managedFields=MANAGED))})},
        {"metadata": bolt(managedFields=MANAGED)["metadata"]},
        bolt(labels={"a": "ä\u2028\U0001f600"}, managedFields=MANAGED),
    ],
)
def test_managed_fields_of_the_object_are_cut_out_and_nothing_else(tree: dict[str, Any], compact: bool) -> None:
    assert kept(tree, compact=compact) == without_managed(tree)
    assert kept(tree, compact=compact, keep_managed_fields=True) == tree


def test_projection_keeps_metadata_and_the_named_paths() -> None:
    tree = {
        **bolt(managedFields=MANAGED),
        "spec": {"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}], "g": 3},
        "status": {},
    }

    assert kept(tree, projection=("spec.a.b", "spec.d.e", "spec.x.y", "status")) == {
        **without_managed(bolt()),
        "spec": {"a": {"b": 1}, "d": [{"e": 1, "f": 2}]},
        "status": {},
    }
    assert kept(tree, projection=("spec.a", "spec.a.b"))["spec"] == {"a": {"b": 1, "c": 2}}
    assert "spec" not in kept(tree, projection=())


@pytest.mark.parametrize("place", ["name", "spec"])
def test_object_that_is_not_in_utf8_is_not_kept(place: str) -> None:
    data = json.dumps({**bolt(), "spec": {"note": "SPEC"}}).encode()
    data = data.replace(b'"b"' if place == "name" else b"SPEC", b'"\xff"' if place == "name" else b"\xff")

    with pytest.raises(DecodeError, match="the object cannot be read"):
        decoder().decode_object(data)


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize(
    "form",
    [
        '{"type":"%s","object":%s}',
        '{"type": "%s", "object": %s }',
        '{"type":"%s","object":%s,"extra":1}',
        '{"type":"%s","object":%s\n}',
    ],
)
def test_event_is_understood_however_it_is_written(type_: str, form: str) -> None:
    line = (form % (type_, json.dumps(bolt(managedFields=MANAGED), separators=(",", ":")))).encode()

    event = decoder().decode_event(line)

    assert isinstance(event, ObjectEvent)
    assert (event.type, str(event.key), event.version) == (type_, "n/b", "7")
    assert (event.entry.version, event.entry.uid) == (7, "u")
    assert json.loads(event.entry.data) == bolt()


def test_bookmarks_errors_and_unknown_types_are_told_apart() -> None:
    metadata = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
    status = {"kind": "Status", "code": 410}

    assert decoder().decode_event(line("BOOKMARK", {"kind": "Bolt", "metadata": metadata})) == Bookmark("9", True)
    assert decoder().decode_event(line("BOOKMARK", {"metadata": {"resourceVersion": "9"}})) == Bookmark("9", False)
    assert decoder().decode_event(line("ERROR", status)) == ErrorEvent(json.dumps(status).encode())
    assert decoder().decode_event(line("PING", {"metadata": {}})) is None
    assert decoder().decode_event(line("PING", {})) is None


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        ({"metadata": {"name": 7}}, "Bolt 7: the object cannot be read"),
        ({"metadata": {}}, "Bolt without a name: the object cannot be read: it has no name"),
        ({}, "Bolt without a name"),
        ([], "Bolt without a name"),
        (
            {"kind": "Nut", "metadata": {"name": "n", "namespace": "s"}},
            "Bolt s/n: the object cannot be read: it is a Nut",
        ),
    ],
)
def test_object_that_cannot_be_kept_is_named(tree: Any, sentence: str) -> None:
    with pytest.raises(DecodeError, match=sentence):
        decoder().decode_event(line("ADDED", tree))
    with pytest.raises(DecodeError, match=sentence):
        decoder().decode_object(json.dumps(tree).encode())


@pytest.mark.parametrize(
    "text", [b"{", b"nonsense", b'{"type":"ADDED"}', b"[]", b'{"type":"ADDED","object":{"metadata":{"na']
)
def test_line_that_is_no_event_raises_another_error(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decoder().decode_event(text)


def test_scope_knows_what_the_server_would_show() -> None:
    tree = {**bolt(labels={"app": "web"}), "spec": {"node": "n1", "on": True}}
    key, data = decoder().decode_object(json.dumps(tree).encode()).key, json.dumps(tree).encode()

    for scope in (
        Scope(),
        Scope(namespaces=("m", "n")),
        Scope(labels="app=web"),
        Scope(fields="spec.node=n1,metadata.name=b,spec.on=true,spec.absent="),
        Scope(labels="app", fields="metadata.namespace!=x"),
    ):
        assert in_scope(scope, key, data)
    for scope in (
        Scope(namespaces=("m",)),
        Scope(labels="app=db"),
        Scope(fields="spec.node=n2"),
        Scope(fields="spec.node.deeper=n2"),
    ):
        assert not in_scope(scope, key, data)


def test_selector_that_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="a scope's selector cannot be read: unable to parse requirement"):
        Scope(labels="a===b")
    with pytest.raises(ConfigError, match="a scope's selector cannot be read"):
        Scope(fields="nonsense")


def line(type_: str, tree: Any) -> bytes:
    return json.dumps({"type": type_, "object": tree}).encode()
