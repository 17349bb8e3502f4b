"""What changed since an object was read."""

from __future__ import annotations

import pytest

from kubewright import Model, Resource, Spec, Status
from kubewright.api import copy_of
from kubewright.api.changes import merge_patch_between, merge_patch_since_read, status_patch_since_read, whole_tree
from kubewright.api.codec import decode_tree, read
from kubewright.errors import ConfigError


class Part(Model):
    name: str
    size: int = 1


class ThingSpec(Spec):
    size: int = 1
    note: str | None = None
    parts: list[Part] = []


class Thing(Resource[ThingSpec, Status], group="example.io", version="v1"):
    """For these tests."""


WIRE = (
    b'{"apiVersion":"example.io/v1","kind":"Thing","metadata":{"name":"a","strange":true},'
    b'"spec":{"size":2,"extra":{"a":[1,2]},"parts":[{"name":"p","hidden":1},{"name":"q","hidden":2}]},"top":"kept"}'
)


def test_nothing_changed_gives_an_empty_patch_and_the_same_tree() -> None:
    thing = read(Thing, WIRE)

    assert merge_patch_since_read(thing) == {}
    assert whole_tree(thing) == decode_tree(WIRE)


def test_defaults_the_class_fills_in_are_no_change() -> None:
    thing = read(Thing, b'{"metadata":{"name":"a"},"spec":{}}')

    assert thing.spec.size == 1
    assert merge_patch_since_read(thing) == {}


class CountStatus(Status):
    ready: int = 0
    names: list[str] = []


class Counted(Resource[ThingSpec, CountStatus], group="example.io", version="v1"):
    """For these tests."""


def test_a_status_written_for_the_first_time_says_its_zeros() -> None:
    thing = read(Counted, b'{"metadata":{"name":"a"},"spec":{}}')
    thing.status.observed_generation = 1

    assert status_patch_since_read(thing) == {"status": {"observedGeneration": 1, "ready": 0, "names": []}}


def test_a_status_that_says_its_zeros_already_is_patched_by_what_changed() -> None:
    thing = read(Counted, b'{"metadata":{"name":"a"},"spec":{},"status":{"ready":0,"names":[],"other":1}}')
    thing.status.ready = 2

    assert status_patch_since_read(thing) == {"status": {"ready": 2}}


def test_a_status_in_which_nothing_was_changed_is_not_written() -> None:
    thing = read(Counted, b'{"metadata":{"name":"a"},"spec":{}}')
    thing.spec.size = 7

    assert status_patch_since_read(thing) == {}


def test_one_changed_field_is_the_whole_patch() -> None:
    thing = read(Thing, WIRE)
    thing.spec.size = 3

    assert merge_patch_since_read(thing) == {"spec": {"size": 3}}


def test_removed_field_is_null_in_the_patch() -> None:
    thing = read(Thing, b'{"metadata":{"name":"a"},"spec":{"note":"x"}}')
    thing.spec.note = None

    assert merge_patch_since_read(thing) == {"spec": {"note": None}}


def test_unknown_fields_inside_list_items_survive_a_change_of_the_list() -> None:
    thing = read(Thing, WIRE)
    thing.spec.parts[1].size = 9

    assert merge_patch_since_read(thing) == {
        "spec": {"parts": [{"name": "p", "hidden": 1}, {"name": "q", "hidden": 2, "size": 9}]}
    }


def test_unknown_fields_survive_a_private_copy() -> None:
    thing = copy_of(read(Thing, WIRE))
    thing.metadata.labels["x"] = "y"

    assert merge_patch_since_read(thing) == {"metadata": {"labels": {"x": "y"}}}
    assert whole_tree(thing)["top"] == "kept"
    assert whole_tree(thing)["metadata"] == {"name": "a", "strange": True, "labels": {"x": "y"}}


def test_object_made_here_has_nothing_to_compare_with() -> None:
    with pytest.raises(ConfigError, match="was not read from a server"):
        merge_patch_since_read(Thing.named("a"))


def test_patch_between_two_objects() -> None:
    before, after = read(Thing, WIRE), read(Thing, WIRE)
    after.spec.parts = []

    assert merge_patch_between(before, after) == {"spec": {"parts": []}}
