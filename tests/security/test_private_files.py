"""Nobody else on the machine reads what a local control plane writes: objects, keys, tokens, logs.

Covers: kubewright.cluster.planes
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubewright._base.files import open_private, write_private
from kubewright.apiserver.front.audit import AuditLog
from kubewright.apiserver.storage.journal import SqliteJournal
from kubewright.cluster import Cluster
from kubewright.cluster.planes.background import ClusterOptions, start_in_background
from kubewright.cluster.planes.plane_folder import PlaneFolder
from kubewright.errors import ClusterError
from kubewright.k8s.core.v1 import Secret


@pytest.fixture(autouse=True)
def _open_to_all() -> Iterator[None]:
    """A process whose new files are readable by everybody, as most are."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _open_to_others(folder: Path) -> dict[str, str]:
    """Every file and folder below that says others may use it, though the folder above keeps them out."""
    return {
        str(path.relative_to(folder)): oct(_mode(path))
        for path in sorted(folder.rglob("*"))
        if _mode(path) & 0o077 and not path.is_symlink()
    }


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def make(request: pytest.FixtureRequest) -> Callable[..., Cluster]:
    """Makes a control plane of either sort."""
    if request.param == "embedded":
        return Cluster.embedded
    request.getfixturevalue("real_binaries")
    return Cluster.real


async def test_folders_that_exist_are_closed_to_others(make: Callable[..., Cluster], tmp_path: Path) -> None:
    data, folder, audit_log = tmp_path / "data", tmp_path / "run", tmp_path / "logs" / "audit.log"
    for path in (data, folder, audit_log.parent):
        path.mkdir(mode=0o755)
    audit_log.touch(mode=0o644)

    async with make(data=data, folder=folder, audit_log=audit_log) as cluster:
        await cluster.client.create(Secret.named("token", "default", data={"key": b"secret"}))
        await cluster.user("somebody")

        assert _mode(data) == 0o700
        assert _mode(folder) == 0o700
        assert _open_to_others(data) == {}
        # An empty folder that the controller manager makes.
        assert {path for path in _open_to_others(folder) if path != "flexvolume"} == set()
        assert _mode(audit_log) == 0o600


def test_a_folder_that_all_users_share_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)

    with pytest.raises(ClusterError, match="is shared by all users"):
        PlaneFolder(folder=shared, data=None).open()
    assert _mode(shared) == 0o1777


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: theirs.stat().st_uid + 1)

    with pytest.raises(ClusterError, match="belongs to another user"):
        PlaneFolder(folder=theirs, data=None).open()


def test_a_journal_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    for name in ("state.db", "state.version"):
        (tmp_path / name).touch(mode=0o644)

    journal = SqliteJournal(tmp_path)
    try:
        assert _open_to_others(tmp_path) == {}
        assert {path.name for path in tmp_path.iterdir()} >= {"state.db", "state.version"}
    finally:
        journal.close()


async def test_an_audit_log_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "audit.log").touch(mode=0o644)

    log = AuditLog(tmp_path / "audit.log")
    await log.close()

    assert _mode(tmp_path / "audit.log") == 0o600


def test_an_audit_log_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that all share, somebody else may have made it before, and would read all that is written."""
    path = tmp_path / "audit.log"
    path.touch(mode=0o666)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)

    with pytest.raises(ClusterError, match="it belongs to another user"):
        AuditLog(path)


def test_a_log_in_the_background_is_private(tmp_path: Path) -> None:
    state = tmp_path / "state"

    with pytest.raises(ClusterError):
        start_in_background(ClusterOptions(name="x", state=str(state), data="/dev/null/nowhere"))

    assert _mode(state / "clusters" / "x") == 0o700
    assert _open_to_others(state / "clusters" / "x") == {}


def test_a_process_writes_its_log_for_its_owner_alone(tmp_path: Path) -> None:
    with open_private(tmp_path / "x.log") as log:
        log.write(b"x")

    assert _mode(tmp_path / "x.log") == 0o600


@pytest.mark.parametrize("content", [b"", b"secret"])
def test_a_private_file_is_never_open_to_others(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    path.parent.mkdir(mode=0o755)
    path.touch(mode=0o644)

    write_private(path, content)

    assert _mode(path) == 0o600
