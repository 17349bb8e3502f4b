"""Docstrings name only what is there: a module, class or function in backticks exists.

Covers: kubewright
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.docstring_names import EXAMPLES, SOURCE, unknown_names, unknown_names_of

MODULES = sorted(
    path
    for path in (SOURCE / "kubewright").rglob("*.py")
    if "k8s" not in path.relative_to(SOURCE).parts[:-1]  # generated from Kubernetes' own descriptions
)


@pytest.mark.parametrize(
    "room", sorted({path.parent for path in MODULES}), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_every_name_in_a_docstring_leads_somewhere(room: Path) -> None:
    unknown = [
        f"{path.relative_to(SOURCE)}:{line} `{name}`"
        for path in MODULES
        if path.parent == room
        for line, name in unknown_names(path)
    ]

    assert unknown == [], "rename them, or add what stands for somebody else's to docstring_examples.txt"


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ('"""See `reflector` and `cache.store.Store.put`."""', []),
        ('"""See `reflectors`."""', ["reflectors"]),
        ('"""See `cache.shop`."""', ["cache.shop"]),
        ('"""See `cache.store.Store.nothing_like_it`."""', ["cache.store.Store.nothing_like_it"]),
        ('"""Takes `size_of_it`."""\nsize_of_it = 1\n', []),
        ('"""Sets `spec.replicas` of a `Deployment`."""', []),
        ('"""Follows `isPrettyPrint`; `kubectl get pods` is no name."""', []),
        ('"""Follows `ClaimRefs`."""', ["ClaimRefs"]),
        ('"""Follows `ClaimRefs` in controller_ref_manager.go."""', []),
    ],
)
def test_a_name_that_leads_nowhere_is_found(tmp_path: Path, text: str, unknown: list[str]) -> None:
    file = tmp_path / "module.py"
    file.write_text(text)

    assert [name for _, name in unknown_names_of(file, rooms=())] == unknown


def test_every_example_is_used() -> None:
    words = "\n".join(path.read_text() for path in MODULES)

    assert [name for name in sorted(EXAMPLES) if f"`{name}" not in words and f"@{name}" not in words] == []


def test_every_path_in_the_contributing_guide_exists() -> None:
    root = SOURCE.parent
    text = (root / "CONTRIBUTING.md").read_text() + (root / "tests" / "README.md").read_text()
    paths = {path for path in re.findall(r"`([\w.-]+/[\w./-]*)`", text) if "/a/" not in f"/{path}"}  # an example
    places = (root, SOURCE / "kubewright", root / "tests", SOURCE / "kubewright/apiserver/builtin")

    assert paths
    assert sorted(path for path in paths if not any((place / path).exists() for place in places)) == []
