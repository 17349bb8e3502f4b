"""The public API: its snapshot is current, and whoever shows how to use Kubewright uses nothing else.

Covers: kubewright
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.docs.blocks import blocks_of
from tests.public_api import PUBLIC, ROOT, SNAPSHOT, is_public, lines, names_of, public_names, tree_of

from kubewright.scaffold.layout import render_project
from kubewright.scaffold.project import Kind, KindWebhooks, Project

CODE = [
    ROOT / "demo.py",
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted(path for path in (ROOT / "operators").rglob("*.py") if ".venv" not in path.parts),
]
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]
MOST_ON_THE_FACADE = 55


def imports_in(text: str) -> Iterator[tuple[str, str]]:
    """What a program imports of Kubewright, as module and name; an empty name for the module itself."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "kubewright":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "kubewright")


def private_names_in(text: str) -> list[str]:
    return [
        f"{module}.{name}".rstrip(".")
        for module, name in imports_in(text)
        if not (is_public(module, name) if name else module in PUBLIC)
    ]


def test_the_snapshot_is_current() -> None:
    assert SNAPSHOT.read_text(encoding="utf-8").splitlines() == list(lines()), "run `make public-api` and commit it"


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_programs_that_teach_use_public_names_only(path: Path) -> None:
    assert private_names_in(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_use_public_names_only(page: Path) -> None:
    for block in blocks_of(page, root=ROOT):
        if block.language == "python":
            # A page may await at the top level.
            text = f"async def page():\n{textwrap.indent(block.text, '    ')}    pass\n"
            assert private_names_in(text) == [], block.place


def test_scaffolded_projects_use_public_names_only() -> None:
    webhooks = KindWebhooks(defaulting=True, validation=True, conversion=True)
    own: dict[str, Any] = {"group": "shop", "kind": "Shop", "plural": "shops", "resource": True, "controller": True}
    kinds = (
        Kind(**own, version="v1", webhooks=webhooks),
        Kind(**own, version="v1alpha1", storage=False),
        Kind(group="apps", version="v1", kind="Deployment", plural="deployments", core=True, controller=True),
    )
    for namespaced in (False, True):
        project = Project(project_name="shop", domain="example.io", package="shop", namespaced=namespaced)
        files = render_project(msgspec.structs.replace(project, resources=kinds))
        programs = {name: text for name, text in files.items() if name.endswith(".py")}

        assert any("run_operator" in text for text in programs.values())
        assert {name: found for name, text in programs.items() if (found := private_names_in(text))} == {}


def test_the_facade_is_small_and_holds_nothing_of_its_own() -> None:
    facade = public_names()["kubewright"] - {"__version__"}

    assert len(facade) <= MOST_ON_THE_FACADE
    # `kubewright.controllers.controller` is the module of the class `Controller`.
    assert facade - {"controller"} <= frozenset().union(*(public_names()[module] for module in PUBLIC[1:]))


@pytest.mark.parametrize("package", [name for name in PUBLIC if (ROOT / "src" / Path(*name.split("."))).is_dir()])
def test_no_public_name_is_hidden_by_a_module(package: str) -> None:
    folder = ROOT / "src" / Path(*package.split("."))

    assert {path.stem for path in folder.iterdir()} & set(names_of(package)) == set()


@pytest.mark.parametrize("package", PUBLIC)
def test_lists_of_lazy_names_agree(package: str) -> None:
    branch = next((node for node in tree_of(package).body if isinstance(node, ast.If) and node.orelse), None)
    if branch is None:
        return
    typed = {
        (node.module, alias.name) for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    (call,) = (node for node in ast.walk(branch.orelse[0]) if isinstance(node, ast.Call))
    lazy = {(module, name) for module, names in ast.literal_eval(call.args[1]).items() for name in names}

    assert lazy == typed
    assert sorted(names_of(package)) == sorted({name for _, name in lazy} | ({"__version__"} & set(names_of(package))))


def test_private_names_are_noticed() -> None:
    assert private_names_in("from kubewright.manager.manager import Manager") == ["kubewright.manager.manager.Manager"]
    assert private_names_in("from kubewright import copy_of") == ["kubewright.copy_of"]
    assert private_names_in("import kubewright._base.yaml") == ["kubewright._base.yaml"]
    assert private_names_in("from kubewright import run, testing\nfrom kubewright.k8s.core.v1 import Pod") == []
