"""What a control plane does when its binaries misbehave; shell scripts stand in for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubewright.cluster import Cluster
from kubewright.cluster.processes.locks import FileLock
from kubewright.errors import ClusterError


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "assets"
    folder.mkdir()
    for name in ("etcd", "kube-controller-manager", "kubectl"):
        script(folder / name, "exec sleep 1000")
    script(folder / "kube-apiserver", "echo Kubernetes v1.35.9")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    return folder


def script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


async def test_a_component_that_crashes_at_start_is_reported_with_the_end_of_its_log(
    assets: Path, tmp_path: Path
) -> None:
    script(assets / "etcd", "echo the disk is upside down; exit 3")
    cluster = Cluster.real(folder=tmp_path / "cluster")

    with pytest.raises(ClusterError, match=r"(?s)etcd ended with exit code 3.*the disk is upside down"):
        await cluster.start()

    assert not any(process.running for process in cluster.processes.values())
    assert not (tmp_path / "cluster" / "etcd").exists()


async def test_a_port_taken_meanwhile_is_replaced_by_another(assets: Path, tmp_path: Path) -> None:
    script(assets / "etcd", f"echo $* >> {tmp_path}/calls; echo bind: address already in use; exit 1")

    with pytest.raises(ClusterError, match="address already in use"):
        await Cluster.real().start()

    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 3
    assert len(set(calls)) == 3


async def test_a_component_that_never_becomes_ready_is_an_error_after_the_timeout(assets: Path) -> None:
    script(assets / "etcd", "echo thinking; exec sleep 1000")

    with pytest.raises(ClusterError, match=r"(?s)not ready after 2 s.*thinking"):
        await Cluster.real(start_timeout=2).start()


async def test_a_data_folder_has_one_cluster_at_a_time(assets: Path, tmp_path: Path) -> None:
    cluster = Cluster.real(data=tmp_path / "data")

    with (
        FileLock(tmp_path / "data" / ".lock").acquire(),
        pytest.raises(ClusterError, match="in use by another cluster"),
    ):
        await cluster.start()

    assert not cluster.folder.exists()


async def test_a_component_that_does_not_exist_cannot_be_killed() -> None:
    with pytest.raises(ClusterError, match="components are etcd, apiserver, controller-manager"):
        await Cluster.real().kill("etcd")
