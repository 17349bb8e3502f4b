from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kubewright.cluster.planes.state import ClusterRecord, StateFolder, process_start, state_folder
from kubewright.errors import ConfigError


def record(*, name: str = "default", pid: int | None = None, started: str | None = None) -> ClusterRecord:
    own = os.getpid()
    return ClusterRecord(
        name=name,
        version="1.35.4",
        url="https://127.0.0.1:1",
        kubeconfig="/k",
        folder="/f",
        data=None,
        pid=pid or own,
        started=started or process_start(own) or "",
        processes={"etcd": 1},
    )


def test_the_record_of_a_living_process_is_found(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)

    state.write(record())

    assert state.find_running("default") == record()
    assert [found.name for found in state.list_running()] == ["default"]


def test_the_record_of_a_dead_process_is_removed(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    with subprocess.Popen(["/bin/sleep", "0"]) as ended:
        ended.wait()
    state.write(record(pid=ended.pid))

    assert state.find_running("default") is None
    assert list((tmp_path / "clusters").glob("*.json")) == []


def test_another_process_with_the_same_id_does_not_count(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)

    state.write(record(started="long ago"))

    assert state.find_running("default") is None


def test_a_zombie_process_has_no_start_time() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "exit"], stdout=subprocess.PIPE) as zombie:
        assert zombie.stdout is not None
        zombie.stdout.read()
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)

        assert process_start(zombie.pid) is None


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    state.write(record())
    (tmp_path / "clusters" / "default.json").write_text("{}")

    with pytest.raises(ConfigError, match=r"default\.json is damaged .* delete it"):
        state.find_running("default")


def test_a_missing_folder_has_no_running_clusters(tmp_path: Path) -> None:
    assert StateFolder(tmp_path / "missing").list_running() == []


@pytest.mark.parametrize("name", ["", "Upper", "../escape", "-x", "x" * 64])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        StateFolder(tmp_path).find_running(name)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"KUBEWRIGHT_STATE": "/a", "XDG_STATE_HOME": "/b"}, Path("/a")),
        ({"XDG_STATE_HOME": "/b"}, Path("/b/kubewright")),
        ({}, Path("~/.local/state/kubewright").expanduser()),
    ],
)
def test_the_state_folder_can_be_chosen(environment: dict[str, str], expected: Path) -> None:
    assert state_folder(environment) == expected
