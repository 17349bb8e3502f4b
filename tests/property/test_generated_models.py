"""Whatever stands in a CRD or in an OpenAPI document, the generator makes classes of it or refuses it in a sentence.

Covers: kubewright.generate.models
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright._base import yaml
from kubewright.errors import KubewrightError
from kubewright.generate.models.crd_documents import crd_documents
from kubewright.generate.models.modules import generate_models
from kubewright.generate.models.openapi import Documents
from kubewright.generate.models.python_tree import check_module
from kubewright.generate.models.sources import from_responses
from kubewright.k8s.documents import discovery, openapi_document

MANIFESTS = Path(__file__).parents[1] / "unit" / "generate" / "models" / "manifests"


def _places(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, value in inside:
        yield (*path, name)
        yield from _places(value, (*path, name))


CRDS = [crd for file in sorted(MANIFESTS.glob("*.yaml")) for crd in yaml.load_all(file.read_bytes())]
PLACES = [(number, path) for number, crd in enumerate(CRDS) for path in _places(crd)]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(), st.one_of(st.integers(), st.text(), st.just({"type": "string"})), max_size=2),
)


# What would end a string, a statement or a folder's name, and what Python would read as another name.
HOSTILE = st.one_of(
    st.sampled_from(
        (
            'x"""', "x\\", 'x\\"', '");exec("1")#', "x\n\nexec('1')", "x():\n  exec('1')\nclass y", "../../x", "/x",
            "x\0", "class", "None", "__all__", "__class__", "list", "Model", "field", "Any", "annotations", "metaclass",
            "\ufb01eld", "v1.List", "io.x.v1.Model", "\udc80", "\u202e", "#/components/schemas/x", "",
        )
    ),
    st.text(),
    st.text(alphabet="\"'\\\n\r().:#;\0 ax1"),
)  # fmt: skip


def _responses() -> list[Any]:
    """What a server with an API of its own answers: an OpenAPI document, discovery and its version."""
    document, groups = json.dumps(openapi_document("coordination.k8s.io/v1")), json.dumps(discovery())
    (group,) = [one for one in json.loads(groups) if one["metadata"].get("name") == "coordination.k8s.io"]
    ours = json.loads(document.replace("io.k8s.api.", "io.example.").replace("coordination.k8s.io", "x.example.io"))
    theirs = json.loads(json.dumps(group).replace("coordination.k8s.io", "x.example.io"))
    theirs["versions"] = [one for one in theirs["versions"] if one["version"] == "v1"]
    return [ours, {"kind": "APIGroupDiscoveryList", "items": [theirs]}, {"gitVersion": "v1.35.0"}]


RESPONSES = _responses()
RESPONSE_PLACES = sorted(
    (path for path in _places(RESPONSES) if len(path) > 1 and "paths" not in path[3:]),
    # Paths are most of a document and are read the least.
    key=lambda path: ("paths" in path and len(path) > 3, len(path)),
)


@settings(max_examples=150, deadline=None)
@given(place=st.sampled_from(PLACES), junk=JUNK)
def test_a_manifest_with_anything_anywhere_gives_valid_python_or_one_sentence(
    place: tuple[int, tuple[str | int, ...]], junk: Any
) -> None:
    number, path = place
    crd = copy.deepcopy(CRDS[number])
    _replace(crd, path, junk)

    _check(lambda: crd_documents([("crd.yaml", crd)]))


@settings(max_examples=150, deadline=None)
@given(place=st.sampled_from(PLACES), hostile=HOSTILE, rename=st.booleans())
def test_a_manifest_with_hostile_text_anywhere_gives_harmless_python_or_one_sentence(
    place: tuple[int, tuple[str | int, ...]], hostile: str, rename: bool
) -> None:
    number, path = place
    crd = copy.deepcopy(CRDS[number])
    (_rename if rename else _replace)(crd, path, hostile)

    _check(lambda: crd_documents([("crd.yaml", crd)]))


@settings(max_examples=300, deadline=None)
@given(
    place=st.sampled_from(RESPONSE_PLACES),
    value=st.one_of(HOSTILE, JUNK),
    name=HOSTILE,
    rename=st.booleans(),
    paths=st.booleans(),
)
def test_documents_of_a_server_with_anything_anywhere_give_harmless_python_or_one_sentence(
    place: tuple[str | int, ...], value: Any, name: str, rename: bool, paths: bool
) -> None:
    responses = copy.deepcopy(RESPONSES)
    if rename:
        _rename(responses, place, name)
    else:
        _replace(responses, place, value)
    if paths:  # without discovery, kinds come from the paths
        del responses[1]

    _check(lambda: from_responses(("a server", tree) for tree in responses))


def _replace(tree: Any, path: tuple[str | int, ...], value: Any) -> None:
    for step in path[:-1]:
        tree = tree[step]
    tree[path[-1]] = value


def _rename(tree: Any, path: tuple[str | int, ...], name: str) -> None:
    """Give a key another name, or an item of a list another value; references to the old name follow."""
    for step in path[:-1]:
        tree = tree[step]
    if isinstance(tree, dict):
        tree[name] = tree.pop(path[-1])
    else:
        tree[path[-1]] = name


def _check(read: Callable[[], Documents]) -> None:
    refusal = ""
    files: dict[str, bytes] = {}
    try:
        files = generate_models(read(), package="models")
    except KubewrightError as error:
        refusal = str(error)

    assert bool(files) != bool(refusal)
    assert "\n" not in refusal
    modules = frozenset(f"models.{name.removesuffix('.py').replace('/', '.')}" for name in files)
    for name, content in files.items():
        assert all(part.isidentifier() and part.isascii() for part in name.removesuffix(".py").split("/"))
        compile(content, name, "exec")
        check_module(name, content.decode(), modules=modules)
