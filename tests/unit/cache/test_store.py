"""What the store keeps and what it lets go; how it answers readers and indexes is tested with those."""

from __future__ import annotations

import json

import pytest

from kubewright import ObjectKey
from kubewright.cache.store import Entry, Store
from kubewright.k8s.core.v1 import ConfigMap

HERE = ObjectKey("shop", "a")


def entry(key: ObjectKey, **labels: str) -> Entry:
    tree = {"metadata": {"name": key.name, "namespace": key.namespace, "labels": labels}}
    return Entry(1, "u", json.dumps(tree).encode())


@pytest.fixture
def store() -> Store[ConfigMap]:
    return Store(ConfigMap)


def test_a_namespace_whose_last_object_went_leaves_nothing_behind(store: Store[ConfigMap]) -> None:
    for number in range(100):
        key = ObjectKey(f"test-{number}", "a")
        store.put(key, entry(key))
        store.remove(key)

    assert store._namespaces == {}


def test_labels_that_are_made_up_as_one_goes_are_not_indexed_without_end(store: Store[ConfigMap]) -> None:
    store.put(HERE, entry(HERE, **{f"label-{number}": "x" for number in range(40)}))

    indexes = [store.label_index(f"label-{number}") for number in range(40)]

    assert [index is not None for index in indexes] == [True] * 16 + [False] * 24
    assert store.label_index("label-0") is indexes[0]
