"""What `install` and `deploy` apply of a project: what its kustomizations build, and nothing that is stale."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.builders.definitions import definition_tree

from kubewright._base import yaml
from kubewright.cluster.binaries.finder import Binaries
from kubewright.cluster.install import CRD
from kubewright.cluster.planes.embedded import EmbeddedCluster
from kubewright.k8s.apps.v1 import DaemonSet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Done(NamedTuple):
    code: int
    stdout: str
    stderr: str


@pytest.fixture
def copy(project: Path, tmp_path: Path) -> Path:
    """The project, to be changed."""
    folder = tmp_path / "pods-operator"
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster() as cluster:
        yield cluster


async def run(folder: Path, cluster: EmbeddedCluster, *arguments: str) -> Done:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubewright.cli", *arguments,
        cwd=folder, env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    stdout, stderr = await child.communicate()
    assert child.returncode is not None
    return Done(child.returncode, stdout.decode(), stderr.decode())


async def test_a_definition_that_the_kustomization_adds_is_installed_too(copy: Path, cluster: EmbeddedCluster) -> None:
    crds = copy / "config/crd"
    (crds / "theirs.yaml").write_text(yaml.dump(definition_tree("theirs", "other.example.io", kind="Their")))
    (crds / "kustomization.yaml").write_text((crds / "kustomization.yaml").read_text() + "- theirs.yaml\n")

    done = await run(copy, cluster, "install", "-o", "json")

    assert done.code == 0, done.stderr
    assert "theirs.other.example.io" in json.loads(done.stdout)["installed"]
    assert (await cluster.client.get(CRD, "theirs.other.example.io")).metadata.uid


async def test_a_patch_of_the_kustomization_counts_and_the_doctor_knows(
    copy: Path, cluster: EmbeddedCluster, real_binaries: Binaries
) -> None:
    assert real_binaries.kubectl.exists()  # it builds what is more than a list of files
    crds = copy / "config/crd/kustomization.yaml"
    patch = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "Ours."}]
    tree = {
        "patches": [{"target": {"kind": "CustomResourceDefinition", "name": "podsets.*"}, "patch": yaml.dump(patch)}]
    }
    crds.write_text(crds.read_text() + yaml.dump(tree))

    done = await run(copy, cluster, "install")
    again = await run(copy, cluster, "install")
    told = await run(copy, cluster, "doctor", "-o", "json")

    assert (done.code, again.code) == (0, 0), done.stderr + again.stderr
    crd = await cluster.client.get(CRD, "podsets.apps.whole-path.io")
    assert crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] == "Ours."
    assert {item["result"] for item in json.loads(told.stdout) if item["about"] == "CRD"} == {"good"}


async def test_a_conversion_is_there_after_another_install(copy: Path, cluster: EmbeddedCluster) -> None:
    for _ in range(2):
        done = await run(copy, cluster, "install")
        assert done.code == 0, done.stderr

    crd = await cluster.client.get(CRD, "sidecarsets.apps.whole-path.io")
    assert crd["spec"]["conversion"]["strategy"] == "Webhook"


async def test_all_commands_agree_on_what_is_stale(copy: Path, cluster: EmbeddedCluster) -> None:
    file, left = "config/crd/bases/apps.whole-path.io_podsets.yaml", "config/crd/bases/apps.whole-path.io_olds.yaml"
    (copy / file).write_text((copy / file).read_text().replace("podNames", "names"))
    (copy / left).write_text((copy / file).read_text().replace("podsets", "olds"))

    checked = await run(copy, cluster, "generate", "--check", "-o", "json")
    doctor = await run(copy, cluster, "doctor", "-o", "json")
    install = await run(copy, cluster, "install")
    deploy = await run(copy, cluster, "deploy", "--dry-run")

    assert {item["file"] for item in json.loads(checked.stdout)["stale"]} == {file, left}
    (found,) = [item for item in json.loads(doctor.stdout) if item["about"] == "manifests"]
    assert found["result"] == "wrong"
    for text in (found["text"], install.stderr, deploy.stderr):
        assert file in text
        assert left in text
        assert "run `kubewright generate`" in text
    assert (checked.code, doctor.code, install.code, deploy.code) == (1, 1, 1, 1)
    assert not [crd for crd in await cluster.client.list(CRD) if "whole-path" in crd.metadata.name]

    assert (await run(copy, cluster, "generate")).code == 0
    assert (await run(copy, cluster, "generate", "--check")).code == 0
    assert not (copy / left).exists()
    assert (await run(copy, cluster, "install")).code == 0


DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "manager", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "manager"}},
        "template": {
            "metadata": {"labels": {"app": "manager"}},
            "spec": {"containers": [{"name": "manager", "image": "controller:latest"}]},
        },
    },
}


async def test_a_daemon_set_is_waited_for_and_simulated_nodes_are_named(
    tmp_path: Path, cluster: EmbeddedCluster
) -> None:
    (tmp_path / "manager.yaml").write_text(yaml.dump(DAEMON_SET))
    (tmp_path / "kustomization.yaml").write_text("resources:\n- manager.yaml\n")
    await cluster.wait_for_controllers()

    done = await run(tmp_path, cluster, "deploy", "--overlay", ".", "--image", "mine:1")

    assert done.code == 0, done.stderr
    seen = await cluster.client.get(DaemonSet, "manager", namespace="default")
    assert seen.status is not None
    assert seen.status.number_available == seen.status.desired_number_scheduled
    assert seen.status.number_available
    assert seen.spec.template.spec is not None
    assert seen.spec.template.spec.containers[0].image == "mine:1"
    assert "The nodes of this cluster are simulated: no container runs on them" in done.stderr
    assert "`kubewright run` runs the operator here" in done.stderr


async def test_a_daemon_set_that_does_not_get_ready_is_named_with_its_pods(
    tmp_path: Path, cluster: EmbeddedCluster
) -> None:
    text = yaml.dump(DAEMON_SET)
    assert "    metadata:\n      labels:\n" in text
    never = '    metadata:\n      annotations:\n        simulation.kubewright.io/ready: "false"\n      labels:\n'
    (tmp_path / "manager.yaml").write_text(text.replace("    metadata:\n      labels:\n", never))
    (tmp_path / "kustomization.yaml").write_text("resources:\n- manager.yaml\n")
    await cluster.wait_for_controllers()

    done = await run(tmp_path, cluster, "deploy", "--overlay", ".", "--timeout", "1")

    assert done.code == 1
    assert "manager is not available after 1 s: " in done.stderr
    assert "are updated and 0 available; see kubectl --namespace default describe pods" in done.stderr
