"""Kinds that are called like what their modules import, or like other modules of a project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from kubewright.scaffold.additions import add_api, add_webhook
from kubewright.scaffold.changes import plan, write
from kubewright.scaffold.project import Project

from .conftest import output_of

KINDS = (
    "Annotated", "Client", "Conftest", "Context", "Controller", "Ctx", "Default", "Errors", "Field", "FieldErrors",
    "Labels", "Operator", "Request", "Resource", "Sample", "Spec", "Status", "Tests",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_kind_may_have_the_name_of_a_class_or_a_module_that_a_project_uses(tmp_path: Path) -> None:
    folder = tmp_path / "names-operator"
    folder.mkdir()
    project = Project.new(name="names-operator", domain="example.io")
    for kind in KINDS:
        entry: dict[str, Any] = {"group": "names", "version": "v1", "kind": kind}
        project = add_webhook(add_api(project, **entry), **entry, defaulting=True, validation=True)
    status: dict[str, Any] = {"group": "names", "version": "v1beta1", "kind": "Status"}
    project = add_webhook(add_api(project, **status), **status, conversion=True)
    write(folder, plan(folder, project))

    await output_of((sys.executable, "-m", "kubewright.cli", "generate"), folder)
    await output_of((sys.executable, "-m", "ruff", "format", "--check", "."), folder)
    await output_of((sys.executable, "-m", "ruff", "check", "."), folder)
    await output_of((sys.executable, "-m", "mypy"), folder)
    tested = await output_of((sys.executable, "-m", "pytest", "-p", "no:cacheprovider"), folder)

    # A reconciler and two webhooks for each, the operator as a whole, and a conversion.
    assert f"{3 * len(KINDS) + 2} passed" in tested
