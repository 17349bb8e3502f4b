"""Get and list from memory: namespaces, labels, fields, indexes."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright import ObjectKey
from kubewright.api import problems_of
from kubewright.api.selectors import FieldSelector, Selector
from kubewright.cache.scope import Scope
from kubewright.errors import ConfigError, DecodeError, NotFound


@pytest.fixture
async def shelf(rig: Any) -> Any:
    """Five gadgets in two namespaces."""
    rig.stream = rig.server.streams(
        rig.gadget("c", 3, labels={"app": "web", "tier": "front"}, color="red"),
        rig.gadget("a", 4, labels={"app": "web", "tier": "back"}, color="blue"),
        rig.gadget("b", 5, labels={"app": "db"}, color="red"),
        rig.gadget("a", 6, namespace="bank", labels={"app": "web"}, color="red"),
        rig.gadget("plain", 7, namespace="bank"),
        version=10,
    )
    rig.start()
    await rig.settle()
    rig.cache.informers()[0].add_index("spec.color", lambda item: [item.spec.color] if item.spec.color else [])
    return rig


def keys(rig: Any, **options: Any) -> list[str]:
    return [str(item.key) for item in rig.cache.reader.list(rig.kind, **options)]


async def test_get_takes_a_key_or_a_name_and_a_namespace(shelf: Any) -> None:
    get = shelf.cache.reader.get

    assert get(shelf.kind, ObjectKey("bank", "a")).spec.color == "red"
    assert get(shelf.kind, "a", namespace="shop").spec.color == "blue"
    assert get(shelf.kind, ObjectKey("", "a"), namespace="shop").spec.color == "blue"


async def test_get_of_nothing_is_not_found_and_names_it(shelf: Any) -> None:
    with pytest.raises(NotFound, match=r'gadgets.test.example.io "shop/nobody" not found in the cache') as raised:
        shelf.read("nobody")

    assert raised.value.code == 404
    assert raised.value.details["name"] == "nobody"


async def test_keys_are_those_of_all_objects_of_a_namespace_or_of_an_index(shelf: Any) -> None:
    def found(**options: Any) -> list[str]:
        return [str(key) for key in shelf.cache.reader.keys(shelf.kind, **options)]

    assert found() == ["bank/a", "bank/plain", "shop/a", "shop/b", "shop/c"]
    assert found(namespace="bank") == ["bank/a", "bank/plain"]
    assert found(index=("spec.color", "red")) == ["bank/a", "shop/b", "shop/c"]
    assert found(namespace="shop", index=("spec.color", "red")) == ["shop/b", "shop/c"]


async def test_list_is_in_order_of_namespace_and_name(shelf: Any) -> None:
    assert keys(shelf) == ["bank/a", "bank/plain", "shop/a", "shop/b", "shop/c"]
    assert keys(shelf, namespace="shop") == ["shop/a", "shop/b", "shop/c"]
    assert keys(shelf, namespace="*") == keys(shelf, namespace="") == keys(shelf)
    assert keys(shelf, namespace="nowhere") == []
    assert keys(shelf, limit=2) == ["bank/a", "bank/plain"]
    assert shelf.cache.reader.list(shelf.kind).resource_version == "10"


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ("app=web", ["bank/a", "shop/a", "shop/c"]),
        ({"app": "web", "tier": "front"}, ["shop/c"]),
        ("app in (web,db)", ["bank/a", "shop/a", "shop/b", "shop/c"]),
        ("app in (web)", ["bank/a", "shop/a", "shop/c"]),
        ("tier", ["shop/a", "shop/c"]),
        ("!app", ["bank/plain"]),
        ("app!=web", ["bank/plain", "shop/b"]),
        ("app=web,tier notin (back)", ["bank/a", "shop/c"]),
        ("nothing=here", []),
        (Selector.nothing(), []),
        (Selector.everything(), ["bank/a", "bank/plain", "shop/a", "shop/b", "shop/c"]),
    ],
)
async def test_list_by_labels(shelf: Any, labels: Any, found: list[str]) -> None:
    assert keys(shelf, labels=labels) == found
    assert keys(shelf, labels=labels, namespace="shop") == [key for key in found if key.startswith("shop")]


async def test_label_index_follows_changes(shelf: Any) -> None:
    assert keys(shelf, labels="tier=front") == ["shop/c"]
    shelf.stream.modified(shelf.gadget("c", 11))
    shelf.stream.added(shelf.gadget("d", 12, labels={"tier": "front"}))
    shelf.stream.deleted(shelf.gadget("a", 13))
    await shelf.settle()

    assert keys(shelf, labels="tier=front") == ["shop/d"]
    assert keys(shelf, labels="tier") == ["shop/d"]


async def test_more_label_keys_than_are_indexed_are_still_answered(shelf: Any) -> None:
    for number in range(40):
        assert keys(shelf, labels=f"key{number}=x") == []

    assert keys(shelf, labels="tier=front") == ["shop/c"]
    assert keys(shelf, labels="tier=front,app=web", namespace="shop") == ["shop/c"]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ("metadata.name=a", ["bank/a", "shop/a"]),
        ("metadata.name!=a", ["bank/plain", "shop/b", "shop/c"]),
        ("metadata.namespace=bank,metadata.name=a", ["bank/a"]),
        ({"spec.color": "red"}, ["bank/a", "shop/b", "shop/c"]),
        ("spec.color!=red", ["bank/plain", "shop/a"]),
        (FieldSelector.parse("spec.color=red,metadata.namespace=shop"), ["shop/b", "shop/c"]),
    ],
)
async def test_list_by_fields(shelf: Any, fields: Any, found: list[str]) -> None:
    assert keys(shelf, fields=fields) == found


async def test_list_by_index_joins_the_other_conditions(shelf: Any) -> None:
    assert keys(shelf, index=("spec.color", "red")) == ["bank/a", "shop/b", "shop/c"]
    assert keys(shelf, index=("spec.color", "red"), namespace="shop", labels="app=web") == ["shop/c"]
    assert keys(shelf, index=("spec.color", "green")) == []


async def test_unknown_index_is_named_with_those_there_are(shelf: Any) -> None:
    for options in ({"index": ("owner", "x")}, {"fields": "owner=x"}, {"fields": "owner!=x"}):
        with pytest.raises(ConfigError, match=r"no index 'owner' \(there is: spec.color\); declare it with indexes="):
            keys(shelf, **options)


async def test_bad_selector_is_a_sentence(shelf: Any) -> None:
    with pytest.raises(DecodeError, match="unable to parse requirement"):
        keys(shelf, labels="a===b")


async def test_namespace_outside_the_scope_is_an_error_and_not_an_empty_answer(rig: Any) -> None:
    rig.start(scope=Scope(namespaces=("shop",)))

    with pytest.raises(ConfigError, match="watches only the namespaces shop, not bank"):
        rig.read("a", namespace="bank")
    with pytest.raises(ConfigError, match="watches only the namespaces shop, not bank"):
        rig.names(namespace="bank")


async def test_get_of_an_object_that_does_not_fit_names_the_field(rig: Any) -> None:
    rig.server.streams(rig.gadget("bad", 3, metadata={"ownerReferences": 3}), version=10)
    rig.start()
    await rig.settle()

    with pytest.raises(DecodeError, match=r"Gadget bad: metadata.ownerReferences: expected `array`, got `int`"):
        rig.read("bad")


async def test_an_object_with_a_value_that_its_class_does_not_know_is_read(rig: Any) -> None:
    rig.server.streams(rig.gadget("bad", 3, spec={"size": "many"}), rig.gadget("good", 4), version=10)
    rig.start()
    await rig.settle()

    assert rig.names() == ["bad", "good"]
    assert [problem.path for problem in problems_of(rig.read("bad"))] == ["spec.size"]


async def test_index_function_that_raises_leaves_the_object_out(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    stream = rig.server.streams(rig.gadget("a", 3, color="red"), version=10)
    informer = rig.start()
    await rig.settle()

    def picky(item: Any) -> list[str]:
        if item.spec.color == "odd":
            raise LookupError("odd")
        return [item.spec.color]

    informer.add_index("picky", picky)
    informer.add_index("picky", picky)
    stream.added(rig.gadget("b", 11, color="odd"), rig.gadget("c", 12, color="red"))
    await rig.settle()

    assert rig.names(index=("picky", "red")) == ["a", "c"]
    assert "index picky of Gadget failed for shop/b" in caplog.text
    with pytest.raises(ConfigError, match="has an index 'picky' already"):
        informer.add_index("picky", lambda item: [])
