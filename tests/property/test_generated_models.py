"""Whatever stands in a CRD manifest, the generator makes valid Python of it or refuses it in one sentence.

Covers: kubewright.generate.models
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright._base import yaml
from kubewright.errors import KubewrightError
from kubewright.generate.models.crd_documents import crd_documents
from kubewright.generate.models.modules import generate_models

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


@settings(max_examples=150, deadline=None)
@given(place=st.sampled_from(PLACES), junk=JUNK)
def test_a_manifest_with_anything_anywhere_gives_valid_python_or_one_sentence(
    place: tuple[int, tuple[str | int, ...]], junk: Any
) -> None:
    number, path = place
    crd = copy.deepcopy(CRDS[number])
    inside = crd
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = junk

    refusal = ""
    files: dict[str, bytes] = {}
    try:
        files = generate_models(crd_documents([("crd.yaml", crd)]), package="models")
    except KubewrightError as error:
        refusal = str(error)

    assert bool(files) != bool(refusal)
    assert "\n" not in refusal
    for name, content in files.items():
        compile(content, name, "exec")
