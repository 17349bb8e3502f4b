"""A folder on its way from one rendering to the next."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubewright.errors import ConfigError
from kubewright.scaffold.additions import add_api, add_webhook
from kubewright.scaffold.changes import RENDERED, last_rendered, plan, write
from kubewright.scaffold.layout import render_project
from kubewright.scaffold.project import Project

EMPTY = Project.new(name="pods-operator", domain="example.io", owner='Ann "A." Other')
PODSET: dict[str, Any] = {"group": "apps", "version": "v1alpha1", "kind": "PodSet"}
ONE = add_api(EMPTY, **PODSET)


def test_a_new_project_is_all_files_and_nothing_more_to_do(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, EMPTY))

    assert last_rendered(tmp_path) == render_project(EMPTY)
    assert plan(tmp_path, EMPTY).writes == {}
    assert not [file for file in tmp_path.rglob("*") if file.name.endswith(".new")]


def test_a_kind_is_added_around_the_users_edits(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, EMPTY))
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text() + "\n## Mine\n")

    write(tmp_path, plan(tmp_path, ONE))

    assert readme.read_text().endswith("## Mine\n")
    assert "| PodSet | apps.example.io/v1alpha1 | namespaced |" in readme.read_text()
    assert (tmp_path / "pods_operator/controllers/podset.py").is_file()


def test_what_the_user_wrote_into_a_kind_survives_its_webhooks(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, ONE))
    kind = tmp_path / "pods_operator/api/v1alpha1/podset.py"
    kind.write_text(kind.read_text().replace("replicas", "pods"))
    edited = kind.read_text()
    first = add_webhook(ONE, **PODSET, defaulting=True)
    write(tmp_path, plan(tmp_path, first))
    hook = tmp_path / "pods_operator/webhooks/v1alpha1/podset.py"
    hook.write_text(hook.read_text().replace("managed-by", "part-of"))

    write(tmp_path, plan(tmp_path, add_webhook(first, **PODSET, validation=True)))

    assert kind.read_text() == edited
    assert "part-of" in hook.read_text()
    assert "def validate_podset(" in hook.read_text()


def test_a_file_that_is_in_the_way_is_told_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("mine:\n")

    planned = plan(tmp_path, EMPTY)

    assert planned.existing == ("Makefile",)
    assert "Makefile" not in planned.writes


def test_a_file_the_user_removed_stays_away(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, EMPTY))
    (tmp_path / "README.md").unlink()
    (tmp_path / "Dockerfile").unlink()

    planned = plan(tmp_path, ONE)
    write(tmp_path, planned)

    assert planned.missing == ("README.md",)
    assert not (tmp_path / "README.md").exists()
    assert not (tmp_path / "Dockerfile").exists()


OTHER = msgspec.structs.replace(ONE, namespace="other", namespaced=True)


def test_edits_in_the_very_lines_that_change_are_a_conflict(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, ONE))
    settings = tmp_path / "pyproject.toml"
    settings.write_text(settings.read_text().replace('"pods-operator-system"', '"mine"'))

    planned = plan(tmp_path, OTHER, mark=True)

    assert planned.conflicts == ("pyproject.toml",)
    assert 'namespace = "mine"' in planned.writes["pyproject.toml"]
    assert 'namespace = "other"' in planned.writes["pyproject.toml"]


def test_an_option_that_is_edited_replaces_what_the_user_had_written_there(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, ONE))
    settings = tmp_path / "pyproject.toml"
    settings.write_text(settings.read_text().replace('"pods-operator-system"', '"mine"\nmax_description = 0'))

    planned = plan(tmp_path, OTHER, before=ONE)

    assert planned.conflicts == ()
    assert planned.replaced == {"pyproject.toml": ('namespace = "mine"',)}
    found = tomllib.loads(planned.writes["pyproject.toml"])["tool"]["kubewright"]
    assert (found["namespace"], found["scope"], found["max_description"]) == ("other", "namespace", 0)


def test_an_option_that_is_edited_leaves_code_and_prose_as_the_user_wrote_them(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, ONE))
    (tmp_path / "tests/test_podset.py").write_text("def test_mine() -> None: ...\n")
    (tmp_path / "README.md").write_text("# Mine\n")

    planned = plan(tmp_path, OTHER, before=ONE)

    assert planned.conflicts == ()
    assert {"tests/test_podset.py", "README.md"}.isdisjoint(planned.writes)
    assert planned.kept.keys() == {"tests/test_podset.py", "README.md"}
    assert '"other"' in " ".join(planned.kept["tests/test_podset.py"])


def test_prose_of_the_users_own_is_no_obstacle_to_another_kind(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, ONE))
    (tmp_path / "README.md").write_text("# Mine\n")

    planned = plan(tmp_path, add_api(ONE, group="apps", version="v1alpha1", kind="Cart"))

    assert planned.conflicts == ()
    assert "README.md" not in planned.writes


def test_where_the_templates_are_newer_too_an_edit_of_the_same_setting_is_a_conflict(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, ONE))
    settings = tmp_path / "pyproject.toml"
    base = last_rendered(tmp_path)
    base["pyproject.toml"] = base["pyproject.toml"].replace('description = "', 'description = "Older: ')
    (tmp_path / RENDERED).write_text(json.dumps(base))
    settings.write_text(settings.read_text().replace('"pods-operator-system"', '"mine"'))

    assert plan(tmp_path, OTHER, before=ONE).conflicts == ("pyproject.toml",)


def test_a_damaged_memory_of_what_was_rendered_is_one_sentence(tmp_path: Path) -> None:
    write(tmp_path, plan(tmp_path, EMPTY))
    (tmp_path / RENDERED).write_text("{")

    with pytest.raises(ConfigError, match="restore it from version control"):
        plan(tmp_path, EMPTY)


def test_the_same_project_renders_the_same_files() -> None:
    assert render_project(ONE) == render_project(ONE)
    assert list(render_project(ONE)) == sorted(render_project(ONE))


@pytest.mark.parametrize("kind", ["Ox", "SidecarSet", "VirtualMachineInstanceReplicaSet"])
def test_the_code_is_in_good_style_however_long_the_names_are(tmp_path: Path, kind: str) -> None:
    project = Project.new(name="an-operator-with-quite-a-long-name", domain="platform.example.io")
    project = add_api(project, group="apps", version="v1alpha1", kind=kind, namespaced=False)
    project = add_api(project, group="apps", version="v1", kind=kind, namespaced=False, controller=False)
    hooks: dict[str, Any] = {
        "defaulting": True,
        "validation": True,
        "conversion": True,
        "operations": ("create", "update", "delete"),
    }
    write(tmp_path, plan(tmp_path, add_webhook(project, group="apps", version="v1", kind=kind, **hooks)))

    for arguments in (("format", "--check", "--diff"), ("check",)):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "."], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_webhooks_and_their_tests_know_nothing_of_the_sample_attribute_that_a_class_may_have_lost() -> None:
    project = Project.new(name="shop", domain="example.io")
    project = add_api(project, group="apps", version="v1alpha1", kind="Cart")
    project = add_api(project, group="apps", version="v1", kind="Cart", controller=False)
    project = add_webhook(
        project, group="apps", version="v1", kind="Cart", defaulting=True, validation=True, conversion=True
    )
    files = render_project(project)

    code = [line for line in files["shop/webhooks/v1/cart.py"].splitlines() if not line.strip().startswith("#")]
    assert "replicas" not in "\n".join(code)
    assert "replicas" not in files["tests/test_cart_v1_webhook.py"]
    assert "Cart(" not in files["tests/test_cart_v1_webhook.py"]  # a class may have got attributes that are required
