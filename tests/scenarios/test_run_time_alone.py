"""The run time without the development half: what a production image carries is enough for a reference operator.

Which packages are the development half is said in one place, the contract `runtime` of `.importlinter`.

Covers: kubewright
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

import kubewright
from kubewright._base import yaml
from kubewright.api.codec import from_tree
from kubewright.api.dynamic import Dynamic
from kubewright.cluster.install import install_crds
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.testing.waiting import until

ROOT = Path(__file__).parents[2]
OPERATORS = sorted(path.parent.name for path in (ROOT / "operators").glob("*/pyproject.toml"))
PODSET = Dynamic("apps.jicki.cn/v1alpha1", "PodSet")


def development_packages() -> set[str]:
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    forbidden = contracts["importlinter:contract:runtime"]["forbidden_modules"].split()
    return {name.removeprefix("kubewright.") for name in forbidden}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run time alone."""
    folder = tmp_path_factory.mktemp("site")
    source = Path(kubewright.__file__).parent
    left_out = development_packages()

    def ignored(place: str, names: list[str]) -> set[str]:
        return {"__pycache__"} | (left_out if Path(place) == source else set())

    shutil.copytree(source, folder / "kubewright", ignore=ignored)
    assert not left_out & {path.name for path in (folder / "kubewright").iterdir()}
    return folder


def environment(site: Path, operator: str, **more: str) -> dict[str, str]:
    path = os.pathsep.join((str(site), str(ROOT / "operators" / operator)))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more}


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_reference_operator_loads(site: Path, operator: str) -> None:
    script = (
        "import kubewright; from kubewright.manager.operator import load_operator; "
        f"loaded = load_operator({operator!r}); "
        "print(kubewright.__file__, len(loaded.controllers) + len(loaded.webhooks))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(site, operator), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    place, declared = done.stdout.split()
    assert Path(place).is_relative_to(site)
    assert int(declared) > 0


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_image_leaves_the_development_half_out(operator: str) -> None:
    lines = (ROOT / "operators" / operator / "Dockerfile").read_text().splitlines()
    (removal,) = (line for line in lines if line.startswith("RUN cd /app/kubewright && rm -rf "))

    assert set(removal.partition("rm -rf ")[2].split()) == development_packages()


async def test_a_reference_operator_reconciles(site: Path, embedded_cluster: EmbeddedCluster) -> None:
    for file in sorted((ROOT / "operators/podset/config/crd").rglob("*.yaml")):
        for tree in yaml.load_all(file.read_text()):
            if tree.get("kind") == "CustomResourceDefinition":
                await install_crds(embedded_cluster.client, tree)
    wanted = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"size": 2}}
    await embedded_cluster.client.create(from_tree(PODSET, wanted))
    off = {"KUBEWRIGHT_HEALTH_ADDRESS": "0", "KUBEWRIGHT_METRICS_ADDRESS": "0"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podset"),
        env=environment(site, "podset", KUBECONFIG=str(embedded_cluster.kubeconfig), **off),
        stderr=asyncio.subprocess.PIPE,
    )
    reading = asyncio.create_task(process.communicate())
    try:
        await until(
            embedded_cluster.client,
            PODSET,
            "web",
            lambda podset: podset.get("status.readyReplicas") == 2,
            namespace="default",
        )
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = await reading

    assert process.returncode == 0, log.decode()
