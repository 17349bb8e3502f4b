"""What a cluster says does not steer the terminal of the developer who asked it.

Covers: kubewright.cli
"""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from rich.console import Console

from kubewright.api.codec import from_tree
from kubewright.api.dynamic import Dynamic, DynamicObject
from kubewright.cli.commands.tree import _DEEPEST, _draw, _node
from kubewright.cli.tables import print_table
from kubewright.cli.terminals import visible

ConfigMapObject = Dynamic("v1", "ConfigMap")
STEERING = "ok\x1b]0;title\x07\x1b[2J\r\x08\x9b1m\u202e\x00[bold]"


def _steers(printed: str) -> bool:
    return not printed.replace("\n", "").isprintable()


@pytest.mark.parametrize("text", [STEERING, "\x1b", "a\rb", "\u2028", "\udc80"], ids=ascii)
def test_text_is_shown_and_not_obeyed(text: str) -> None:
    assert not _steers(visible(text))


@pytest.mark.parametrize("text", ["plain", "two\nlines", "Grüße 世界 😀"], ids=ascii)
def test_what_prints_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_a_tree_of_objects_shows_a_condition_of_somebody_else() -> None:
    node = {
        "kind": STEERING,
        "name": STEERING,
        "deleting": True,
        "phase": STEERING,
        "conditions": [{"type": STEERING, "status": STEERING, "reason": STEERING}],
        "children": [],
        "omitted": True,
    }
    output = io.StringIO()

    Console(file=output, width=1000, color_system=None).print(_draw(node), soft_wrap=True)

    assert not _steers(output.getvalue())
    assert "[bold]" in output.getvalue()


def owned_by(*owners: str, name: str) -> DynamicObject:
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": owner} for owner in owners]
    meta = {"name": name, "uid": name, "ownerReferences": references}
    return from_tree(ConfigMapObject, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


def drawn(objects: list[DynamicObject]) -> list[str]:
    owned: dict[str, list[DynamicObject]] = {}
    for each in objects:
        for owner in each.metadata.owner_references:
            owned.setdefault(owner.uid, []).append(each)
    output = io.StringIO()
    tree = _draw(_node(owned_by(name="root"), owned, set(), _DEEPEST))
    Console(file=output, width=10_000, color_system=None).print(tree, soft_wrap=True)
    return output.getvalue().splitlines()


def test_objects_with_several_owners_are_drawn_as_often_as_they_have_owners() -> None:
    """Sixty layers of two objects, each owned by both above, have 2**60 ways from the top to the bottom."""
    layers = [("root",), *((f"a{number}", f"b{number}") for number in range(60))]
    objects = [owned_by(*above, name=name) for above, layer in pairwise(layers) for name in layer]

    lines = drawn(objects)

    assert len(lines) == 1 + sum(len(each.metadata.owner_references) for each in objects)
    assert sum("owns what is not shown again" in line for line in lines) == 2 * 58  # the last layer owns nothing


def test_a_chain_of_owners_is_cut_off() -> None:
    lines = drawn([owned_by(f"m{number - 1}" if number else "root", name=f"m{number}") for number in range(5000)])

    assert len(lines) == 1 + _DEEPEST
    assert "owns what is not shown again" in lines[-1]


def test_owners_in_a_circle_are_drawn_once() -> None:
    lines = drawn([owned_by("root", "c", name="a"), owned_by("a", name="b"), owned_by("b", name="c")])

    assert len(lines) == 5
    assert "owns what is not shown again" in lines[-1]


def test_a_table_shows_a_cell_of_somebody_else(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME"], [[STEERING]])

    assert not _steers(capsys.readouterr().out)
