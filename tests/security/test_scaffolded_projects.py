"""A PROJECT file or a last rendering of somebody else leads out of no folder and into no code.

Covers: kubewright.scaffold
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kubewright._base import yaml
from kubewright.errors import ConfigError
from kubewright.scaffold.changes import RENDERED, last_rendered, plan, write
from kubewright.scaffold.layout import render_project
from kubewright.scaffold.project import FILE, Project, load_project

KIND = {"group": "shop", "version": "v1", "kind": "Box", "plural": "boxes", "resource": True, "controller": True}


def _load(folder: Path, *, kind: dict[str, Any] | None = None, **fields: Any) -> Project:
    tree = yaml.load(Project.new(name="shop", domain="example.io").dump().encode()) | fields
    if kind is not None:
        tree["resources"] = [KIND | kind]
    (folder / FILE).write_text(json.dumps(tree, ensure_ascii=False))
    return load_project(folder)


@pytest.mark.parametrize(
    "kind",
    [
        {"core": True, "group": "../../x"},
        {"core": True, "group": "x import y\nexec('1')\nfrom z"},
        {"core": True, "group": "apps\n"},
        {"core": True, "group": "apps", "kind": "NoSuchKind"},
        {"core": True, "group": "apps", "kind": "Deployment", "plural": "deployments"},  # has no class here
        {"group": "shop\n"},
        {"group": "../x"},
        {"kind": "Box\n"},
        {"kind": "B\ufb01x"},
        {"version": "v1\n"},
        {"version": "../v1"},
        {"plural": 'boxes", x="'},
        {"webhooks": {"validation": True, "validationOperations": ['create"); exec("1']}},
    ],
    ids=ascii,
)
def test_a_kind_of_no_proper_name_is_refused(kind: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        _load(tmp_path, kind=kind)


@pytest.mark.parametrize(
    "fields",
    [
        {"package": "shop\n"},
        {"package": "class"},
        {"package": "os"},
        {"package": "kubewright"},
        {"package": "x.y"},
        {"package": "sh\ufb01p"},
        {"projectName": "shop\n\tcurl"},
        {"domain": "example.io\n"},
        {"namespace": "shop\n"},
    ],
    ids=ascii,
)
def test_a_project_of_no_proper_name_is_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        _load(tmp_path, **fields)


@pytest.mark.parametrize("owner", ["a\nb", '" }]\n[project.scripts]\nx = "y', "\u2028", "\u202e"], ids=ascii)
def test_an_owner_of_more_than_a_line_is_refused(owner: str) -> None:
    with pytest.raises(ConfigError, match="the owner"):
        Project.new(name="shop", domain="example.io", owner=owner)


@pytest.mark.parametrize("owner", ['"', '\\"', "'", "😀", "</x>", '" }]', '"""'], ids=ascii)
def test_an_owner_is_a_text_in_the_projects_settings(owner: str, tmp_path: Path) -> None:
    files = render_project(_load(tmp_path, owner=owner))

    settings = tomllib.loads(files["pyproject.toml"])
    assert settings["project"]["authors"] == [{"name": owner}]
    assert "scripts" not in settings["project"]


@pytest.mark.parametrize("path", ["../victim", "x/../../victim", "/{victim}", ""])
def test_a_last_rendering_removes_nothing_outside_the_project(path: str, tmp_path: Path) -> None:
    folder, victim = tmp_path / "project", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("precious")
    project = _load(folder)
    (folder / RENDERED).parent.mkdir()
    (folder / RENDERED).write_text(json.dumps({path.replace("/{victim}", str(victim)): "precious"}))

    with pytest.raises(ConfigError, match="outside"):
        write(folder, plan(folder, project))
    with pytest.raises(ConfigError, match="outside"):
        last_rendered(folder)
    assert victim.read_text() == "precious"
