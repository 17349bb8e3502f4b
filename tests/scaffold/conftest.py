"""A project made with the commands, as the seeds of the project describe it: kinds, types edited, webhooks.

Covers: kubewright.scaffold, kubewright.cli
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

API = ("create", "api", "--version", "v1alpha1", "--group", "apps")
HOOK = ("create", "webhook", "--version", "v1alpha1", "--group", "apps")


class Kubewright(Protocol):
    """Runs a command in the project and returns what it printed to standard output."""

    async def __call__(self, *arguments: str) -> str: ...


async def output_of(command: Sequence[str | Path], folder: Path, *, stdin: str = "", **environment: str) -> str:
    """What a command that must succeed prints."""
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, stderr = await child.communicate(stdin.encode())
    assert child.returncode == 0, f"{' '.join(map(str, command))}:\n{stdout.decode()}\n{stderr.decode()}"
    return stdout.decode()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that look at the project go to one worker, so that it is made once."""
    modules = {item.path for item in items if "project" in getattr(item, "fixturenames", ())}
    for item in items:
        if item.path in modules and item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("project"))


@pytest.fixture(scope="session")
async def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project with kinds, edited types and webhooks, its manifests generated."""
    folder = tmp_path_factory.mktemp("made") / "pods-operator"
    folder.mkdir()

    async def kubewright(*arguments: str) -> None:
        await output_of((sys.executable, "-m", "kubewright.cli", *arguments), folder)

    await kubewright("init", "--domain", "whole-path.io", "--owner", "The Owner")
    await kubewright(*API, "--kind", "PodSet", "--resource", "--controller")
    await kubewright(*API, "--kind", "SidecarSet", "--namespaced=false")
    await kubewright("create", "api", "--group", "apps", "--version", "v1", "--kind", "Deployment")
    edit_types(folder / "pods_operator")
    await kubewright("generate")
    await kubewright(*HOOK, "--kind", "SidecarSet", "--defaulting", "--operations", "create")
    await kubewright(*HOOK, "--kind", "SidecarSet", "--programmatic-validation", "--operations", "create,update")
    await kubewright("create", "webhook", "--group", "core", "--version", "v1", "--kind", "Pod", "--defaulting")
    second = ("--group", "apps", "--version", "v1", "--kind", "SidecarSet")
    await kubewright("create", "api", *second, "--namespaced=false", "--controller=false")
    await kubewright("create", "webhook", *second, "--conversion")
    rename_field(folder, "SidecarSet")
    await kubewright("generate")
    return folder


def rename_field(folder: Path, kind: str) -> None:
    """What a new version is for: in v1 `replicas` is called `size`, and the converters say so."""
    package, word = folder / folder.name.replace("-", "_"), kind.lower()
    for file, changes in {
        package / f"api/v1/{word}.py": {"    replicas: Annotated[": "    size: Annotated["},
        package / f"webhooks/v1/{word}.py": {
            f"from_tree({kind}Spec, to_tree(old.spec))": f"{kind}Spec(size=old.spec.replicas)",
            f"from_tree({kind}SpecV1alpha1, to_tree(new.spec))": f"{kind}SpecV1alpha1(replicas=new.spec.size)",
        },
        folder / f"config/samples/apps_v1_{word}.yaml": {"replicas: 1": "size: 1"},
    }.items():
        text = file.read_text()
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        file.write_text(text)


def edit_types(package: Path) -> None:
    """What a user does next: a field in the status, and code that fills it in."""
    kind, controller = package / "api/v1alpha1/podset.py", package / "controllers/podset.py"
    kind.write_text(
        kind.read_text().replace(
            '    """The actual number of replicas."""\n',
            '    """The actual number of replicas."""\n    pod_names: list[str] = []\n    """Their names."""\n',
        )
    )
    controller.write_text(
        controller.read_text().replace(
            "    ctx.condition(",
            '    podset.status.pod_names = [f"{podset.metadata.name}-{n}" for n in range(podset.spec.replicas)]\n'
            "    ctx.condition(",
        )
    )


@pytest.fixture(scope="session")
def kubewright(project: Path) -> Kubewright:
    async def run(*arguments: str) -> str:
        return await output_of((sys.executable, "-m", "kubewright.cli", *arguments), project)

    return run
