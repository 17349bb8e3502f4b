"""Nothing that somebody altered on its way here is run: binaries, archives and sources of a control plane.

Covers: kubewright.cluster.binaries
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import pytest

from kubewright.cluster.binaries import versions
from kubewright.cluster.binaries.checksums import GO_MODULES
from kubewright.cluster.binaries.gobuild import build
from kubewright.cluster.binaries.releases import download
from kubewright.cluster.binaries.versions import Release
from kubewright.cluster.processes.commands import CompletedCommand
from kubewright.cluster.processes.progress import no_progress
from kubewright.errors import ClusterError

RELEASE = Release("1.35.4", "3.6.16")


class Server:
    """A release server of an attacker: every file is altered, and every checksum matches the altered file."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.archive = self._archive()

    @staticmethod
    def _archive() -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            member = tarfile.TarInfo("etcd-v3.6.16-linux-amd64/etcd")
            member.size = 7
            archive.addfile(member, io.BytesIO(b"altered"))
        return packed.getvalue()

    def __call__(self, url: str, into: IO[bytes], report: Callable[[int, int], None], /) -> None:
        self.asked.append(url)
        if url.endswith(".sha512"):
            into.write(hashlib.sha512(b"altered").hexdigest().encode())
        elif url.endswith("SHA256SUMS"):
            into.write(f"{hashlib.sha256(self.archive).hexdigest()}  etcd-v3.6.16-linux-amd64.tar.gz\n".encode())
        else:
            into.write(self.archive if url.endswith(".tar.gz") else b"altered")


@pytest.mark.parametrize(
    ("name", "file", "checksum"),
    [
        ("kubectl", "v1.35.4/bin/linux/amd64/kubectl", hashlib.sha512(b"true").hexdigest()),
        ("etcd", "v3.6.16/etcd-v3.6.16-linux-amd64.tar.gz", hashlib.sha256(b"true").hexdigest()),
    ],
)
def test_a_server_that_alters_file_and_checksum_is_found_out(
    name: str, file: str, checksum: str, tmp_path: Path
) -> None:
    server = Server()

    with pytest.raises(ClusterError, match="does not match its sha"):
        download(
            [name],
            release=RELEASE,
            platform=("linux", "amd64"),
            into=tmp_path,
            fetch=server,
            progress=no_progress,
            pinned={file: checksum},
        )

    assert list(tmp_path.iterdir()) == []
    assert not any("sha" in url.rpartition("/")[2].lower() for url in server.asked)  # its word is not asked for


@pytest.mark.parametrize("name", ["kubectl", "etcd"])
@pytest.mark.parametrize("checksum", ["h1:altered", ""])
def test_sources_that_somebody_altered_are_not_built(name: str, checksum: str, tmp_path: Path) -> None:
    ran: list[str] = []

    def go(
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> CompletedCommand:
        ran.append(command[1])
        return CompletedCommand(0, json.dumps({"Sum": checksum, "GoMod": "go.mod", "Dir": str(tmp_path), "Go": "1.25"}))

    with pytest.raises(ClusterError, match="somebody has altered them"):
        build([name], go="go", release=RELEASE, into=tmp_path, run=go, progress=no_progress)

    assert "build" not in ran


def test_the_sources_of_every_known_release_are_pinned() -> None:
    known = [versions.release(minor) for minor in versions._KNOWN]

    assert {f"k8s.io/kubernetes@v{one.kubernetes}" for one in known} <= GO_MODULES.keys()
    assert {f"go.etcd.io/etcd/server/v3@v{one.etcd}" for one in known} <= GO_MODULES.keys()
