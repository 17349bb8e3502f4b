"""What a pod says about its injection, and what others may have written there."""

import json

import pytest
from made import a_pod, a_set, injected, revision_of

from sidecarset.records import HASH, INJECTED_LIST, BrokenRecordError, injected_sets, records_of

FIELDS_OF_LOG: dict[str, object] = {
    "env": {"IS_INJECTED": {}},
    "image": {},
    "imagePullPolicy": {},
    "name": {},
    "resources": {},
    "terminationMessagePath": {},
    "terminationMessagePolicy": {},
}


def test_what_is_written_can_be_read() -> None:
    sets = a_set("b", containers=[{"name": "b", "image": "b:1"}]), a_set("a")
    pod = injected(a_pod(), *sets)

    found = records_of(pod)

    assert list(found) == ["a", "b"]
    assert found["a"].revision == revision_of(sets[1].spec)
    assert (found["b"].containers, found["b"].generation) == (("b",), 1)
    assert injected_sets(pod.metadata.annotations) == {"a", "b"}


def test_the_annotation_has_the_documented_form() -> None:
    sidecarset = a_set("a")
    revision = revision_of(sidecarset.spec)

    tree = json.loads(injected(a_pod(), sidecarset).metadata.annotations[HASH])

    assert tree == {
        "a": {
            "hash": revision.hash,
            "hashWithoutImage": revision.without_image,
            "containers": ["log"],
            "generation": 1,
            "fields": {"containers": {"log": FIELDS_OF_LOG}, "volumes": {}},
        }
    }


FIELDS_BROKEN = '{"a": {"hash": "x", "hashWithoutImage": "y", "containers": [], "generation": 1, "fields": {"a": 1}}}'


FIELDS_NESTED = FIELDS_BROKEN.replace('"fields": {"a": 1}', '"fields": ' + '{"a":' * 50 + "{}" + "}" * 50)
GENERATION_INFINITE = FIELDS_BROKEN.replace('"generation": 1', '"generation": 1e999')
FIELDS_DEEP = FIELDS_BROKEN.replace('"fields": {"a": 1}', '"fields": ' + '{"a":' * 20_000 + "{}" + "}" * 20_000)


@pytest.mark.parametrize("text", [GENERATION_INFINITE, FIELDS_DEEP, FIELDS_NESTED], ids=["infinite", "deep", "nested"])
def test_what_was_written_to_do_harm_is_told_too(text: str) -> None:
    with pytest.raises(BrokenRecordError, match="sidecarset-hash"):
        records_of(a_pod(metadata={"annotations": {HASH: text}}))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"a": 1}', '{"a": {"hash": "x"}}', '{"a": {}}', FIELDS_BROKEN]
)
def test_what_cannot_be_read_is_told_and_not_guessed(text: str) -> None:
    with pytest.raises(BrokenRecordError, match="sidecarset-hash"):
        records_of(a_pod(metadata={"annotations": {HASH: text}}))


def test_a_pod_without_a_record_was_not_injected() -> None:
    assert records_of(a_pod()) == {}
    assert injected_sets({INJECTED_LIST: ""}) == frozenset()
