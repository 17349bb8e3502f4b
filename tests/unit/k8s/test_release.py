"""The Kubernetes release is stated in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kubewright
from kubewright.k8s import SERVER_VERSION
from kubewright.k8s.release import KUBERNETES_MINOR_VERSION, KUBERNETES_VERSION

SOURCES = Path(kubewright.__file__).parent
STATED = {Path("k8s/index.py"), Path("cluster/binaries/versions.py"), Path("cluster/binaries/checksums.py")}
"""The generated index, the table of releases with their etcd, and the checksums of all releases."""


def literals(tree: ast.AST) -> Iterator[str]:
    """The strings of a module, without its docstrings and those of attributes."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def test_the_release_is_that_of_the_generated_kinds() -> None:
    assert f"v{KUBERNETES_VERSION}" == SERVER_VERSION
    assert KUBERNETES_VERSION.startswith(f"{KUBERNETES_MINOR_VERSION}.")


def test_no_other_module_states_it() -> None:
    found = [
        (path, text)
        for path in SOURCES.rglob("*.py")
        if path.relative_to(SOURCES) not in STATED and KUBERNETES_MINOR_VERSION in (source := path.read_text())
        for text in literals(ast.parse(source))
        if KUBERNETES_MINOR_VERSION in text
    ]

    assert found == []
