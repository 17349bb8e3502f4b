"""The files of a project that belong together: targets of make, the Dockerfile and what it may copy, manifests."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubewright._base import yaml
from kubewright.manager.options import ManagerOptions
from kubewright.scaffold.additions import add_api, add_webhook
from kubewright.scaffold.layout import render_project
from kubewright.scaffold.project import Project

CART: dict[str, Any] = {"group": "shop", "version": "v1", "kind": "Cart"}
SHOP = add_webhook(add_api(Project.new(name="shop-operator", domain="example.io"), **CART), **CART, validation=True)
# What a Makefile of kubebuilder has, without what there is no tool for here.
TARGETS = {
    "all", "help", "manifests", "generate", "fmt", "vet", "test", "lint", "build", "run", "docker-build", "docker-push",
    "build-installer", "install", "uninstall", "deploy", "undeploy",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in render_project(SHOP).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def commands(folder: Path, *arguments: str) -> list[str]:
    """What make would run."""
    done = subprocess.run(["make", "-n", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_make_has_the_targets_of_kubebuilder(folder: Path) -> None:
    found = set(re.findall(r"^([a-z-]+):", (folder / "Makefile").read_text(), re.MULTILINE))

    assert found >= TARGETS
    shown = subprocess.run(["make", "help"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in shown.splitlines()} >= TARGETS


def test_bare_make_generates_formats_checks_and_builds(folder: Path) -> None:
    run = "\n".join(commands(folder))

    steps = ["kubewright generate", "ruff format .", "bin/mypy", "wheel --quiet --no-deps --wheel-dir dist ."]
    assert [run.index(step) for step in steps] == sorted(run.index(step) for step in steps)
    assert commands(folder) == commands(folder, "all") == commands(folder, "build")


@pytest.mark.parametrize("target", ["install", "deploy", "build-installer"])
def test_what_applies_manifests_generates_them_first(folder: Path, target: str) -> None:
    run = "\n".join(commands(folder, target))

    assert run.index("kubewright generate") < run.index(f"kubewright {'install' if target == 'install' else 'deploy'}")


def test_one_variable_names_kubewright_for_the_environment_and_for_the_image(folder: Path) -> None:
    named = commands(folder, "docker-build", "KUBEWRIGHT=../kubewright")
    released = commands(folder, "docker-build")

    wheel = [line for line in named if " wheel " in line]
    assert wheel[0].endswith(f"--wheel-dir .venv/wheel {folder.parent / 'kubewright'}")
    assert not [line for line in released if "--wheel-dir .venv/wheel" in line]
    for run in (named, released):
        lock = next(number for number, line in enumerate(run) if "requirements.lock pyproject.toml" in line)
        assert lock < run.index("docker build -t shop-operator:latest .")
    assert "--find-links wheels" in (folder / "Dockerfile").read_text()


def test_the_image_is_built_of_what_the_context_has_and_its_dependencies_come_before_the_code(folder: Path) -> None:
    lines = (folder / "Dockerfile").read_text().splitlines()
    allowed = [line[1:] for line in (folder / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [line.split()[1] for line in lines if line.startswith("COPY ") and "--from" not in line]

    assert sorted(copied) == sorted(allowed) == ["requirements.lock", "shop_operator", "wheels"]
    assert [name for name in copied if not (folder / name).exists()] == ["requirements.lock"]
    (installed,) = [number for number, line in enumerate(lines) if "pip install" in line]
    assert "--no-deps --require-hashes" in lines[installed]
    assert installed < lines.index("COPY shop_operator /operator/shop_operator")
    assert not [line for line in lines[installed + 1 :] if "pip" in line.split()]


def test_the_options_of_the_manager_are_ones_that_it_has(folder: Path) -> None:
    file = folder / "config/manager/controller_manager_config.yaml"
    options = ManagerOptions.load(file=file, environ={})

    assert (options.leader_election, options.metrics_address, options.webhook_certificates) == (True, ":8443", "secret")
    manager = yaml.load_all((folder / "config/manager/manager.yaml").read_text())[1]
    pod = manager["spec"]["template"]["spec"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert pod["containers"][0]["args"] == [f"--config={mount['mountPath']}/{file.name}"]
    (made,) = yaml.load((folder / "config/manager/kustomization.yaml").read_text())["configMapGenerator"]
    assert (pod["volumes"][0]["configMap"]["name"], [file.name]) == (made["name"], made["files"])


def test_a_project_in_some_namespaces_says_so_in_every_file_that_has_to_know() -> None:
    files = render_project(msgspec.structs.replace(SHOP, namespaces=("shop", "store")))

    settings = tomllib.loads(files["pyproject.toml"])["tool"]["kubewright"]
    assert settings["namespaces"] == ["shop", "store"]
    config = yaml.load(files["config/manager/controller_manager_config.yaml"])
    assert config["watchNamespaces"] == ["shop", "store"]
    assert "namespaced=True" in files["shop_operator/__main__.py"]
    assert yaml.load(files["config/samples/shop_v1_cart.yaml"])["metadata"]["namespace"] == "shop"
    assert '"shop", spec=spec' in files["tests/test_cart.py"]
