"""`kubewright cluster`: what it deletes, and when."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kubewright.cli.commands.cluster import cluster


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of a cluster that is stopped."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "data/etcd").mkdir(parents=True)
    return tmp_path / "data"


def test_data_is_not_deleted_for_an_answer_from_a_pipe(data: Path) -> None:
    done = CliRunner().invoke(cluster, ["reset", "--data", str(data)], input="y\n")

    assert done.exit_code == 2
    assert "add --yes" in done.output
    assert (data / "etcd").exists()


def test_data_is_deleted_if_it_is_meant(data: Path) -> None:
    done = CliRunner().invoke(cluster, ["reset", "--data", str(data), "--yes"])

    assert done.exit_code == 0
    assert not (data / "etcd").exists()
